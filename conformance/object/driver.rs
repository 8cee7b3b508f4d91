//! Operations of chapter object, performed through the C interface of a runtime.

use crate::conformance::object::hooks;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::owned::{OwnedValue, bool_arg, int_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, bytes, unsupported, value_of};
use crate::value::{AnyPayload, RawAny, index};
use serde_json::{Value, json};

/// Makes the only argument of most operations.
fn subject(api: &'static FfiApi, args: &Value) -> Result<OwnedValue, Reply> {
    make(api, value_of(args))
}

/// Performs `object.repr`: returns the text form (OBJ-13).
pub(super) fn repr(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    accepted(text(
        &api.call_global("ffi.ReprPrint", &[subject(api, args)?.raw])?,
    )?)
}

/// Performs `object.recursive_hash`. The hash is hexadecimal text, because JSON has no 64-bit numbers (OBJ-14).
pub(super) fn recursive_hash(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    accepted(hash(
        &api.call_global("ffi.RecursiveHash", &[subject(api, args)?.raw])?,
    ))
}

/// Performs `object.structural_hash`, also as hexadecimal text (OBJ-14).
pub(super) fn structural_hash(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = subject(api, args)?;
    // OBJ-14: free variables are not mapped and the contents of tensors are not skipped. These are the defaults of Python.
    let args = [value.raw, bool_arg(false), bool_arg(false)];
    accepted(hash(&api.call_global("ffi.StructuralHash", &args)?))
}

/// Performs `object.recursive_equal`.
pub(super) fn recursive_equal(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    accepted(call_on_pair(api, value_of(args), "ffi.RecursiveEq", &[])?)
}

/// Performs `object.structural_equal`.
pub(super) fn structural_equal(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let more = [bool_arg(false), bool_arg(false)];
    accepted(call_on_pair(
        api,
        value_of(args),
        "ffi.StructuralEqual",
        &more,
    )?)
}

/// Performs `object.json_parse`: parses a text and shows the value in the forms of `spec/values.md` (OBJ-16).
pub(super) fn json_parse(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let source = value_of(args).as_str();
    let source = source.ok_or_else(|| unsupported("`value` is not a text"))?;
    let parsed = api.call_global("ffi.json.Parse", &[api.text(source)?.raw])?;
    accepted(show(api, &parsed)?)
}

/// Performs `object.json_print`: returns the JSON text of a value, compact or indented (OBJ-17).
pub(super) fn json_print(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let indent = args.get("indent").unwrap_or(&Value::Null);
    let parts = [subject(api, args)?, make(api, indent)?];
    let parts = parts.each_ref().map(|part| part.raw);
    accepted(text(&api.call_global("ffi.json.Stringify", &parts)?)?)
}

/// Asks a function of the runtime about a pair of values.
fn call_on_pair(
    api: &'static FfiApi,
    pair: &Value,
    name: &str,
    more: &[RawAny],
) -> Result<Value, Reply> {
    let side = |at: usize| make(api, pair.get(at).unwrap_or(&Value::Null));
    let (left, right) = (side(0)?, side(1)?);
    let args: Vec<RawAny> = [left.raw, right.raw]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    Ok(json!(api.call_global(name, &args)?.raw.int() != 0))
}

/// Performs `object.recursive_compare`.
pub(super) fn recursive_compare(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let is = |name: &str| call_on_pair(api, value_of(args), name, &[]);
    // Two calls are needed, because no registered function returns -1, 0 or 1.
    accepted(match (is("ffi.RecursiveLt")?, is("ffi.RecursiveGt")?) {
        (Value::Bool(true), _) => json!(-1),
        (_, Value::Bool(true)) => json!(1),
        _ => json!(0),
    })
}

/// Performs `object.element`. Arrays and lists have one function each. The runtime must reject an index out of range (OBJ-04).
pub(super) fn element(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let pair = value_of(args);
    let side = |at: usize| make(api, pair.get(at).unwrap_or(&Value::Null));
    let (list, at) = (side(0)?, side(1)?);
    let name = match list.raw.type_index {
        index::LIST => "ffi.ListGetItem",
        _ => "ffi.ArrayGetItem",
    };
    accepted(show(api, &api.call_global(name, &[list.raw, at.raw])?)?)
}

/// Performs `object.to_graph`. Nodes have a fixed order, so the text itself is compared (OBJ-18). With `cycle`, the list contains itself
/// (OBJ-19).
pub(super) fn to_graph(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = subject(api, args)?;
    let metadata = make(api, args.get("metadata").unwrap_or(&Value::Null))?;
    let cycle = args.get("cycle").and_then(Value::as_bool) == Some(true);
    if cycle {
        api.call_global("ffi.ListAppend", &[value.raw, value.raw])?;
    }
    let graph = api.call_global("ffi.ToJSONGraphString", &[value.raw, metadata.raw]);
    if cycle {
        // Reference counts alone never free a list that contains itself.
        api.call_global("ffi.ListClear", &[value.raw])?;
    }
    accepted(text(&graph?)?)
}

/// Performs `object.from_graph` for a text, for bytes that may not be UTF-8, or for a value that is first printed as JSON (OBJ-18 to
/// OBJ-20, OBJ-41).
pub(super) fn from_graph(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = value_of(args);
    let source = match (args.get("data"), value.as_str()) {
        (Some(_), _) => String::from_utf8(bytes(args)?)
            .map_err(|_| unsupported("the function takes text, but these bytes are not UTF-8"))?,
        (None, Some(text)) => text.to_owned(),
        (None, None) => value.to_string(),
    };
    if args.get("check").and_then(Value::as_bool) == Some(true) {
        let checker = api.suite_function("object.check_graph");
        let checker = checker.ok_or_else(|| unsupported("no C function only checks a graph"))?;
        api.call(&checker, &[api.text(&source)?.raw])?;
        return accepted(Value::Null);
    }
    let read = api.call_global("ffi.FromJSONGraphString", &[api.text(&source)?.raw])?;
    accepted(show(api, &read)?)
}

fn hash(held: &OwnedValue) -> Value {
    json!(format!("{:#x}", held.raw.bits()))
}

fn text(held: &OwnedValue) -> Result<Value, Reply> {
    let text = held
        .text()
        .ok_or_else(|| unsupported("what came is not text"))?;
    Ok(json!(text))
}

/// Performs `object.equal`: checks whether a map with one key finds it by the other key.
pub(super) fn equal(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let pair = value_of(args);
    let side = |at: usize| make(api, pair.get(at).unwrap_or(&Value::Null));
    let (left, right) = (side(0)?, side(1)?);
    // OBJ-02 is about keys, and no function compares two keys. So one key is put into a map and the other one is looked up.
    let map = api.call_global("ffi.Map", &[left.raw, RawAny::NONE])?;
    let count = api.call_global("ffi.MapCount", &[map.raw, right.raw])?;
    accepted(json!(count.raw.int() != 0))
}

/// Performs `object.dict`: returns the pairs in order, after all steps (OBJ-08).
pub(super) fn dict(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let dict = api.call_global("ffi.Dict", &[])?;
    for step in value_of(args).as_array().into_iter().flatten() {
        let part = |at: usize| make(api, step.get(at).unwrap_or(&Value::Null));
        let key = part(1)?;
        if step.get(0).and_then(Value::as_str) == Some("remove") {
            api.call_global("ffi.DictErase", &[dict.raw, key.raw])?;
        } else {
            api.call_global("ffi.DictSetItem", &[dict.raw, key.raw, part(2)?.raw])?;
        }
    }
    accepted(show(api, &dict)?)
}

/// Performs `object.hooked`: builds a dict of keys whose type has its own hash and equality.
pub(super) fn hooked(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let (form, numbers) = hooks::form_and_numbers(value_of(args))?;
    let object = api
        .type_info(index::OBJECT)
        .map_or(0, |info| info.type_depth);
    let type_index = api.new_type(&hooks::fresh_key(), [-1, object + 1, 0, 1, index::OBJECT])?;
    let hooks = match hooks::bare(form) {
        Some(bare) => bare.map(|ptr| api.share(RawAny::of(index::OPAQUE, AnyPayload { ptr }))),
        None => [
            api.function(std::ptr::from_ref(api).cast_mut().cast(), hash_of)?,
            api.function(std::ptr::from_ref(api).cast_mut().cast(), are_equal)?,
        ],
    };
    for (name, hook) in ["__any_hash__", "__any_equal__"].into_iter().zip(&hooks) {
        api.set_attr(type_index, name, &hook.raw)?;
    }
    let key = |number: i64| OwnedValue {
        api,
        raw: RawAny::of(
            type_index,
            AnyPayload {
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
    // OBJ-38: there are as many pairs as different last digits, because a key replaces an earlier equal key.
    let pairs = api.call_global("ffi.DictSize", &[dict.raw])?.raw.int();
    accepted(json!({"pairs": pairs, "found": found}))
}

/// Hashes a key by its last digit (OBJ-38). A function object wraps this function.
unsafe extern "C" fn hash_of(_: RawHandle, args: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
    // SAFETY: a hash function gets one argument, which is a key of `hooked`.
    let key = unsafe { &*args };
    // SAFETY: `out` is a place for the result.
    unsafe { out.write(int_arg(hooks::number_of(key) % 10)) };
    0
}

/// Treats two keys as equal if their last digits are equal (OBJ-38). A function object wraps this function.
unsafe extern "C" fn are_equal(_: RawHandle, args: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
    // SAFETY: an equality function gets two arguments, which are keys of `hooked`.
    let digit = |at: usize| hooks::number_of(unsafe { &*args.wrapping_add(at) }) % 10;
    // SAFETY: `out` is a place for the result.
    unsafe { out.write(bool_arg(digit(0) == digit(1))) };
    0
}

/// Performs `object.make`: makes an object of the type named first. The names and values of its fields follow.
pub(super) fn object(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let parts = value_of(args).as_array().map_or(&[][..], Vec::as_slice);
    let (key, fields) = parts
        .split_first()
        .ok_or_else(|| unsupported("no type is named"))?;
    let type_index = api.type_index(key.as_str().unwrap_or_default());
    let type_index =
        type_index.ok_or_else(|| unsupported(format!("this runtime has no type {key}")))?;
    let fields: Vec<OwnedValue> = fields
        .iter()
        .map(|form| make(api, form))
        .collect::<Result<_, _>>()?;
    let mut args = vec![int_arg(type_index.into())];
    args.extend(fields.iter().map(|field| field.raw));
    let object = api.call_global("ffi.MakeObjectFromPackedArgs", &args)?;
    accepted(text(&api.call_global("ffi.ReprPrint", &[object.raw])?)?)
}
