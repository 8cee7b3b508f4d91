//! Data types as text, with the grammar of the tvm-ffi ABI (VAL-17, VAL-18, VAL-21).

use super::dlpack::DLDataType;
use super::{VAL_17, VAL_18, VAL_21};
use crate::rule::{Kind, Violation};
use crate::tensor::Dtype;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// Name, code, and bits when the name fixes them, of the small floats.
const SMALL_FLOATS: [(&str, u8, u8); 11] = [
    ("float8_e3m4", 7, 8),
    // The longer names first: `float8_e4m3` is the front of these three too, and would leave a rest that is no lanes.
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

/// Short names, and the beginning of the name that each abbreviates (TEN-08). A digit must follow the first four.
const ALIASES: [(&str, &str); 10] = [
    ("bf", "bfloat"),
    ("i", "int"),
    ("u", "uint"),
    ("f", "float"),
    ("fp8_", "float8_"),
    ("f8_", "float8_"),
    ("fp6_", "float6_"),
    ("f6_", "float6_"),
    ("fp4_", "float4_"),
    ("f4_", "float4_"),
];

/// Code and default bits by prefix; the first that fits counts.
const PREFIXES: [(&str, u8, u8); 6] = [
    ("bfloat", 4, 16),
    ("uint", 1, 32),
    ("int", 0, 32),
    ("float", 2, 32),
    ("handle", 3, 64),
    ("bool", 6, 8),
];

/// The codes of custom types begin here (TEN-02).
const CUSTOM_BEGIN: u8 = 129;

/// How names of custom types are looked up (VAL-21): by global functions, which a later chapter has.
pub(crate) struct CustomNames {
    /// The code of a name, or why there is none.
    pub(crate) code_of: fn(&str) -> Result<i64, String>,
    /// The name of a code, or why there is none.
    pub(crate) name_of: fn(u8) -> Result<String, String>,
}

static CUSTOM_NAMES: OnceLock<CustomNames> = OnceLock::new();

/// Sets, once, how names of custom types are looked up.
pub(crate) fn know_custom_names(names: CustomNames) {
    CUSTOM_NAMES.get_or_init(|| names);
}

const NOT_REGISTERED: &str = "no function for custom types is registered";

/// The name of the custom type `code` (VAL-21).
pub(crate) fn custom_name(code: u8) -> Result<String, Violation> {
    let named = match CUSTOM_NAMES.get() {
        Some(names) => (names.name_of)(code),
        None => Err(NOT_REGISTERED.to_owned()),
    };
    named.map_err(|why| {
        let message = format!("DataType contains unknown type_code={code}: {why}");
        VAL_21.rejected(Kind::UnknownKind, message)
    })
}

/// Behind `custom`: a name in brackets, bits, lanes (VAL-21).
fn custom(text: &str, rest: &str) -> Result<DLDataType, Violation> {
    let malformed = |why: &str| {
        let message = format!("unknown dtype `{text}`: {why}");
        VAL_21.rejected(Kind::Malformed, message)
    };
    let rest = rest
        .strip_prefix('[')
        .ok_or_else(|| malformed("`custom` is followed by `[` and a name"))?;
    let (name, rest) = rest
        .split_once(']')
        .ok_or_else(|| malformed("`]` is missing"))?;
    let code = match CUSTOM_NAMES.get() {
        Some(names) => (names.code_of)(name),
        None => Err(NOT_REGISTERED.to_owned()),
    };
    let code = code.map_err(|why| {
        let message = format!("unknown dtype `{text}`: {why}");
        VAL_21.rejected(Kind::UnknownKind, message)
    })?;
    // VAL-21: upstream cuts the code to eight bits, so that another type is read.
    let in_range = u8::try_from(code).ok().filter(|code| *code >= CUSTOM_BEGIN);
    let Some(code) = in_range else {
        let why = format!("`{name}` has code {code}, and custom types have 129 to 255");
        return Err(malformed(&why));
    };
    // VAL-21: 32 bits where none are there. Printed they are missing, so that every custom type reads back as one of 32.
    let (bits, lanes) = bits_and_lanes(rest, 32)
        .ok_or_else(|| malformed("what follows the name is not bits and lanes"))?;
    Ok(DLDataType { code, bits, lanes })
}

/// The data type that `text` names.
///
/// # Errors
///
/// VAL-17 (malformed) for text that names none. VAL-21 for text that begins with `custom`: malformed where that is not a name
/// in brackets, bits and lanes, or the code of the name is not 129 to 255; unknown-kind where this process does not know the
/// name.
pub fn dtype_from_text(text: &str) -> Result<DLDataType, Violation> {
    // VAL-21: in front of all other names: whatever is wrong with such a text is malformed by that rule and not by VAL-17.
    if let Some(rest) = text.strip_prefix("custom") {
        return custom(text, rest);
    }
    parse(text).ok_or_else(|| VAL_17.rejected(Kind::Malformed, format!("unknown dtype `{text}`")))
}

/// VAL-17 but for custom types; nothing for text that names no type.
fn parse(text: &str) -> Option<DLDataType> {
    // VAL-17: `void` is a handle of no bits and no lanes.
    if text.is_empty() || text == "void" {
        return Some(DLDataType {
            code: 3,
            bits: 0,
            lanes: 0,
        });
    }
    // VAL-17: the short names, read from 0.26 on. Before a number only: `i` and `f` alone name nothing in any release.
    let expanded = ALIASES.iter().find_map(|(short, long)| {
        let rest = text.strip_prefix(short)?;
        let fits = short.ends_with('_') || rest.starts_with(|next: char| next.is_ascii_digit());
        fits.then(|| format!("{long}{rest}"))
    });
    let text = expanded.as_deref().unwrap_or(text);
    // In front of the names with a width of their own: `float` would take `float8_e5m2` for 8 bits and a rest.
    for (name, code, bits) in SMALL_FLOATS {
        if let Some(rest) = text.strip_prefix(name) {
            // Two of them share a byte, and an underscore may be in front of the lanes (TEN-08).
            let rest = match rest.strip_prefix('_') {
                Some(lanes) if bits == 4 => lanes,
                _ => rest,
            };
            // VAL-17: small floats cannot be scalable.
            let fixed = !rest.starts_with(SCALABLE);
            let lanes = lanes(rest).filter(|_| fixed);
            return lanes.map(|lanes| DLDataType { code, bits, lanes });
        }
    }
    let (code, default, rest) = PREFIXES
        .iter()
        .find_map(|&(name, code, bits)| text.strip_prefix(name).map(|rest| (code, bits, rest)))?;
    let (bits, lanes) = bits_and_lanes(rest, default)?;
    Some(DLDataType { code, bits, lanes })
}

/// What follows a name: bits, `default` where there are none or 0 of them, and lanes (VAL-17).
fn bits_and_lanes(rest: &str, default: u8) -> Option<(u8, u16)> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = rest.split_at(digits);
    let bits = match number {
        "" => default,
        // VAL-17: up to tvm-ffi 0.1.7 `int256` is read as another type; here it is malformed.
        number => match number.parse::<u8>().ok()? {
            // VAL-17: 0 bits mean none: `int0` is `int32`.
            0 => default,
            bits => bits,
        },
    };
    lanes(rest).map(|lanes| (bits, lanes))
}

/// What comes in front of a number of lanes that the machine multiplies.
const SCALABLE: &str = "xvscalex";

/// Lanes with their `x` or `xvscalex`, as the 16 bits that a data type has for them: scalable ones are negative (TEN-07).
fn lanes(rest: &str) -> Option<u16> {
    if rest.is_empty() {
        return Some(1);
    }
    // The longer one first: `xvscalex` begins with `x`, too.
    let (scalable, number) = match rest.strip_prefix(SCALABLE) {
        Some(number) => (true, number),
        None => (false, rest.strip_prefix('x')?),
    };
    // `parse` accepts a sign, which no release does.
    if number.starts_with('+') {
        return None;
    }
    // VAL-17: stored as a negative i16, so that more than 2^15 reads as fixed lanes; 0.27 has this defect.
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
///
/// # Errors
///
/// VAL-18 (malformed) for a code without a name, VAL-21 (unknown-kind) for a custom type that this process does not know.
pub fn dtype_to_text(dtype: DLDataType) -> Result<String, Violation> {
    let DLDataType { code, bits, lanes } = dtype;
    // VAL-18: a handle has neither bits nor lanes in its text, and `void` (VAL-17) no text at all.
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
        // VAL-18: 8 bits are what `bool` is read as (VAL-17). In tvm-ffi 0.1.0 to 0.1.2 `bool` is `uint1`.
        (6, _) if bits == 8 => "bool".to_owned(),
        (6, _) => format!("bool{bits}"),
        (_, Some((name, _, _))) => (*name).to_owned(),
        (CUSTOM_BEGIN.., _) => format!("custom[{}]", custom_name(code)?),
        _ => {
            return Err(VAL_18.rejected(
                Kind::Malformed,
                format!("DataType contains unknown type_code={code}"),
            ));
        }
    };
    // VAL-18: a count that is negative as i16 is that of a scalable vector. Nothing is printed for 1, 0 and 65535 lanes.
    match lanes as i16 {
        count @ 2.. => text.push_str(&format!("x{count}")),
        count @ ..-1 => text.push_str(&format!("xvscalex{}", count.unsigned_abs())),
        _ => {}
    }
    Ok(text)
}

impl FromStr for DLDataType {
    type Err = Violation;

    /// [`dtype_from_text`].
    fn from_str(text: &str) -> Result<DLDataType, Violation> {
        dtype_from_text(text)
    }
}

/// As [`Dtype`] is written: the text that reads as this type, or all three numbers where there is none.
impl fmt::Display for DLDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Dtype::from(*self).fmt(f)
    }
}
