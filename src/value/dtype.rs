//! Data types as text, in the grammar of the tvm-ffi ABI (VAL-17, VAL-18, VAL-21).

use super::{VAL_17, VAL_18, VAL_21};
use crate::rule::{Kind, Violation};
use crate::tensor::Dtype;
use std::sync::OnceLock;

/// Name, code and bits of the small floats, whose names fix the number of bits.
const SMALL_FLOATS: [(&str, u8, u8); 11] = [
    ("float8_e3m4", 7, 8),
    // Longer names first: `float8_e4m3` is a prefix of these three, and the rest would not be a lane count.
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

/// Short names, with the prefix that each abbreviates (TEN-08). A digit must follow the first four.
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

/// Code and default bits by prefix. The first match counts.
const PREFIXES: [(&str, u8, u8); 6] = [
    ("bfloat", 4, 16),
    ("uint", 1, 32),
    ("int", 0, 32),
    ("float", 2, 32),
    ("handle", 3, 64),
    ("bool", 6, 8),
];

/// First code of custom types (TEN-02).
const CUSTOM_BEGIN: u8 = 129;

/// The lookup of custom type names (VAL-21). It needs global functions, which a later chapter defines.
pub(crate) struct CustomNames {
    /// Returns the code of a name. For an unknown name, returns the reason.
    pub(crate) code_of: fn(&str) -> Result<i64, String>,
    /// Returns the name of a code. For an unknown code, returns the reason.
    pub(crate) name_of: fn(u8) -> Result<String, String>,
}

static CUSTOM_NAMES: OnceLock<CustomNames> = OnceLock::new();

/// Sets the lookup of custom type names. Only the first call has an effect.
pub(crate) fn know_custom_names(names: CustomNames) {
    CUSTOM_NAMES.get_or_init(|| names);
}

const NOT_REGISTERED: &str = "no function for custom types is registered";

/// Returns the name of the custom type `code` (VAL-21).
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

/// Parses the text after `custom`: a name in brackets, bits, lanes (VAL-21).
fn custom(text: &str, rest: &str) -> Result<Dtype, Violation> {
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
    // VAL-21: upstream truncates the code to eight bits, so that it reads another type.
    let in_range = u8::try_from(code).ok().filter(|code| *code >= CUSTOM_BEGIN);
    let Some(code) = in_range else {
        let why = format!("`{name}` has code {code}, and custom types have 129 to 255");
        return Err(malformed(&why));
    };
    // VAL-21: the default is 32 bits. The printed text omits the bits, so every custom type reads back with 32.
    let (bits, lanes) = bits_and_lanes(rest, 32)
        .ok_or_else(|| malformed("what follows the name is not bits and lanes"))?;
    Ok(Dtype { code, bits, lanes })
}

/// Parses a data type.
///
/// # Errors
///
/// Returns VAL-17 (malformed) for text that is not a data type. For text that begins with `custom`, returns VAL-21. It is malformed if
/// a name in brackets, bits and lanes do not follow, or if the code of the name is not 129 to 255. It is unknown-kind if this process
/// does not know the name.
pub fn dtype_from_text(text: &str) -> Result<Dtype, Violation> {
    // VAL-21: checked before all other names, so that errors in such a text break VAL-21 instead of VAL-17.
    if let Some(rest) = text.strip_prefix("custom") {
        return custom(text, rest);
    }
    parse(text).ok_or_else(|| VAL_17.rejected(Kind::Malformed, format!("unknown dtype `{text}`")))
}

/// Parses VAL-17 except custom types. Returns `None` for text that is not a type.
fn parse(text: &str) -> Option<Dtype> {
    // VAL-17: `void` is a handle without bits and lanes.
    if text.is_empty() || text == "void" {
        return Some(Dtype {
            code: 3,
            bits: 0,
            lanes: 0,
        });
    }
    // VAL-17: the short names, which are read from 0.26 on. A number must follow: no release accepts `i` or `f` alone.
    let expanded = ALIASES.iter().find_map(|(short, long)| {
        let rest = text.strip_prefix(short)?;
        let fits = short.ends_with('_') || rest.starts_with(|next: char| next.is_ascii_digit());
        fits.then(|| format!("{long}{rest}"))
    });
    let text = expanded.as_deref().unwrap_or(text);
    // Checked before the names without a fixed width: `float` would read `float8_e5m2` as 8 bits and a rest.
    for (name, code, bits) in SMALL_FLOATS {
        if let Some(rest) = text.strip_prefix(name) {
            // Two elements of 4 bits share a byte, and an underscore may precede their lanes (TEN-08).
            let rest = match rest.strip_prefix('_') {
                Some(lanes) if bits == 4 => lanes,
                _ => rest,
            };
            // VAL-17: small floats cannot be scalable.
            let fixed = !rest.starts_with(SCALABLE);
            let lanes = lanes(rest).filter(|_| fixed);
            return lanes.map(|lanes| Dtype { code, bits, lanes });
        }
    }
    let (code, default, rest) = PREFIXES
        .iter()
        .find_map(|&(name, code, bits)| text.strip_prefix(name).map(|rest| (code, bits, rest)))?;
    let (bits, lanes) = bits_and_lanes(rest, default)?;
    Some(Dtype { code, bits, lanes })
}

/// Parses the text after a name: bits and lanes (VAL-17). Missing bits or 0 bits mean `default`.
fn bits_and_lanes(rest: &str, default: u8) -> Option<(u8, u16)> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = rest.split_at(digits);
    let bits = match number {
        "" => default,
        // VAL-17: up to tvm-ffi 0.1.7, `int256` is read as another type. Here it is malformed.
        number => match number.parse::<u8>().ok()? {
            // VAL-17: 0 bits mean the default: `int0` is `int32`.
            0 => default,
            bits => bits,
        },
    };
    lanes(rest).map(|lanes| (bits, lanes))
}

/// The prefix of a number of lanes that the machine multiplies.
const SCALABLE: &str = "xvscalex";

/// Parses lanes with their `x` or `xvscalex` into the 16 bits of a data type. Scalable lanes are negative (TEN-07).
fn lanes(rest: &str) -> Option<u16> {
    if rest.is_empty() {
        return Some(1);
    }
    // The longer prefix first, because `xvscalex` also begins with `x`.
    let (scalable, number) = match rest.strip_prefix(SCALABLE) {
        Some(number) => (true, number),
        None => (false, rest.strip_prefix('x')?),
    };
    // `parse` accepts a sign, but no release does.
    if number.starts_with('+') {
        return None;
    }
    // VAL-17: stored as a negative i16. More than 2^15 scalable lanes would be read as fixed lanes, which is a defect of 0.27.
    let most = if scalable { 1 << 15 } else { u16::MAX };
    let count = number.parse::<u16>().ok();
    let count = count.filter(|count| (1..=most).contains(count))?;
    Some(if scalable {
        count.wrapping_neg()
    } else {
        count
    })
}

/// Returns the text of a data type.
///
/// # Errors
///
/// Returns VAL-18 (malformed) for a code without a name, and VAL-21 (unknown-kind) for a custom type that this process does not know.
pub fn dtype_to_text(dtype: Dtype) -> Result<String, Violation> {
    let Dtype { code, bits, lanes } = dtype;
    // VAL-18: the text of a handle has no bits or lanes, and `void` (VAL-17) has an empty text.
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
        // VAL-18: `bool` reads as 8 bits (VAL-17). In tvm-ffi 0.1.0 to 0.1.2 `bool` is `uint1`.
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
    // VAL-18: a number that is negative as i16 means a scalable vector. 1, 0 and 65535 lanes are not printed.
    match lanes as i16 {
        count @ 2.. => text.push_str(&format!("x{count}")),
        count @ ..-1 => text.push_str(&format!("xvscalex{}", count.unsigned_abs())),
        _ => {}
    }
    Ok(text)
}
