//! The allocator of the process (VAL-39), which frontends set and ask for. No object of this library is made with it.

use crate::function::{Error, ErrorKind, set_raised};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Frees the memory of an object, whose address it gets.
type DeleteSpace = unsafe extern "C-unwind" fn(*mut c_void);

/// `TVMFFICustomAllocator`
#[derive(Debug)]
#[repr(C)]
pub struct TVMFFICustomAllocator {
    /// Returns memory for an object of a size, an alignment and a type index, or null with an error raised; gets the context.
    pub allocate: unsafe extern "C-unwind" fn(usize, usize, i32, *mut c_void) -> *mut c_void,
    /// What `allocate` is called with.
    pub context: *mut c_void,
}

// SAFETY: the context of the default one is null, and nobody writes to it.
unsafe impl Sync for TVMFFICustomAllocator {}

static DEFAULT: TVMFFICustomAllocator = TVMFFICustomAllocator {
    allocate,
    context: null_mut(),
};
static CURRENT: AtomicPtr<TVMFFICustomAllocator> = AtomicPtr::new((&raw const DEFAULT).cast_mut());

/// The allocator that was set last.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn TVMFFIGetCustomAllocator() -> *mut TVMFFICustomAllocator {
    CURRENT.load(Ordering::Acquire)
}

/// Remembers an allocator; null goes back to the default.
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

/// What stands before memory of [`allocate`]; `TVMFFIObjectAllocHeader` is its last member.
#[repr(C)]
struct AllocationHeader {
    layout: Layout,
    /// The distance from the begin of the allocation to the object.
    offset: usize,
    delete_space: DeleteSpace,
}

/// The `allocate` of the default allocator.
unsafe extern "C-unwind" fn allocate(
    size: usize,
    alignment: usize,
    _type_index: i32,
    _context: *mut c_void,
) -> *mut c_void {
    let object = Layout::from_size_align(size, alignment);
    let layout = object.and_then(|object| Layout::new::<AllocationHeader>().extend(object));
    let memory = layout.map(|(layout, offset)| {
        // SAFETY: the layout has the bytes of the header at least.
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

/// Where the header of an object lies: it ends where the object begins, so that the header's last member is the word before.
fn header_of(object: *mut u8) -> *mut AllocationHeader {
    object.wrapping_sub(size_of::<AllocationHeader>()).cast()
}

/// Frees memory of [`allocate`].
unsafe extern "C-unwind" fn delete_space(object: *mut c_void) {
    let object = object.cast::<u8>();
    // SAFETY: `allocate` wrote the header before this object.
    let header = unsafe { header_of(object).read() };
    // SAFETY: the allocation and its layout; the caller is done with the object.
    unsafe { dealloc(object.wrapping_sub(header.offset), header.layout) }
}
