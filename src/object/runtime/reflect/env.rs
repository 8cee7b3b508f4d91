//! The environment of a thread: streams and the tensor allocator.

use crate::function::{Error, ErrorKind, Result, set_raised, take_raised};
use crate::object::container::tensor::{Tensor, TensorAllocator};
use crate::value::{DLTensor, SmallMap};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::sync::{PoisonError, RwLock};

thread_local! {
    static STREAMS: RefCell<SmallMap<(i32, i32), *mut c_void>> = const { RefCell::new(SmallMap::new()) };
    static ALLOCATOR: Cell<Option<TensorAllocator>> = const { Cell::new(None) };
}

/// The allocator that threads without their own use.
static GLOBAL_ALLOCATOR: RwLock<Option<TensorAllocator>> = RwLock::new(None);

/// Sets the current stream of a device for this thread and returns the one before; null is the default stream.
///
/// # Safety
/// `stream` is null or a stream of that device, until another is set.
pub(crate) unsafe fn set_stream(
    device_type: i32,
    device_id: i32,
    stream: *mut c_void,
) -> Result<*mut c_void> {
    if device_type < 0 || device_id < 0 {
        return Err(Error::new(
            ErrorKind::Value,
            format!("there is no device {device_type}:{device_id}"),
        ));
    }
    let key = (device_type, device_id);
    let before = STREAMS.with_borrow_mut(|streams| streams.put(key, stream));
    Ok(before.unwrap_or(std::ptr::null_mut()))
}

/// The current stream of a device for this thread.
pub(crate) fn stream(device_type: i32, device_id: i32) -> *mut c_void {
    let key = (device_type, device_id);
    STREAMS
        .with_borrow(|streams| streams.find(&key).copied())
        .unwrap_or(std::ptr::null_mut())
}

/// Sets this thread's allocator, and that of all threads if asked; returns this thread's one before.
///
/// # Safety
/// `allocator` may be called from then on, by every thread if it is for all: for a prototype with a readable shape it
/// answers 0 and a DLPack tensor that belongs to the caller, or reports an error.
pub(crate) unsafe fn set_allocator(
    allocator: Option<TensorAllocator>,
    for_all: bool,
) -> Option<TensorAllocator> {
    if for_all {
        let mut global = GLOBAL_ALLOCATOR
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *global = allocator;
    }
    ALLOCATOR.replace(allocator)
}

/// The allocator in force: this thread's, else that of all threads.
pub(crate) fn allocator() -> Option<TensorAllocator> {
    let global = || {
        GLOBAL_ALLOCATOR
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    };
    ALLOCATOR.get().or_else(|| *global())
}

/// # Safety
/// `kind` and `message` are C strings.
unsafe extern "C-unwind" fn report(_: *mut c_void, kind: *const c_char, message: *const c_char) {
    // SAFETY: a C string, by this contract.
    let kind = unsafe { CStr::from_ptr(kind) };
    // SAFETY: a C string, by this contract.
    let message = unsafe { CStr::from_ptr(message) };
    set_raised(Error::new(&*kind.to_string_lossy(), message.to_bytes()));
}

/// A tensor like `prototype` from the allocator in force.
///
/// # Safety
/// `prototype` has a readable shape.
pub(crate) unsafe fn allocate(prototype: *mut DLTensor) -> Result<Tensor> {
    let Some(allocator) = allocator() else {
        return Err(Error::new(
            ErrorKind::Runtime,
            "TVMFFIEnvTensorAlloc: allocator is nullptr, likely because no allocator was set in the environment",
        ));
    };
    let mut out = std::ptr::null_mut();
    // SAFETY: an allocator may be called (the contract of `set_allocator`), with a prototype as it stands in this contract.
    let code = unsafe { allocator(prototype, &mut out, std::ptr::null_mut(), report) };
    if code != 0 {
        return Err(take_raised().unwrap_or_else(|| {
            Error::new(
                ErrorKind::Runtime,
                "the tensor allocator failed without a reason",
            )
        }));
    }
    // SAFETY: an allocator that returns 0 has written a tensor that belongs to its caller (the contract of `set_allocator`).
    unsafe { Tensor::from_dlpack_versioned(out, 0, false) }
}
