//! Failures: the text of this thread (FUN-15), and the error object of a frontend (FUN-25).

use super::{guard, text};
use crate::function::frontend;
use crate::function::legacy::{failure, last_error};
use std::ffi::{CStr, c_char, c_int, c_void};

/// The text of the last failure on this thread; empty when there was none.
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastError() -> *const c_char {
    last_error::pointer()
}

/// Leaves `message` as the failure of this thread: what a callback does before it returns -1.
///
/// # Safety
///
/// `message` must be null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMAPISetLastError(message: *const c_char) {
    if message.is_null() {
        return;
    }
    // SAFETY: `message` is not null, so a C string, by this contract.
    let message = unsafe { CStr::from_ptr(message) };
    failure::leave(&message.to_string_lossy());
}

/// Ends the process with the last failure of this thread: the caller has no way to go on (0.15 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMThrowLastError() {
    // SAFETY: `TVMGetLastError` returns a C string, never null, which stays until the next failure of this thread.
    let text = unsafe { CStr::from_ptr(last_error::pointer()) };
    eprintln!("{}", text.to_string_lossy());
    std::process::abort()
}

/// The backtrace of the last failure: empty, this crate keeps none for this interface (0.15 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastBacktrace() -> *const c_char {
    // Python splits it into frames, which it adds to its own traceback (FUN-15): of an empty text there are none.
    c"".as_ptr()
}

/// Leaves an error object of the frontend on this thread (0.14 on): what a callback of Python does before it returns -1.
/// The object is counted until another failure takes its place or the frontend drops it (FUN-25).
///
/// # Safety
///
/// `error` must be null or a live object of the frontend whose functions [`TVMBackendRegisterEnvCAPI`] registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMAPISetLastPythonError(error: *mut c_void) {
    // SAFETY: `error` is null or an object of the frontend, by this contract.
    unsafe { failure::leave_object(error) }
}

/// The error object that the frontend left on this thread, or null (0.14 on). It is borrowed: the frontend counts it once
/// more where it keeps it, before [`TVMDropLastPythonError`].
#[unsafe(no_mangle)]
pub extern "C" fn TVMGetLastPythonError() -> *mut c_void {
    frontend::held()
}

/// Forgets the error object that the frontend left on this thread (0.14 on).
#[unsafe(no_mangle)]
pub extern "C" fn TVMDropLastPythonError() {
    frontend::release();
}

/// Registers a function of the frontend under CPython's name for it: `Py_IncRef`, `Py_DecRef`, `PyGILState_Ensure`,
/// `PyGILState_Release`, `PyErr_CheckSignals`. Any other name is an error (FUN-25).
///
/// # Safety
///
/// `name` must be a C string, `address` null or that function, callable from any thread until the process ends.
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
