//! Functions and errors of a frontend's interpreter, usually CPython. It registers functions by name: for its lock, for signals and for
//! reference counts. The error object of a callback waits on its thread until the call above it returns (FUN-25).

use super::{Error, Result};
use crate::function::ErrorKind;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{PoisonError, RwLock};

/// Registers a function of the interpreter under one of the five names of FUN-25. Null unregisters it.
///
/// # Safety
///
/// `address` is null or the CPython function of this name, which any thread may call from then on. Functions that count references are
/// called only by threads that hold the interpreter's lock.
pub(crate) unsafe fn register(name: &[u8], address: *mut c_void) -> Result<()> {
    // SAFETY: `address` is null or the function of that name, by this contract.
    if unsafe { register_count(name, address) } {
        Ok(())
    } else {
        // SAFETY: `address` is null or the function of that name, by this contract.
        unsafe { register_hook(name, address) }
    }
}

/// The type of `Py_IncRef` and `Py_DecRef`.
type Count = unsafe extern "C-unwind" fn(*mut c_void);

/// `Py_IncRef` of the interpreter; null before its registration.
static INC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `Py_DecRef` of the interpreter; null before its registration.
static DEC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

thread_local! {
    /// A counted object, or null. Has no destructor: when a thread ends, the interpreter may be gone, so the object is leaked.
    static HELD: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

/// Registers `Py_IncRef` or `Py_DecRef`. Returns whether `name` is one of them.
///
/// # Safety
///
/// `address` must be null or the CPython function of this name, callable from any thread that has the interpreter's lock.
unsafe fn register_count(name: &[u8], address: *mut c_void) -> bool {
    let place = match name {
        b"Py_IncRef" => &INC_REF,
        b"Py_DecRef" => &DEC_REF,
        _ => return false,
    };
    place.store(address, Ordering::Release);
    true
}

/// Increments the reference count of `error` and stores it on this thread instead of the previous one. Stores nothing if the frontend
/// has registered no functions for reference counts, because an uncounted address may refer to freed memory later.
///
/// # Safety
///
/// `error` must be null or an object of the frontend that is alive.
pub(crate) unsafe fn store_error(error: *mut c_void) -> bool {
    // FUN-25: if one of the two is missing, a reference could be taken and never released, or the reverse.
    let both = [&INC_REF, &DEC_REF].map(|place| place.load(Ordering::Acquire));
    let can_count = !error.is_null() && both.iter().all(|address| !address.is_null());
    if can_count {
        // SAFETY: `error` is a live object, by this contract.
        unsafe { count(&INC_REF, error) };
    }
    // The new object is counted before the old one is released, because they may be the same.
    release();
    if can_count {
        HELD.set(error);
    }
    can_count
}

/// Returns the object of this thread, borrowed, or null.
pub(crate) fn stored_error() -> *mut c_void {
    HELD.get()
}

/// Releases the reference of this thread, if any.
pub(crate) fn release() {
    // Emptied before the release, because the destructor of an object runs code of the interpreter, which may call this function again.
    let held = HELD.replace(null_mut());
    if !held.is_null() {
        // SAFETY: `store_error` counted it, and nothing else releases that reference.
        unsafe { count(&DEC_REF, held) };
    }
}

/// Calls a function that counts references, if it is registered.
///
/// # Safety
///
/// `object` must be a live object of the frontend.
unsafe fn count(by: &AtomicPtr<c_void>, object: *mut c_void) {
    let address = by.load(Ordering::Acquire);
    if address.is_null() {
        return;
    }
    // SAFETY: `register_count` stores null or functions of this signature.
    let by = unsafe { std::mem::transmute::<*mut c_void, Count>(address) };
    // SAFETY: the object is alive, by this contract, and the lock of the interpreter is held.
    with_interpreter(|| unsafe { by(object) });
}

/// The type of `PyErr_CheckSignals`, which returns 0, or -1 with an error. `PyGILState_Ensure` has the same type and returns a state.
type Check = unsafe extern "C-unwind" fn() -> i32;
/// The type of `PyGILState_Release`, which takes the state of `PyGILState_Ensure`.
type ReleaseLock = unsafe extern "C-unwind" fn(i32);

/// The hooks of a Python frontend: functions of CPython.
#[derive(Clone, Copy)]
struct PythonHooks {
    /// `PyErr_CheckSignals`.
    check_signals: Option<Check>,
    /// `PyGILState_Ensure`.
    ensure: Option<Check>,
    /// `PyGILState_Release`.
    release: Option<ReleaseLock>,
}

/// The hooks of the only interpreter of this process.
static HOOKS: RwLock<PythonHooks> = RwLock::new(PythonHooks {
    check_signals: None,
    ensure: None,
    release: None,
});

/// Registers a function of the frontend under its CPython name. Null unregisters it.
///
/// # Safety
/// `symbol` is null or the CPython function of this name, which any thread may call from then on.
pub(crate) unsafe fn register_hook(name: &[u8], symbol: *mut c_void) -> Result<()> {
    let mut hooks = HOOKS.write().unwrap_or_else(PoisonError::into_inner);
    match name {
        b"PyErr_CheckSignals" => {
            // SAFETY: null is `None`; otherwise the function of this name, by this contract, which has this signature.
            hooks.check_signals =
                unsafe { std::mem::transmute::<*mut c_void, Option<Check>>(symbol) };
        }
        b"PyGILState_Ensure" => {
            // SAFETY: as for `PyErr_CheckSignals`; the state is an enumeration, an int in C.
            hooks.ensure = unsafe { std::mem::transmute::<*mut c_void, Option<Check>>(symbol) };
        }
        b"PyGILState_Release" => {
            // SAFETY: as for `PyGILState_Ensure`.
            hooks.release =
                unsafe { std::mem::transmute::<*mut c_void, Option<ReleaseLock>>(symbol) };
        }
        other => {
            return Err(Error::new(
                ErrorKind::Value,
                format!("Unknown env API {}", String::from_utf8_lossy(other)),
            ));
        }
    }
    Ok(())
}

/// Lets the frontend check for a pending signal. Returns 0, or -1 with the error stored in the frontend (FUN-14).
pub(crate) fn check_signals() -> i32 {
    // Copied, because the interpreter runs its own code below. That code may register a hook, and would wait for this lock.
    let hooks = *HOOKS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(check) = hooks.check_signals else {
        return 0;
    };
    // SAFETY: any thread may call it (the contract of `register_hook`); the lock of the interpreter is held.
    with_interpreter(|| unsafe { check() })
}

/// Runs `body` with the interpreter's lock, if the frontend registered functions for it.
fn with_interpreter<T>(body: impl FnOnce() -> T) -> T {
    let hooks = *HOOKS.read().unwrap_or_else(PoisonError::into_inner);
    // Both or neither: a lock that is never released would stop the interpreter.
    let (Some(ensure), Some(release)) = (hooks.ensure, hooks.release) else {
        return body();
    };
    // SAFETY: any thread may call it, with or without the lock (the contract of `register_hook`).
    let state = unsafe { ensure() };
    let answer = body();
    // SAFETY: releases the lock that `ensure` took, with its state, on the same thread.
    unsafe { release(state) }
    answer
}
