//! What compiled code does once: static initialisation behind a handle.

use super::MOD_22;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// `TVMBackendRunOnce`: calls `run(data)` unless `handle` is set already, and sets it when that returned 0 (MOD-22).
///
/// Returns what `run` returned, 0 when it did not need to run.
///
/// # Safety
///
/// `run` must be callable with `data`.
pub unsafe fn run(
    handle: &AtomicPtr<c_void>,
    run: unsafe extern "C" fn(*mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int {
    if !handle.load(Ordering::Acquire).is_null() && !MOD_22.is_off() {
        return 0;
    }
    let _held = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    if !handle.load(Ordering::Acquire).is_null() && !MOD_22.is_off() {
        return 0;
    }
    // SAFETY: the caller vouches for `run` and `data`.
    let code = unsafe { run(data) };
    if code == 0 {
        handle.store(std::ptr::without_provenance_mut(1), Ordering::Release);
    }
    code
}

/// `TVMFFIHandleInitOnce`: what `handle` holds, made by `make` when it holds nothing yet (MOD-22).
///
/// `make` writes the value and returns 0; a null value is refused, anything but 0 comes back as `Err(code)`.
///
/// # Safety
///
/// `make` must be callable, and write a pointer that may live as long as `handle` does.
pub unsafe fn init(
    handle: &AtomicPtr<c_void>,
    make: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
) -> Result<(), InitFailure> {
    if !handle.load(Ordering::Acquire).is_null() {
        return Ok(());
    }
    let _held = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    if !handle.load(Ordering::Acquire).is_null() {
        return Ok(());
    }
    let mut value = std::ptr::null_mut();
    // SAFETY: the caller vouches for `make`; `value` is a valid place for its result.
    match unsafe { make(&raw mut value) } {
        0 if value.is_null() => Err(InitFailure::Null),
        0 => {
            handle.store(value, Ordering::Release);
            Ok(())
        }
        code => Err(InitFailure::Code(code)),
    }
}

/// Why [`init`] did not set its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitFailure {
    /// The function said that all is well and gave nothing.
    Null,
    /// The function failed with this code, and has raised its own error.
    Code(c_int),
}

/// One gate for all handles: initialisers are short, and run once.
static GATE: Mutex<()> = Mutex::new(());
