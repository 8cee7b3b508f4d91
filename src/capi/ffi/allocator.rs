//! The allocator of the process (VAL-39), which frontends set and read. This library does not allocate its objects with it.

use crate::function::{Error, ErrorKind, set_raised};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Frees the memory of an object, given its address.
type DeleteSpace = unsafe extern "C-unwind" fn(*mut c_void);

/// `TVMFFICustomAllocator`
#[derive(Debug)]
#[repr(C)]
pub struct TVMFFICustomAllocator {
    /// Allocates memory for an object of a size, an alignment and a type index. Gets the context. Returns null with an error raised on
    /// failure.
    pub allocate: unsafe extern "C-unwind" fn(usize, usize, i32, *mut c_void) -> *mut c_void,
    /// The last argument of `allocate`.
    pub context: *mut c_void,
}

// SAFETY: the context of the default allocator is null, and nothing writes to it.
unsafe impl Sync for TVMFFICustomAllocator {}

static DEFAULT: TVMFFICustomAllocator = TVMFFICustomAllocator {
    allocate,
    context: null_mut(),
};
static CURRENT: AtomicPtr<TVMFFICustomAllocator> = AtomicPtr::new((&raw const DEFAULT).cast_mut());

/// Returns the allocator that was set last.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIGetCustomAllocator() -> *mut TVMFFICustomAllocator {
    CURRENT.load(Ordering::Acquire)
}

/// Sets the allocator. Null restores the default.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFISetCustomAllocator(allocator: *mut TVMFFICustomAllocator) -> i32 {
    let allocator = if allocator.is_null() {
        (&raw const DEFAULT).cast_mut()
    } else {
        allocator
    };
    CURRENT.store(allocator, Ordering::Release);
    0
}

/// The header before memory of [`allocate`]. `TVMFFIObjectAllocHeader` is its last member.
#[repr(C)]
struct AllocationHeader {
    layout: Layout,
    /// The distance from the beginning of the allocation to the object.
    offset: usize,
    delete_space: DeleteSpace,
}

/// Allocates memory with a header, as the `allocate` function of the default allocator.
unsafe extern "C-unwind" fn allocate(
    size: usize,
    alignment: usize,
    _type_index: i32,
    _context: *mut c_void,
) -> *mut c_void {
    let object = Layout::from_size_align(size, alignment);
    let layout = object.and_then(|object| Layout::new::<AllocationHeader>().extend(object));
    let memory = layout.map(|(layout, offset)| {
        // SAFETY: the layout is at least as large as the header.
        (unsafe { alloc(layout) }, layout, offset)
    });
    let Ok((memory, layout, offset)) = memory else {
        return failed(size, alignment);
    };
    if memory.is_null() {
        return failed(size, alignment);
    }
    let object = memory.wrapping_add(offset);
    let header = AllocationHeader {
        layout,
        offset,
        delete_space,
    };
    // SAFETY: `extend` puts the object after the header, and the object's address is a multiple of the header's alignment or larger.
    unsafe { header_of(object).write(header) };
    object.cast()
}

fn failed(size: usize, alignment: usize) -> *mut c_void {
    let text = format!("no memory for an object of {size} bytes at multiples of {alignment}");
    set_raised(Error::new(ErrorKind::Memory, text));
    null_mut()
}

/// Returns the header of an object. It ends where the object begins, so its last member is the word before the object.
fn header_of(object: *mut u8) -> *mut AllocationHeader {
    object.wrapping_sub(size_of::<AllocationHeader>()).cast()
}

/// Frees memory of [`allocate`].
unsafe extern "C-unwind" fn delete_space(object: *mut c_void) {
    let object = object.cast::<u8>();
    // SAFETY: `allocate` wrote the header before this object.
    let header = unsafe { header_of(object).read() };
    // SAFETY: the allocation and its layout; the caller no longer uses the object.
    unsafe { dealloc(object.wrapping_sub(header.offset), header.layout) }
}
