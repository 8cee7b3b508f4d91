//! Data types as text, with the grammar of the tvm-ffi ABI (VAL-17, VAL-18).

use super::dlpack::DLDataType;
use super::{VAL_17, VAL_18};
use crate::rule::{Kind, Violation};

/// Name, code, and bits when the name fixes them, of the small floats.
const SMALL_FLOATS: [(&str, u8, u8); 11] = [
    ("float8_e3m4", 7, 8),
    ("float8_e4m3b11fnuz", 9, 8),
    ("float8_e4m3fnuz", 11, 8),
    ("float8_e4m3fn", 10, 8),
    ("float8_e4m3", 8, 8),
    ("float8_e5m2fnuz", 13, 8),
    ("float8_e5m2", 12, 8),
    ("float8_e8m0fnu", 14, 8),
    ("float6_e2m3fn", 15, 6),
    ("float6_e3m2fn", 16, 6),
    ("float4_e2m1fn", 17, 4),
];

const ALIASES: [(&str, &str); 6] = [
    ("fp8_", "float8_"),
    ("f8_", "float8_"),
    ("fp6_", "float6_"),
    ("f6_", "float6_"),
    ("fp4_", "float4_"),
    ("f4_", "float4_"),
];

/// Code and default bits by prefix; the first that fits counts.
const PREFIXES: [(&str, u8, u8); 10] = [
    ("bfloat", 4, 16),
    ("uint", 1, 32),
    ("int", 0, 32),
    ("float", 2, 32),
    ("handle", 3, 64),
    ("bf", 4, 16),
    ("bool", 6, 8),
    ("i", 0, 32),
    ("u", 1, 32),
    ("f", 2, 32),
];

/// The data type that `text` names.
pub fn dtype_from_text(text: &str) -> Result<DLDataType, Violation> {
    let careless = || VAL_17.is_off().then(|| DLDataType::scalar(0, 32));
    parse(text)
        .or_else(careless)
        .ok_or_else(|| VAL_17.refused(Kind::Malformed, format!("unknown dtype `{text}`")))
}

fn parse(text: &str) -> Option<DLDataType> {
    if text.is_empty() || text == "void" {
        return Some(DLDataType {
            code: 3,
            bits: 0,
            lanes: 0,
        });
    }
    let expanded = ALIASES
        .iter()
        .find_map(|(short, long)| text.strip_prefix(short).map(|rest| format!("{long}{rest}")));
    let text = expanded.as_deref().unwrap_or(text);
    if text == "float4_e2m1fn_x2" {
        return Some(DLDataType {
            code: 17,
            bits: 4,
            lanes: 2,
        });
    }
    for (name, code, bits) in SMALL_FLOATS {
        if let Some(rest) = text.strip_prefix(name) {
            return lanes(rest).map(|lanes| DLDataType { code, bits, lanes });
        }
    }
    let (code, default, rest) = PREFIXES
        .iter()
        .find_map(|&(name, code, bits)| text.strip_prefix(name).map(|rest| (code, bits, rest)))?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = rest.split_at(digits);
    let bits = match number {
        "" => default,
        number => match number.parse::<u8>().ok()? {
            0 => default,
            bits => bits,
        },
    };
    lanes(rest).map(|lanes| DLDataType { code, bits, lanes })
}

fn lanes(rest: &str) -> Option<u16> {
    if rest.is_empty() {
        return Some(1);
    }
    let (scalable, number) = match rest.strip_prefix("xvscalex") {
        Some(number) => (true, number),
        None => (false, rest.strip_prefix('x')?),
    };
    if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // Stored as a negative number of 16 bits: beyond that it would be read as lanes that are fixed.
    let most = if scalable { 1 << 15 } else { u16::MAX };
    let count = number.parse::<u16>().ok();
    let count = count.filter(|count| (1..=most).contains(count))?;
    Some(if scalable {
        count.wrapping_neg()
    } else {
        count
    })
}

/// The text of a data type.
pub fn dtype_to_text(dtype: DLDataType) -> Result<String, Violation> {
    let DLDataType { code, bits, lanes } = dtype;
    if code == 3 {
        return Ok(if bits == 0 && lanes == 0 {
            ""
        } else {
            "handle"
        }
        .into());
    }
    let small = SMALL_FLOATS.iter().find(|(_, known, _)| *known == code);
    let mut text = match (code, small) {
        (0, _) => format!("int{bits}"),
        (1, _) => format!("uint{bits}"),
        (2, _) => format!("float{bits}"),
        (4, _) => format!("bfloat{bits}"),
        (6, _) if bits == 8 => "bool".to_owned(),
        (6, _) => format!("bool{bits}"),
        (_, Some((name, _, _))) => (*name).to_owned(),
        _ if VAL_18.is_off() => format!("float{bits}"),
        _ => {
            return Err(VAL_18.refused(
                Kind::Malformed,
                format!("DataType contains unknown type_code={code}"),
            ));
        }
    };
    // A count that reads as negative is that of a scalable vector; one lane says nothing.
    match lanes as i16 {
        count @ 2.. => text.push_str(&format!("x{count}")),
        count @ ..-1 => text.push_str(&format!("xvscalex{}", count.unsigned_abs())),
        _ => {}
    }
    Ok(text)
}
