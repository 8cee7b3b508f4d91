//! The JSON form of a value, for cases and tools.
//!
//! | value | form |
//! |---|---|
//! | None, bool, int, string | the JSON value |
//! | float | `{"float": 1.5}`, or `{"float": "nan"}`, `"inf"`, `"-inf"`, `"-0"` |
//! | bytes | `{"bytes": "<base64>"}` |
//! | data type, device | `{"dtype": "float32"}`, `{"device": [1, 0]}` |
//! | big integer | `{"int": "<decimal>"}` |
//! | shape, array, list | `{"shape": [1, 2]}`, `{"array": [...]}`, `{"list": [...]}` |
//! | map, dict | `{"map": [[key, value], ...]}`, `{"dict": [...]}` |
//! | other objects | `{"object": "<type key>"}`, `{"error": [kind, message]}`. Read back: an object without fields, an error |

use crate::function::Error;
use crate::object::{
    Array, BareObject, Dict, List, Map, Shape, big_int, extents_of, pairs_of, sequence_of,
};
use crate::release::ParseError;
use crate::tensor::Device;
use crate::value::types;
use crate::value::{
    Any, AnyView, Bytes, bytes_bytes, dtype_from_text, dtype_to_text, index, str_bytes,
};
use crate::wire::json::float_form;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// Returns the form of a value. Invalid UTF-8 in a text is replaced. An object of a type that is not in the table is shown only by its key.
pub fn to_json(value: AnyView<'_>) -> Value {
    let raw = value.as_raw();
    if let Some(text) = str_bytes(&value) {
        return Value::String(String::from_utf8_lossy(text).into_owned());
    }
    if let Some(bytes) = bytes_bytes(&value) {
        return json!({"bytes": BASE64_STANDARD.encode(bytes)});
    }
    match raw.type_index {
        index::NONE => Value::Null,
        index::BOOL => json!(raw.int() != 0),
        // Cases are read with 64-bit integers, so integers need no special form.
        index::INT => json!(raw.int()),
        // A separate form: 1 and 1.0 are one number in JSON, but two keys here (OBJ-02).
        index::FLOAT => json!({"float": float_form(raw.float())}),
        index::DATA_TYPE => json!({"dtype": dtype_to_text(raw.dtype()).unwrap_or_default()}),
        index::DEVICE => json!({"device": [raw.device().kind, raw.device().id]}),
        // As text, because JSON readers turn numbers beyond 64 bits into floats.
        index::BIG_INT => {
            json!({"int": big_int::to_decimal(big_int::words_of(&value).unwrap_or_default())})
        }
        index::SHAPE => json!({"shape": extents_of(value).unwrap_or_default()}),
        index::ARRAY => json!({"array": list(value)}),
        index::LIST => json!({"list": list(value)}),
        index::MAP => json!({"map": pairs(value)}),
        index::DICT => json!({"dict": pairs(value)}),
        index::ERROR => match value.to_any().into_object().map(Error::from_object) {
            Ok(Ok(error)) => json!({"error": [error.kind().as_str(), error.message()]}),
            _ => Value::Null,
        },
        // Only the type key: other operations show the content of an object.
        own => json!({"object": types::key_of(own)}),
    }
}

/// Returns the forms of the elements of a sequence.
fn list(value: AnyView<'_>) -> Vec<Value> {
    let items = sequence_of(value).unwrap_or_default();
    items.iter().map(|item| to_json(item.view())).collect()
}

/// Returns the pairs of a map or dict as `[key, value]`, in iteration order. A JSON object could have only text as keys.
fn pairs(value: AnyView<'_>) -> Vec<Value> {
    pairs_of(value)
        .iter()
        .flatten()
        .map(|(key, value)| json!([to_json(key.view()), to_json(value.view())]))
        .collect()
}

/// Reads a value from its form.
///
/// # Errors
///
/// Returns a [`ParseError`] that shows the form.
pub fn from_json(form: &Value) -> Result<Any, ParseError> {
    let wrong = || ParseError::new(format!("no value has the form {form}"));
    Ok(match form {
        Value::Null => Any::none(),
        Value::Bool(value) => Any::from(*value),
        Value::Number(value) => Any::from(value.as_i64().ok_or_else(wrong)?),
        Value::String(text) => Any::from(text.as_str()),
        // Arrays, lists and shapes are different values, so a bare array is ambiguous.
        Value::Array(_) => return Err(wrong()),
        Value::Object(map) => {
            // The first member is the kind; no form has a second one.
            let (kind, content) = map.iter().next().ok_or_else(wrong)?;
            return of_kind(kind, content).ok_or_else(wrong)?;
        }
    })
}

/// Reads the value of `{kind: content}`. Returns `None` if the content does not match the kind, and an error if a part of the content
/// is not a value.
fn of_kind(kind: &str, content: &Value) -> Option<Result<Any, ParseError>> {
    let items = || -> Option<Result<Vec<Any>, ParseError>> {
        Some(content.as_array()?.iter().map(from_json).collect())
    };
    let plain = match kind {
        "float" => match content.as_str() {
            Some("nan") => Any::from(f64::NAN),
            Some("inf") => Any::from(f64::INFINITY),
            Some("-inf") => Any::from(f64::NEG_INFINITY),
            // JSON readers of some languages drop the sign of zero, but 0.0 and -0.0 are two keys (OBJ-02).
            Some("-0") => Any::from(-0.0),
            _ => Any::from(content.as_f64()?),
        },
        "bytes" => Any::from(Bytes::new(BASE64_STANDARD.decode(content.as_str()?).ok()?)),
        "dtype" => Any::from(dtype_from_text(content.as_str()?).ok()?),
        "device" => {
            let parts = content.as_array()?;
            Any::from(Device {
                kind: i32::try_from(parts.first()?.as_i64()?).ok()?,
                id: i32::try_from(parts.get(1)?.as_i64()?).ok()?,
            })
        }
        "int" => big_int::from_decimal(content.as_str()?).ok()?,
        "shape" => {
            let extents: Option<Vec<i64>> = content.as_array()?.iter().map(Value::as_i64).collect();
            Any::from(Shape::new(&extents?))
        }
        // A type key alone cannot create the object, so the result is one without fields.
        "object" => Any::from(BareObject::new()),
        "error" => {
            let parts = content.as_array()?;
            let (kind, message) = (parts.first()?.as_str()?, parts.get(1)?.as_str()?);
            Any::from(Error::new(kind, message))
        }
        "array" => return Some(items()?.map(|items| Array::new(items).into())),
        "list" => return Some(items()?.map(|items| List::new(items).into())),
        "map" | "dict" => return Some(mapping(kind == "map", content.as_array()?)),
        _ => return None,
    };
    Some(Ok(plain))
}

/// Creates a map if `fixed`, otherwise a dict, and sets the pairs one after another.
fn mapping(fixed: bool, pairs: &[Value]) -> Result<Any, ParseError> {
    let (mut map, dict) = (Map::new(), Dict::new());
    for pair in pairs {
        let [key, value] = pair.as_array().map_or(&[][..], Vec::as_slice) else {
            return Err(ParseError::new(format!("a pair is not {pair}")));
        };
        let (key, value) = (from_json(key)?, from_json(value)?);
        // One after another: a map that is created with four pairs at once is dense from the start (OBJ-06).
        let set = if fixed {
            map.set(key, value)
        } else {
            dict.set(key, value)
        };
        set.map_err(|error| ParseError::new(error.to_string()))?;
    }
    Ok(if fixed { map.into() } else { dict.into() })
}
