//! [`Array`]: a sequence that does not change while it is shared.

use super::layout::{ArrayObj, SeqBody, SeqObj, delete};
use super::{countable, element};
use crate::function::Result;
use crate::value::header::{Header, Ref};
use crate::value::heap::allocate;
use crate::value::{Any, AnyView, index};
use std::mem::MaybeUninit;

/// An immutable sequence. A change creates a new sequence if the old one has another holder.
#[derive(Clone)]
#[repr(transparent)]
pub struct Array(pub(super) Ref<ArrayObj>);

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl Array {
    /// Creates an array of `items`. Panics if their stated length exceeds memory, as [`Vec`] does.
    pub fn new(items: impl IntoIterator<Item = Any, IntoIter: ExactSizeIterator>) -> Array {
        let items = items.into_iter();
        let count = countable(items.len());
        let array = Array::with_room(count);
        let seq = array.0.as_ptr().cast::<SeqObj>();
        // SAFETY: a live, fresh array: nothing else has seen it.
        let data = unsafe { (*seq).body.data };
        // An iterator may yield more or fewer items than it states. At most `count` are taken. The size is updated after each, so that the
        // array can be dropped safely if the iterator panics.
        for (at, item) in items.take(count).enumerate() {
            // SAFETY: `with_room` made room for `count` cells, and this one is not written yet.
            unsafe { data.wrapping_add(at).write(item) };
            // SAFETY: a live, fresh array; the cells up to this one are written.
            unsafe { (*seq).body.size = at as i64 + 1 };
        }
        array
    }

    /// Creates an empty array with room for `count` elements. `count` is [`countable`] or the number of elements already in memory.
    fn with_room(count: usize) -> Array {
        let object = allocate(size_of::<SeqObj>() + count * size_of::<Any>());
        let body = SeqBody {
            data: object.wrapping_add(size_of::<SeqObj>()).cast(),
            size: 0,
            capacity: count as i64,
            data_deleter: None,
        };
        let header = Header::new(index::ARRAY, delete);
        // SAFETY: the block holds the head, and is aligned for any object.
        unsafe { object.cast::<SeqObj>().write(SeqObj { header, body }) };
        // SAFETY: a fresh object has one reference, which moves here.
        Array(unsafe { Ref::from_raw(object.cast()) })
    }

    /// Creates an array of owned copies of `items`, without an intermediate list. Used for arguments of a function.
    pub(crate) fn of_views(items: &[AnyView<'_>]) -> Array {
        let array = Array::with_room(items.len());
        let seq = array.0.as_ptr().cast::<SeqObj>();
        // SAFETY: a live, fresh array: nothing else has seen it.
        let data = unsafe { (*seq).body.data };
        // SAFETY: `with_room` made room for all of `items`.
        let cells =
            unsafe { std::slice::from_raw_parts_mut(data.cast::<MaybeUninit<Any>>(), items.len()) };
        for (cell, item) in cells.iter_mut().zip(items) {
            cell.write(item.to_any());
        }
        // Owning a view does not panic, so the size is updated only once.
        // SAFETY: a live, fresh array; that many cells are written.
        unsafe { (*seq).body.size = items.len() as i64 };
        array
    }

    /// Borrows the elements. An array does not change while it has another holder.
    #[inline]
    pub fn as_slice(&self) -> &[Any] {
        // SAFETY: a shared array does not change, and lives while it is borrowed.
        unsafe { self.0.0.items() }
    }

    /// Returns the number of elements.
    pub(super) fn count(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns element `at`. Negative indices do not count from the end (OBJ-04).
    ///
    /// # Errors
    ///
    /// Returns an IndexError with OBJ-04 if there is no such element.
    pub fn at(&self, at: i64) -> Result {
        element(self.as_slice(), at)
    }
}
