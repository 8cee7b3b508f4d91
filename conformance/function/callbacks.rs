//! Functions for the cases of chapter function. A runtime may provide them; otherwise they are C callbacks that it wraps.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, int_arg, read_bytes};
use crate::conformance::runtime::ffi::{Reply, c_text, unsupported};
use crate::value::{AnyPayload, Header, RawAny, index};

/// Returns the function `name`: the one of the runtime if it provides one, otherwise a C callback.
pub(super) fn function(api: &'static FfiApi, name: &str) -> Result<OwnedValue, Reply> {
    match provided_function(api, name) {
        Some(function) => Ok(function),
        None if name == "itself" => Ok(create_context_probe(api)?),
        None => Ok(callback(api, find_suite_function(name)?.body)?),
    }
}

/// Like `function`, for a caller that relies on the function to convert its arguments.
pub(super) fn converting(api: &'static FfiApi, name: &str) -> Result<OwnedValue, Reply> {
    let is_typed = KNOWN
        .iter()
        .any(|known| known.name == name && known.parameters.is_some());
    if is_typed && provided_function(api, name).is_none() {
        return Err(unsupported("a callback in C converts nothing"));
    }
    function(api, name)
}

/// Returns the function of the cases that the runtime itself provides, if any.
pub(super) fn provided_function(api: &'static FfiApi, name: &str) -> Option<OwnedValue> {
    api.suite_function(&format!("function.{name}"))
}

/// Finds the C callback for the function of `spec/function.md` with this name.
pub(super) fn find_suite_function(name: &str) -> Result<&'static SuiteFunction, Reply> {
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

/// Wraps a callback of the suite as a function of the runtime.
pub(super) fn callback(
    api: &'static FfiApi,
    body: fn(&'static FfiApi, &[RawAny]) -> CallbackResult,
) -> Result<OwnedValue, Raised> {
    // This leaks a few bytes, which is acceptable in a worker process.
    let own: &'static CallbackContext = Box::leak(Box::new(CallbackContext { api, body }));
    api.function(std::ptr::from_ref(own).cast_mut().cast(), run)
}

/// A function of `spec/function.md`.
pub(super) struct SuiteFunction {
    pub(super) name: &'static str,
    /// Types that its arguments are converted to; `None` for a packed function.
    pub(super) parameters: Option<&'static [&'static str]>,
    pub(super) body: fn(&'static FfiApi, &[RawAny]) -> CallbackResult,
}

/// The outcome of a callback.
pub(super) enum CallbackResult {
    Value(RawAny),
    /// Return code of a callback that fails.
    Code(i32),
}

/// The functions of `function.call`, which `spec/function.md` lists. A function without `parameters` takes any arguments. The others check
/// their arguments as typed functions do (FUN-08, FUN-09), unless the runtime provides typed functions itself.
const KNOWN: [SuiteFunction; 12] = [
    SuiteFunction {
        name: "add",
        parameters: Some(&["int", "float"]),
        body: |_, args| {
            let float = args[0].int() as f64 + f64::from_bits(args[1].bits());
            CallbackResult::Value(RawAny::of(index::FLOAT, AnyPayload { float }))
        },
    },
    SuiteFunction {
        name: "concat",
        parameters: Some(&["str", "str"]),
        body: |api, args| {
            let text = |at: usize| read_bytes(&args[at]).unwrap_or_default();
            let both = [text(0), text(1)].concat();
            give(api.text(&String::from_utf8_lossy(&both)), api)
        },
    },
    SuiteFunction {
        name: "count",
        parameters: None,
        body: |_, args| CallbackResult::Value(int_arg(args.len() as i64)),
    },
    SuiteFunction {
        name: "fail",
        parameters: None,
        body: |api, _| {
            api.raise(c"ValueError", c"as asked");
            CallbackResult::Code(-1)
        },
    },
    SuiteFunction {
        name: "frontend",
        parameters: None,
        body: |api, _| {
            api.raise(c"EnvErrorAlreadySet", c"the frontend holds it");
            CallbackResult::Code(-1)
        },
    },
    // These two break the convention: the first fails without an error, the second returns a code that is not defined.
    SuiteFunction {
        name: "silent",
        parameters: None,
        body: |_, _| CallbackResult::Code(-1),
    },
    SuiteFunction {
        name: "odd",
        parameters: None,
        body: |_, _| CallbackResult::Code(5),
    },
    SuiteFunction {
        name: "nothing",
        parameters: None,
        body: |_, _| CallbackResult::Value(RawAny::NONE),
    },
    SuiteFunction {
        name: "first",
        parameters: None,
        body: |api, args| match args.first() {
            Some(first) => give(api.own(first), api),
            None => CallbackResult::Value(RawAny::NONE),
        },
    },
    SuiteFunction {
        name: "apply",
        parameters: Some(&["function", "int"]),
        body: |api, args| give(api.call(&api.share(args[0]), &args[1..]), api),
    },
    SuiteFunction {
        name: "twice",
        parameters: Some(&["int"]),
        body: |_, args| CallbackResult::Value(int_arg(args[0].int() * 2)),
    },
    SuiteFunction {
        name: "maybe",
        parameters: Some(&["optional-int"]),
        body: |_, args| match args[0].type_index {
            index::NONE => CallbackResult::Value(int_arg(-1)),
            _ => CallbackResult::Value(args[0]),
        },
    },
];

/// Passes on an owned value, or raises an error again for the caller.
fn give(result: Result<OwnedValue, Raised>, api: &'static FfiApi) -> CallbackResult {
    match result {
        Ok(held) => {
            let raw = held.raw;
            std::mem::forget(held);
            CallbackResult::Value(raw)
        }
        Err(raised) => {
            api.raise(&c_text(&raised.kind), &c_text(&raised.message));
            CallbackResult::Code(-1)
        }
    }
}

/// Creates a function without a context and without a finisher. It returns whether it is called with itself as the context.
fn create_context_probe(api: &'static FfiApi) -> Result<OwnedValue, Raised> {
    unsafe extern "C" fn body(this: RawHandle, _: *const RawAny, _: i32, out: *mut RawAny) -> i32 {
        // SAFETY: by the convention, `this` is null or the function object.
        let header = unsafe { this.cast::<Header>().as_ref() };
        let is_function = header.is_some_and(|header| header.type_index == index::FUNCTION);
        // SAFETY: `out` is a place for the result.
        unsafe { out.write(int_arg(is_function.into())) };
        0
    }
    api.function(std::ptr::null_mut(), body)
}

/// The context of a callback.
struct CallbackContext {
    api: &'static FfiApi,
    body: fn(&'static FfiApi, &[RawAny]) -> CallbackResult,
}

/// Runs every callback of the suite. The context selects the body.
unsafe extern "C" fn run(
    this: RawHandle,
    args: *const RawAny,
    count: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `this` is a `CallbackContext` that is never freed.
    let own = unsafe { &*this.cast::<CallbackContext>() };
    let args = match usize::try_from(count) {
        Ok(0) | Err(_) => &[][..],
        // SAFETY: `args` points to `count` arguments.
        Ok(count) => unsafe { std::slice::from_raw_parts(args, count) },
    };
    match (own.body)(own.api, args) {
        CallbackResult::Code(code) => code,
        CallbackResult::Value(value) => {
            // SAFETY: `out` is a place for the result.
            unsafe { out.write(value) };
            0
        }
    }
}
