//! Functions of C callbacks: their arguments, results and resources (FUN-17 to FUN-20).

use super::arguments::{PackedArguments, views};
use super::result::pass_result;
use super::{failure, last_error};
use crate::function::{Error, ErrorKind, Function, Result};
use crate::value::legacy::TVMValue;
use crate::value::{Any, index};
use std::ffi::{c_int, c_void};

/// A C callback. Its arguments are the arguments of the call, a place for its result, and its resource.
pub type TVMPackedCFunc = unsafe extern "C-unwind" fn(
    args: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: *mut c_void,
    resource: *mut c_void,
) -> c_int;

/// Frees the resource of a callback.
pub type TVMPackedCFuncFinalizer = unsafe extern "C-unwind" fn(resource: *mut c_void);

/// Creates a function from a callback. Its resource is finalised once, with the last reference to the function (FUN-20).
///
/// # Safety
///
/// `callback` is callable with `resource` from any thread until `finish` is called, which happens once.
pub(crate) unsafe fn from_callback(
    callback: TVMPackedCFunc,
    // Passed to every call. Only the callback knows its meaning.
    resource: *mut c_void,
    finish: Option<TVMPackedCFuncFinalizer>,
) -> Function {
    let resource = Resource { resource, finish };
    Function::from_packed(move |args| {
        // Captures the whole struct: the closure must own `resource` with its `Drop`, not only the pointer.
        let resource = &resource;
        let mut passed = PackedArguments::of(args)?;
        let mut result = Any::none();
        // FUN-15: an old text stays readable, but is not mistaken for the text of this call (FUN-18).
        last_error::take();
        // SAFETY: `callback` is callable with `resource` from any thread, by this contract; the arrays hold the arguments.
        let returned = unsafe {
            callback(
                passed.values.as_mut_ptr(),
                passed.codes.as_mut_ptr(),
                c_int::try_from(args.len()).unwrap_or(c_int::MAX),
                (&raw mut result).cast(),
                resource.resource,
            )
        };
        // FUN-18: any other code is a failure, not only -1. -2 is not a code of the frontend here (FUN-14).
        if returned == 0 {
            Ok(result)
        } else {
            Err(failure::take_call_error(returned))
        }
    })
}

/// The resource of a callback, which is freed with the function (FUN-20).
struct Resource {
    resource: *mut c_void,
    /// The finaliser. A null finaliser is not called (FUN-20).
    finish: Option<TVMPackedCFuncFinalizer>,
}

// SAFETY: only `from_callback` creates it, by whose contract the resource may be used from any thread.
unsafe impl Send for Resource {}
// SAFETY: as for `Send`: several threads may use the resource at once.
unsafe impl Sync for Resource {}

impl Drop for Resource {
    fn drop(&mut self) {
        if let Some(finish) = self.finish {
            // SAFETY: called once, by the contract of `from_callback`; the callback is not called any more.
            unsafe { finish(self.resource) }
        }
    }
}

/// Sets the result of a callback: copies a value, or adds a reference for a handle.
///
/// # Safety
///
/// `result` is the pointer that the callback received, and `values` and `codes` hold `count` values.
pub(crate) unsafe fn set_result(
    result: *mut c_void,
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
) -> Result<()> {
    if count != 1 {
        return Err(Error::new(
            ErrorKind::Value,
            format!("a callback returns 1 value, not {count}"),
        ));
    }
    // SAFETY: `values` and `codes` hold one value, by this contract.
    let returned = unsafe { views(values, codes, 1) }?;
    // SAFETY: the callback received `result`, by this contract: the address of the `Any` in `from_callback`.
    unsafe { *result.cast::<Any>() = returned[0].to_any() };
    Ok(())
}

/// Returns an argument of a callback as a value that the callback owns. A handle gets a new reference (FUN-19).
///
/// # Safety
///
/// `value` and `code` hold one argument of the callback.
pub(crate) unsafe fn own_argument(
    value: *const TVMValue,
    code: *const c_int,
) -> Result<(TVMValue, c_int)> {
    // SAFETY: `value` and `code` hold one argument, by this contract.
    let owned = unsafe { views(value, code, 1) }?[0].to_any();
    if is_borrowed(&owned) {
        return Err(Error::new(
            ErrorKind::Value,
            "text and bytes of an argument have no owner: copy them",
        ));
    }
    // `unused` can only receive text and bytes, which were rejected above.
    let mut unused = Any::none();
    pass_result(owned, &mut unused)
}

/// Returns whether results of this type are borrowed from the thread (FUN-16).
fn is_borrowed(value: &Any) -> bool {
    let kinds = [
        index::SMALL_STR,
        index::STR,
        index::SMALL_BYTES,
        index::BYTES,
    ];
    kinds.contains(&value.type_index())
}
