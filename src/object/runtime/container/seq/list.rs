//! [`List`]: a sequence that changes in place, one thread at a time.

use super::layout::{ListObj, SeqBody, SeqObj, delete, free_data};
use super::{countable, element, out_of_bounds};
use crate::function::{Error, ErrorKind, Result};
use crate::object::container::lock::{lock, with_lock};
use crate::value::header::{Header, ObjectRef, Ref};
use crate::value::heap::{allocate, try_allocate};
use crate::value::{Any, index};

/// A list has room for as many elements from the start (OBJ-03).
const LIST_ROOM: usize = 4;

/// A mutable sequence, shared by all who hold it, on any thread: each operation happens at once for all others.
#[derive(Clone)]
#[repr(transparent)]
pub struct List(pub(super) Ref<ListObj>);

impl List {
    /// A list of `items`.
    pub fn new(items: impl IntoIterator<Item = Any, IntoIter: ExactSizeIterator>) -> List {
        let items = items.into_iter();
        let room = countable(items.len()).max(LIST_ROOM);
        let list = List::with_capacity(room);
        let seq = list.seq();
        for (at, item) in items.take(room).enumerate() {
            // SAFETY: `with_capacity` made room for `room` cells, and this one is not written yet.
            unsafe { list.cell(at).write(item) };
            // SAFETY: a live list, which is fresh: no one else has seen it; the cells up to this one are written.
            unsafe { (*seq).body.size = at as i64 + 1 };
        }
        list
    }

    /// An empty list with room. Panics when it is for more than memory can hold, as [`Vec`] does.
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
            // Also without elements yet: a library that grows the list frees with what it finds here.
            data_deleter: Some(free_data),
        };
        let header = Header::new(index::LIST, delete);
        // SAFETY: the block holds the head, and is aligned for any object.
        unsafe { object.cast::<SeqObj>().write(SeqObj { header, body }) };
        // SAFETY: a fresh object has one reference, which is this one.
        List(unsafe { Ref::from_raw(object.cast()) })
    }

    /// The address of the object.
    const fn seq(&self) -> *mut SeqObj {
        self.0.as_ptr().cast()
    }

    /// Where element `at` lies. Called alone.
    fn cell(&self, at: usize) -> *mut Any {
        // SAFETY: the list lives while `self` does, and no other thread is at it: callers are alone.
        unsafe { (*self.seq()).body.data }.wrapping_add(at)
    }

    /// Runs `work` while no other thread is at the list. It calls nothing and drops no element.
    #[inline]
    fn alone<R>(&self, work: impl FnOnce() -> R) -> R {
        with_lock(self.0.as_object().as_ptr(), work)
    }

    /// The elements as they are now, each counted once more: the list may change while they are looked at.
    pub fn to_vec(&self) -> Vec<Any> {
        self.alone(|| self.items().to_vec())
    }

    /// The elements. Called alone, and not kept beyond that.
    #[inline]
    fn items(&self) -> &[Any] {
        // SAFETY: callers are alone at the list, and keep no element beyond that.
        unsafe { self.0.0.items() }
    }

    /// Number of elements now.
    pub(super) fn count(&self) -> usize {
        self.alone(|| self.items().len())
    }

    /// Element `at`, or an IndexError.
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04.
    #[inline(always)]
    pub fn at(&self, at: i64) -> Result {
        let guard = lock(self.seq());
        if let Some(cell) = self.cell_of(at) {
            // SAFETY: an element of the list, with which this thread is alone.
            let found = unsafe { &*cell }.clone();
            drop(guard);
            return Ok(found);
        }
        drop(guard);
        self.outside(at)
    }

    /// [`List::at`] where there was nothing.
    #[cold]
    #[inline(never)]
    fn outside(&self, at: i64) -> Result {
        self.alone(|| element(self.items(), at))
    }

    /// Where element `at` lies, if there is one. Called alone.
    #[inline]
    fn cell_of(&self, at: i64) -> Option<*mut Any> {
        // SAFETY: the list lives while `self` does, and no other thread is at it: callers are alone.
        let SeqBody { data, size, .. } = unsafe { &(*self.seq()).body };
        // A negative index is above every number of elements. Where there are some, they lie at the address (OBJ-03).
        let is_inside = (at as u64) < (*size).max(0) as u64;
        is_inside.then(|| data.wrapping_add(at as usize))
    }

    /// Replaces element `at`, counted from 0, for all holders.
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04; the list is as it was.
    #[inline(always)]
    pub fn set(&self, at: i64, value: Any) -> Result<()> {
        // The old element, or `value`, is dropped when this thread is not at the list.
        let guard = lock(self.seq());
        if let Some(cell) = self.cell_of(at) {
            // SAFETY: an element of the list, with which this thread is alone.
            let old = unsafe { cell.replace(value) };
            drop(guard);
            drop(old);
            return Ok(());
        }
        drop(guard);
        Err(out_of_bounds(format_args!("Index {at}"), self.count()))
    }

    /// Room for elements; what another library wrote there may be anything. Called alone.
    fn capacity(&self) -> usize {
        // SAFETY: the list lives while `self` does, and no other thread is at it: callers are alone.
        usize::try_from(unsafe { (*self.seq()).body.capacity }).unwrap_or(0)
    }

    /// Makes room for `capacity` elements; the InternalError of the reference where there is no memory for them, and the list
    /// is as it was.
    ///
    /// # Errors
    ///
    /// An InternalError with the text `std::bad_alloc`, as upstream has it.
    pub fn try_reserve(&self, capacity: usize) -> Result<()> {
        self.alone(|| {
            if capacity <= self.capacity() {
                return Ok(());
            }
            let bytes = capacity.checked_mul(size_of::<Any>());
            let memory = bytes.filter(|_| capacity < SeqObj::TOO_MANY);
            let Some(data) = memory.and_then(try_allocate) else {
                // Upstream's `new` throws, and the guard of a C function turns what it throws into this error.
                return Err(Error::new(ErrorKind::Internal, "std::bad_alloc"));
            };
            self.move_to(data.cast(), capacity);
            Ok(())
        })
    }

    /// Makes room for `capacity` elements. Panics when memory cannot hold as many and ends the process when there is no
    /// memory for them, as [`Vec`] does; [`List::try_reserve`] does neither.
    pub fn reserve(&self, capacity: usize) {
        self.alone(|| self.make_room(capacity));
    }

    /// [`List::reserve`], called alone.
    fn make_room(&self, capacity: usize) {
        if capacity > self.capacity() {
            let capacity = countable(capacity);
            self.move_to(allocate(capacity * size_of::<Any>()).cast(), capacity);
        }
    }

    /// Moves the elements to `data`, fresh memory of [`allocate`] with room for `capacity`. Called alone.
    fn move_to(&self, data: *mut Any, capacity: usize) {
        // SAFETY: the list lives while `self` does, and no other thread is at it: callers are alone.
        let body = unsafe { &mut (*self.seq()).body };
        let old = std::mem::replace(&mut body.data, data);
        let free = body.data_deleter.replace(free_data);
        body.capacity = capacity as i64;
        if old.is_null() {
            return;
        }
        // SAFETY: `size` elements lie at the old address (OBJ-03), and there is room for more than the list had room for
        // before.
        unsafe { std::ptr::copy_nonoverlapping(old, data, body.size as usize) };
        if let Some(free) = free {
            // SAFETY: the deleter that was left for the old memory (OBJ-03), whose elements have moved away.
            unsafe { free(old.cast()) };
        }
    }

    /// Makes room for `extra` more elements, of at least twice what there is, so that appending one by one copies each a few times.
    /// Called alone.
    fn grow_for(&self, extra: usize) {
        let count = self.items().len();
        let capacity = self.capacity();
        let needed = count.saturating_add(extra);
        if needed > capacity {
            self.make_room(needed.max(capacity.saturating_mul(2)).max(LIST_ROOM));
        }
    }

    /// Appends one element. Grows to twice the room, at least to 4 elements (OBJ-03).
    #[inline]
    pub fn push(&self, value: Any) {
        let guard = lock(self.seq());
        // SAFETY: the list lives while `self` does, and this thread is alone with it.
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

    /// [`List::push`] into a list that has no room for one more.
    #[cold]
    #[inline(never)]
    fn push_beyond(&self, value: Any) {
        // Outside of what runs alone, so that a panic for want of room drops it outside as well.
        let mut value = value;
        self.alone(|| {
            self.grow_for(1);
            let end = self.cell(self.items().len());
            // SAFETY: `grow_for` made room for one more behind the elements.
            unsafe { end.write(std::mem::take(&mut value)) };
            // SAFETY: the list lives while `self` does, and this thread is alone with it; the element is written.
            unsafe { (*self.seq()).body.size += 1 };
        });
    }

    /// Inserts `items` before element `at`, which may be the end.
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04 for a position beyond the end; the list is as it was.
    pub fn insert(&self, at: i64, items: Vec<Any>) -> Result<()> {
        let mut items = items;
        self.alone(|| self.put_in(at, &mut items))
    }

    /// [`List::insert`], called alone.
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
        // SAFETY: `grow_for` made room for as many more elements; `count - at` of them lie from `at` on and move up.
        unsafe { std::ptr::copy(gap, tail, count - at) };
        // SAFETY: the gap has room for as many elements, and what is there has moved up.
        unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), gap, extra) };
        // SAFETY: no items is fewer; those that were there are the list's now.
        unsafe { items.set_len(0) };
        // SAFETY: the list lives while `self` does, and callers are alone with it; so many elements are written.
        unsafe { (*self.seq()).body.size += extra as i64 };
        Ok(())
    }

    /// Removes elements `start..stop` and returns them.
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04 for a range that is not in the list, which is as it was.
    pub fn remove(&self, start: i64, stop: i64) -> Result<Vec<Any>> {
        self.alone(|| self.take_out(start, stop))
    }

    /// [`List::remove`], called alone.
    fn take_out(&self, start: i64, stop: i64) -> Result<Vec<Any>> {
        let count = self.items().len();
        // OBJ-04: an empty range is no access, wherever it lies, so it is not held to the list.
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
        // SAFETY: `gone` elements lie from `first` on, and the vector has room for them.
        unsafe { std::ptr::copy_nonoverlapping(from, removed.as_mut_ptr(), gone) };
        // SAFETY: so many have just been written.
        unsafe { removed.set_len(gone) };
        // SAFETY: the rest of the `count` elements moves down to where those were.
        unsafe { std::ptr::copy(tail, from, count - first - gone) };
        // SAFETY: the list lives while `self` does, and callers are alone with it; so many elements have moved out.
        unsafe { (*self.seq()).body.size -= gone as i64 };
        Ok(removed)
    }

    /// Puts `items` in the place of elements `start..stop` and returns those.
    pub(crate) fn replace_slice(&self, start: i64, stop: i64, items: Vec<Any>) -> Result<Vec<Any>> {
        let mut items = items;
        self.alone(|| {
            // Of an empty range, the only one that may lie outside, nothing is taken that an error would drop in here.
            let gone = self.take_out(start, stop)?;
            // OBJ-04: nothing in the place of nothing changes no element, so no index is looked at, as in every release.
            if gone.is_empty() && items.is_empty() {
                return Ok(gone);
            }
            self.put_in(start, &mut items).map(|()| gone)
        })
    }

    /// Reverses the order of the elements, in place.
    pub fn reverse(&self) {
        self.alone(|| {
            let count = self.items().len();
            if count > 1 {
                // SAFETY: `count` elements lie at the address (OBJ-03), and this thread is alone with the list.
                unsafe { std::slice::from_raw_parts_mut(self.cell(0), count) }.reverse();
            }
        });
    }

    /// Removes all elements; the room stays. They are dropped when no other thread waits for the list any more.
    pub fn clear(&self) {
        let gone = self.alone(|| {
            let count = self.items().len() as i64;
            self.take_out(0, count)
        });
        drop(gone);
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
