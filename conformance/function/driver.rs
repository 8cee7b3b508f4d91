//! The operations of chapter function, asked of a runtime: calls, errors, the registry.
//!
//! A runtime may bring the functions of the cases. Otherwise they are C callbacks that it wraps. A callback is packed: it does not convert. What the
//! typed ones of them do before their body is asked of functions that the runtime has: conversion as `value.convert` asks
//! for it, the number of arguments of a typed function with as many parameters.

use crate::conformance::runtime::ffi::api::{Api, Handle, SafeCall};
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::held::{Held, Raised, int_arg, read_bytes};
use crate::conformance::runtime::ffi::{
    Reply, alone, c_text, fresh_prefix, told, unsupported, value_of,
};
use crate::conformance::runtime::number::number_of;
use crate::conformance::value::convert::converted;
use crate::function::ErrorCell;
use crate::value::{AnyPayload, ByteArray, Header, RawAny, index};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A function of `spec/function.md`.
struct Known {
    name: &'static str,
    /// What its parameters are converted to; `None` for a packed one.
    parameters: Option<&'static [&'static str]>,
    body: fn(&'static Api, &[RawAny]) -> Ended,
}

enum Ended {
    Value(RawAny),
    /// What a callback returns that did not end well.
    Code(i32),
}

const KNOWN: [Known; 12] = [
    Known {
        name: "add",
        parameters: Some(&["int", "float"]),
        body: |_, args| {
            let float = args[0].int() as f64 + f64::from_bits(args[1].bits());
            Ended::Value(RawAny::of(index::FLOAT, AnyPayload { float }))
        },
    },
    Known {
        name: "concat",
        parameters: Some(&["str", "str"]),
        body: |api, args| {
            let text = |at: usize| read_bytes(&args[at]).unwrap_or_default();
            let both = [text(0), text(1)].concat();
            give(api.text(&String::from_utf8_lossy(&both)), api)
        },
    },
    Known {
        name: "count",
        parameters: None,
        body: |_, args| Ended::Value(int_arg(args.len() as i64)),
    },
    Known {
        name: "fail",
        parameters: None,
        body: |api, _| {
            api.raise(c"ValueError", c"as asked");
            Ended::Code(-1)
        },
    },
    Known {
        name: "frontend",
        parameters: None,
        body: |_, _| Ended::Code(-2),
    },
    // Fail against the convention: without an error, and with a code that it does not have.
    Known {
        name: "silent",
        parameters: None,
        body: |_, _| Ended::Code(-1),
    },
    Known {
        name: "odd",
        parameters: None,
        body: |_, _| Ended::Code(5),
    },
    Known {
        name: "nothing",
        parameters: None,
        body: |_, _| Ended::Value(RawAny::NONE),
    },
    Known {
        name: "first",
        parameters: None,
        body: |api, args| match args.first() {
            Some(first) => give(api.own(first), api),
            None => Ended::Value(RawAny::NONE),
        },
    },
    Known {
        name: "apply",
        parameters: Some(&["function", "int"]),
        body: |api, args| give(api.call(&api.share(args[0]), &args[1..]), api),
    },
    Known {
        name: "twice",
        parameters: Some(&["int"]),
        body: |_, args| Ended::Value(int_arg(args[0].int() * 2)),
    },
    Known {
        name: "maybe",
        parameters: Some(&["optional-int"]),
        body: |_, args| match args[0].type_index {
            index::NONE => Ended::Value(int_arg(-1)),
            _ => Ended::Value(args[0]),
        },
    },
];

/// Hands an owned value on; an error that was raised is raised again for the caller.
fn give(result: Result<Held, Raised>, api: &'static Api) -> Ended {
    match result {
        Ok(held) => {
            let raw = held.raw;
            std::mem::forget(held);
            Ended::Value(raw)
        }
        Err(raised) => {
            api.raise(&c_text(&raised.kind), &c_text(&raised.message));
            Ended::Code(-1)
        }
    }
}

/// What a callback is called with.
struct Own {
    api: &'static Api,
    body: fn(&'static Api, &[RawAny]) -> Ended,
}

unsafe extern "C" fn run(this: Handle, args: *const RawAny, count: i32, out: *mut RawAny) -> i32 {
    // SAFETY: made with an `Own` that is never freed.
    let own = unsafe { &*this.cast::<Own>() };
    let args = match usize::try_from(count) {
        Ok(0) | Err(_) => &[][..],
        // SAFETY: that many arguments.
        Ok(count) => unsafe { std::slice::from_raw_parts(args, count) },
    };
    match (own.body)(own.api, args) {
        Ended::Code(code) => code,
        Ended::Value(value) => {
            // SAFETY: a place for the result.
            unsafe { out.write(value) };
            0
        }
    }
}

/// A callback of ours as a function of the runtime.
fn callback(api: &'static Api, body: fn(&'static Api, &[RawAny]) -> Ended) -> Result<Held, Raised> {
    // A few bytes for the life of a worker.
    let own: &'static Own = Box::leak(Box::new(Own { api, body }));
    api.function(std::ptr::from_ref(own).cast_mut().cast(), run)
}

fn known(name: &str) -> Result<&'static Known, Reply> {
    if name == "panic" {
        return Err(unsupported(
            "a callback in C has no panic; only a function of the runtime's own could",
        ));
    }
    let mut known = KNOWN.iter();
    known
        .find(|known| known.name == name)
        .ok_or_else(|| unsupported(format!("there is no function {name}")))
}

/// The function `name`, the runtime's own where it brings one.
pub(super) fn function(api: &'static Api, name: &str) -> Result<Held, Reply> {
    match brought(api, name) {
        Some(function) => Ok(function),
        None if name == "itself" => Ok(itself(api)?),
        None => Ok(callback(api, known(name)?.body)?),
    }
}

/// The same, for a caller that leaves conversions to it.
pub(super) fn converting(api: &'static Api, name: &str) -> Result<Held, Reply> {
    let is_typed = KNOWN
        .iter()
        .any(|known| known.name == name && known.parameters.is_some());
    if is_typed && brought(api, name).is_none() {
        return Err(unsupported("a callback in C converts nothing"));
    }
    function(api, name)
}

/// A function without a context and without an end: what it is called with in the place of the context.
fn itself(api: &'static Api) -> Result<Held, Raised> {
    unsafe extern "C" fn body(this: Handle, _: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
        // SAFETY: null, or the function object, by the convention.
        let header = unsafe { this.cast::<Header>().as_ref() };
        let is_function = header.is_some_and(|header| header.type_index == index::FUNCTION);
        // SAFETY: a place for the result.
        unsafe { out.write(int_arg(is_function.into())) };
        0
    }
    api.function(std::ptr::null_mut(), body)
}

fn brought(api: &'static Api, name: &str) -> Option<Held> {
    api.brought(&format!("function.{name}"))
}

/// The function of a case and its arguments, converted as a typed function converts them.
fn prepared(api: &'static Api, args: &Value) -> Result<(Held, Vec<Held>), Reply> {
    let value = value_of(args);
    let name = value.get("function").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let forms = value.get("args").and_then(Value::as_array);
    let mut list = Vec::new();
    for form in forms.into_iter().flatten() {
        list.push(match form.get("function").and_then(Value::as_str) {
            Some(inner) => function(api, inner)?,
            None => make(api, form)?,
        });
    }
    if let Some(own) = brought(api, name) {
        return Ok((own, list));
    }
    let function = known(name)?;
    if let Some(parameters) = function.parameters {
        if list.len() != parameters.len() {
            counted(api, parameters.len(), &list)?;
        }
        for (held, wanted) in list.iter_mut().zip(parameters) {
            let form = converted(api, held, wanted)?;
            if *wanted != "function" {
                *held = make(api, &form)?;
            }
        }
    }
    Ok((callback(api, function.body)?, list))
}

/// Puts a list of arguments that is too short or too long to a typed function of the runtime with `wanted` parameters.
fn counted(api: &'static Api, wanted: usize, list: &[Held]) -> Result<(), Reply> {
    let name = if wanted == 1 {
        "ffi.ReprPrint"
    } else {
        "ffi.RecursiveEq"
    };
    let args: Vec<RawAny> = list.iter().map(|held| held.raw).collect();
    let taken = api.call_global(name, &args)?;
    // Taken after all: that is an answer, and a wrong one.
    Err(Reply::Ok {
        value: json!({"result": show(api, &taken)?}),
        findings: None,
    })
}

fn cells(list: &[Held]) -> Vec<RawAny> {
    list.iter().map(|held| held.raw).collect()
}

/// `function.call`.
pub(in crate::conformance) fn call(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let (function, list) = prepared(api, args)?;
    match api.call(&function, &cells(&list)) {
        Ok(result) => told(json!({"result": show(api, &result)?})),
        Err(raised) if raised.broken.is_some() => Err(raised.into()),
        Err(raised) => told(json!({"error": raised.kind, "message": raised.message})),
    }
}

/// `function.raw_call`: through the pointer in the object, as a C++ caller does it.
pub(in crate::conformance) fn raw_call(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let (function, list) = prepared(api, args)?;
    drop(api.take_raised());
    let cells = cells(&list);
    let mut out = int_arg(7);
    // SAFETY: a function has two pointers behind its header.
    let (safe_call, cpp_call) = unsafe { *function.cell::<(SafeCall, *const c_void)>() };
    // SAFETY: the first takes the function, its arguments and a place.
    let code = unsafe {
        safe_call(
            function.pointer(),
            cells.as_ptr(),
            cells.len() as i32,
            &raw mut out,
        )
    };
    let result = Held { api, raw: out };
    let raised = api.take_raised().and_then(|error| error.error_texts());
    let [kind, message] = match raised {
        Some([kind, message, _]) => [Some(kind), Some(message)],
        None => [None, None],
    };
    told(json!({
        "code": code,
        "result": show(api, &result)?,
        "raised": kind,
        "message": message,
        "cpp_call_is_null": cpp_call.is_null(),
    }))
}

/// `function.error`.
pub(in crate::conformance) fn error(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let value = value_of(args);
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let cause = text("cause").map(|kind| api.error([kind, "", ""], [None, None]));
    let cause = cause.transpose()?;
    let parts = ["kind", "message", "backtrace"].map(|name| text(name).unwrap_or_default());
    let context = value.get("context").map(|form| make(api, form));
    let context = context.transpose()?;
    let error = api.error(parts, [cause.as_ref(), context.as_ref()])?;
    // SAFETY: an error has its cell behind the header.
    let cell = unsafe { &*error.cell::<ErrorCell>() };
    for update in value
        .get("updates")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let mode = number_of(update.get(0))?;
        let text = update.get(1).and_then(Value::as_str).unwrap_or_default();
        let Some(update) = cell.update_backtrace else {
            return told(json!({"update_backtrace": null}));
        };
        // SAFETY: the error that it belongs to, and a text that is copied.
        unsafe {
            update(
                error.pointer().cast(),
                &ByteArray::of(text.as_bytes()),
                mode,
            )
        };
    }
    let frames = value.get("frames").and_then(Value::as_array);
    for frame in frames.into_iter().flatten() {
        add_frame(api, &error, frame)?;
    }
    // Once more through the runtime's own interface, where it brings that.
    let error = match api.brought("error.again") {
        Some(again) => api.call(&again, &[error.raw])?,
        None => error,
    };
    // SAFETY: an error has its cell behind the header.
    let cell = unsafe { &*error.cell::<ErrorCell>() };
    let [kind, message, backtrace] = error.error_texts().unwrap_or_default();
    let cause = (!cell.cause_chain.is_null()).then(|| {
        let ptr = cell.cause_chain.cast();
        api.share(RawAny::of(index::ERROR, AnyPayload { ptr }))
    });
    let cause = cause.and_then(|cause| cause.error_texts());
    let mut parts = json!({
        "kind": kind,
        "message": message,
        "backtrace": backtrace,
        "cause": cause.map(|[kind, ..]| kind),
    });
    if context.is_some() {
        // SAFETY: null or an object, which stays where it is: nobody else has this error.
        parts["context"] = match unsafe { cell.extra_context.get().read() } {
            context if context.is_null() => Value::Null,
            context => {
                // SAFETY: an object begins with a header.
                let type_index = unsafe { (*context).type_index };
                let ptr = context.cast();
                show(api, &api.share(RawAny::of(type_index, AnyPayload { ptr })))?
            }
        };
    }
    told(parts)
}

/// Adds a line to the backtrace. Its form is what is asked for (FUN-05), so only a runtime that makes it can answer.
fn add_frame(api: &'static Api, error: &Held, frame: &Value) -> Result<(), Reply> {
    let text = |at: usize| frame.get(at).and_then(Value::as_str).unwrap_or_default();
    let (file, function, line) = (text(0), text(2), number_of(frame.get(1))?);
    let add = api.brought("error.frame");
    let add = add.ok_or_else(|| unsupported("this runtime has no function that adds a frame"))?;
    let [file, function] = [api.text(file)?, api.text(function)?];
    api.call(&add, &[error.raw, file.raw, int_arg(line), function.raw])?;
    Ok(())
}

/// `function.raised`.
pub(in crate::conformance) fn raised(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    drop(api.take_raised());
    let kind = |error: Option<Held>| {
        error
            .and_then(|error| error.error_texts())
            .map(|[kind, ..]| kind)
    };
    let mut taken = Vec::new();
    for step in args
        .get("value")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        match step.as_str().unwrap_or_default().split_once(' ') {
            Some(("set", kind)) => api.raise(&c_text(kind), c""),
            _ => taken.push(kind(api.take_raised())),
        }
    }
    // One more, which the other thread must not see.
    api.raise(c"Left", c"");
    let other = std::thread::spawn(|| api.take_raised().is_some()).join();
    drop(api.take_raised());
    told(json!({"taken": taken, "other_thread": other.unwrap_or(true)}))
}

/// `function.registry`: names of this case alone, which are removed at the end.
pub(in crate::conformance) fn registry(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let _alone = alone();
    let prefix = fresh_prefix();
    let said = registered(api, &prefix, args);
    for name in names(api, &prefix)? {
        remove(api, &format!("{prefix}{name}"))?;
    }
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.into_iter().flatten();
    // Their names need not begin with the prefix.
    for step in steps.filter(|step| step[0] == "register_safely") {
        let name = step[1].as_str().unwrap_or_default();
        remove(api, &name.replace('*', &prefix))?;
    }
    told(said?)
}

fn registered(api: &'static Api, prefix: &str, args: &Value) -> Result<Value, Reply> {
    let mut said = Vec::new();
    let mut replaced = BTreeMap::new();
    settle(api)?;
    let before = FINISHED.load(Ordering::SeqCst);
    let ask = |function: &Held| match api.call(function, &[]) {
        Ok(result) => show(api, &result),
        Err(raised) => Ok(json!(raised.kind)),
    };
    for step in args
        .get("value")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |at: usize| step.get(at).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{prefix}{}", text(1));
        let infixed = text(1).replace('*', prefix);
        said.push(match text(0) {
            "register" => {
                if let Some(old) = api.global(&name) {
                    replaced.insert(name.clone(), old);
                }
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                let over = step.get(3).and_then(Value::as_bool).unwrap_or(false);
                api.set_global(&name, &function, over)?;
                Value::Null
            }
            "lookup" => api
                .global(&name)
                .map_or(Ok(Value::Null), |found| ask(&found))?,
            // To look up says nothing of a name that is not there; what needs the function does.
            "require" => {
                if let Some(require) = api.brought("registry.require") {
                    api.call(&require, &[api.text(&name)?.raw])?;
                }
                api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                api.global(&name)
                    .map_or(Ok(Value::Null), |found| ask(&found))?
            }
            "provide" => {
                let provide = api.brought("registry.provide");
                let provide = provide
                    .ok_or_else(|| unsupported("this runtime has no functions that yield"))?;
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                api.call(&provide, &[api.text(&name)?.raw, function.raw])?;
                Value::Null
            }
            "register_safely" => {
                let register = api.brought("registry.register");
                let register = register
                    .ok_or_else(|| unsupported("this runtime does not distinguish safe callers"))?;
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                match api.call(&register, &[api.text(&infixed)?.raw, function.raw]) {
                    Ok(_) => Value::Null,
                    Err(raised) => json!(raised.kind),
                }
            }
            "register_typed" => {
                let register = api.brought("registry.register_typed");
                let register = register
                    .ok_or_else(|| unsupported("this runtime registers no typed functions"))?;
                match api.call(&register, &[api.text(&name)?.raw]) {
                    Ok(_) => Value::Null,
                    Err(raised) => json!(raised.kind),
                }
            }
            "is_safe" => {
                let find = api.brought("registry.find");
                let find = find
                    .ok_or_else(|| unsupported("this runtime does not distinguish safe callers"))?;
                show(api, &api.call(&find, &[api.text(&infixed)?.raw])?)?
            }
            "call_old" => replaced.get(&name).map_or(Ok(Value::Null), ask)?,
            "describe" => {
                let function = noted_at_its_end(api, number_of(step.get(2))?)?;
                let texts = [text(3), text(4)];
                api.set_global_described(&name, &function, texts)?;
                Value::Null
            }
            "metadata" => {
                let metadata =
                    api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                show(api, &metadata)?
            }
            "schema" => {
                let metadata =
                    api.call_global("ffi.GetGlobalFuncMetadata", &[api.text(&name)?.raw])?;
                match metadata.text() {
                    Some(metadata) => schema_in(&metadata),
                    None => show(api, &metadata)?,
                }
            }
            // What was replaced is held for `call_old` until here.
            "finished" => {
                replaced.clear();
                settle(api)?;
                json!(FINISHED.load(Ordering::SeqCst) - before)
            }
            "remove" => json!(remove(api, &name)?),
            "names" => json!(names(api, prefix)?),
            other => return Err(unsupported(format!("there is no step {other}"))),
        });
    }
    Ok(json!(said))
}

/// How many functions of [`noted_at_its_end`] have ended, on whichever thread.
static FINISHED: AtomicU64 = AtomicU64::new(0);

/// Waits until what is replaced or removed has ended: while another thread reads the registry, a runtime may leave that to the
/// next registration, and one that is due by then ends with it.
fn settle(api: &'static Api) -> Result<(), Raised> {
    unsafe extern "C" fn body(_: Handle, _: *const RawAny, _: i32, _: *mut RawAny) -> i32 {
        0
    }
    unsafe extern "C" fn finish(this: Handle) {
        // SAFETY: the counter below, one reference of which is that of the function.
        let last = unsafe { Arc::from_raw(this.cast::<AtomicU64>()) };
        last.fetch_add(1, Ordering::SeqCst);
    }
    let ended = Arc::new(AtomicU64::new(0));
    for _ in 0..TRIES {
        let name = fresh_prefix();
        let this = Arc::into_raw(Arc::clone(&ended)).cast_mut().cast();
        let function = api.function_until(this, body, Some(finish))?;
        api.set_global(&name, &function, true)?;
        drop(function);
        remove(api, &name)?;
        if ended.load(Ordering::SeqCst) > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

/// After so many a runtime is one that does not end functions.
const TRIES: u32 = 200;

unsafe extern "C" fn state_number(this: Handle, _: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
    // SAFETY: a place for the result.
    unsafe { out.write(int_arg(this as i64)) };
    0
}

/// A function that gives `number`.
pub(in crate::conformance) fn numbered(api: &'static Api, number: i64) -> Result<Held, Raised> {
    api.function(
        std::ptr::without_provenance_mut(number as usize),
        state_number,
    )
}

/// The same, whose end is counted.
fn noted_at_its_end(api: &'static Api, number: i64) -> Result<Held, Raised> {
    unsafe extern "C" fn finish(_: Handle) {
        FINISHED.fetch_add(1, Ordering::SeqCst);
    }
    let this = std::ptr::without_provenance_mut(number as usize);
    api.function_until(this, state_number, Some(finish))
}

pub(in crate::conformance) fn remove(api: &'static Api, name: &str) -> Result<bool, Raised> {
    let name = api.text(name)?;
    let removed = api.call_global("ffi.FunctionRemoveGlobal", &[name.raw])?;
    Ok(removed.raw.int() != 0)
}

/// The schema that metadata has as text; the metadata itself where it has none.
fn schema_in(metadata: &str) -> Value {
    let text = |described: Value| described.get("type_schema")?.as_str().map(str::to_owned);
    let schema = serde_json::from_str(metadata).ok().and_then(text);
    let schema = schema.and_then(|schema| serde_json::from_str(&schema).ok());
    schema.unwrap_or_else(|| json!(metadata))
}

/// The names behind `prefix`, in the order of the runtime.
fn names(api: &'static Api, prefix: &str) -> Result<Vec<String>, Raised> {
    let list = api.call_global("ffi.FunctionListGlobalNamesFunctor", &[])?;
    let count = api.call(&list, &[int_arg(-1)])?.raw.int();
    let mut own = Vec::new();
    for at in 0..count {
        let name = api.call(&list, &[int_arg(at)])?.text().unwrap_or_default();
        own.extend(name.strip_prefix(prefix).map(str::to_owned));
    }
    Ok(own)
}
