//! Structural walks and rewrites: the visitors of the runtime with callbacks of this suite.

use crate::conformance::runtime::case_numbers::number_or;
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, unsupported};
use crate::lock::lock;
use crate::value::{AnyPayload, RawAny, index};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;

/// The answers of the callback of a walk, by the text form of its argument, and the arguments so far.
struct WalkAnswers {
    api: &'static FfiApi,
    answers: HashMap<String, OwnedValue>,
    met: Mutex<Vec<String>>,
}

/// Performs `object.walk`: shows the order and the arguments of the callbacks of a walk (OBJ-34).
pub(in crate::conformance) fn walk(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let root = make(api, args.get("value").unwrap_or(&Value::Null))?;
    let mut answers = HashMap::new();
    let listed = args.pointer("/answers").and_then(Value::as_object);
    for (text, answer) in listed.into_iter().flatten() {
        let answer = match answer.get("interrupt") {
            Some(with) => api.call_global("ffi.VisitInterrupt", &[make(api, with)?.raw])?,
            None => make(api, answer)?,
        };
        answers.insert(text.clone(), answer);
    }
    // A function of the suite lives as long as the process, so its context must live as long, too.
    let script: &'static WalkAnswers = Box::leak(Box::new(WalkAnswers {
        api,
        answers,
        met: Mutex::default(),
    }));
    let links = callback(api, index::ANY, std::ptr::from_ref(script).cast(), answer)?;
    let none = api.call_global("ffi.Array", &[])?;
    let args = [root.raw, links.raw, none.raw, int_arg(order(args))];
    let stopped = api.call_global("ffi.StructuralWalk", &args)?;
    let interrupt = match stopped.raw.type_index {
        index::NONE => Value::Null,
        _ => match api.field(&stopped, "value") {
            Some(value) => show(api, &value)?,
            None => return Err(unsupported("an interrupt shows no value")),
        },
    };
    let met = lock(&script.met);
    accepted(json!({"met": *met, "interrupt": interrupt}))
}

/// Notes the text form of its argument and returns the answer that the case gives for it (OBJ-34). Without an answer it returns None, and
/// the walk continues.
unsafe extern "C" fn answer(
    this: *mut c_void,
    args: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `walk` made the function with a pointer to its answers.
    let script = unsafe { &*this.cast::<WalkAnswers>() };
    // SAFETY: a walk passes one value.
    let value = unsafe { *args };
    let text = script.api.call_global("ffi.ReprPrint", &[value]);
    let text = text.ok().and_then(|text| text.text()).unwrap_or_default();
    if let Some(answer) = script.answers.get(&text) {
        let shared = std::mem::ManuallyDrop::new(script.api.share(answer.raw));
        // SAFETY: `out` is a place for the result, which takes the reference.
        unsafe { out.write(shared.raw) };
    }
    let mut met = lock(&script.met);
    met.push(text);
    0
}

/// Performs `object.rewrite`: returns the value with its integers increased, and the value that another holder sees (OBJ-35).
pub(in crate::conformance) fn rewrite(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let root = make(api, args.get("value").unwrap_or(&Value::Null))?;
    let add: i64 = number_or(args, "add", 0)?;
    let add: &'static i64 = Box::leak(Box::new(add));
    let links = callback(api, index::INT, std::ptr::from_ref(add).cast(), increase)?;
    let none = api.call_global("ffi.Array", &[])?;
    let before = root.pointer();
    let order = int_arg(order(args));
    let (result, other) = if args.get("shared").and_then(Value::as_bool) == Some(true) {
        let args = [root.raw, links.raw, none.raw, order];
        let result = api.call_global("ffi.StructuralMap", &args)?;
        (result, show(api, &root)?)
    } else {
        // The argument is a reference that the callee may take, and does take.
        let root = std::mem::ManuallyDrop::new(root);
        let mut slot = root.pointer();
        let ptr = (&raw mut slot).cast();
        let moved = RawAny::of(index::RVALUE_REF, AnyPayload { ptr });
        let args = [moved, links.raw, none.raw, order];
        let result = api.call_global("ffi.StructuralMap", &args);
        if !slot.is_null() {
            drop(std::mem::ManuallyDrop::into_inner(root));
        }
        (result?, Value::Null)
    };
    accepted(json!({
        "result": show(api, &result)?,
        "other": other,
        "same": result.pointer() == before,
    }))
}

/// Adds the number of the case to an integer (OBJ-35).
unsafe extern "C" fn increase(
    this: *mut c_void,
    args: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `rewrite` made the function with a pointer to a number.
    let step = unsafe { *this.cast::<i64>() };
    // SAFETY: a rewrite passes one value of the registered type.
    let value = unsafe { &*args }.int();
    // SAFETY: a call has a place for its result.
    unsafe { out.write(int_arg(value.wrapping_add(step))) };
    0
}

/// Returns a list with one callback, for values of one type.
fn callback(
    api: &'static FfiApi,
    type_index: i32,
    this: *const c_void,
    body: FfiCallback,
) -> Result<OwnedValue, Reply> {
    let function = api.function(this.cast_mut(), body)?;
    let entry = [int_arg(i64::from(type_index)), function.raw];
    let entry = api.call_global("ffi.Array", &entry)?;
    Ok(api.call_global("ffi.Array", &[entry.raw])?)
}

/// Returns the order of the callback as the runtime counts it: 0 before the parts of a value, 1 after them.
fn order(args: &Value) -> i64 {
    i64::from(args.get("order").and_then(Value::as_str) != Some("pre"))
}
