//! Numbers that a node stores as text (OBJ-36).

use super::LegacyNode;
use crate::object::OBJ_36;
use crate::rule::{Kind, Violation};
use std::str::FromStr;

/// The number type that a text is parsed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// 0 or 1.
    Bool,
    /// 64 bits.
    Int,
    /// 32 bits: one half of a device.
    Half,
    /// A float, or a word for infinity or NaN.
    Float,
}

/// The numeric fields of a type, by name.
pub(crate) type NumberFields = Vec<(String, Number)>;

/// Returns the numeric fields of the types that every process registers with reflection.
pub(super) fn described(key: &str) -> NumberFields {
    let fields: &[(&str, Number)] = match key {
        // A fixed table, so that builds without a runtime agree with builds that have one. A test compares both.
        "ffi.Enum" | "ffi.StrEnum" => &[("_int_index", Number::Int)],
        "ffi.IntEnum" => &[("_int_index", Number::Int), ("value", Number::Int)],
        "ffi.StructuralKey" => &[("hash_i64", Number::Int)],
        "ffi.reflection.AccessPath" => &[("depth", Number::Int)],
        "ffi.reflection.AccessStep" => &[("kind", Number::Int)],
        _ => &[],
    };
    let owned = |(name, number): &(&str, Number)| ((*name).to_owned(), *number);
    fields.iter().map(owned).collect()
}

/// Checks the numbers of a node: those in `fields`, and those of types that the form itself defines. `place` returns the offset of an
/// attribute, or of the representation if the name is `None`.
pub(super) fn check(
    node: &LegacyNode,
    fields: &dyn Fn(&str) -> NumberFields,
    place: impl Fn(Option<&str>) -> u64,
) -> Result<(), Violation> {
    let check = |name: Option<&str>, number: Number| {
        let text = match name {
            None => &node.repr,
            // A missing attribute has a default, or breaks OBJ-33.
            Some(name) => match node.attrs.get(name) {
                Some(text) => text,
                None => return Ok(()),
            },
        };
        // Invalid UTF-8 becomes a replacement character, which is in no number.
        let text = String::from_utf8_lossy(text);
        let read = match number {
            Number::Bool => parse_bool(node, &text).map(drop),
            Number::Int => parse::<i64>(node, &text).map(drop),
            Number::Half => parse::<i32>(node, &text).map(drop),
            Number::Float => float(node, &text).map(drop),
        };
        // A parsed value has no offset. The text is still available here, so the violation gets one.
        read.map_err(|broken| OBJ_36.broken(broken.kind(), place(name), broken.message()))
    };
    match node.type_key.as_str() {
        "runtime.BoxInt" => check(None, Number::Int),
        "runtime.BoxFloat" => check(None, Number::Float),
        "int" => check(Some("v_int64"), Number::Int),
        "bool" => check(Some("v_int64"), Number::Bool),
        "float" => check(Some("v_float64"), Number::Float),
        // Both halves are i32 in the ABI.
        "Device" => {
            check(Some("v_device_type"), Number::Half)?;
            check(Some("v_device_id"), Number::Half)
        }
        _ if node.attrs.is_empty() => Ok(()),
        key => {
            for (name, number) in fields(key) {
                // OBJ-33: 0.21 writes an absent field as `null`.
                let null = |text: &Vec<u8>| text == b"null";
                if !node.attrs.get(&name).is_some_and(null) {
                    check(Some(&name), number)?;
                }
            }
            Ok(())
        }
    }
}

/// Returns the violation for a text that is not a number or does not fit.
fn no_number(node: &LegacyNode, text: &str) -> Violation {
    let message = format!(
        "a `{}` has `{text}` where a number is expected",
        node.type_key
    );
    OBJ_36.rejected(Kind::Malformed, message)
}

/// Parses an integer that fits `T`, in decimal digits (OBJ-36).
pub(crate) fn parse<T: FromStr>(node: &LegacyNode, text: &str) -> Result<T, Violation> {
    // OBJ-36: Rust parses the whole text and accepts no blanks. Upstream parses a prefix, so that `3abc` is 3.
    text.parse().map_err(|_| no_number(node, text))
}

/// Parses a bool: 0 or 1 (OBJ-36).
pub(crate) fn parse_bool(node: &LegacyNode, text: &str) -> Result<bool, Violation> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(no_number(node, text)),
    }
}

/// Parses a float. Accepts only the words for infinity and NaN that releases write (OBJ-36).
pub(crate) fn float(node: &LegacyNode, text: &str) -> Result<f64, Violation> {
    let value = parse(node, text)?;
    // Rust reads `infinity`, `NaN` and `+inf` as well, which no release writes.
    let word = matches!(text, "inf" | "-inf" | "nan" | "-nan");
    if f64::is_finite(value) || word {
        Ok(value)
    } else {
        Err(no_number(node, text))
    }
}
