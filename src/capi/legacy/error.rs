//! Failures: the text of this thread (FUN-15), and the error object of a frontend (FUN-25).

use super::{guard, text};
use crate::function::frontend;
use crate::function::legacy::{failure, last_error};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Returns the text of the last failure on this thread; empty if nothing has failed.
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastError() -> *const c_char {
    last_error::pointer()
}

/// Stores `message` as the failure of this thread. A callback does this before it returns -1.
///
/// # Safety
///
/// `message` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMAPISetLastError(message: *const c_char) {
    if message.is_null() {
        return;
    }
    // SAFETY: `message` is not null, so a C string, by this contract.
    let message = unsafe { CStr::from_ptr(message) };
    failure::store_message(&message.to_string_lossy());
}

/// Ends the process with the last failure of this thread, because the caller cannot continue (0.15 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMThrowLastError() {
    // SAFETY: `TVMGetLastError` returns a C string, never null, which stays until the next failure of this thread.
    let text = unsafe { CStr::from_ptr(last_error::pointer()) };
    eprintln!("{}", text.to_string_lossy());
    std::process::abort()
}

/// Returns null, because this crate keeps no backtrace for this interface (0.15 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastBacktrace() -> *const c_char {
    // Releases also return null for a failure that is a text. Python then adds no frames to its traceback.
    std::ptr::null()
}

/// Stores an error object of the frontend on this thread (0.14 on). A Python callback does this before it returns -1. The object is counted
/// until another failure replaces it or the frontend drops it (FUN-25).
///
/// # Safety
///
/// `error` is null or a live object of the frontend whose functions [`TVMBackendRegisterEnvCAPI`] registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMAPISetLastPythonError(error: *mut c_void) {
    // SAFETY: `error` is null or an object of the frontend, by this contract.
    unsafe { failure::store_object(error) }
}

/// Returns the error object that the frontend stored on this thread, or null (0.14 on). It is borrowed: a frontend that keeps it adds a
/// reference before it calls [`TVMDropLastPythonError`].
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastPythonError() -> *mut c_void {
    frontend::stored_error()
}

/// Releases the error object that the frontend stored on this thread (0.14 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMDropLastPythonError() {
    frontend::release();
}

/// Registers a function of the frontend under its CPython name: `Py_IncRef`, `Py_DecRef`, `PyGILState_Ensure`, `PyGILState_Release`,
/// `PyErr_CheckSignals`. Any other name is an error (FUN-25).
///
/// # Safety
///
/// `name` is a C string, `address` is null or that function, callable from any thread until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRegisterEnvCAPI(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { text(name, "the name") }?;
        // SAFETY: `address` is null or the function of that name, by this contract.
        unsafe { frontend::register(name.as_bytes(), address) }
    })
}
