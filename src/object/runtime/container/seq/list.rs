//! [`List`]: a sequence that changes in place, by one thread at a time.

use super::layout::{ListObj, SeqBody, SeqObj, delete, free_data};
use super::{countable, element, out_of_bounds};
use crate::function::{Error, ErrorKind, Result};
use crate::object::container::lock::{lock, with_lock};
use crate::value::header::{Header, Ref};
use crate::value::heap::{allocate, try_allocate};
use crate::value::{Any, index};

/// Minimum capacity of a new list (OBJ-03).
const LIST_ROOM: usize = 4;

/// A mutable sequence that all holders share, on any thread. Each operation is atomic for other threads.
#[derive(Clone)]
#[repr(transparent)]
pub struct List(pub(super) Ref<ListObj>);

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.to_vec()).finish()
    }
}

impl List {
    /// Creates a list of `items`.
    pub fn new(items: impl IntoIterator<Item = Any, IntoIter: ExactSizeIterator>) -> List {
        let items = items.into_iter();
        let room = countable(items.len()).max(LIST_ROOM);
        let list = List::with_capacity(room);
        let seq = list.seq();
        for (at, item) in items.take(room).enumerate() {
            // SAFETY: `with_capacity` made room for `room` cells, and this one is not written yet.
            unsafe { list.cell(at).write(item) };
            // SAFETY: a live, fresh list: nothing else has seen it; the cells up to this one are written.
            unsafe { (*seq).body.size = at as i64 + 1 };
        }
        list
    }

    /// Creates an empty list with room for `capacity` elements. Panics if memory cannot hold that many, as [`Vec`] does.
    pub fn with_capacity(capacity: usize) -> List {
        let capacity = countable(capacity);
        let object = allocate(size_of::<SeqObj>());
        let data = match capacity {
            0 => std::ptr::null_mut(),
            count => allocate(count * size_of::<Any>()).cast(),
        };
        let body = SeqBody {
            data,
            size: 0,
            capacity: capacity as i64,
            // Set even without elements, because a library that grows the list frees the old memory with this deleter.
            data_deleter: Some(free_data),
        };
        let header = Header::new(index::LIST, delete);
        // SAFETY: the block holds the head, and is aligned for any object.
        unsafe { object.cast::<SeqObj>().write(SeqObj { header, body }) };
        // SAFETY: a fresh object has one reference, which moves here.
        List(unsafe { Ref::from_raw(object.cast()) })
    }

    /// Returns the address of the object.
    const fn seq(&self) -> *mut SeqObj {
        self.0.as_ptr().cast()
    }

    /// Returns the address of element `at`. The caller has exclusive access.
    fn cell(&self, at: usize) -> *mut Any {
        // SAFETY: the list lives while `self` does, and callers have exclusive access.
        unsafe { (*self.seq()).body.data }.wrapping_add(at)
    }

    /// Runs `work` while no other thread uses the list. `work` calls nothing and drops no element.
    #[inline]
    fn run_locked<R>(&self, work: impl FnOnce() -> R) -> R {
        with_lock(self.0.as_object().as_ptr(), work)
    }

    /// Returns the current elements, with a new reference to each, because the list may change afterwards.
    pub fn to_vec(&self) -> Vec<Any> {
        self.run_locked(|| self.items().to_vec())
    }

    /// Borrows the elements. The caller has exclusive access for as long as it keeps them.
    #[inline]
    fn items(&self) -> &[Any] {
        // SAFETY: callers have exclusive access to the list, and keep no element beyond that.
        unsafe { self.0.0.items() }
    }

    /// Returns the current number of elements.
    pub(super) fn count(&self) -> usize {
        self.run_locked(|| self.items().len())
    }

    /// Returns element `at`.
    ///
    /// # Errors
    ///
    /// Returns an IndexError with OBJ-04 if there is no such element.
    #[inline(always)]
    pub fn at(&self, at: i64) -> Result {
        let guard = lock(self.seq());
        if let Some(cell) = self.cell_of(at) {
            // SAFETY: an element of the list, to which this thread has exclusive access.
            let found = unsafe { &*cell }.clone();
            drop(guard);
            return Ok(found);
        }
        drop(guard);
        self.handle_missing_index(at)
    }

    /// Completes [`List::at`] if there is no element `at`.
    #[cold]
    #[inline(never)]
    fn handle_missing_index(&self, at: i64) -> Result {
        self.run_locked(|| element(self.items(), at))
    }

    /// Returns the address of element `at`, if it exists. The caller has exclusive access.
    #[inline]
    fn cell_of(&self, at: i64) -> Option<*mut Any> {
        // SAFETY: the list lives while `self` does, and callers have exclusive access.
        let SeqBody { data, size, .. } = unsafe { &(*self.seq()).body };
        // The cast turns a negative index into one beyond every length. If there are elements, they are at the address (OBJ-03).
        let is_inside = (at as u64) < (*size).max(0) as u64;
        is_inside.then(|| data.wrapping_add(at as usize))
    }

    /// Replaces element `at`, counted from 0, for all holders.
    ///
    /// # Errors
    ///
    /// Returns an IndexError with OBJ-04 if there is no such element. The list is then unchanged.
    #[inline(always)]
    pub fn set(&self, at: i64, value: Any) -> Result<()> {
        // The old element, or `value`, is dropped after the lock is released.
        let guard = lock(self.seq());
        if let Some(cell) = self.cell_of(at) {
            // SAFETY: an element of the list, to which this thread has exclusive access.
            let old = unsafe { cell.replace(value) };
            drop(guard);
            drop(old);
            return Ok(());
        }
        drop(guard);
        Err(out_of_bounds(format_args!("Index {at}"), self.count()))
    }

    /// Returns the capacity. The field is not trusted, because another library may have written it. The caller has exclusive access.
    fn capacity(&self) -> usize {
        // SAFETY: the list lives while `self` does, and callers have exclusive access.
        usize::try_from(unsafe { (*self.seq()).body.capacity }).unwrap_or(0)
    }

    /// Reserves memory for `capacity` elements. If there is not enough memory, returns the InternalError of the reference and leaves the
    /// list unchanged.
    ///
    /// # Errors
    ///
    /// Returns an InternalError with the text `std::bad_alloc`, as upstream does.
    pub fn try_reserve(&self, capacity: usize) -> Result<()> {
        self.run_locked(|| {
            if capacity <= self.capacity() {
                return Ok(());
            }
            let bytes = capacity.checked_mul(size_of::<Any>());
            let memory = bytes.filter(|_| capacity < SeqObj::TOO_MANY);
            let Some(data) = memory.and_then(try_allocate) else {
                // Upstream's `new` throws, and the guard of a C function turns the exception into this error.
                return Err(Error::new(ErrorKind::Internal, "std::bad_alloc"));
            };
            self.move_to(data.cast(), capacity);
            Ok(())
        })
    }

    /// Reserves memory for `capacity` elements. Panics if that exceeds any memory, and aborts the process if the allocation fails, as
    /// [`Vec`] does. [`List::try_reserve`] does neither.
    pub fn reserve(&self, capacity: usize) {
        self.run_locked(|| self.make_room(capacity));
    }

    /// Does the work of [`List::reserve`]. The caller has exclusive access.
    fn make_room(&self, capacity: usize) {
        if capacity > self.capacity() {
            let capacity = countable(capacity);
            self.move_to(allocate(capacity * size_of::<Any>()).cast(), capacity);
        }
    }

    /// Moves the elements to `data`, fresh memory of [`allocate`] with room for `capacity`. The caller has exclusive access.
    fn move_to(&self, data: *mut Any, capacity: usize) {
        // SAFETY: the list lives while `self` does, and callers have exclusive access.
        let body = unsafe { &mut (*self.seq()).body };
        let old = std::mem::replace(&mut body.data, data);
        let free = body.data_deleter.replace(free_data);
        body.capacity = capacity as i64;
        if old.is_null() {
            return;
        }
        // SAFETY: `size` elements are at the old address (OBJ-03), and the new memory has room for more than the old.
        unsafe { std::ptr::copy_nonoverlapping(old, data, body.size as usize) };
        if let Some(free) = free {
            // SAFETY: the deleter that was stored for the old memory (OBJ-03), whose elements have moved away.
            unsafe { free(old.cast()) };
        }
    }

    /// Makes room for `extra` more elements. Grows to at least twice the capacity, so that repeated appends copy each element only a few
    /// times. The caller has exclusive access.
    fn grow_for(&self, extra: usize) {
        let count = self.items().len();
        let capacity = self.capacity();
        let needed = count.saturating_add(extra);
        if needed > capacity {
            self.make_room(needed.max(capacity.saturating_mul(2)).max(LIST_ROOM));
        }
    }

    /// Appends one element. A full list doubles its capacity, to at least 4 elements (OBJ-03).
    #[inline]
    pub fn push(&self, value: Any) {
        let guard = lock(self.seq());
        // SAFETY: the list lives while `self` does, and this thread has exclusive access.
        let body = unsafe { &mut (*self.seq()).body };
        if body.size >= 0 && body.size < body.capacity && !body.data.is_null() {
            // SAFETY: there is room for more than `size` elements at the address (OBJ-03).
            unsafe { body.data.wrapping_add(body.size as usize).write(value) };
            body.size += 1;
            return;
        }
        drop(guard);
        self.push_beyond(value);
    }

    /// Completes [`List::push`] for a list without room for one more element.
    #[cold]
    #[inline(never)]
    fn push_beyond(&self, value: Any) {
        // Declared outside the locked section, so that a panic for lack of memory also drops it outside.
        let mut value = value;
        self.run_locked(|| {
            self.grow_for(1);
            let end = self.cell(self.items().len());
            // SAFETY: `grow_for` made room for one more element after the last.
            unsafe { end.write(std::mem::take(&mut value)) };
            // SAFETY: the list lives while `self` does, and this thread has exclusive access; the element is written.
            unsafe { (*self.seq()).body.size += 1 };
        });
    }

    /// Inserts `items` before element `at`, which may be the end.
    ///
    /// # Errors
    ///
    /// Returns an IndexError with OBJ-04 for a position beyond the end. The list is then unchanged.
    pub fn insert(&self, at: i64, items: Vec<Any>) -> Result<()> {
        let mut items = items;
        self.run_locked(|| self.put_in(at, &mut items))
    }

    /// Does the work of [`List::insert`]. The caller has exclusive access.
    fn put_in(&self, at: i64, items: &mut Vec<Any>) -> Result<()> {
        let count = self.items().len();
        let at = match usize::try_from(at) {
            Ok(at) if at <= count => at,
            _ => {
                return Err(out_of_bounds(
                    format_args!("Index {at}"),
                    format_args!("[0, {count}]"),
                ));
            }
        };
        self.grow_for(items.len());
        let extra = items.len();
        let (gap, tail) = (self.cell(at), self.cell(at + extra));
        // SAFETY: `grow_for` made room for that many more elements; the `count - at` elements from `at` on move up.
        unsafe { std::ptr::copy(gap, tail, count - at) };
        // SAFETY: the gap has room for that many elements, and its old content has moved up.
        unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), gap, extra) };
        // SAFETY: 0 is not more than the length; the elements now belong to the list.
        unsafe { items.set_len(0) };
        // SAFETY: the list lives while `self` does, and callers have exclusive access; that many elements are written.
        unsafe { (*self.seq()).body.size += extra as i64 };
        Ok(())
    }

    /// Removes elements `start..stop` and returns them.
    ///
    /// # Errors
    ///
    /// Returns an IndexError with OBJ-04 for a range outside the list. The list is then unchanged.
    pub fn remove(&self, start: i64, stop: i64) -> Result<Vec<Any>> {
        self.run_locked(|| self.take_out(start, stop))
    }

    /// Does the work of [`List::remove`]. The caller has exclusive access.
    fn take_out(&self, start: i64, stop: i64) -> Result<Vec<Any>> {
        let count = self.items().len();
        // OBJ-04: an empty range accesses no element, so its position is not checked.
        if start == stop {
            return Ok(Vec::new());
        }
        let (first, gone) = match (usize::try_from(start), usize::try_from(stop)) {
            (Ok(first), Ok(end)) if first < end && end <= count => (first, end - first),
            _ => {
                return Err(out_of_bounds(
                    format_args!("Erase range [{start}, {stop})"),
                    count,
                ));
            }
        };
        let mut removed = Vec::with_capacity(gone);
        let (from, tail) = (self.cell(first), self.cell(first + gone));
        // SAFETY: `gone` elements start at `first`, and the vector has room for them.
        unsafe { std::ptr::copy_nonoverlapping(from, removed.as_mut_ptr(), gone) };
        // SAFETY: that many have just been written.
        unsafe { removed.set_len(gone) };
        // SAFETY: the rest of the `count` elements moves down to fill the gap.
        unsafe { std::ptr::copy(tail, from, count - first - gone) };
        // SAFETY: the list lives while `self` does, and callers have exclusive access; that many elements have moved out.
        unsafe { (*self.seq()).body.size -= gone as i64 };
        Ok(removed)
    }

    /// Replaces elements `start..stop` by `items` and returns the old ones.
    pub(crate) fn replace_slice(&self, start: i64, stop: i64, items: Vec<Any>) -> Result<Vec<Any>> {
        let mut items = items;
        self.run_locked(|| {
            // Only an empty range may lie outside the list. Nothing is removed then, so an error below drops no element under the lock.
            let gone = self.take_out(start, stop)?;
            // OBJ-04: replacing an empty range by no items changes no element, so no index is checked, as in every release.
            if gone.is_empty() && items.is_empty() {
                return Ok(gone);
            }
            self.put_in(start, &mut items).map(|()| gone)
        })
    }

    /// Reverses the elements in place.
    pub fn reverse(&self) {
        self.run_locked(|| {
            let count = self.items().len();
            if count > 1 {
                // SAFETY: `count` elements are at the address (OBJ-03), and this thread has exclusive access.
                unsafe { std::slice::from_raw_parts_mut(self.cell(0), count) }.reverse();
            }
        });
    }

    /// Removes all elements and keeps the capacity. The elements are dropped after the lock is released.
    pub fn clear(&self) {
        let gone = self.run_locked(|| {
            let count = self.items().len() as i64;
            self.take_out(0, count)
        });
        drop(gone);
    }
}
