//! The environment: streams, the tensor allocator, Python's hooks.

use super::enter;
use crate::function::frontend;
use crate::object::TensorAllocator;
use crate::object::reflect::env;
use crate::value::DLTensor;
use crate::value::header::Header;
use std::ffi::{CStr, c_char, c_void};

/// Sets the current stream of a device for this thread.
///
/// # Safety
/// `stream` is null or a stream of that device, until another is set; `before` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvSetStream(
    device_type: i32,
    device_id: i32,
    stream: *mut c_void,
    before: *mut *mut c_void,
) -> i32 {
    enter(|| {
        // SAFETY: `stream` is null or a stream of that device, until another is set, by this contract.
        let old = unsafe { env::set_stream(device_type, device_id, stream) }?;
        // DEV-23: null from a caller that does not restore the stream before.
        if !before.is_null() {
            // SAFETY: `before` is not null, so writable, by this contract.
            unsafe { before.write(old) }
        }
        Ok(())
    })
}

/// The current stream of a device for this thread.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIEnvGetStream(device_type: i32, device_id: i32) -> *mut c_void {
    env::stream(device_type, device_id)
}

/// Sets the tensor allocator of this thread, and of all threads where the caller says so.
///
/// # Safety
/// `allocator` is null or follows DLPack's convention from then on, on every thread if it is for all: it answers 0 and a tensor
/// that belongs to the caller, or reports an error. `before` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvSetDLPackManagedTensorAllocator(
    allocator: Option<TensorAllocator>,
    for_all: i32,
    before: *mut Option<TensorAllocator>,
) -> i32 {
    // SAFETY: `allocator` follows DLPack's convention from then on, by this contract.
    let old = unsafe { env::set_allocator(allocator, for_all != 0) };
    if !before.is_null() {
        // SAFETY: `before` is not null, so writable, by this contract.
        unsafe { before.write(old) }
    }
    0
}

/// The tensor allocator in force, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIEnvGetDLPackManagedTensorAllocator() -> Option<TensorAllocator> {
    env::allocator()
}

/// A tensor from the allocator in force.
///
/// # Safety
/// `prototype` and its shape are readable, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvTensorAlloc(
    prototype: *mut DLTensor,
    out: *mut *mut Header,
) -> i32 {
    enter(|| {
        // SAFETY: `prototype` and its shape are readable, by this contract.
        let tensor = unsafe { env::allocate(prototype) }?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(tensor.into_object().into_raw()) }
        Ok(())
    })
}

/// Calls the frontend for pending signals.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIEnvCheckSignals() -> i32 {
    frontend::check_signals()
}

/// Registers a function of the frontend.
///
/// # Safety
/// `name` is a C string; `symbol` is null or CPython's function of that name, which any thread may call from then on.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvRegisterCAPI(
    name: *const c_char,
    symbol: *mut c_void,
) -> i32 {
    enter(|| {
        // SAFETY: `name` is a C string, by this contract.
        let name = unsafe { CStr::from_ptr(name) };
        // SAFETY: `symbol` is null or CPython's function of that name, by this contract.
        unsafe { frontend::register_hook(name.to_bytes(), symbol) }
    })
}
