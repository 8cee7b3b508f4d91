//! Memory of objects with a variable-length tail. It comes from the C allocator, so that libraries that share these objects can grow
//! and free them.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn free(ptr: *mut c_void);
}

/// Allocates `size` bytes, at least one, aligned for any object. Aborts the process if there is no memory, as every Rust allocation does.
pub(crate) fn allocate(size: usize) -> *mut u8 {
    // SAFETY: `malloc` takes any size.
    checked(unsafe { malloc(size) }.cast(), size)
}

/// Like [`allocate`], for a size that the caller did not choose. Returns `None` if there is no memory.
pub(crate) fn try_allocate(size: usize) -> Option<*mut u8> {
    // SAFETY: `malloc` takes any size.
    let ptr: *mut u8 = unsafe { malloc(size) }.cast();
    (!ptr.is_null()).then_some(ptr)
}

/// Like [`try_allocate`], with all bytes zero.
pub(crate) fn try_allocate_zeroed(size: usize) -> Option<*mut u8> {
    // SAFETY: `calloc` takes any numbers.
    let ptr: *mut u8 = unsafe { calloc(1, size) }.cast();
    (!ptr.is_null()).then_some(ptr)
}

fn checked(ptr: *mut u8, size: usize) -> *mut u8 {
    let none = || {
        // The layout is only for the message. A size that exceeds every layout is shown as 1 byte.
        let layout = Layout::array::<u8>(size).unwrap_or(Layout::new::<u8>());
        std::alloc::handle_alloc_error(layout)
    };
    NonNull::new(ptr).unwrap_or_else(none).as_ptr()
}

/// Frees memory from [`allocate`]. Null is allowed.
///
/// # Safety
/// `ptr` came from [`allocate`] or from C's `malloc`, and is not used any more.
pub(crate) unsafe fn release(ptr: *mut u8) {
    // SAFETY: null or memory of `malloc` that is not used any more, by this contract.
    unsafe { free(ptr.cast()) }
}

/// Deletes an object that owns only its memory.
pub(crate) unsafe extern "C-unwind" fn delete_plain(object: *mut super::Header, flags: i32) {
    // VAL-05: there are no contents to drop, so a call with only flag 1 does nothing.
    if flags & super::header::DELETE_WEAK != 0 {
        // SAFETY: objects with this deleter are allocated with `allocate`, and nothing refers to it any more.
        unsafe { release(object.cast()) }
    }
}
