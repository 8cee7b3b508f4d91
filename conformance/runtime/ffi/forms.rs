//! Conversion of values between the runtime and the JSON form of `spec/object.md`.

use super::api::FfiApi;
use super::owned::{OwnedValue, Raised, bool_arg, int_arg};
use super::{Reply, unsupported};
use crate::object::big_int;
use crate::tensor::Device;
use crate::value::{AnyPayload, RawAny, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// Creates the value of a form in the runtime; unsupported if this interface cannot create it.
pub(in crate::conformance) fn make(
    api: &'static FfiApi,
    form: &Value,
) -> Result<OwnedValue, Reply> {
    let wrong = || unsupported(format!("this interface makes no value of the form {form}"));
    let plain = |type_index: i32, payload: AnyPayload| api.share(RawAny::of(type_index, payload));
    let float = |float: f64| plain(index::FLOAT, AnyPayload { float });
    let object = match form {
        Value::Null => return Ok(api.share(RawAny::NONE)),
        Value::Bool(truth) => return Ok(api.share(bool_arg(*truth))),
        Value::Number(number) => return Ok(api.share(int_arg(number.as_i64().ok_or_else(wrong)?))),
        Value::String(text) => return Ok(api.text(text)?),
        Value::Array(_) => return Err(wrong()),
        Value::Object(object) => object,
    };
    let (kind, content) = object.iter().next().ok_or_else(wrong)?;
    let list = || content.as_array().ok_or_else(wrong);
    let call = |name: &str, parts: Vec<OwnedValue>| {
        let args: Vec<RawAny> = parts.iter().map(|part| part.raw).collect();
        api.call_global(name, &args).map_err(Reply::from)
    };
    let each = |items: &[Value]| {
        items
            .iter()
            .map(|item| make(api, item))
            .collect::<Result<Vec<OwnedValue>, Reply>>()
    };
    let pairs = |items: &[Value]| {
        let parts = items.iter().filter_map(Value::as_array).flatten();
        parts
            .map(|part| make(api, part))
            .collect::<Result<Vec<OwnedValue>, Reply>>()
    };
    match kind.as_str() {
        "float" => Ok(float(float_of(content).ok_or_else(wrong)?)),
        "bytes" => {
            let bytes = content
                .as_str()
                .and_then(|text| BASE64_STANDARD.decode(text).ok());
            Ok(api.bytes(&bytes.ok_or_else(wrong)?)?)
        }
        "device" => {
            let part = |at: usize| i32::try_from(content.get(at)?.as_i64()?).ok();
            let device = Device {
                kind: part(0).ok_or_else(wrong)?,
                id: part(1).ok_or_else(wrong)?,
            };
            Ok(plain(index::DEVICE, AnyPayload { device }))
        }
        "int" => {
            let number = big_int::from_decimal(content.as_str().ok_or_else(wrong)?);
            let number = number.map_err(|_| wrong())?;
            Ok(api.big_int(big_int::words_of(&number.view()).unwrap_or_default())?)
        }
        "error" => {
            let text = |at: usize| content.get(at).and_then(Value::as_str).ok_or_else(wrong);
            Ok(api.error([text(0)?, text(1)?, ""], [None, None])?)
        }
        "dtype" => {
            let dtype = api.dtype(content.as_str().ok_or_else(wrong)?)?;
            // All eight bytes are written, because a data type has only four.
            let mut payload = AnyPayload { bits: 0 };
            payload.dtype = dtype;
            Ok(plain(index::DATA_TYPE, payload))
        }
        "shape" => call("ffi.Shape", each(list()?)?),
        "array" => call("ffi.Array", each(list()?)?),
        "list" => call("ffi.List", each(list()?)?),
        "map" => call("ffi.Map", pairs(list()?)?),
        "dict" => call("ffi.Dict", pairs(list()?)?),
        _ => Err(wrong()),
    }
}

/// Converts a value to its form. An object of a type without a form becomes its type key.
pub(in crate::conformance) fn show(
    api: &'static FfiApi,
    held: &OwnedValue,
) -> Result<Value, Reply> {
    let raw = &held.raw;
    if let Some(text) = matches!(raw.type_index, index::SMALL_STR | index::STR)
        .then(|| held.bytes())
        .flatten()
    {
        return Ok(json!(String::from_utf8_lossy(&text)));
    }
    if let Some(bytes) = held.bytes() {
        return Ok(json!({"bytes": BASE64_STANDARD.encode(bytes)}));
    }
    Ok(match raw.type_index {
        index::NONE => Value::Null,
        index::BOOL => json!(raw.int() != 0),
        index::INT => json!(raw.int()),
        index::FLOAT => json!({"float": float(f64::from_bits(raw.bits()))}),
        index::DATA_TYPE => {
            // SAFETY: the tag says that it is a data type.
            let dtype = unsafe { raw.payload.dtype };
            json!({"dtype": api.dtype_text(dtype)?})
        }
        index::DEVICE => {
            // SAFETY: the tag says that it is a device.
            let device = unsafe { raw.payload.device };
            json!({"device": [device.kind, device.id]})
        }
        index::SHAPE => json!({"shape": held.extents()}),
        index::ARRAY | index::LIST | index::MAP | index::DICT => {
            show_as(api, held, raw.type_index)?
        }
        index::BIG_INT => json!({"int": big_int::to_decimal(&api.big_int_words(raw)?)}),
        index::ERROR => {
            let [kind, message, _] = held.error_texts().unwrap_or_default();
            json!({"error": [kind, message]})
        }
        other => json!({"object": type_key(api, other)}),
    })
}

/// Returns the type key of a live value.
pub(in crate::conformance) fn type_key(api: &'static FfiApi, type_index: i32) -> String {
    let info = api.type_info(type_index);
    // SAFETY: keys live as long as their types.
    let key = info.map(|info| unsafe { info.type_key.as_slice() });
    String::from_utf8_lossy(key.unwrap_or_default()).into_owned()
}

/// Converts the content of a sequence or a map as if it had type `type_index`.
pub(in crate::conformance) fn show_as(
    api: &'static FfiApi,
    held: &OwnedValue,
    type_index: i32,
) -> Result<Value, Reply> {
    Ok(match type_index {
        index::ARRAY => json!({"array": items(api, held, "ffi.Array")?}),
        index::LIST => json!({"list": items(api, held, "ffi.List")?}),
        index::DICT => json!({"dict": pairs(api, held, "ffi.Dict")?}),
        _ => json!({"map": pairs(api, held, "ffi.Map")?}),
    })
}

/// Returns the elements of a sequence, through the runtime's functions.
fn items(api: &'static FfiApi, sequence: &OwnedValue, name: &str) -> Result<Vec<Value>, Reply> {
    let size = api.call_global(&format!("{name}Size"), &[sequence.raw])?;
    let item = format!("{name}GetItem");
    let each = (0..size.raw.int())
        .map(|at| show(api, &api.call_global(&item, &[sequence.raw, int_arg(at)])?));
    each.collect()
}

/// Returns the pairs of a map in the order of the runtime's iterator, which takes commands: 0 for the key, 1 for the value, 2 to
/// advance.
fn pairs(api: &'static FfiApi, map: &OwnedValue, name: &str) -> Result<Vec<Value>, Reply> {
    let size = api
        .call_global(&format!("{name}Size"), &[map.raw])?
        .raw
        .int();
    let next = api.call_global(&format!("{name}ForwardIterFunctor"), &[map.raw])?;
    let part = |which: i64| -> Result<OwnedValue, Raised> { api.call(&next, &[int_arg(which)]) };
    let mut pairs = Vec::new();
    for place in 0..size {
        pairs.push(json!([show(api, &part(0)?)?, show(api, &part(1)?)?]));
        // The iterator is not moved past the last pair, because it returns no value there.
        if place + 1 < size {
            part(2)?;
        }
    }
    Ok(pairs)
}

/// Reads a float of a form, because JSON has no number for some floats.
pub(in crate::conformance) fn float_of(form: &Value) -> Option<f64> {
    match form.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some("-0") => Some(-0.0),
        _ => form.as_f64(),
    }
}

/// Returns a float as a plain number if it is finite. Other floats need a form, because JSON has no number for them and null is
/// None.
pub(in crate::conformance) fn plain_float(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        json!({"float": float(value)})
    }
}

/// Returns the form of a float.
pub(in crate::conformance) fn float(value: f64) -> Value {
    if value.is_nan() {
        json!("nan")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "inf" } else { "-inf" })
    } else if value == 0.0 && value.is_sign_negative() {
        json!("-0")
    } else {
        json!(value)
    }
}
