//! The environment: streams, the tensor allocator, and hooks of Python.

use super::{enter, enter_with_callback};
use crate::function::frontend;
use crate::object::TensorAllocator;
use crate::object::reflect::env;
use crate::value::DLTensor;
use crate::value::header::Header;
use std::ffi::{CStr, c_char, c_void};

/// Sets the current stream of a device for this thread.
///
/// # Safety
/// `stream` is null or a valid stream of that device until another one is set; `before` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvSetStream(
    device_type: i32,
    device_id: i32,
    stream: *mut c_void,
    before: *mut *mut c_void,
) -> i32 {
    enter(|| {
        // SAFETY: `stream` is null or a valid stream of that device until another one is set, by this contract.
        let old = unsafe { env::set_stream(device_type, device_id, stream) }?;
        // DEV-23: a caller that does not restore the previous stream passes null.
        if !before.is_null() {
            // SAFETY: `before` is not null, so writable, by this contract.
            unsafe { before.write(old) }
        }
        Ok(())
    })
}

/// Returns the current stream of a device for this thread.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIEnvGetStream(device_type: i32, device_id: i32) -> *mut c_void {
    env::stream(device_type, device_id)
}

/// Sets the tensor allocator of this thread and, if `for_all` is set, of all threads.
///
/// # Safety
/// `allocator` is null or follows DLPack's convention from then on, with `for_all` on every thread. It returns 0 and a tensor that the
/// caller owns, or reports an error. `before` is null or writable.
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

/// Returns the effective tensor allocator, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIEnvGetDLPackManagedTensorAllocator() -> Option<TensorAllocator> {
    env::allocator()
}

/// Allocates a tensor from the effective allocator.
///
/// # Safety
/// `prototype` and its shape are readable, `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvTensorAlloc(
    prototype: *mut DLTensor,
    out: *mut *mut Header,
) -> i32 {
    enter_with_callback(|code| {
        // SAFETY: `prototype` and its shape are readable, by this contract.
        let tensor = unsafe { env::allocate(prototype, code) }?;
        // SAFETY: `out` is writable, by this contract.
        unsafe { out.write(tensor.into_object().into_raw()) }
        Ok(())
    })
}

/// Lets the frontend check for pending signals.
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
