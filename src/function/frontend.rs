//! What the interpreter of a frontend, CPython for the most part, registers by name: the functions that take its lock, ask for
//! signals and count references; and the error object that waits on a thread between a callback that raises and the call
//! above it (FUN-25).

use super::{Error, Result};
use crate::function::ErrorKind;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{PoisonError, RwLock};

/// Registers a function of the interpreter under one of the five names of FUN-25; null takes it back.
///
/// # Safety
///
/// `address` is null or the function of CPython that has this name, which any thread may call from then on; those that count
/// references, from any thread that has the interpreter's lock.
pub(crate) unsafe fn register(name: &[u8], address: *mut c_void) -> Result<()> {
    // SAFETY: `address` is null or the function of that name, by this contract.
    if unsafe { register_count(name, address) } {
        Ok(())
    } else {
        // SAFETY: `address` is null or the function of that name, by this contract.
        unsafe { register_hook(name, address) }
    }
}

/// `Py_IncRef` and `Py_DecRef`.
type Count = unsafe extern "C-unwind" fn(*mut c_void);

/// `Py_IncRef` of the interpreter; null before it is registered.
static INC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `Py_DecRef` of the interpreter; null before it is registered.
static DEC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

thread_local! {
    /// A counted object, or null. Without a destructor: when a thread ends the interpreter may be gone, and the object
    /// stays.
    static HELD: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

/// Registers `Py_IncRef` or `Py_DecRef`; whether `name` is one of them.
///
/// # Safety
///
/// `address` must be null or that function of CPython, callable from any thread that has the interpreter's lock.
unsafe fn register_count(name: &[u8], address: *mut c_void) -> bool {
    let place = match name {
        b"Py_IncRef" => &INC_REF,
        b"Py_DecRef" => &DEC_REF,
        _ => return false,
    };
    place.store(address, Ordering::Release);
    true
}

/// Counts `error` and keeps it on this thread in the place of what is there. Keeps nothing where the frontend registered
/// no function to count with: an address without a reference may point to freed memory when it is asked for.
///
/// # Safety
///
/// `error` must be null or an object of the frontend that is alive.
pub(crate) unsafe fn hold(error: *mut c_void) -> bool {
    // FUN-25: with one of the two missing, a reference could be taken and never ended, or the other way round.
    let both = [&INC_REF, &DEC_REF].map(|place| place.load(Ordering::Acquire));
    let can_count = !error.is_null() && both.iter().all(|address| !address.is_null());
    if can_count {
        // SAFETY: `error` is an object that is alive, as the contract says.
        unsafe { count(&INC_REF, error) };
    }
    // The new object is counted before the old one ends: they may be the same.
    release();
    if can_count {
        HELD.set(error);
    }
    can_count
}

/// What is held on this thread, borrowed, or null.
pub(crate) fn held() -> *mut c_void {
    HELD.get()
}

/// Ends the reference that this thread holds, if any.
pub(crate) fn release() {
    // Emptied before the count: an object's end runs code of the interpreter, which may come here again.
    let held = HELD.replace(null_mut());
    if !held.is_null() {
        // SAFETY: `hold` counted it, and nothing else ends that reference.
        unsafe { count(&DEC_REF, held) };
    }
}

/// # Safety
///
/// `object` must be an object of the frontend that is alive.
unsafe fn count(by: &AtomicPtr<c_void>, object: *mut c_void) {
    let address = by.load(Ordering::Acquire);
    if address.is_null() {
        return;
    }
    // SAFETY: `register_count` stores null or functions of this signature.
    let by = unsafe { std::mem::transmute::<*mut c_void, Count>(address) };
    // SAFETY: the object is alive, as the contract says, and the lock of the interpreter is held.
    with_interpreter(|| unsafe { by(object) });
}

/// `PyErr_CheckSignals`: 0, or -1 with an error. `PyGILState_Ensure` has the same form: a state that is handed back.
type Check = unsafe extern "C-unwind" fn() -> i32;
/// `PyGILState_Release`, with the state of `PyGILState_Ensure`.
type ReleaseLock = unsafe extern "C-unwind" fn(i32);

/// The hooks of a Python frontend, which are CPython's functions.
#[derive(Clone, Copy)]
struct PythonHooks {
    /// `PyErr_CheckSignals`.
    check_signals: Option<Check>,
    /// `PyGILState_Ensure`.
    ensure: Option<Check>,
    /// `PyGILState_Release`.
    release: Option<ReleaseLock>,
}

/// The hooks of the one interpreter of this process.
static HOOKS: RwLock<PythonHooks> = RwLock::new(PythonHooks {
    check_signals: None,
    ensure: None,
    release: None,
});

/// Registers a function of the frontend under CPython's name for it; null takes it back.
///
/// # Safety
/// `symbol` is null or the function of CPython that has this name, which any thread may call from then on.
pub(crate) unsafe fn register_hook(name: &[u8], symbol: *mut c_void) -> Result<()> {
    let mut hooks = HOOKS.write().unwrap_or_else(PoisonError::into_inner);
    match name {
        b"PyErr_CheckSignals" => {
            // SAFETY: null is None; else the function of this name, by this contract, which has this signature.
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

/// Lets the frontend look for a pending signal: 0, or -1 with the error left in the frontend (FUN-14).
pub(crate) fn check_signals() -> i32 {
    // Copied out: the interpreter runs code of its own below, which may register again and would wait for this lock.
    let hooks = *HOOKS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(check) = hooks.check_signals else {
        return 0;
    };
    // SAFETY: any thread may call it (the contract of `register_hook`); the lock of the interpreter is held.
    with_interpreter(|| unsafe { check() })
}

/// Runs `body` with the interpreter's lock, where the frontend registered how to take it.
fn with_interpreter<T>(body: impl FnOnce() -> T) -> T {
    let hooks = *HOOKS.read().unwrap_or_else(PoisonError::into_inner);
    // Both or neither: a lock that is taken and not released stops the interpreter.
    let (Some(ensure), Some(release)) = (hooks.ensure, hooks.release) else {
        return body();
    };
    // SAFETY: any thread may call it, with or without the lock (the contract of `register_hook`).
    let state = unsafe { ensure() };
    let answer = body();
    // SAFETY: gives up what `ensure` has taken, with the state that it answered, on this thread.
    unsafe { release(state) }
    answer
}
