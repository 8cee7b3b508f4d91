//! The operations of chapter object.

use super::api::{Api, Handle};
use super::forms::{make, show};
use super::held::{Held, bool_arg, int_arg};
use super::{Reply, bytes, unsupported};
use crate::conformance::object::hooks;
use crate::value::{Payload, RawAny, index};
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
        "object.equal" => same_key(api, value)?,
        "object.dict" => dict(api, value)?,
        "object.hooked" => hooked(api, value)?,
        "object.make" => made(api, value)?,
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

fn compare(api: &'static Api, pair: &Value) -> Result<Value, Reply> {
    let is = |name: &str| two(api, pair, name, &[]);
    Ok(match (is("ffi.RecursiveLt")?, is("ffi.RecursiveGt")?) {
        (Value::Bool(true), _) => json!(-1),
        (_, Value::Bool(true)) => json!(1),
        _ => json!(0),
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

/// Whether a map that has the one finds the other.
fn same_key(api: &'static Api, pair: &Value) -> Result<Value, Reply> {
    let side = |at: usize| make(api, pair.get(at).unwrap_or(&Value::Null));
    let (left, right) = (side(0)?, side(1)?);
    let map = api.call_global("ffi.Map", &[left.raw, RawAny::NONE])?;
    let count = api.call_global("ffi.MapCount", &[map.raw, right.raw])?;
    Ok(json!(count.raw.int() != 0))
}

fn dict(api: &'static Api, steps: &Value) -> Result<Value, Reply> {
    let dict = api.call_global("ffi.Dict", &[])?;
    for step in steps.as_array().into_iter().flatten() {
        let part = |at: usize| make(api, step.get(at).unwrap_or(&Value::Null));
        let key = part(1)?;
        if step.get(0).and_then(Value::as_str) == Some("remove") {
            api.call_global("ffi.DictErase", &[dict.raw, key.raw])?;
        } else {
            api.call_global("ffi.DictSetItem", &[dict.raw, key.raw, part(2)?.raw])?;
        }
    }
    show(api, &dict)
}

/// A dict of keys whose type has hooks.
fn hooked(api: &'static Api, value: &Value) -> Result<Value, Reply> {
    let (form, numbers) = hooks::asked(value);
    let object = api
        .type_info(index::OBJECT)
        .map_or(0, |info| info.type_depth);
    let type_index = api.new_type(&hooks::fresh_key(), [-1, object + 1, 0, 1, index::OBJECT])?;
    let hooks = match hooks::bare(form) {
        Some(bare) => bare.map(|ptr| api.share(RawAny::of(index::OPAQUE, Payload { ptr }))),
        None => [
            api.function(std::ptr::from_ref(api).cast_mut().cast(), hash_of)?,
            api.function(std::ptr::from_ref(api).cast_mut().cast(), are_equal)?,
        ],
    };
    for (name, hook) in ["__any_hash__", "__any_equal__"].into_iter().zip(&hooks) {
        api.set_attr(type_index, name, &hook.raw)?;
    }
    let key = |number: i64| Held {
        api,
        raw: RawAny::of(
            type_index,
            Payload {
                ptr: hooks::numbered(type_index, number).cast(),
            },
        ),
    };
    let dict = api.call_global("ffi.Dict", &[])?;
    for (at, number) in (0i64..).zip(&numbers) {
        api.call_global(
            "ffi.DictSetItem",
            &[dict.raw, key(*number).raw, int_arg(at)],
        )?;
    }
    let mut found = Vec::new();
    for digit in 0..10 {
        let key = key(digit);
        if api
            .call_global("ffi.DictCount", &[dict.raw, key.raw])?
            .raw
            .int()
            != 0
        {
            let value = api.call_global("ffi.DictGetItem", &[dict.raw, key.raw])?;
            found.push(json!([digit, value.raw.int()]));
        }
    }
    let pairs = api.call_global("ffi.DictSize", &[dict.raw])?.raw.int();
    Ok(json!({"pairs": pairs, "found": found}))
}

unsafe extern "C" fn hash_of(_: Handle, args: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
    // SAFETY: a hash has one argument, which is a key of `hooked`.
    let key = unsafe { &*args };
    // SAFETY: a call has a place for its result.
    unsafe { out.write(int_arg(hooks::number_of(key) % 10)) };
    0
}

unsafe extern "C" fn are_equal(_: Handle, args: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
    // SAFETY: an equality has two arguments, which are keys of `hooked`.
    let digit = |at: usize| hooks::number_of(unsafe { &*args.wrapping_add(at) }) % 10;
    // SAFETY: a place for the result.
    unsafe { out.write(bool_arg(digit(0) == digit(1))) };
    0
}

/// An object of the type that the first part names, with fields of the names and values behind it.
fn made(api: &'static Api, parts: &Value) -> Result<Value, Reply> {
    let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
    let (key, fields) = parts
        .split_first()
        .ok_or_else(|| unsupported("no type is named"))?;
    let type_index = api.type_index(key.as_str().unwrap_or_default());
    let type_index =
        type_index.ok_or_else(|| unsupported(format!("this runtime has no type {key}")))?;
    let fields: Vec<Held> = fields
        .iter()
        .map(|form| make(api, form))
        .collect::<Result<_, _>>()?;
    let mut args = vec![int_arg(type_index.into())];
    args.extend(fields.iter().map(|field| field.raw));
    let object = api.call_global("ffi.MakeObjectFromPackedArgs", &args)?;
    text(&api.call_global("ffi.ReprPrint", &[object.raw])?)
}
