//! Functions, callbacks and the registry of names. Their behaviour is defined in `function::legacy`.

use super::{Handle, TVMObjectFree, guard, text, write_result};
use crate::function::legacy::{self, callback};
use crate::function::registry;
use crate::value::legacy::TVMValue;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

pub use crate::function::legacy::callback::{TVMPackedCFunc, TVMPackedCFuncFinalizer};

/// Calls a function. A string in the result is valid until the next call on this thread. The caller owns a handle in the result.
///
/// # Safety
///
/// `function` is the handle of a function, `values` and `codes` hold `count` arguments that it expects, and the last two are places for the
/// result.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFuncCall(
    function: Handle,
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
) -> c_int {
    guard(|| {
        // SAFETY: `function` is the handle of a function, by this contract.
        let function = unsafe { legacy::function(function) }?;
        // SAFETY: `values` and `codes` hold `count` arguments, by this contract.
        let args = unsafe { legacy::views(values, codes, count) }?;
        let (value, code) = legacy::call(&function, &args)?;
        // SAFETY: `result` is a place for the result, by this contract; compiled code that ignores the result also passes places.
        unsafe { write_result(result, value) }?;
        // SAFETY: `result_code` is a place for the code of the result, by this contract.
        unsafe { write_result(result_code, code) }
    })
}

/// Drops the caller's reference to a function.
///
/// # Safety
///
/// `function` is a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncFree(function: Handle) -> c_int {
    // SAFETY: `function` is a handle that the caller owns, by this contract.
    unsafe { TVMObjectFree(function) }
}

/// Creates a function from a callback. `finish` is called with `resource` when the last reference is dropped (FUN-20).
///
/// # Safety
///
/// `callback` is callable with `resource` from any thread until `finish` is called, once; `out` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncCreateFromCFunc(
    callback: TVMPackedCFunc,
    resource: *mut c_void,
    finish: Option<TVMPackedCFuncFinalizer>,
    out: *mut Handle,
) -> c_int {
    guard(|| {
        // SAFETY: `callback` is callable with `resource` from any thread until `finish` is called, by this contract.
        let function = unsafe { callback::from_callback(callback, resource, finish) };
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, function.into_object().into_raw().cast()) }
    })
}

/// Sets the result of a callback, which is one value (FUN-17). A value is copied, and a handle gets a new reference.
///
/// # Safety
///
/// `result` is the pointer that the callback received, and `value` and `code` hold `count` values, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMCFuncSetReturn(
    result: Handle,
    value: *mut TVMValue,
    code: *mut c_int,
    count: c_int,
) -> c_int {
    // SAFETY: the callback received `result`, and the arrays hold `count` values, by this contract.
    guard(|| unsafe { callback::set_result(result, value, code, count) })
}

/// Turns an argument of a callback into a value that the callback owns. Text and bytes are rejected (FUN-19).
///
/// # Safety
///
/// `value` and `code` hold one argument of the callback, and are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMCbArgToReturn(value: *mut TVMValue, code: *mut c_int) -> c_int {
    guard(|| {
        // SAFETY: `value` and `code` hold one argument, by this contract.
        let (owned, owned_code) = unsafe { callback::own_argument(value, code) }?;
        // SAFETY: `value` holds an argument of the callback, by this contract, and is writable.
        unsafe { write_result(value, owned) }?;
        // SAFETY: `code` holds the code of that argument, by this contract, and is writable.
        unsafe { write_result(code, owned_code) }
    })
}

/// Registers a global function. A taken name is an error unless `override_existing` is not 0 (FUN-22).
///
/// # Safety
///
/// `name` is a C string, `function` is the handle of a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncRegisterGlobal(
    name: *const c_char,
    function: Handle,
    override_existing: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: `function` is the handle of a function, by this contract.
        let function = unsafe { legacy::function(function) }?;
        // FUN-22: an earlier handle keeps its old body. Up to 0.6, C++ code with an address from `Registry::Get` calls the new one. This
        // crate returns no such address.
        registry::register(name, function, override_existing != 0)
    })
}

/// Looks up the global function `name`. Writes a null handle and succeeds if it does not exist (FUN-21).
///
/// # Safety
///
/// `name` is a C string, `out` is a place for a handle. A caller of the function passes the arguments that it expects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncGetGlobal(name: *const c_char, out: *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: a caller of the function passes the arguments that it expects, by this contract.
        let found = unsafe { registry::lookup_raw(name.as_bytes()) };
        let handle = found.map_or(ptr::null_mut(), |function| {
            function.into_object().into_raw()
        });
        // SAFETY: `out` is a place for the handle, by this contract.
        unsafe { write_result(out, handle.cast()) }
    })
}

/// Returns the names of all global functions, valid until the next call of this function on the same thread (FUN-24).
///
/// # Safety
///
/// Both are places for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncListGlobalNames(
    out_size: *mut c_int,
    out_array: *mut *const *const c_char,
) -> c_int {
    guard(|| {
        let (count, pointers) = legacy::global_names();
        // SAFETY: `out_size` is a place for the result, by this contract.
        unsafe { write_result(out_size, c_int::try_from(count).unwrap_or(c_int::MAX)) }?;
        // SAFETY: `out_array` is a place for the result, by this contract.
        unsafe { write_result(out_array, pointers) }
    })
}

/// Removes a global function. Also succeeds if it does not exist (FUN-23).
///
/// # Safety
///
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncRemoveGlobal(name: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // FUN-23: up to 0.7 the C interface has no such function, so only frontends from 0.8 on call it.
        // FUN-23: the result does not say whether the name existed.
        registry::remove(name);
        Ok(())
    })
}
