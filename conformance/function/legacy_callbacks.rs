//! Callbacks of scripts for the C interface of 0.2 to 0.20, and the interpreter that a script plays.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::legacy::functions::Interface;
use crate::value::legacy::{TVMValue, code};
use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// The resource of a callback.
pub(super) struct CallbackState {
    pub(super) interface: Interface,
    pub(super) what: String,
    pub(super) text: CString,
    pub(super) finished: &'static AtomicU32,
    pub(super) error: &'static AtomicI64,
}

/// Runs every callback of all scripts. The resource selects the behavior.
pub(super) unsafe extern "C-unwind" fn callback(
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: RawHandle,
    resource: RawHandle,
) -> c_int {
    // SAFETY: `LegacyScript::callback` made the resource, which is alive until `finish`.
    let made = unsafe { &*resource.cast::<CallbackState>() };
    let api = &made.interface;
    let give_int = |v_int64: i64| {
        let (mut value, mut type_code) = (TVMValue { v_int64 }, code::INT);
        // SAFETY: this is the result handle of this call, with one value and its code.
        unsafe { (api.give_result)(result, &raw mut value, &raw mut type_code, 1) }
    };
    match made.what.as_str() {
        // SAFETY: this is the result handle of this call, and the script passes enough arguments.
        "echo" => unsafe { (api.give_result)(result, values, codes, 1) },
        "count" => give_int(count.into()),
        "nothing" => 0,
        // SAFETY: as for `echo`.
        "two" => unsafe { (api.give_result)(result, values, codes, 2) },
        // SAFETY: as for `echo`.
        "three" => unsafe { (api.give_result)(result, values, codes, 3) },
        // SAFETY: this is the result handle of this call, and no value is passed.
        "none" => unsafe { (api.give_result)(result, values, codes, 0) },
        // Takes ownership of the argument and returns the code as the result. If the argument is a function, its new owner frees it.
        "own" => {
            // SAFETY: these are the first argument of this call and its code.
            let owned = unsafe { (api.own_argument)(values, codes) };
            // SAFETY: there is a first argument, and it has a code.
            if owned == 0 && unsafe { *codes } == code::FUNCTION {
                // SAFETY: there is a first argument.
                let argument = unsafe { *values };
                // SAFETY: the code says that it is a function.
                let function = unsafe { argument.v_handle };
                // SAFETY: since `own_argument`, the handle belongs to this callback.
                unsafe { (api.free)(function) };
            }
            give_int(owned.into())
        }
        "quietly" => 1,
        "signal" => -2,
        "raise" => {
            let error = ptr::from_ref(made.error).cast_mut().cast();
            if let Some(frontend) = api.frontend {
                // SAFETY: the object is never freed.
                unsafe { (frontend.set_error)(error) };
            }
            -1
        }
        _ => {
            // SAFETY: the argument is a text.
            unsafe { (api.set_last_error)(made.text.as_ptr()) };
            -1
        }
    }
}

/// Frees the resource of a callback and counts that (FUN-20). A second call would free it twice, and the process would crash.
pub(super) unsafe extern "C-unwind" fn finish(resource: RawHandle) {
    // SAFETY: `LegacyScript::callback` made the resource, and the runtime finishes it once.
    let made = unsafe { Box::from_raw(resource.cast::<CallbackState>()) };
    made.finished.fetch_add(1, Ordering::Relaxed);
}

/// The name and the address of a function.
type Hook = (&'static CStr, fn() -> RawHandle);

/// Functions of an interpreter whose objects are counters.
pub(super) const HOOKS: [Hook; 4] = [
    (c"PyGILState_Ensure", || take_lock as RawHandle),
    (c"PyGILState_Release", || release_lock as RawHandle),
    (c"Py_IncRef", || count_up as RawHandle),
    (c"Py_DecRef", || count_down as RawHandle),
];

/// Takes the lock of the interpreter that the script plays. Nothing is locked, but a runtime must call this around each count.
unsafe extern "C" fn take_lock() -> usize {
    1
}

/// Releases that lock.
unsafe extern "C" fn release_lock(_: usize) {}

/// Counts one more holder of the error object of the frontend (FUN-25).
unsafe extern "C" fn count_up(object: RawHandle) {
    // SAFETY: objects of these scripts are counters that are never freed.
    unsafe { &*object.cast::<AtomicI64>() }.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn count_down(object: RawHandle) {
    // SAFETY: objects of these scripts are counters that are never freed.
    unsafe { &*object.cast::<AtomicI64>() }.fetch_sub(1, Ordering::Relaxed);
}
