//! The C text of a blob, byte for byte as a release writes it.
//!
//! | releases | element type | number | comma |
//! |---|---|---|---|
//! | 0.2, 0.3 | `char` | fewest hex digits | between numbers |
//! | 0.4 to 0.13 | `unsigned char` | fewest hex digits | between numbers |
//! | 0.14 and later | `unsigned char` | two hex digits | after each |

use super::SymbolNaming;
use crate::blob::container;
use crate::release::Release;

/// Number of values in a row; the bytes of the header count too.
const ROW: usize = 20;

/// Returns the C text that defines `blob` (header included), as the release of `naming` writes it (BLOB-59, BLOB-60).
///
/// The text of a system library is C++, because it registers itself in the initializer of a variable.
pub fn c_text(blob: &[u8], naming: &SymbolNaming) -> String {
    let symbol = naming.symbol();
    // BLOB-58: 0.2 and 0.3 write `char`. Build systems compare the text, so it matches the release byte for byte (BLOB-59).
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
    // Up to 0.13, numbers have the fewest digits and commas between them; from 0.14 on, two digits and a comma after each.
    numbers(&mut text, blob, naming.release() >= Release::of(14));
    text.push_str("\n};\n");
    // BLOB-60: without these lines the program links, but the runtime never learns of the library. An initializer that calls a function
    // requires C++.
    if let Some(register) = naming.register() {
        text.push_str(&format!("extern int {register}(const char*, void*);\n"));
        text.push_str(&format!(
            "static int {symbol}_reg_ = {register}(\"{symbol}\", (void*){symbol});\n"
        ));
    }
    text.push_str("#ifdef __cplusplus\n}\n#endif\n");
    text
}

/// Returns `text` with its array number `index` replaced by `blob`, in the style of the release that wrote it (BLOB-75). Returns `None`
/// if there is no such array.
///
/// Only the numbers and the length in the brackets change. The host code and the registration of a system library stay.
pub(super) fn replace_in_text(text: &[u8], index: usize, blob: &[u8]) -> Option<Vec<u8>> {
    let array = container::c_text::arrays(text).nth(index)?;
    let body = text.get(array.numbers..)?;
    let body = body.get(..body.iter().position(|byte| *byte == b'}')?)?;
    let elements = body.trim_ascii_end();
    // BLOB-59: a comma after the last element distinguishes the two styles.
    let mut made = String::new();
    numbers(&mut made, blob, elements.ends_with(b","));
    let mut out = text.get(..array.brackets.start)?.to_vec();
    let stated = text.get(array.brackets.clone())?;
    // BLOB-58: with `[]` the compiler counts.
    if !stated.trim_ascii().is_empty() {
        out.extend_from_slice(blob.len().to_string().as_bytes());
    }
    out.extend_from_slice(text.get(array.brackets.end..array.numbers)?);
    out.extend_from_slice(made.as_bytes());
    out.extend_from_slice(text.get(array.numbers.checked_add(elements.len())?..)?);
    Some(out)
}

/// Writes the elements in rows of twenty (BLOB-59). With `padded`, each has two digits and a comma after it.
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

/// Returns a hex digit in lower case.
fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}
