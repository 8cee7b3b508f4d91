//! The functions that compiled code of every release calls: `TVMBackend*`.
//!
//! What they do is in chapter [`module`](crate::module). A failure is left where each era reads it: as a text and as a raised
//! error, since code of both calls these functions.

use crate::device::{Device, Manager};
use crate::function::legacy::last_error;
use crate::function::{Error, ErrorKind, set_raised};
use crate::module::any_list::{self, AnyList, StackPlace};
use crate::module::once;
use crate::module::parallel::{self, GroupEnv, Task};
use crate::module::workspace::{self, WorkspaceRequest};
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
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
    let request = WorkspaceRequest {
        device_type,
        device_id,
        bytes: nbytes,
        hint: (dtype_code_hint, dtype_bits_hint),
    };
    match workspace::alloc(request) {
        Ok(memory) => memory.as_ptr(),
        Err(text) => {
            // MOD-23: compiled code takes null for failure and returns -1: the text is for the caller of that code.
            fail(&text);
            ptr::null_mut()
        }
    }
}

/// Frees what [`TVMBackendAllocWorkspace`] returned on this thread (MOD-23).
///
/// # Safety
///
/// `memory` must come from there, for the same device, and not be freed before.
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
/// `task` must be callable with `data` from several threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelLaunch(
    task: Task,
    data: *mut c_void,
    num_task: c_int,
) -> c_int {
    // MOD-20: 0 means one task for each worker; a number below 0 means nothing.
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
/// To be called by a task with its own number and group.
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
/// `handle` must be an aligned pointer that only this function reads and writes; `f` must be callable with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRunOnce(
    handle: *mut *mut c_void,
    f: unsafe extern "C" fn(*mut c_void) -> c_int,
    data: *mut c_void,
    _nbytes: c_int,
) -> c_int {
    // MOD-22: threads race for the first call, so that the caller's pointer is read and written atomically.
    // SAFETY: `handle` is aligned, and only this function reads and writes it, by this contract.
    let handle = unsafe { AtomicPtr::from_ptr(handle) };
    // SAFETY: `f` is callable with `data`, by this contract.
    unsafe { once::run(handle, f, data) }
}

/// Puts a statically linked symbol into the system library (MOD-16). Up to 0.21.
///
/// # Safety
///
/// `name` must be a C string, `address` stay valid for the life of the process and be what compiled code defines under that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendRegisterSystemLibSymbol(
    name: *const c_char,
    address: *mut c_void,
) -> c_int {
    // SAFETY: `name` is a C string, by this contract.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    let name = name.to_string_lossy();
    // MOD-16: a name at another address than before is no failure; as upstream, this warns.
    // SAFETY: `address` stays valid for the life of the process and is what `name` says, by this contract.
    unsafe { crate::module::system::register_or_warn(&name, address) };
    0
}

/// Passes value `index` of `list` in the next call of compiled code (MOD-27).
///
/// Up to 0.20 the last two parameters are an array of type codes and the number of the argument; from 0.21 on the fourth is the number.
///
/// # Safety
///
/// `list` is a handle that compiled code got for this call, and the code is of the convention that the list is for.
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
    // SAFETY: a list, and code of its convention, by this contract.
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
    // SAFETY: a list, code of its convention, and a result, by this contract.
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

/// Leaves `text` as the failure of this thread: as the text that code up to 0.20 reads, and raised for later code.
fn fail(text: &str) {
    last_error::set(text);
    set_raised(Error::new(ErrorKind::Runtime, text));
}
