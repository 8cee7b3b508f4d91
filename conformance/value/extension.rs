//! The operation `value.extension`: values of an extension type that counts how often they are copied and destroyed (VAL-22).

use crate::conformance::op::{Answer, OpError};
use crate::function::{Error, ErrorKind, Function, legacy as calls};
use crate::rule::Findings;
use crate::value::legacy::TVMValue;
use crate::value::{Any, AnyView, extension};
use serde_json::{Value, json};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Number of copies of one value that were made and destroyed.
#[derive(Default)]
struct ExtensionCounts {
    clones: AtomicI64,
    destroyed: AtomicI64,
}

/// The content of the box that a handle points to.
type CountedHandle = Arc<ExtensionCounts>;

/// Copies a value and counts the copy (VAL-22). A runtime makes one copy for each owned value.
unsafe extern "C-unwind" fn clone_counted(handle: *mut c_void) -> *mut c_void {
    // SAFETY: `handle` is a live handle of this type, by the contract of its registration.
    let counts = unsafe { &*handle.cast::<CountedHandle>() };
    counts.clones.fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(Arc::clone(counts))).cast()
}

/// Destroys a value and counts that (VAL-22). If an owned value is not destroyed, this count stays below the number of copies.
unsafe extern "C-unwind" fn destroy_counted(handle: *mut c_void) {
    // SAFETY: `handle` has this type and is destroyed once, by the contract of its registration.
    let counts = unsafe { Box::from_raw(handle.cast::<CountedHandle>()) };
    counts.destroyed.fetch_add(1, Ordering::Relaxed);
}

/// Shows what happens to a value under `code` that a caller passes, returns or destroys.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let value = super::ops::value_of(args)?;
    let unsupported = || OpError::Unsupported("the value is of no form".into());
    let number = value.get("code").and_then(Value::as_i64);
    let code = number.and_then(|code| i32::try_from(code).ok());
    let code = code.ok_or_else(unsupported)?;
    if value.get("registered").and_then(Value::as_bool) == Some(true) {
        // SAFETY: only this function makes handles under this code, and they are for these functions.
        unsafe { extension::register_pair(code, clone_counted, destroy_counted) }?;
    }
    let counts = CountedHandle::default();
    let handle: *mut c_void = Box::into_raw(Box::new(Arc::clone(&counts))).cast();
    let what = value.get("use").and_then(Value::as_str);
    let outcome = match what {
        Some("argument") => called(code, handle, |_| Ok(Any::none())),
        Some("own") => called(code, handle, |args| {
            let owned: Vec<Any> = args.iter().map(|arg| arg.to_any()).collect();
            drop(owned);
            Ok(Any::none())
        }),
        Some("result") => called(code, handle, |args| {
            Ok(args.first().map(|arg| arg.to_any()).unwrap_or_default())
        }),
        Some("free") => extension::pair(code).map_err(Error::from).map(|pair| {
            // SAFETY: the handle belongs to the pair. It is destroyed once, and nothing below uses it after that.
            unsafe { (pair.destroy)(handle) };
            ptr::null_mut()
        }),
        _ => Err(Error::new(ErrorKind::Value, "the value is of no form")),
    };
    let counted = |count: &AtomicI64| count.load(Ordering::Relaxed);
    let (clones, destroyed) = (counted(&counts.clones), counted(&counts.destroyed));
    if what != Some("free") || outcome.is_err() {
        // SAFETY: this is the handle from above. Only a successful `free` destroys it.
        drop(unsafe { Box::from_raw(handle.cast::<CountedHandle>()) });
    }
    let result = outcome?;
    // A result must not be the caller's own handle. If it is, the rule is broken.
    let same = result == handle;
    if !result.is_null() && !same {
        // SAFETY: a call returned this handle, and the caller owns it.
        drop(unsafe { Box::from_raw(result.cast::<CountedHandle>()) });
    }
    let members =
        json!({"clones": clones, "destroyed": destroyed, "returned": !result.is_null() && !same});
    Ok(Answer::new(members, Findings::default()))
}

/// Calls a function of `body` with the handle, as C code does. Returns the resulting handle, or null.
fn called(
    code: i32,
    handle: *mut c_void,
    body: impl Fn(&[AnyView<'_>]) -> crate::function::Result + Send + Sync + 'static,
) -> Result<*mut c_void, Error> {
    let value = TVMValue { v_handle: handle };
    // SAFETY: there is one value and one code. The handle has this code and lives until the call returns.
    let args = unsafe { calls::views(&value, &code, 1) }?;
    let (result, of) = calls::call(&Function::from_packed(body), &args)?;
    Ok(if of == code {
        // SAFETY: a value with an extension code holds a handle.
        unsafe { result.v_handle }
    } else {
        ptr::null_mut()
    })
}
