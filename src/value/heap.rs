//! Memory of objects with a tail: the C allocator, so that libraries that share our objects can grow and free them.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn free(ptr: *mut c_void);
}

/// `size` bytes, at least one, aligned for any object. Ends the process when there are none, as every Rust allocation does.
pub(crate) fn allocate(size: usize) -> *mut u8 {
    // SAFETY: `malloc` takes any size.
    checked(unsafe { malloc(size) }.cast(), size)
}

/// [`allocate`] for a size that the caller did not choose: `None` where memory is out.
pub(crate) fn try_allocate(size: usize) -> Option<*mut u8> {
    // SAFETY: `malloc` takes any size.
    let ptr: *mut u8 = unsafe { malloc(size) }.cast();
    (!ptr.is_null()).then_some(ptr)
}

/// [`try_allocate`] with all bytes zero.
pub(crate) fn try_allocate_zeroed(size: usize) -> Option<*mut u8> {
    // SAFETY: `calloc` takes any numbers.
    let ptr: *mut u8 = unsafe { calloc(1, size) }.cast();
    (!ptr.is_null()).then_some(ptr)
}

fn checked(ptr: *mut u8, size: usize) -> *mut u8 {
    let none = || {
        // The layout is for the message alone: a size beyond that of any layout is shown as 1 byte.
        let layout = Layout::array::<u8>(size).unwrap_or(Layout::new::<u8>());
        std::alloc::handle_alloc_error(layout)
    };
    NonNull::new(ptr).unwrap_or_else(none).as_ptr()
}

/// Frees what [`allocate`] returned. Null is allowed.
///
/// # Safety
/// `ptr` came from [`allocate`] or from C's `malloc`, and is not used any more.
pub(crate) unsafe fn release(ptr: *mut u8) {
    // SAFETY: null or memory of `malloc` that is not used any more, by this contract.
    unsafe { free(ptr.cast()) }
}

/// Deleter of objects that own nothing but their memory.
pub(crate) unsafe extern "C-unwind" fn delete_plain(object: *mut super::Header, flags: i32) {
    // VAL-05: there are no contents to end, so that a call with flag 1 alone has nothing to do.
    if flags & super::header::DELETE_WEAK != 0 {
        // SAFETY: objects with this deleter are made with `allocate`, and nothing refers to it any more.
        unsafe { release(object.cast()) }
    }
}
