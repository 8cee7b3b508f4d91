//! The environment of a thread: its streams and its tensor allocator.
//!
//! Python's frontend sets both to those of PyTorch before it calls a function with PyTorch tensors. Kernels then run on that stream, and
//! new tensors come from that allocator. Both are per thread, because two threads may compute on two streams at once.

use crate::function::{Error, ErrorKind, Result, set_raised, take_raised};
use crate::object::container::tensor::{Tensor, TensorAllocator};
use crate::thread_local::with_kept;
use crate::value::{DLTensor, SmallMap};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::sync::{PoisonError, RwLock};

thread_local! {
    /// Streams by device type and number. A device without an entry uses the default stream, null.
    static STREAMS: RefCell<SmallMap<(i32, i32), *mut c_void>> = const { RefCell::new(SmallMap::new()) };
    /// The allocator of this thread.
    static ALLOCATOR: Cell<Option<TensorAllocator>> = const { Cell::new(None) };
}

/// The allocator for threads without their own.
static GLOBAL_ALLOCATOR: RwLock<Option<TensorAllocator>> = RwLock::new(None);

/// Sets the current stream of a device for this thread and returns the previous one. Null is the default stream. The caller keeps ownership
/// of the stream.
///
/// # Safety
/// `stream` is null or a valid stream of that device until another one is set.
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
    let before = with_kept(&STREAMS, |streams| streams.put(key, stream));
    Ok(before.unwrap_or(std::ptr::null_mut()))
}

/// Returns the current stream of a device for this thread. Returns null, the default stream, for a device without one and for invalid
/// numbers.
pub(crate) fn stream(device_type: i32, device_id: i32) -> *mut c_void {
    let key = (device_type, device_id);
    with_kept(&STREAMS, |streams| streams.find(&key).copied()).unwrap_or(std::ptr::null_mut())
}

/// Sets the allocator of this thread and, with `for_all`, of all threads. Returns the previous allocator of this thread.
///
/// # Safety
/// From then on `allocator` may be called, with `for_all` by every thread. For a prototype with a readable shape, it returns 0 and a DLPack
/// tensor that the caller owns, or reports an error.
pub(crate) unsafe fn set_allocator(
    allocator: Option<TensorAllocator>,
    for_all: bool,
) -> Option<TensorAllocator> {
    // As for streams (DEV-23), the result is always the allocator of the thread. A caller that restores it does not restore the
    // allocator of all threads.
    if for_all {
        let mut global = GLOBAL_ALLOCATOR
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *global = allocator;
    }
    ALLOCATOR.replace(allocator)
}

/// Returns the effective allocator: the one of this thread, or else the one of all threads.
pub(crate) fn allocator() -> Option<TensorAllocator> {
    // A closure, so that the lock is taken only if the thread has no allocator.
    let global = || {
        GLOBAL_ALLOCATOR
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    };
    ALLOCATOR.get().or_else(|| *global())
}

/// Stores an error of that kind and message on this thread (FUN-06). An allocator calls this to report why it failed.
///
/// # Safety
/// `kind` and `message` are C strings.
unsafe extern "C-unwind" fn report(_: *mut c_void, kind: *const c_char, message: *const c_char) {
    // SAFETY: a C string, by this contract.
    let kind = unsafe { CStr::from_ptr(kind) };
    // SAFETY: a C string, by this contract.
    let message = unsafe { CStr::from_ptr(message) };
    set_raised(Error::new(&*kind.to_string_lossy(), message.to_bytes()));
}

/// Allocates a tensor with the device, data type and shape of `prototype` from the effective allocator. The allocator owns the memory. It
/// is released through the deleter of the DLPack tensor. `failed` receives the number that the allocator returned, which is 0 for success.
///
/// # Safety
/// `prototype` has a readable shape.
pub(crate) unsafe fn allocate(prototype: *mut DLTensor, failed: &mut i32) -> Result<Tensor> {
    let Some(allocator) = allocator() else {
        return Err(Error::new(
            ErrorKind::Runtime,
            "TVMFFIEnvTensorAlloc: allocator is nullptr, likely because no allocator was set in the environment",
        ));
    };
    // `report` needs no context: it stores the error on this thread, and the error is taken below.
    let mut out = std::ptr::null_mut();
    // SAFETY: an allocator may be called (the contract of `set_allocator`), with a prototype that meets this contract.
    let code = unsafe { allocator(prototype, &mut out, std::ptr::null_mut(), report) };
    *failed = code;
    if code != 0 {
        return Err(take_raised().unwrap_or_else(|| {
            Error::new(
                ErrorKind::Runtime,
                "the tensor allocator failed without a reason",
            )
        }));
    }
    if out.is_null() {
        return Err(Error::new(
            ErrorKind::Runtime,
            "the tensor allocator returned no tensor",
        ));
    }
    // SAFETY: an allocator that returns 0 has written a tensor that its caller owns (the contract of `set_allocator`).
    let imported = unsafe { Tensor::from_dlpack_versioned(out, 0, false) };
    if imported.is_err() {
        // OBJ-12: a rejected tensor still belongs to this function, because no caller learns of it.
        // SAFETY: a live managed tensor, which the import has left unchanged.
        if let Some(delete) = unsafe { (*out).deleter } {
            // SAFETY: the deleter of a tensor that this function owns, called once with that tensor.
            unsafe { delete(out) };
        }
    }
    imported
}
