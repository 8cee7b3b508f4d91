//! The callbacks of scripts over the C interface of 0.2 to 0.20, and the interpreter that a script plays.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::legacy::functions::Interface;
use crate::value::legacy::{TVMValue, code};
use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// What a callback was made with.
pub(super) struct CallbackState {
    pub(super) interface: Interface,
    pub(super) what: String,
    pub(super) text: CString,
    pub(super) finished: &'static AtomicU32,
    pub(super) error: &'static AtomicI64,
}

/// The one callback of all scripts; what it does it was made with.
pub(super) unsafe extern "C-unwind" fn callback(
    values: *mut TVMValue,
    codes: *mut c_int,
    count: c_int,
    result: RawHandle,
    resource: RawHandle,
) -> c_int {
    // SAFETY: the resource is what `LegacyScript::callback` made, alive until `finish`.
    let made = unsafe { &*resource.cast::<CallbackState>() };
    let api = &made.interface;
    let give_int = |v_int64: i64| {
        let (mut value, mut type_code) = (TVMValue { v_int64 }, code::INT);
        // SAFETY: the result handle of this call, one value with its code.
        unsafe { (api.give_result)(result, &raw mut value, &raw mut type_code, 1) }
    };
    match made.what.as_str() {
        // SAFETY: the result handle of this call; as many arguments as the script says.
        "echo" => unsafe { (api.give_result)(result, values, codes, 1) },
        "count" => give_int(count.into()),
        "nothing" => 0,
        // SAFETY: as for `echo`.
        "two" => unsafe { (api.give_result)(result, values, codes, 2) },
        // SAFETY: as for `echo`.
        "three" => unsafe { (api.give_result)(result, values, codes, 3) },
        // SAFETY: the result handle of this call, and no value.
        "none" => unsafe { (api.give_result)(result, values, codes, 0) },
        // The argument made its own, and returned as the result: the owner of a handle frees it.
        "own" => {
            // SAFETY: the first argument of this call.
            let owned = unsafe { (api.own_argument)(values, codes) };
            // SAFETY: there is a first argument, and it has a code.
            if owned == 0 && unsafe { *codes } == code::FUNCTION {
                // SAFETY: there is a first argument.
                let argument = unsafe { *values };
                // SAFETY: the code says that it is a function.
                let function = unsafe { argument.v_handle };
                // SAFETY: `own_argument` made the handle ours.
                unsafe { (api.free)(function) };
            }
            give_int(owned.into())
        }
        "quietly" => 1,
        "signal" => -2,
        "raise" => {
            let error = ptr::from_ref(made.error).cast_mut().cast();
            if let Some(frontend) = api.frontend {
                // SAFETY: an object that is never freed.
                unsafe { (frontend.set_error)(error) };
            }
            -1
        }
        _ => {
            // SAFETY: a text.
            unsafe { (api.set_last_error)(made.text.as_ptr()) };
            -1
        }
    }
}

/// FUN-20: ends the resource of a callback and counts it; twice would free it twice, and the process would end.
pub(super) unsafe extern "C-unwind" fn finish(resource: RawHandle) {
    // SAFETY: the resource is what `LegacyScript::callback` made; the runtime finishes it once.
    let made = unsafe { Box::from_raw(resource.cast::<CallbackState>()) };
    made.finished.fetch_add(1, Ordering::Relaxed);
}

/// The name of a function, and its address.
type Hook = (&'static CStr, fn() -> RawHandle);

/// The functions of an interpreter whose objects are counters.
pub(super) const HOOKS: [Hook; 4] = [
    (c"PyGILState_Ensure", || take_lock as RawHandle),
    (c"PyGILState_Release", || release_lock as RawHandle),
    (c"Py_IncRef", || count_up as RawHandle),
    (c"Py_DecRef", || count_down as RawHandle),
];

/// The lock of the interpreter that the script plays: nothing to lock, but it has to be taken around each count.
unsafe extern "C" fn take_lock() -> usize {
    1
}

/// The other half of it.
unsafe extern "C" fn release_lock(_: usize) {}

/// FUN-25: one more holder of the error object of the frontend.
unsafe extern "C" fn count_up(object: RawHandle) {
    // SAFETY: objects of these scripts are counters that are never freed.
    unsafe { &*object.cast::<AtomicI64>() }.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn count_down(object: RawHandle) {
    // SAFETY: objects of these scripts are counters that are never freed.
    unsafe { &*object.cast::<AtomicI64>() }.fetch_sub(1, Ordering::Relaxed);
}
