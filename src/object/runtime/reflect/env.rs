//! The environment of a thread: streams and the tensor allocator.
//!
//! Python's frontend sets both to those of PyTorch before it calls a function with its tensors: kernels run on that stream, and new tensors
//! come from that allocator. They are the thread's, since two threads may compute on two streams at once.

use crate::function::{Error, ErrorKind, Result, set_raised, take_raised};
use crate::object::container::tensor::{Tensor, TensorAllocator};
use crate::thread_local::with_kept;
use crate::value::{DLTensor, SmallMap};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::sync::{PoisonError, RwLock};

thread_local! {
    /// By device type and number; a device that no stream was set for has the default one, null.
    static STREAMS: RefCell<SmallMap<(i32, i32), *mut c_void>> = const { RefCell::new(SmallMap::new()) };
    /// The allocator that this thread has set.
    static ALLOCATOR: Cell<Option<TensorAllocator>> = const { Cell::new(None) };
}

/// The allocator that threads without their own use.
static GLOBAL_ALLOCATOR: RwLock<Option<TensorAllocator>> = RwLock::new(None);

/// Sets the current stream of a device for this thread and returns the one before; null is the default stream. The stream stays the
/// caller's: nothing here counts or frees it.
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
    let before = with_kept(&STREAMS, |streams| streams.put(key, stream));
    Ok(before.unwrap_or(std::ptr::null_mut()))
}

/// The current stream of a device for this thread; null, the default stream, for a device without one and for numbers that name none.
pub(crate) fn stream(device_type: i32, device_id: i32) -> *mut c_void {
    let key = (device_type, device_id);
    with_kept(&STREAMS, |streams| streams.find(&key).copied()).unwrap_or(std::ptr::null_mut())
}

/// Sets this thread's allocator, and with `for_all` that of all threads; returns this thread's one before.
///
/// # Safety
/// `allocator` may be called from then on, by every thread if it is for all: for a prototype with a readable shape it
/// answers 0 and a DLPack tensor that belongs to the caller, or reports an error.
pub(crate) unsafe fn set_allocator(
    allocator: Option<TensorAllocator>,
    for_all: bool,
) -> Option<TensorAllocator> {
    // As for streams (DEV-23), the result is the thread's own in either case: who restores it does not restore that of all threads.
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
    // A closure, so that the lock is taken only where the thread has no allocator of its own.
    let global = || {
        GLOBAL_ALLOCATOR
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    };
    ALLOCATOR.get().or_else(|| *global())
}

/// # Safety
/// `kind` and `message` are C strings.
/// What an allocator calls to report why it failed: leaves an error of that kind and message on this thread (FUN-06).
///
unsafe extern "C-unwind" fn report(_: *mut c_void, kind: *const c_char, message: *const c_char) {
    // SAFETY: a C string, by this contract.
    let kind = unsafe { CStr::from_ptr(kind) };
    // SAFETY: a C string, by this contract.
    let message = unsafe { CStr::from_ptr(message) };
    set_raised(Error::new(&*kind.to_string_lossy(), message.to_bytes()));
}

/// A tensor of the device, data type and shape of `prototype` from the allocator in force; its memory is the allocator's, and is released
/// through the deleter that came with it.
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
    // `report` needs no context: it leaves the error on this thread, where it is taken below.
    let mut out = std::ptr::null_mut();
    // SAFETY: an allocator may be called (the contract of `set_allocator`), with a prototype as it is in this contract.
    let code = unsafe { allocator(prototype, &mut out, std::ptr::null_mut(), report) };
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
    // SAFETY: an allocator that returns 0 has written a tensor that belongs to its caller (the contract of `set_allocator`).
    let imported = unsafe { Tensor::from_dlpack_versioned(out, 0, false) };
    if imported.is_err() {
        // OBJ-12: what is rejected stays with who has it, which is this function: no caller learns of it.
        // SAFETY: a live managed tensor, which the import has left as it was.
        if let Some(delete) = unsafe { (*out).deleter } {
            // SAFETY: the deleter of a tensor that belongs to this function, called once with that tensor.
            unsafe { delete(out) };
        }
    }
    imported
}
