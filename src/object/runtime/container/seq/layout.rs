//! The memory layout of a sequence, and its deleter (OBJ-03).

use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, end_nested, static_object};
use crate::value::heap::release;
use crate::value::{Any, index};
use std::ffi::c_void;

/// The fixed part of both kinds of sequence.
#[repr(C)]
pub(crate) struct SeqObj {
    /// Reference counts, type index and deleter.
    pub(super) header: Header,
    /// Location and number of the elements.
    pub(super) body: SeqBody,
}

/// The part that changes with the elements. Separate from the header, whose counts others change at any time.
#[repr(C)]
pub(super) struct SeqBody {
    /// The first element: directly after the object in an array, in a separate block in a list. Null without room.
    pub(super) data: *mut Any,
    /// Number of elements. Signed, as in C++, and not trusted, because another library may have written it.
    pub(super) size: i64,
    /// Number of cells, including those in use.
    pub(super) capacity: i64,
    /// Frees `data` with the allocator of the library that allocated it. `None` if the elements are inside the object.
    pub(super) data_deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

const _: () = assert!(size_of::<SeqObj>() == 56);

/// An array object.
#[repr(transparent)]
pub(crate) struct ArrayObj(pub(super) SeqObj);
/// A list object.
#[repr(transparent)]
pub(crate) struct ListObj(pub(super) SeqObj);

static_object!(ArrayObj, index::ARRAY);
static_object!(ListObj, index::LIST);

impl SeqObj {
    /// A number of elements that exceeds any memory: a Rust allocation has at most `isize::MAX` bytes.
    pub(super) const TOO_MANY: usize = isize::MAX as usize / size_of::<Any>();

    /// Borrows the elements, in order.
    ///
    /// # Safety
    /// Nothing changes the sequence while they are borrowed. A shared array never changes, and a list does not change while this thread has
    /// exclusive access.
    #[inline]
    pub(super) unsafe fn items(&self) -> &[Any] {
        let SeqBody { data, size, .. } = self.body;
        let count = usize::try_from(size).unwrap_or(0);
        if count == 0 || data.is_null() {
            return &[];
        }
        // SAFETY: `size` elements are at the address of a sequence (OBJ-03), and nothing changes it meanwhile, by this contract.
        unsafe { std::slice::from_raw_parts(data, count) }
    }
}

/// Deletes a sequence of either kind: frees the elements, their memory and the object. Frees long chains of nested sequences without
/// recursion.
///
/// # Safety
/// The call follows VAL-05.
pub(super) unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end`.
    unsafe { end_nested(object, flags, end) }
}

/// Does the work of [`delete`].
///
/// # Safety
/// The call follows VAL-05.
unsafe extern "C-unwind" fn end(object: *mut Header, flags: i32) {
    let seq = object.cast::<SeqObj>();
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the last strong reference is gone (VAL-05), so nothing else uses the sequence; the weak one keeps its memory.
        let body = unsafe { &mut (*seq).body };
        let count = usize::try_from(std::mem::take(&mut body.size)).unwrap_or(0);
        let data = std::mem::replace(&mut body.data, std::ptr::null_mut());
        let free = body.data_deleter.take();
        if !data.is_null() {
            for at in 0..count {
                // SAFETY: `size` elements are at the address (OBJ-03), and each is dropped once, because the size is now 0.
                unsafe { std::ptr::drop_in_place(data.wrapping_add(at)) };
            }
            if let Some(free) = free {
                // SAFETY: the deleter that this library or another stored for this memory (OBJ-03), which is now empty.
                unsafe { free(data.cast()) };
            }
        }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: the last weak reference is gone (VAL-05), and sequences with this deleter are allocated with `allocate`.
        unsafe { release(object.cast()) }
    }
}

/// Frees the element memory of a list, as its deleter.
pub(super) unsafe extern "C-unwind" fn free_data(data: *mut c_void) {
    // SAFETY: the element memory of lists comes from `allocate`, or from C++'s plain `new`, which is the same allocator.
    unsafe { release(data.cast()) }
}
