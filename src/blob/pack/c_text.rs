//! The C text of a blob, byte for byte as the release writes it.
//!
//! | releases | element type | number | comma |
//! |---|---|---|---|
//! | 0.2, 0.3 | `char` | fewest hex digits | between numbers |
//! | 0.4 to 0.13 | `unsigned char` | fewest hex digits | between numbers |
//! | 0.14 on | `unsigned char` | two hex digits | behind each |

use super::SymbolNaming;
use crate::blob::container;
use crate::release::Release;

/// Values in a row; the header counts.
const ROW: usize = 20;

/// The C text that defines `blob` (header included) as the release of `naming` writes it (BLOB-59, BLOB-60).
///
/// A system library is C++: it registers itself in the initialiser of a variable.
pub fn c_text(blob: &[u8], naming: &SymbolNaming) -> String {
    let symbol = naming.symbol();
    // BLOB-58: `char` in 0.2 and 0.3. Build systems compare the text, so a release's own is written byte for byte (BLOB-59).
    let element = if naming.release() < Release::of(4) {
        "char"
    } else {
        "unsigned char"
    };
    let mut text = String::with_capacity(blob.len().saturating_mul(5).saturating_add(1024));
    text.push_str("#ifdef _WIN32\n#define TVM_EXPORT __declspec(dllexport)\n#else\n#define TVM_EXPORT\n#endif\n");
    text.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    text.push_str(&format!("TVM_EXPORT extern const {element} {symbol}[];\n"));
    text.push_str(&format!("const {element} {symbol}[{}] = {{", blob.len()));
    // Until 0.13 shortest numbers with commas between them, from 0.14 on two digits with a comma behind each.
    numbers(&mut text, blob, naming.release() >= Release::of(14));
    text.push_str("\n};\n");
    // BLOB-60: without these lines the program links, and the runtime never learns of the library. An initialiser that calls a
    // function is C++.
    if let Some(register) = naming.register() {
        text.push_str(&format!("extern int {register}(const char*, void*);\n"));
        text.push_str(&format!(
            "static int {symbol}_reg_ = {register}(\"{symbol}\", (void*){symbol});\n"
        ));
    }
    text.push_str("#ifdef __cplusplus\n}\n#endif\n");
    text
}

/// `text` with `blob` in the place of its array number `index`, in the look of the release that wrote it (BLOB-75). `None` where there is
/// no such array.
///
/// The numbers and the length in the brackets are others; the code of the host, and what registers a system library, stays.
pub(super) fn in_text(text: &[u8], index: usize, blob: &[u8]) -> Option<Vec<u8>> {
    let array = container::c_text::arrays(text).nth(index)?;
    let body = text.get(array.numbers..)?;
    let body = body.get(..body.iter().position(|byte| *byte == b'}')?)?;
    let elements = body.trim_ascii_end();
    // BLOB-59: the comma behind the last element tells the two looks apart.
    let mut made = String::new();
    numbers(&mut made, blob, elements.ends_with(b","));
    let mut out = text.get(..array.brackets.start)?.to_vec();
    let stated = text.get(array.brackets.clone())?;
    // BLOB-58: `[]` leaves the count to the compiler.
    if !stated.trim_ascii().is_empty() {
        out.extend_from_slice(blob.len().to_string().as_bytes());
    }
    out.extend_from_slice(text.get(array.brackets.end..array.numbers)?);
    out.extend_from_slice(made.as_bytes());
    out.extend_from_slice(text.get(array.numbers.checked_add(elements.len())?..)?);
    Some(out)
}

/// The elements, in rows of twenty (BLOB-59): `padded` with two digits and a comma behind each.
fn numbers(text: &mut String, blob: &[u8], padded: bool) {
    let last = blob.len().saturating_sub(1);
    if !padded && blob.is_empty() {
        text.push_str("\n  ");
    }
    for (row, bytes) in blob.chunks(ROW).enumerate() {
        text.push_str("\n  ");
        for (column, byte) in bytes.iter().enumerate() {
            text.push_str("0x");
            if padded || *byte > 0xf {
                text.push(digit(byte >> 4));
            }
            text.push(digit(byte & 0xf));
            if padded || row.saturating_mul(ROW).saturating_add(column) < last {
                text.push(',');
            }
        }
    }
}

/// A hex digit, in lower case.
fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}
