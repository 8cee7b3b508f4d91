//! What a sequence is in memory, and how it ends (OBJ-03).

use crate::value::header::{DELETE_STRONG, DELETE_WEAK, Header, end_nested, static_object};
use crate::value::heap::release;
use crate::value::{Any, index};
use std::ffi::c_void;

/// The fixed part of both sequences.
#[repr(C)]
pub(crate) struct SeqObj {
    /// Counts, index and deleter.
    pub(super) header: Header,
    /// Where the elements are, and how many.
    pub(super) body: SeqBody,
}

/// What changes with the elements. Apart from the header, whose counts others change at any time.
#[repr(C)]
pub(super) struct SeqBody {
    /// The first element: behind the object in an array, elsewhere in a list; null without room.
    pub(super) data: *mut Any,
    /// Number of elements. Signed, as in C++; another library may leave anything there.
    pub(super) size: i64,
    /// Number of cells that there is room for, those of the elements included.
    pub(super) capacity: i64,
    /// Frees `data`, with the allocator of the library that made it; `None` where the elements lie in the object.
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
    /// More elements than any memory holds: a block of a Rust program has at most `isize::MAX` bytes.
    pub(super) const TOO_MANY: usize = isize::MAX as usize / size_of::<Any>();

    /// The elements, in order.
    ///
    /// # Safety
    /// Nothing changes the sequence while they are borrowed: an array that others see never changes, a list not while this thread is
    /// alone at it.
    #[inline]
    pub(super) unsafe fn items(&self) -> &[Any] {
        let SeqBody { data, size, .. } = self.body;
        let count = usize::try_from(size).unwrap_or(0);
        if count == 0 || data.is_null() {
            return &[];
        }
        // SAFETY: `size` elements lie at the address of a sequence (OBJ-03), and nothing changes it meanwhile, by this contract.
        unsafe { std::slice::from_raw_parts(data, count) }
    }
}

/// Deleter of both: the elements, their memory, the object. Long chains of sequences in sequences end without recursion.
///
/// # Safety
/// As a deleter is called (VAL-05).
pub(super) unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end`.
    unsafe { end_nested(object, flags, end) }
}

/// The work of [`delete`].
///
/// # Safety
/// As a deleter is called (VAL-05).
unsafe extern "C-unwind" fn end(object: *mut Header, flags: i32) {
    let seq = object.cast::<SeqObj>();
    if flags & DELETE_STRONG != 0 {
        // SAFETY: the last strong reference is gone (VAL-05), so no one else is at the sequence; the weak one keeps its memory.
        let body = unsafe { &mut (*seq).body };
        let count = usize::try_from(std::mem::take(&mut body.size)).unwrap_or(0);
        let data = std::mem::replace(&mut body.data, std::ptr::null_mut());
        let free = body.data_deleter.take();
        if !data.is_null() {
            for at in 0..count {
                // SAFETY: `size` elements lie at the address (OBJ-03), and each is dropped once: the sequence has none any
                // more.
                unsafe { std::ptr::drop_in_place(data.wrapping_add(at)) };
            }
            if let Some(free) = free {
                // SAFETY: the deleter that was left for this memory (OBJ-03), by this library or another; nothing is in it now.
                unsafe { free(data.cast()) };
            }
        }
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: the last weak reference is gone (VAL-05), and sequences with this deleter are made with `allocate`.
        unsafe { release(object.cast()) }
    }
}

/// Deleter of the elements' memory of a list.
pub(super) unsafe extern "C-unwind" fn free_data(data: *mut c_void) {
    // SAFETY: element memory of lists is made with `allocate`, or with C++'s plain `new`, which is the same allocator.
    unsafe { release(data.cast()) }
}
