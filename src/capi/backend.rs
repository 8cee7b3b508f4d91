//! The functions that compiled code of every release calls: `TVMBackend*`.
//!
//! No logic lives here; see [`crate::module`]. A failure leaves its text where both eras look for it.

use crate::module::parallel::{self, GroupEnv, Task};
use crate::module::workspace::{self, Request};
use crate::module::{last_error, once};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;

/// Temporary memory of a device for the calling function; null on failure (MOD-23).
#[unsafe(no_mangle)]
pub extern "C" fn TVMBackendAllocWorkspace(
    device_type: c_int,
    device_id: c_int,
    nbytes: u64,
    dtype_code_hint: c_int,
    dtype_bits_hint: c_int,
) -> *mut c_void {
    let request = Request {
        device_type,
        device_id,
        bytes: nbytes,
        hint: (dtype_code_hint, dtype_bits_hint),
    };
    match workspace::alloc(request) {
        Ok(memory) => memory.as_ptr(),
        Err(text) => {
            fail(&text);
            ptr::null_mut()
        }
    }
}

/// Gives back what [`TVMBackendAllocWorkspace`] gave on this thread (MOD-23).
///
/// # Safety
///
/// `memory` must come from there, for the same device, and not have been given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendFreeWorkspace(
    device_type: c_int,
    device_id: c_int,
    memory: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for `memory`.
    code(unsafe { workspace::free((device_type, device_id), memory) })
}

/// Runs `task` `num_task` times, in parallel (MOD-20).
///
/// # Safety
///
/// `task` must be callable with `data` from several threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelLaunch(
    task: Task,
    data: *mut c_void,
    num_task: c_int,
) -> c_int {
    let Ok(count) = usize::try_from(num_task) else {
        return code(Err(format!("a launch of {num_task} tasks")));
    };
    // SAFETY: the caller vouches for `task` and `data`.
    code(unsafe { parallel::launch(task, data, count) })
}

/// Waits for the other tasks of the group (MOD-21).
///
/// # Safety
///
/// To be called by a task with its own number and group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelBarrier(task: c_int, group: *mut GroupEnv) -> c_int {
    let Ok(task) = usize::try_from(task) else {
        return code(Err(format!("a barrier for task {task}")));
    };
    // SAFETY: the caller vouches for both.
    unsafe { parallel::barrier(task, group) };
    0
}

/// Runs `f(data)` unless `handle` is set, and sets it (MOD-22).
///
/// # Safety
///
/// `handle` must point to a pointer that only this function writes; `f` must be callable with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRunOnce(
    handle: *mut *mut c_void,
    f: unsafe extern "C" fn(*mut c_void) -> c_int,
    data: *mut c_void,
    _nbytes: c_int,
) -> c_int {
    // SAFETY: `handle` is a pointer-sized, aligned cell that is shared only through this function.
    let handle = unsafe { AtomicPtr::from_ptr(handle) };
    // SAFETY: the caller vouches for `f` and `data`.
    unsafe { once::run(handle, f, data) }
}

/// Puts a statically linked symbol into the system library (MOD-16). Up to 0.21.
///
/// # Safety
///
/// `name` must be a C string, and `address` stay valid for the life of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRegisterSystemLibSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for `name`.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    // SAFETY: `address` stays valid for the life of the process; statically linked code is as trusted as the process.
    unsafe { crate::module::system::register(&name.to_string_lossy(), address) };
    0
}

fn code(result: Result<(), String>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(text) => {
            fail(&text);
            -1
        }
    }
}

/// Leaves `text` as the failure of this thread.
fn fail(text: &str) {
    last_error::set(text);
}
