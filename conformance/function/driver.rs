//! Operations of chapter function for calls and errors, performed through the C interface of a runtime.
//!
//! A callback of [`super::callbacks`] is packed, so it does not convert its arguments. Functions of the runtime do the work of a typed
//! function before its body. Arguments are converted as in `value.convert`, and their number is checked by a typed function with as many
//! parameters.

use super::callbacks::{callback, find_suite_function, function, provided_function};
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, c_text, unsupported, value_of};
use crate::conformance::value::convert::converted;
use crate::function::ErrorCell;
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use serde_json::{Value, json};
use std::ffi::c_void;

/// Returns the function of a case and its arguments, converted as a typed function converts them.
fn prepared(api: &'static FfiApi, args: &Value) -> Result<(OwnedValue, Vec<OwnedValue>), Reply> {
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
    if let Some(own) = provided_function(api, name) {
        return Ok((own, list));
    }
    let function = find_suite_function(name)?;
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

/// Passes too few or too many arguments to a typed function of the runtime with `wanted` parameters.
fn counted(api: &'static FfiApi, wanted: usize, list: &[OwnedValue]) -> Result<(), Reply> {
    let name = if wanted == 1 {
        "ffi.ReprPrint"
    } else {
        "ffi.RecursiveEq"
    };
    let args: Vec<RawAny> = list.iter().map(|held| held.raw).collect();
    let taken = api.call_global(name, &args)?;
    // The call succeeded. That is also an answer, although a wrong one.
    Err(Reply::Ok {
        value: json!({"result": show(api, &taken)?}),
        findings: None,
    })
}

fn cells(list: &[OwnedValue]) -> Vec<RawAny> {
    list.iter().map(|held| held.raw).collect()
}

/// Performs `function.call`.
pub(in crate::conformance) fn call(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let (function, list) = prepared(api, args)?;
    match api.call(&function, &cells(&list)) {
        Ok(result) => accepted(json!({"result": show(api, &result)?})),
        Err(raised) if raised.broken.is_some() => Err(raised.into()),
        Err(raised) => accepted(json!({"error": raised.kind, "message": raised.message})),
    }
}

/// Performs `function.raw_call`: calls through the pointer in the object, as a C++ caller does.
pub(in crate::conformance) fn raw_call(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let (function, list) = prepared(api, args)?;
    drop(api.take_raised());
    let cells = cells(&list);
    let mut out = int_arg(7);
    // SAFETY: a function has two pointers after its header.
    let (safe_call, cpp_call) = unsafe { *function.cell::<(FfiCallback, *const c_void)>() };
    // SAFETY: the first pointer takes the function, its arguments and a place for the result.
    let code = unsafe {
        safe_call(
            function.pointer(),
            cells.as_ptr(),
            cells.len() as i32,
            &raw mut out,
        )
    };
    let result = OwnedValue { api, raw: out };
    let raised = api.take_raised().and_then(|error| error.error_texts());
    let [kind, message] = match raised {
        Some([kind, message, _]) => [Some(kind), Some(message)],
        None => [None, None],
    };
    accepted(json!({
        "code": code,
        "result": show(api, &result)?,
        "raised": kind,
        "message": message,
        "cpp_call_is_null": cpp_call.is_null(),
    }))
}

/// Performs `function.error`.
pub(in crate::conformance) fn error(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = value_of(args);
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let cause = text("cause").map(|kind| api.error([kind, "", ""], [None, None]));
    let cause = cause.transpose()?;
    let parts = ["kind", "message", "backtrace"].map(|name| text(name).unwrap_or_default());
    let context = value.get("context").map(|form| make(api, form));
    let context = context.transpose()?;
    let error = api.error(parts, [cause.as_ref(), context.as_ref()])?;
    // SAFETY: an error has its cell after the header.
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
            return accepted(json!({"update_backtrace": null}));
        };
        // SAFETY: the function belongs to this error, and the text is copied.
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
    // The error is made again by the interface of the runtime itself, if there is one.
    let error = match api.suite_function("error.again") {
        Some(again) => api.call(&again, &[error.raw])?,
        None => error,
    };
    // SAFETY: an error has its cell after the header.
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
        // SAFETY: the context is null or an object. It does not change, because no other reference to this error exists.
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
    accepted(parts)
}

/// Adds a line to the backtrace. The case is about the form of the line (FUN-05), so only a runtime that makes the line can answer.
fn add_frame(api: &'static FfiApi, error: &OwnedValue, frame: &Value) -> Result<(), Reply> {
    let text = |at: usize| frame.get(at).and_then(Value::as_str).unwrap_or_default();
    let (file, function, line) = (text(0), text(2), number_of(frame.get(1))?);
    let add = api.suite_function("error.frame");
    let add = add.ok_or_else(|| unsupported("this runtime has no function that adds a frame"))?;
    let [file, function] = [api.text(file)?, api.text(function)?];
    api.call(&add, &[error.raw, file.raw, int_arg(line), function.raw])?;
    Ok(())
}

/// Performs `function.raised`.
pub(in crate::conformance) fn raised(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    drop(api.take_raised());
    let kind = |error: Option<OwnedValue>| {
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
    // This error stays in the slot, and the other thread must not see it.
    api.raise(c"Left", c"");
    let other = std::thread::spawn(|| api.take_raised().is_some()).join();
    drop(api.take_raised());
    accepted(json!({"taken": taken, "other_thread": other.unwrap_or(true)}))
}
