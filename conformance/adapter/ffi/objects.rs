//! Values and objects: made through the interface from the JSON form of `spec/object.md`, and shown in it again.

use super::api::{Api, Held, Raised, bool_arg, bytes_arg, int_arg};
use super::{Reply, bytes, unsupported};
use crate::value::{ByteArray, Payload, RawAny, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// The operations of chapter object that this interface has a function for.
pub(super) fn answer(api: &'static Api, op: &str, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let given = match op {
        "object.repr" => text(&api.call_global("ffi.ReprPrint", &[make(api, value)?.raw])?)?,
        "object.recursive_hash" => {
            hash(&api.call_global("ffi.RecursiveHash", &[make(api, value)?.raw])?)
        }
        "object.structural_hash" => {
            let value = make(api, value)?;
            let args = [value.raw, bool_arg(false), bool_arg(false)];
            hash(&api.call_global("ffi.StructuralHash", &args)?)
        }
        "object.recursive_equal" => two(api, value, "ffi.RecursiveEq", &[])?,
        "object.structural_equal" => two(
            api,
            value,
            "ffi.StructuralEqual",
            &[bool_arg(false), bool_arg(false)],
        )?,
        "object.recursive_compare" => compare(api, value)?,
        "object.element" => element(api, value)?,
        "object.json_parse" => {
            let source = value
                .as_str()
                .ok_or_else(|| unsupported("`value` is not a text"))?;
            show(
                api,
                &api.call_global("ffi.json.Parse", &[api.text(source)?.raw])?,
            )?
        }
        "object.json_print" => {
            let indent = args.get("indent").unwrap_or(&Value::Null);
            let parts = [make(api, value)?, make(api, indent)?];
            let parts: Vec<RawAny> = parts.iter().map(|part| part.raw).collect();
            text(&api.call_global("ffi.json.Stringify", &parts)?)?
        }
        "object.to_graph" => to_graph(api, value, args)?,
        _ => from_graph(api, value, args)?,
    };
    Ok(Reply::Ok {
        value: given,
        findings: None,
    })
}

/// What a runtime says of a pair of values.
fn two(api: &'static Api, pair: &Value, name: &str, more: &[RawAny]) -> Result<Value, Reply> {
    let side = |at: usize| make(api, pair.get(at).unwrap_or(&Value::Null));
    let (left, right) = (side(0)?, side(1)?);
    let args: Vec<RawAny> = [left.raw, right.raw]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    Ok(json!(api.call_global(name, &args)?.raw.int() != 0))
}

/// An order, or the kind of the error where there is none: that is an answer, not a refusal of the input.
fn compare(api: &'static Api, pair: &Value) -> Result<Value, Reply> {
    let is = |name: &str| match two(api, pair, name, &[]) {
        Err(Reply::Reject(refused)) => {
            let kind = refused.message.split(':').next().unwrap_or_default();
            Ok(json!({"error": kind}))
        }
        other => other,
    };
    Ok(match (is("ffi.RecursiveLt")?, is("ffi.RecursiveGt")?) {
        (Value::Bool(true), _) => json!(-1),
        (_, Value::Bool(true)) => json!(1),
        (Value::Bool(false), _) => json!(0),
        (error, _) => error,
    })
}

fn element(api: &'static Api, pair: &Value) -> Result<Value, Reply> {
    let side = |at: usize| make(api, pair.get(at).unwrap_or(&Value::Null));
    let (list, at) = (side(0)?, side(1)?);
    let name = match list.raw.type_index {
        index::LIST => "ffi.ListGetItem",
        _ => "ffi.ArrayGetItem",
    };
    show(api, &api.call_global(name, &[list.raw, at.raw])?)
}

fn to_graph(api: &'static Api, value: &Value, args: &Value) -> Result<Value, Reply> {
    let value = make(api, value)?;
    let metadata = make(api, args.get("metadata").unwrap_or(&Value::Null))?;
    let cycle = args.get("cycle").and_then(Value::as_bool) == Some(true);
    if cycle {
        api.call_global("ffi.ListAppend", &[value.raw, value.raw])?;
    }
    let graph = api.call_global("ffi.ToJSONGraphString", &[value.raw, metadata.raw]);
    if cycle {
        api.call_global("ffi.ListClear", &[value.raw])?;
    }
    text(&graph?)
}

fn from_graph(api: &'static Api, value: &Value, args: &Value) -> Result<Value, Reply> {
    let source = match (args.get("data"), value.as_str()) {
        (Some(_), _) => String::from_utf8(bytes(args)?)
            .map_err(|_| unsupported("the function takes text, and these bytes are none"))?,
        (None, Some(text)) => text.to_owned(),
        (None, None) => value.to_string(),
    };
    show(
        api,
        &api.call_global("ffi.FromJSONGraphString", &[api.text(&source)?.raw])?,
    )
}

fn hash(held: &Held) -> Value {
    json!(format!("{:#x}", held.raw.bits()))
}

fn text(held: &Held) -> Result<Value, Reply> {
    let text = held
        .text()
        .ok_or_else(|| unsupported("what came is not text"))?;
    Ok(json!(text))
}

/// The value of a form.
fn make(api: &'static Api, form: &Value) -> Result<Held, Reply> {
    let wrong = || unsupported(format!("this interface makes no value of the form {form}"));
    let plain = |type_index: i32, payload: Payload| api.share(RawAny::of(type_index, payload));
    let float = |float: f64| plain(index::FLOAT, Payload { float });
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
    let call = |name: &str, parts: Vec<Held>| {
        let args: Vec<RawAny> = parts.iter().map(|part| part.raw).collect();
        api.call_global(name, &args).map_err(Reply::from)
    };
    let each = |items: &[Value]| {
        items
            .iter()
            .map(|item| make(api, item))
            .collect::<Result<Vec<Held>, Reply>>()
    };
    let pairs = |items: &[Value]| {
        let parts = items.iter().filter_map(Value::as_array).flatten();
        parts
            .map(|part| make(api, part))
            .collect::<Result<Vec<Held>, Reply>>()
    };
    match kind.as_str() {
        "float" => match content.as_str() {
            Some("nan") => Ok(float(f64::NAN)),
            Some("inf") => Ok(float(f64::INFINITY)),
            Some("-inf") => Ok(float(f64::NEG_INFINITY)),
            Some("-0") => Ok(float(-0.0)),
            _ => Ok(float(content.as_f64().ok_or_else(wrong)?)),
        },
        "bytes" => {
            let bytes = content
                .as_str()
                .and_then(|text| BASE64_STANDARD.decode(text).ok());
            let bytes = bytes.ok_or_else(wrong)?;
            let array = ByteArray::of(&bytes);
            // The runtime turns a borrowed array into bytes of its own where it is stored.
            let held = api.call_global("ffi.Array", &[bytes_arg(&array)])?;
            Ok(api.call_global("ffi.ArrayGetItem", &[held.raw, int_arg(0)])?)
        }
        "dtype" => {
            let dtype = api.dtype(content.as_str().ok_or_else(wrong)?)?;
            let mut payload = Payload { bits: 0 };
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

/// The form of a value.
fn show(api: &'static Api, held: &Held) -> Result<Value, Reply> {
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
    let items = |size: &str, item: &str| -> Result<Vec<Value>, Reply> {
        let size = api.call_global(size, &[*raw])?.raw.int();
        let each = (0..size).map(|at| show(api, &api.call_global(item, &[*raw, int_arg(at)])?));
        each.collect()
    };
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
            json!({"device": [device.device_type, device.device_id]})
        }
        index::SHAPE => json!({"shape": held.extents()}),
        index::ARRAY => json!({"array": items("ffi.ArraySize", "ffi.ArrayGetItem")?}),
        index::LIST => json!({"list": items("ffi.ListSize", "ffi.ListGetItem")?}),
        index::MAP => json!({"map": pairs(api, held, "ffi.Map")?}),
        index::DICT => json!({"dict": pairs(api, held, "ffi.Dict")?}),
        other => {
            return Err(unsupported(format!(
                "a value with type index {other} is not shown"
            )));
        }
    })
}

fn pairs(api: &'static Api, map: &Held, name: &str) -> Result<Vec<Value>, Reply> {
    let size = api
        .call_global(&format!("{name}Size"), &[map.raw])?
        .raw
        .int();
    let next = api.call_global(&format!("{name}ForwardIterFunctor"), &[map.raw])?;
    let part = |which: i64| -> Result<Held, Raised> { api.call(&next, &[int_arg(which)]) };
    let mut pairs = Vec::new();
    for place in 0..size {
        pairs.push(json!([show(api, &part(0)?)?, show(api, &part(1)?)?]));
        if place + 1 < size {
            part(2)?;
        }
    }
    Ok(pairs)
}

fn float(value: f64) -> Value {
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
