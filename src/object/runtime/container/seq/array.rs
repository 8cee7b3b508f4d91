//! [`Array`]: a sequence that others see only when it no longer changes.

use super::layout::{ArrayObj, SeqBody, SeqObj, delete};
use super::{countable, element};
use crate::function::Result;
use crate::value::header::{Header, ObjectRef, Ref};
use crate::value::heap::allocate;
use crate::value::{Any, AnyView, index};

/// An immutable sequence; changing it makes a new one where it has another holder.
#[derive(Clone)]
#[repr(transparent)]
pub struct Array(pub(super) Ref<ArrayObj>);

impl Array {
    /// An array of `items`. Panics when they say that there are more than memory can hold, as [`Vec`] does.
    pub fn new(items: impl IntoIterator<Item = Any, IntoIter: ExactSizeIterator>) -> Array {
        let items = items.into_iter();
        let count = countable(items.len());
        let array = Array::with_room(count);
        let seq = array.0.as_ptr().cast::<SeqObj>();
        // SAFETY: a live array, which is fresh: no one else has seen it.
        let data = unsafe { (*seq).body.data };
        // An iterator may say more or fewer than it has: at most `count` are taken, and the size follows each, so that a panic of the
        // iterator leaves an array that ends well.
        for (at, item) in items.take(count).enumerate() {
            // SAFETY: `with_room` made room for `count` cells, and this one is not written yet.
            unsafe { data.wrapping_add(at).write(item) };
            // SAFETY: a live array, which is fresh; the cells up to this one are written.
            unsafe { (*seq).body.size = at as i64 + 1 };
        }
        array
    }

    /// An empty array with room for `count` elements, [`countable`] or in memory already.
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
        // SAFETY: a fresh object has one reference, which is this one.
        Array(unsafe { Ref::from_raw(object.cast()) })
    }

    /// An array of owned copies of `items`, without a list of them in between: arguments of a function become an array this way.
    pub(crate) fn of_views(items: &[AnyView<'_>]) -> Array {
        let array = Array::with_room(items.len());
        let seq = array.0.as_ptr().cast::<SeqObj>();
        // SAFETY: a live array, which is fresh: no one else has seen it.
        let data = unsafe { (*seq).body.data };
        for (at, item) in items.iter().enumerate() {
            // SAFETY: `with_room` made room for all of `items`.
            unsafe { data.wrapping_add(at).write(item.to_any()) };
        }
        // Owning a view does not panic, so the size need not follow every cell.
        // SAFETY: a live array, which is fresh; so many cells are written.
        unsafe { (*seq).body.size = items.len() as i64 };
        array
    }

    /// The elements, borrowed: an array does not change while it has another holder.
    #[inline]
    pub fn as_slice(&self) -> &[Any] {
        // SAFETY: an array that others see does not change, and lives while it is borrowed.
        unsafe { self.0.0.items() }
    }

    /// Number of elements.
    pub(super) fn count(&self) -> usize {
        self.as_slice().len()
    }

    /// Element `at`, or an IndexError; negative indices are not counted from the end (OBJ-04).
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04.
    pub fn at(&self, at: i64) -> Result {
        element(self.as_slice(), at)
    }

    /// The object, with the reference that this handle held.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }
}
