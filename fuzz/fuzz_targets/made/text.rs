//! C text by BLOB-58.

use super::{Other, Shape, Verdict};
use arbitrary::{Result, Unstructured};
use tvmspec::rule::Kind;

pub fn make(symbol: &str, blob: &[u8], others: &[Other], wrong: bool, from: &mut Unstructured<'_>) -> Result<(Vec<u8>, Verdict)> {
    let (length, value, end) = match wrong {
        false => (0, None, true),
        true => *from.choose(&[(1, None, true), (0, Some("256"), true), (0, Some("0x"), true), (0, Some("-1"), true), (0, None, false)])?,
    };
    let mut text = String::from("#include <stdint.h>\n");
    let kind = *from.choose(&["char", "unsigned char"])?;
    let counted = if from.arbitrary()? || length > 0 { (blob.len() + length).to_string() } else { String::new() };
    text.push_str(&format!("const {kind} {symbol}[{counted}] = {{\n  "));
    let broken = from.int_in_range(0..=blob.len() - 1)?;
    for (at, byte) in blob.iter().enumerate() {
        let plain = if from.arbitrary()? { format!("{byte:#x}") } else { byte.to_string() };
        text.push_str(value.filter(|_| at == broken).unwrap_or(&plain));
        let last = at + 1 == blob.len();
        if !last || from.arbitrary()? {
            text.push_str(if from.ratio(1, 20)? { ",\n  " } else { "," });
        }
    }
    if end {
        text.push_str("\n};\n");
        for other in others {
            match other.form {
                Shape::Code => text.push_str(&format!("TVM_DLL int32_t {}(void* args) {{\n", other.name)),
                // A context is a pointer. A host does not define the other data.
                Shape::Data if other.name.ends_with("_ctx") => text.push_str(&format!("void* {} = 0;\n", other.name)),
                _ => {}
            }
        }
    }
    let verdict = match (wrong, end) {
        (false, _) => Verdict::Whole,
        (true, true) => Verdict::Broken("BLOB-58", Kind::Malformed),
        (true, false) => Verdict::Broken("BLOB-58", Kind::Truncated),
    };
    Ok((text.into_bytes(), verdict))
}
