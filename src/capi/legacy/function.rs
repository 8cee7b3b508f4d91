//! Functions, callbacks and the registry of names. What they do is in `function::legacy`.

use super::{Handle, TVMObjectFree, guard, put, text};
use crate::function::legacy::{self, callback};
use crate::function::registry;
use crate::value::legacy::TVMValue;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

pub use crate::function::legacy::callback::{TVMPackedCFunc, TVMPackedCFuncFinalizer};

/// Calls a function. A string in the result is valid until the next call on this thread; a handle in it belongs to the caller.
///
/// # Safety
///
/// `function` must be the handle of a function, `values` and `codes` hold `count` arguments that it takes, the last two be
/// places for the result.
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
        // SAFETY: `result` is a place for the result, by this contract; compiled code that wants no result passes places all the same.
        unsafe { put(result, value) }?;
        // SAFETY: `result_code` is a place for the code of the result, by this contract.
        unsafe { put(result_code, code) }
    })
}

/// Drops the caller's reference of a function.
///
/// # Safety
///
/// `function` must be a handle that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncFree(function: Handle) -> c_int {
    // SAFETY: `function` is a handle that the caller owns, by this contract.
    unsafe { TVMObjectFree(function) }
}

/// Makes a function of a callback. `finish` is called with `resource` when its last reference ends (FUN-20).
///
/// # Safety
///
/// `callback` must be callable with `resource` from any thread until `finish` is called, once; `out` must be a place for a handle.
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
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, function.into_object().into_raw().cast()) }
    })
}

/// Sets the result of a callback, which is one value (FUN-17); the value is copied, a handle counted.
///
/// # Safety
///
/// `result` must be what the callback received, and `value` and `code` hold `count` values, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMCFuncSetReturn(
    result: Handle,
    value: *mut TVMValue,
    code: *mut c_int,
    count: c_int,
) -> c_int {
    // SAFETY: `result` is what the callback received, and the arrays hold `count` values, by this contract.
    guard(|| unsafe { callback::set_result(result, value, code, count) })
}

/// Turns an argument of a callback into a value that the callback owns; text and bytes are rejected (FUN-19).
///
/// # Safety
///
/// `value` and `code` must hold one argument of the callback, and be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMCbArgToReturn(value: *mut TVMValue, code: *mut c_int) -> c_int {
    guard(|| {
        // SAFETY: `value` and `code` hold one argument, by this contract.
        let (owned, owned_code) = unsafe { callback::own_argument(value, code) }?;
        // SAFETY: `value` holds an argument of the callback, by this contract, which may be written.
        unsafe { put(value, owned) }?;
        // SAFETY: `code` holds the code of that argument, by this contract, which may be written.
        unsafe { put(code, owned_code) }
    })
}

/// Registers a global function; a name that is taken is an error unless `override_existing` is not 0 (FUN-22).
///
/// # Safety
///
/// `name` must be a C string, `function` the handle of a function.
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
        // FUN-22: a handle that was found before keeps its old body. Up to 0.6 C++ code that holds the address that
        // `Registry::Get` returned calls the new one; no such address is handed out here.
        registry::register(name, function, override_existing != 0)
    })
}

/// The global function `name`; a null handle and success when there is none (FUN-21).
///
/// # Safety
///
/// `name` must be a C string, `out` a place for a handle. A caller of the function passes what it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncGetGlobal(name: *const c_char, out: *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: a caller of the function passes what it takes, by this contract.
        let found = unsafe { registry::lookup_raw(name.as_bytes()) };
        let handle = found.map_or(ptr::null_mut(), |function| {
            function.into_object().into_raw()
        });
        // SAFETY: `out` is a place for it, by this contract.
        unsafe { put(out, handle.cast()) }
    })
}

/// The names of all global functions, valid until the next call of this on the same thread (FUN-24).
///
/// # Safety
///
/// Both must be places for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncListGlobalNames(
    out_size: *mut c_int,
    out_array: *mut *const *const c_char,
) -> c_int {
    guard(|| {
        let (count, pointers) = legacy::global_names();
        // SAFETY: `out_size` is a place for the result, by this contract.
        unsafe { put(out_size, c_int::try_from(count).unwrap_or(c_int::MAX)) }?;
        // SAFETY: `out_array` is a place for the result, by this contract.
        unsafe { put(out_array, pointers) }
    })
}

/// Removes a global function; success without one, too (FUN-23).
///
/// # Safety
///
/// `name` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFuncRemoveGlobal(name: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // FUN-23: up to 0.7 the C interface has no such function, so that only frontends from 0.8 on come here.
        // FUN-23: whether it was there is no part of the answer.
        registry::remove(name);
        Ok(())
    })
}
