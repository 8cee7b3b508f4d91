//! Functions and errors of a frontend's interpreter, usually CPython. It registers functions by name: for its lock, for signals and for
//! reference counts. The error object of a callback waits on its thread until the call above it returns (FUN-25).

use super::{Error, Result};
use crate::function::ErrorKind;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Registers a function of the interpreter under one of the five names of FUN-25. Null unregisters it.
///
/// # Safety
///
/// `address` is null or the CPython function of this name, which any thread may call from then on. Functions that count references are
/// called only by threads that hold the interpreter's lock.
pub(crate) unsafe fn register(name: &[u8], address: *mut c_void) -> Result<()> {
    let place = match name {
        b"Py_IncRef" => &INC_REF,
        b"Py_DecRef" => &DEC_REF,
        name => hook(name)?,
    };
    place.store(address, Ordering::Release);
    Ok(())
}

/// Registers a function of the frontend like [`register`], but knows only the three names that are not for reference counts.
///
/// # Safety
/// `symbol` is null or the CPython function of this name, which any thread may call from then on.
pub(crate) unsafe fn register_hook(name: &[u8], symbol: *mut c_void) -> Result<()> {
    hook(name)?.store(symbol, Ordering::Release);
    Ok(())
}

/// Returns the place of a function that is not for reference counts.
fn hook(name: &[u8]) -> Result<&'static AtomicPtr<c_void>> {
    match name {
        b"PyErr_CheckSignals" => Ok(&CHECK_SIGNALS),
        b"PyGILState_Ensure" => Ok(&ENSURE_LOCK),
        b"PyGILState_Release" => Ok(&RELEASE_LOCK),
        other => Err(Error::new(
            ErrorKind::Value,
            format!("Unknown env API {}", String::from_utf8_lossy(other)),
        )),
    }
}

/// The type of `Py_IncRef` and `Py_DecRef`.
type Count = unsafe extern "C-unwind" fn(*mut c_void);
/// The type of `PyErr_CheckSignals`, which returns 0, or -1 with an error. `PyGILState_Ensure` has the same type and returns a state, an
/// enumeration, which is an int in C.
type Check = unsafe extern "C-unwind" fn() -> i32;
/// The type of `PyGILState_Release`, which takes the state of `PyGILState_Ensure`.
type ReleaseLock = unsafe extern "C-unwind" fn(i32);

/// `Py_IncRef` of the only interpreter of this process. This and the following are null before their registration.
static INC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `Py_DecRef`.
static DEC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `PyErr_CheckSignals`.
static CHECK_SIGNALS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `PyGILState_Ensure`.
static ENSURE_LOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `PyGILState_Release`.
static RELEASE_LOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

thread_local! {
    /// A counted object, or null. Has no destructor: when a thread ends, the interpreter may be gone, so the object is leaked.
    static HELD: Cell<*mut c_void> = const { Cell::new(null_mut()) };
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
    // SAFETY: `register` stores null or functions of this signature.
    let by = unsafe { std::mem::transmute::<*mut c_void, Count>(address) };
    // SAFETY: the object is alive, by this contract, and the lock of the interpreter is held.
    with_interpreter(|| unsafe { by(object) });
}

/// Lets the frontend check for a pending signal. Returns 0, or -1 with the error stored in the frontend (FUN-14).
pub(crate) fn check_signals() -> i32 {
    let check = CHECK_SIGNALS.load(Ordering::Acquire);
    // SAFETY: null is `None`; otherwise the function of this name (the contract of `register_hook`), which has this signature.
    let check = unsafe { std::mem::transmute::<*mut c_void, Option<Check>>(check) };
    let Some(check) = check else {
        return 0;
    };
    // SAFETY: any thread may call it (the contract of `register_hook`); the lock of the interpreter is held.
    with_interpreter(|| unsafe { check() })
}

/// Runs `body` with the interpreter's lock, if the frontend registered functions for it.
fn with_interpreter<T>(body: impl FnOnce() -> T) -> T {
    let [ensure, release] =
        [&ENSURE_LOCK, &RELEASE_LOCK].map(|place| place.load(Ordering::Acquire));
    // SAFETY: null is `None`; otherwise the function of this name (the contract of `register_hook`), which has this signature.
    let ensure = unsafe { std::mem::transmute::<*mut c_void, Option<Check>>(ensure) };
    // SAFETY: as for `ensure`.
    let release = unsafe { std::mem::transmute::<*mut c_void, Option<ReleaseLock>>(release) };
    // Both or neither: a lock that is never released would stop the interpreter.
    let (Some(ensure), Some(release)) = (ensure, release) else {
        return body();
    };
    // SAFETY: any thread may call it, with or without the lock (the contract of `register_hook`).
    let state = unsafe { ensure() };
    let answer = body();
    // SAFETY: releases the lock that `ensure` took, with its state, on the same thread.
    unsafe { release(state) }
    answer
}
