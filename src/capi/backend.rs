//! The functions that compiled code of every release calls: `TVMBackend*`.
//!
//! The chapter [`module`](crate::module) defines their behaviour. Code of both eras calls these functions, so a failure is stored for both:
//! as a text and as a raised error.

use crate::device::{Device, Manager};
use crate::function::legacy::last_error;
use crate::function::{Error, ErrorKind, set_raised};
use crate::module::any_list::{self, AnyList, StackPlace};
use crate::module::parallel::{self, GroupEnv, Task};
use crate::module::run_once;
use crate::module::workspace::{self, WorkspaceRequest};
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicPtr;

/// Allocates temporary memory of a device for the calling function. Returns null on failure (MOD-23).
#[unsafe(no_mangle)]
pub extern "C" fn TVMBackendAllocWorkspace(
    device_type: c_int,
    device_id: c_int,
    nbytes: u64,
    dtype_code_hint: c_int,
    dtype_bits_hint: c_int,
) -> *mut c_void {
    let request = WorkspaceRequest {
        device_type,
        device_id,
        bytes: nbytes,
        hint: (dtype_code_hint, dtype_bits_hint),
    };
    match workspace::alloc(request) {
        Ok(memory) => memory.as_ptr(),
        Err(text) => {
            // MOD-23: compiled code treats null as a failure and returns -1. The text is for the caller of that code.
            fail(&text);
            ptr::null_mut()
        }
    }
}

/// Frees memory that [`TVMBackendAllocWorkspace`] returned on this thread (MOD-23).
///
/// # Safety
///
/// `memory` comes from that function, for the same device, and has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendFreeWorkspace(
    device_type: c_int,
    device_id: c_int,
    memory: *mut c_void,
) -> c_int {
    // SAFETY: `memory` comes from this pool for this device and was not freed, by this contract.
    code(unsafe { workspace::free((device_type, device_id), memory) })
}

/// Runs `task` `num_task` times, in parallel (MOD-20).
///
/// # Safety
///
/// `task` is callable with `data` from several threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelLaunch(
    task: Task,
    data: *mut c_void,
    num_task: c_int,
) -> c_int {
    // MOD-20: 0 means one task for each worker. A negative number is invalid.
    let Ok(count) = usize::try_from(num_task) else {
        return code(Err(format!("a launch of {num_task} tasks")));
    };
    // SAFETY: `task` is callable with `data` from several threads, by this contract.
    code(unsafe { parallel::launch(task, data, count) }.map_err(|error| error.message().to_owned()))
}

/// Waits for the other tasks of the group (MOD-21).
///
/// # Safety
///
/// The caller is a task and passes its own number and group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelBarrier(task: c_int, group: *mut GroupEnv) -> c_int {
    let Ok(task) = usize::try_from(task) else {
        return code(Err(format!("a barrier for task {task}")));
    };
    // SAFETY: a task calls this with its own number and group, by this contract.
    unsafe { parallel::barrier(task, group) };
    0
}

/// Runs `f(data)` unless `handle` is set, and sets it (MOD-22).
///
/// # Safety
///
/// `handle` is an aligned pointer that only this function reads and writes; `f` is callable with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRunOnce(
    handle: *mut *mut c_void,
    f: unsafe extern "C" fn(*mut c_void) -> c_int,
    data: *mut c_void,
    _nbytes: c_int,
) -> c_int {
    // MOD-22: threads race for the first call, so the caller's pointer is read and written atomically.
    // SAFETY: `handle` is aligned, and only this function reads and writes it, by this contract.
    let handle = unsafe { AtomicPtr::from_ptr(handle) };
    // SAFETY: `f` is callable with `data`, by this contract.
    unsafe { run_once::run(handle, f, data) }
}

/// Adds a statically linked symbol to the system library (MOD-16). Up to 0.21.
///
/// # Safety
///
/// `name` is a C string. `address` stays valid for the life of the process and has the type that compiled code defines for that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRegisterSystemLibSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    // SAFETY: `name` is a C string, by this contract.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    let name = name.to_string_lossy();
    // MOD-16: a known name with another address is not a failure. As in upstream, it causes a warning.
    // SAFETY: `address` stays valid for the life of the process and matches `name`, by this contract.
    unsafe { crate::module::system::register_or_warn(&name, address) };
    0
}

/// Passes value `index` of `list` in the next call of compiled code (MOD-27).
///
/// Up to 0.20 the last two parameters are an array of type codes and the number of the argument. From 0.21 on the fourth is the number.
///
/// # Safety
///
/// `list` is a handle that compiled code got for this call, and the code uses the convention of the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendAnyListSetPackedArg(
    list: *mut c_void,
    index: c_int,
    values: *mut c_void,
    fourth: MaybeUninit<*mut c_void>,
    fifth: MaybeUninit<c_int>,
) -> c_int {
    let place = StackPlace {
        values,
        fourth,
        fifth,
    };
    // SAFETY: a list, and code that uses its convention, by this contract.
    raised(unsafe { any_list::set_packed_arg(list.cast::<AnyList>(), index, place) })
}

/// Sets value `index` of `list` to None (MOD-27).
///
/// # Safety
///
/// As for [`TVMBackendAnyListSetPackedArg`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendAnyListResetItem(list: *mut c_void, index: c_int) -> c_int {
    // SAFETY: a list, by this contract.
    raised(unsafe { any_list::reset_item(list.cast::<AnyList>(), index) })
}

/// Moves the result of a call into value `index` of `list` (MOD-27). The last two parameters are those of
/// [`TVMBackendAnyListSetPackedArg`].
///
/// # Safety
///
/// As for [`TVMBackendAnyListSetPackedArg`]; the place holds a result, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendAnyListMoveFromPackedReturn(
    list: *mut c_void,
    index: c_int,
    values: *mut c_void,
    fourth: MaybeUninit<*mut c_void>,
    fifth: MaybeUninit<c_int>,
) -> c_int {
    let place = StackPlace {
        values,
        fourth,
        fifth,
    };
    // SAFETY: a list, code that uses its convention, and a result, by this contract.
    raised(unsafe { any_list::move_from_packed_return(list.cast::<AnyList>(), index, place) })
}

/// Makes a device the current one of this thread (MOD-05). After 0.27.
#[unsafe(no_mangle)]
pub extern "C" fn TVMBackendSetDevice(device_type: c_int, device_id: c_int) -> c_int {
    raised(Manager::global().set_device(Device::new(device_type, device_id)))
}

fn raised(result: Result<(), Error>) -> c_int {
    code(result.map_err(|error| error.message().to_owned()))
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

/// Stores `text` as the failure of this thread: as a text for code up to 0.20, and as a raised error for later code.
fn fail(text: &str) {
    last_error::set(text);
    set_raised(Error::new(ErrorKind::Runtime, text));
}
