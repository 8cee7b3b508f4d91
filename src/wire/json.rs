//! The JSON form of wire values. The caller names the type, because the bytes do not show it.
//!
//! | type | JSON |
//! |---|---|
//! | `u8` `u16` `u32` `u64` `i32` `i64` | number |
//! | `f64` | number; if not finite, its bits as `"0x7ff0000000000000"` |
//! | `bool` | `true`, `false` |
//! | `string` | string |
//! | `bytes` | base64 |
//! | `vector<T>` | array |
//! | `map<K,V>` | array of `[key, value]`, in the order of the bytes |
//! | `tuple<A,B,..>` | array: the values follow each other without a count |

use super::{Cursor, WIRE_02, WIRE_03, WIRE_04, WIRE_05, Writer};
use crate::release::ParseError;
use crate::rule::Violation;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_core::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

/// Creates an object with these members, in their order. It compiles to less code than `json!`.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    // One inner function serves all lengths, so that only the array around it is compiled for each length.
    fn of(members: &mut [(&str, Value)]) -> Value {
        let mut object = Map::new();
        for (name, value) in members {
            object.insert((*name).to_owned(), value.take());
        }
        Value::Object(object)
    }
    let mut members = members;
    of(&mut members)
}

/// Returns a float as JSON. Floats that are not finite, and -0, become text, because JSON numbers cannot express them.
#[cfg(any(feature = "inspect", feature = "rpc"))]
pub(crate) fn float_form(value: f64) -> Value {
    if value.is_nan() {
        return json!("nan");
    }
    if value.is_infinite() {
        return json!(if value > 0.0 { "inf" } else { "-inf" });
    }
    // Its bits differ from those of 0, and some languages lose the sign when they read `-0` as a number.
    if value == 0.0 && value.is_sign_negative() {
        return json!("-0");
    }
    json!(value)
}

/// Reads JSON text. Returns the value and the repeated member names; of a repeated member, the last value is kept.
///
/// # Errors
///
/// Input that is not JSON, and nesting deeper than 128.
pub fn with_repeated_names(text: &[u8]) -> serde_json::Result<(Value, Vec<String>)> {
    let repeated = RefCell::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = ValueReader(&repeated).deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, repeated.into_inner()))
}

/// Builds a [`Value`] like `serde_json`, and records repeated members, of which `serde_json` silently keeps the last.
struct ValueReader<'r>(&'r RefCell<Vec<String>>);

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(ValueReader(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(ValueReader(self.0))?;
            if object.contains_key(&name) {
                self.0.borrow_mut().push(name.clone());
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// Largest nesting depth of types.
// The type comes from a request, and its parser recurses.
const DEEPEST: usize = 16;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireType {
    /// An unsigned byte.
    U8,
    /// A 16-bit unsigned integer.
    U16,
    /// A 32-bit unsigned integer.
    U32,
    /// A 64-bit unsigned integer.
    U64,
    /// A 32-bit signed integer.
    I32,
    /// A 64-bit signed integer.
    I64,
    /// A 64-bit float.
    F64,
    /// One byte, 0 or 1.
    Bool,
    /// A length and UTF-8 text.
    String,
    /// A length and bytes.
    Bytes,
    /// A count and elements.
    Vector(Box<WireType>),
    /// A count, then keys and values alternately.
    Map(Box<WireType>, Box<WireType>),
    /// Values one after the other; at least one.
    Tuple(Vec<WireType>),
}

impl WireType {
    /// Reads one value of this type.
    ///
    /// # Errors
    ///
    /// Returns the first violation, of WIRE-01 to WIRE-07.
    pub fn read(&self, cursor: &mut Cursor<'_>, field: &'static str) -> Result<Value, Violation> {
        Ok(match self {
            WireType::U8 => (*cursor.u8(field, WIRE_02)?).into(),
            WireType::U16 => (*cursor.u16(field, WIRE_02)?).into(),
            WireType::U32 => (*cursor.u32(field, WIRE_02)?).into(),
            WireType::U64 => (*cursor.u64(field, WIRE_02)?).into(),
            WireType::I32 => (*cursor.i32(field, WIRE_02)?).into(),
            WireType::I64 => (*cursor.i64(field, WIRE_02)?).into(),
            // JSON has no number for a float that is not finite; its bits replace it.
            WireType::F64 => float(*cursor.f64(field, WIRE_02)?),
            WireType::Bool => (*cursor.bool(field, WIRE_03)?).into(),
            WireType::String => (*cursor.str(field, WIRE_05)?).into(),
            WireType::Bytes => BASE64_STANDARD.encode(cursor.bytes(field, WIRE_04)?).into(),
            // WIRE-06: this is the path that the readers of trees and code use, so that the same cases check it.
            WireType::Vector(element) if **element == WireType::U64 => {
                json!(cursor.words(field, WIRE_02)?.to_vec())
            }
            WireType::Vector(element) => {
                let read = |cursor: &mut Cursor<'_>| element.read(cursor, field);
                Value::Array(cursor.vector(element.smallest(), field, read)?)
            }
            WireType::Map(key, value) => {
                // WIRE-07: the count is limited as for a vector of pairs.
                let smallest = key.smallest().saturating_add(value.smallest());
                Value::Array(cursor.map(smallest, field, |cursor| {
                    Ok(json!([
                        // Chapter wire gives these names to parts without names.
                        key.read(cursor, "key")?,
                        value.read(cursor, "item")?
                    ]))
                })?)
            }
            WireType::Tuple(members) => {
                let mut values = Vec::with_capacity(members.len());
                for (index, member) in members.iter().enumerate() {
                    let read = |cursor: &mut Cursor<'_>| member.read(cursor, field);
                    // A tuple has no count in the bytes, but it is an array in JSON.
                    values.push(cursor.read_within(field, index as u64, read)?);
                }
                Value::Array(values)
            }
        })
    }

    /// Writes `value`, which is in the JSON form of this type.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] with the part of the value that does not match the type.
    pub fn write(&self, value: &Value, out: &mut Writer) -> Result<(), ParseError> {
        let wrong = || ParseError::new(format!("{value} is not of type {self:?}"));
        match self {
            WireType::U8 => out.u8(integer(value).ok_or_else(wrong)?),
            WireType::U16 => out.u16(integer(value).ok_or_else(wrong)?),
            WireType::U32 => out.u32(integer(value).ok_or_else(wrong)?),
            WireType::U64 => out.u64(integer(value).ok_or_else(wrong)?),
            WireType::I32 => out.i32(integer(value).ok_or_else(wrong)?),
            WireType::I64 => out.i64(integer(value).ok_or_else(wrong)?),
            WireType::F64 => out.f64(float_of(value).ok_or_else(wrong)?),
            WireType::Bool => out.bool(value.as_bool().ok_or_else(wrong)?),
            WireType::String => out.str(value.as_str().ok_or_else(wrong)?),
            WireType::Bytes => {
                let bytes = value
                    .as_str()
                    .and_then(|text| BASE64_STANDARD.decode(text).ok());
                out.bytes(&bytes.ok_or_else(wrong)?);
            }
            WireType::Vector(element) => {
                let elements = value.as_array().ok_or_else(wrong)?;
                out.count(elements.len());
                for value in elements {
                    element.write(value, out)?;
                }
            }
            WireType::Map(key, item) => {
                let entries = value.as_array().ok_or_else(wrong)?;
                out.count(entries.len());
                for entry in entries {
                    let Some([first, second]) = entry.as_array().map(Vec::as_slice) else {
                        return Err(wrong());
                    };
                    key.write(first, out)?;
                    item.write(second, out)?;
                }
            }
            WireType::Tuple(members) => {
                let values = value
                    .as_array()
                    .filter(|values| values.len() == members.len());
                // The number of values must match, because the bytes contain no count.
                for (member, value) in members.iter().zip(values.ok_or_else(wrong)?) {
                    member.write(value, out)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the smallest number of bytes that a value of this type takes.
    fn smallest(&self) -> usize {
        match self {
            WireType::U8 | WireType::Bool => 1,
            WireType::U16 => 2,
            WireType::U32 | WireType::I32 => 4,
            WireType::Tuple(members) => {
                let sizes = members.iter().map(WireType::smallest);
                sizes.fold(0, usize::saturating_add)
            }
            // WIRE-04, WIRE-06: a length or count alone takes 8 bytes, like a 64-bit number.
            _ => 8,
        }
    }
}

impl FromStr for WireType {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<WireType, ParseError> {
        match parse(text, 0) {
            Some((parsed, "")) => Ok(parsed),
            _ => Err(ParseError::new(format!(
                "`{text}` is not a type like u32 or map<string,vector<u64>>"
            ))),
        }
    }
}

/// Parses one type at the start of `text`, and returns it with the rest.
fn parse(text: &str, depth: usize) -> Option<(WireType, &str)> {
    let end = text.find(['<', '>', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    let plain = match name {
        "u8" => WireType::U8,
        "u16" => WireType::U16,
        "u32" => WireType::U32,
        "u64" => WireType::U64,
        "i32" => WireType::I32,
        "i64" => WireType::I64,
        "f64" => WireType::F64,
        "bool" => WireType::Bool,
        "string" => WireType::String,
        "bytes" => WireType::Bytes,
        _ => {
            // Each bracket takes a stack frame.
            let deeper = depth.checked_add(1).filter(|depth| *depth <= DEEPEST)?;
            let (mut members, rest) = parse_list(rest.strip_prefix('<')?, deeper)?;
            let composed = match (name, members.len()) {
                ("vector", 1) => WireType::Vector(Box::new(members.pop()?)),
                ("map", 2) => {
                    let item = members.pop()?;
                    WireType::Map(Box::new(members.pop()?), Box::new(item))
                }
                ("tuple", _) => WireType::Tuple(members),
                _ => return None,
            };
            return Some((composed, rest));
        }
    };
    Some((plain, rest))
}

/// Parses types with commas between them, up to the closing bracket.
fn parse_list(mut text: &str, depth: usize) -> Option<(Vec<WireType>, &str)> {
    let mut members = Vec::new();
    loop {
        let (member, rest) = parse(text, depth)?;
        members.push(member);
        if let Some(rest) = rest.strip_prefix('>') {
            return Some((members, rest));
        }
        text = rest.strip_prefix(',')?;
    }
}

/// Returns a float as a number. Returns infinities and NaN as their bits in hex.
fn float(value: f64) -> Value {
    if value.is_finite() {
        return json!(value);
    }
    format!("{:#018x}", value.to_bits()).into()
}

/// Reads a float: the inverse of [`float`].
fn float_of(value: &Value) -> Option<f64> {
    let bits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    match bits {
        // NaN has many bit patterns, and a value must be written back to the same bytes.
        Some(bits) => {
            // `from_str_radix` also accepts a sign and fewer digits.
            let is_whole = bits.len() == 16 && bits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let bits = u64::from_str_radix(bits, 16).ok().filter(|_| is_whole);
            bits.map(f64::from_bits)
        }
        None => value.as_f64(),
    }
}

/// Converts a number to `T`, if it fits.
fn integer<T: TryFrom<i128>>(value: &Value) -> Option<T> {
    // Only i128 holds both numbers above 2^63 and negative numbers.
    let unsigned = value.as_u64().map(i128::from);
    let number = unsigned.or_else(|| value.as_i64().map(i128::from))?;
    T::try_from(number).ok()
}
