//! The environment of a thread: streams, the tensor allocator, and the hooks of a Python frontend.

use super::tensor::{Allocator, Tensor};
use crate::function::{Error, Result, set_raised, take_raised};
use crate::value::{DLTensor, Few};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

thread_local! {
    static STREAMS: RefCell<Few<(i32, i32), *mut c_void>> = const { RefCell::new(Few::new()) };
    static ALLOCATOR: Cell<Option<Allocator>> = const { Cell::new(None) };
}

/// The allocator that threads without their own use, as an address.
static GLOBAL_ALLOCATOR: AtomicUsize = AtomicUsize::new(0);

/// Sets the current stream of a device for this thread and returns the one before; null is the default stream.
pub fn set_stream(device_type: i32, device_id: i32, stream: *mut c_void) -> Result<*mut c_void> {
    if device_type < 0 || device_id < 0 {
        return Err(Error::new(
            "ValueError",
            format!("there is no device {device_type}:{device_id}"),
        ));
    }
    let key = (device_type, device_id);
    let before = STREAMS.with_borrow_mut(|streams| streams.put(key, stream));
    Ok(before.unwrap_or(std::ptr::null_mut()))
}

/// The current stream of a device for this thread.
pub fn stream(device_type: i32, device_id: i32) -> *mut c_void {
    let key = (device_type, device_id);
    STREAMS
        .with_borrow(|streams| streams.find(&key).copied())
        .unwrap_or(std::ptr::null_mut())
}

/// Sets this thread's allocator, and that of all threads if asked; returns this thread's one before.
pub fn set_allocator(allocator: Option<Allocator>, for_all: bool) -> Option<Allocator> {
    if for_all {
        let address = allocator.map_or(0, |function| function as usize);
        GLOBAL_ALLOCATOR.store(address, Ordering::Release);
    }
    ALLOCATOR.replace(allocator)
}

/// The allocator in force: this thread's, else that of all threads.
pub fn allocator() -> Option<Allocator> {
    ALLOCATOR.get().or_else(|| {
        let address = GLOBAL_ALLOCATOR.load(Ordering::Acquire);
        // SAFETY: only addresses of allocators are stored, and zero for none, which is `None`.
        unsafe { std::mem::transmute::<usize, Option<Allocator>>(address) }
    })
}

unsafe extern "C-unwind" fn report(_: *mut c_void, kind: *const c_char, message: *const c_char) {
    // SAFETY: the allocator passes C strings.
    let (kind, message) = unsafe { (CStr::from_ptr(kind), CStr::from_ptr(message)) };
    set_raised(Error::new(&kind.to_string_lossy(), message.to_bytes()));
}

/// A tensor like `prototype` from the allocator in force.
///
/// # Safety
/// `prototype` has a readable shape.
pub unsafe fn allocate(prototype: *mut DLTensor) -> Result<Tensor> {
    let Some(allocator) = allocator() else {
        return Err(Error::new(
            "RuntimeError",
            "TVMFFIEnvTensorAlloc: allocator is nullptr, likely because no allocator was set in the environment",
        ));
    };
    let mut out = std::ptr::null_mut();
    // SAFETY: the allocator follows DLPack's signature.
    unsafe {
        if allocator(prototype, &mut out, std::ptr::null_mut(), report) != 0 {
            return Err(take_raised().unwrap_or_else(|| {
                Error::new(
                    "RuntimeError",
                    "the tensor allocator failed without a reason",
                )
            }));
        }
        Tensor::from_dlpack_versioned(out, 0, false)
    }
}

/// The hooks of a Python frontend, by the names of CPython.
pub struct PythonHooks {
    check_signals: AtomicPtr<c_void>,
    ensure: AtomicPtr<c_void>,
    release: AtomicPtr<c_void>,
}

static HOOKS: PythonHooks = PythonHooks {
    check_signals: AtomicPtr::new(std::ptr::null_mut()),
    ensure: AtomicPtr::new(std::ptr::null_mut()),
    release: AtomicPtr::new(std::ptr::null_mut()),
};

/// Registers a function of the frontend under CPython's name for it.
pub fn register_hook(name: &[u8], symbol: *mut c_void) -> Result<()> {
    let slot = match name {
        b"PyErr_CheckSignals" => &HOOKS.check_signals,
        b"PyGILState_Ensure" => &HOOKS.ensure,
        b"PyGILState_Release" => &HOOKS.release,
        other => {
            return Err(Error::new(
                "ValueError",
                format!("Unknown env API {}", String::from_utf8_lossy(other)),
            ));
        }
    };
    slot.store(symbol, Ordering::Release);
    Ok(())
}

/// Asks the frontend whether a signal is pending: 0, or -1 with the error left in the frontend.
pub fn check_signals() -> i32 {
    let check = HOOKS.check_signals.load(Ordering::Acquire);
    if check.is_null() {
        return 0;
    }
    // SAFETY: the frontend registered CPython's function under its name.
    let check: unsafe extern "C-unwind" fn() -> i32 = unsafe { std::mem::transmute(check) };
    // SAFETY: as above; the lock of the interpreter is held.
    with_interpreter(|| unsafe { check() })
}

/// Runs `body` with the interpreter's lock, where the frontend registered how to take it.
pub(super) fn with_interpreter<T>(body: impl FnOnce() -> T) -> T {
    let ensure = HOOKS.ensure.load(Ordering::Acquire);
    let release = HOOKS.release.load(Ordering::Acquire);
    if ensure.is_null() || release.is_null() {
        return body();
    }
    // SAFETY: the frontend registered CPython's function under its name.
    let ensure: unsafe extern "C-unwind" fn() -> i32 = unsafe { std::mem::transmute(ensure) };
    // SAFETY: as above.
    let release: unsafe extern "C-unwind" fn(i32) = unsafe { std::mem::transmute(release) };
    // SAFETY: may be called by any thread, with or without the lock.
    let state = unsafe { ensure() };
    let answer = body();
    // SAFETY: the state is that of the call before, on this thread.
    unsafe { release(state) };
    answer
}
