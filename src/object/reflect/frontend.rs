//! The error object of a Python frontend that waits on a thread between a callback that raises and the call above it (FUN-25).

use super::env;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Count = unsafe extern "C-unwind" fn(*mut c_void);

static INC_REF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
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
pub(crate) unsafe fn register_count(name: &[u8], address: *mut c_void) -> bool {
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
    let both = [&INC_REF, &DEC_REF].map(|place| place.load(Ordering::Acquire));
    let can_count = !error.is_null() && both.iter().all(|address| !address.is_null());
    if can_count {
        // SAFETY: `error` is an object that is alive, as the contract says.
        unsafe { count(&INC_REF, error) };
    }
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
    env::with_interpreter(|| unsafe { by(object) });
}
