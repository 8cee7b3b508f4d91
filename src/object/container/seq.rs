//! Sequences: [`Array`] (copied when changed) and [`List`] (changed in place).
//!
//! | bytes   | field                                                   | rule   |
//! |---------|---------------------------------------------------------|--------|
//! | 24..32  | address of the first element                            | OBJ-03 |
//! | 32..40  | number of elements                                      | OBJ-03 |
//! | 40..48  | room for elements                                       | OBJ-03 |
//! | 48..56  | frees the elements' memory; null when it is the object's | OBJ-03 |
//! | 56..    | elements of an array, 16 bytes each                     | OBJ-03 |

use super::turnstile::{alone, turn};
use crate::function::{Error, Result, lent};
use crate::object::OBJ_04;
use crate::value::header::{Header, ObjectRef, Ref, end_nested, static_object};
use crate::value::heap::{allocate, release, try_allocate};
use crate::value::{Any, AnyView, Argument, Schema, VAL_10, index};
use std::borrow::Cow;
use std::ffi::c_void;

/// The fixed part of both sequences.
#[repr(C)]
pub(crate) struct SeqObj {
    header: Header,
    body: SeqBody,
}

/// What changes with the elements. Apart from the header, whose counts others change at any time.
#[repr(C)]
struct SeqBody {
    data: *mut Any,
    size: i64,
    capacity: i64,
    data_deleter: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
}

const _: () = assert!(size_of::<SeqObj>() == 56);

/// An array object.
#[repr(transparent)]
pub(crate) struct ArrayObj(SeqObj);
/// A list object.
#[repr(transparent)]
pub(crate) struct ListObj(SeqObj);

static_object!(ArrayObj, index::ARRAY);
static_object!(ListObj, index::LIST);

impl SeqObj {
    /// More elements than any memory holds.
    const TOO_MANY: usize = isize::MAX as usize / size_of::<Any>();

    /// The elements, for as long as nothing changes the sequence.
    fn items(&self) -> &[Any] {
        let SeqBody { data, size, .. } = self.body;
        let count = usize::try_from(size).unwrap_or(0);
        if count == 0 || data.is_null() {
            return &[];
        }
        // SAFETY: `size` elements lie at the address of a sequence (OBJ-03), and nothing changes it while they are borrowed: an
        // array never, a list while a caller is alone with it.
        unsafe { std::slice::from_raw_parts(data, count) }
    }
}

/// Deleter of both: the elements, their memory, the object.
unsafe extern "C-unwind" fn delete(object: *mut Header, flags: i32) {
    // SAFETY: deleters are called as VAL-05 says, which is the contract of `end`.
    unsafe { end_nested(object, flags, end) }
}

/// The work of [`delete`].
///
/// # Safety
/// As a deleter is called (VAL-05).
unsafe extern "C-unwind" fn end(object: *mut Header, flags: i32) {
    let seq = object.cast::<SeqObj>();
    if flags & crate::value::header::DELETE_STRONG != 0 {
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
    if flags & crate::value::header::DELETE_WEAK != 0 {
        // SAFETY: the last weak reference is gone (VAL-05), and sequences with this deleter are made with `allocate`.
        unsafe { release(object.cast()) }
    }
}

unsafe extern "C-unwind" fn free_data(data: *mut c_void) {
    // SAFETY: element memory of lists is made with `allocate`, or with C++'s plain `new`, which is the same allocator.
    unsafe { release(data.cast()) }
}

/// An immutable sequence; changing it makes a new one where it has another holder.
#[derive(Clone)]
#[repr(transparent)]
pub struct Array(Ref<ArrayObj>);

impl Array {
    /// An array of `items`. Panics when they say that there are more than memory can hold, as [`Vec`] does.
    pub fn new(items: impl IntoIterator<Item = Any, IntoIter: ExactSizeIterator>) -> Array {
        let items = items.into_iter();
        let count = countable(items.len());
        let array = Array::with_room(count);
        let seq = array.0.as_ptr().cast::<SeqObj>();
        // SAFETY: a live array, which is fresh: no one else has seen it.
        let data = unsafe { (*seq).body.data };
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

    /// An array of owned copies of `items`.
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

    /// The elements.
    #[inline]
    pub fn as_slice(&self) -> &[Any] {
        self.0.0.items()
    }

    fn count(&self) -> usize {
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

    /// The object.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }
}

/// `count`, if memory can hold so many elements.
#[inline]
fn countable(count: usize) -> usize {
    if count >= SeqObj::TOO_MANY {
        overflow();
    }
    count
}

#[cold]
#[inline(never)]
fn overflow() -> ! {
    panic!("a sequence of more elements than memory can hold");
}

/// The address part of an element access.
fn element(items: &[Any], at: i64) -> Result {
    usize::try_from(at)
        .ok()
        .and_then(|at| items.get(at))
        .cloned()
        .ok_or_else(|| out_of_bounds(format_args!("Index {at}"), items.len()))
}

#[cold]
fn out_of_bounds(what: impl std::fmt::Display, bounds: impl std::fmt::Display) -> Error {
    let message = format!("{what} out of bounds {bounds}");
    Error::said(
        "IndexError",
        OBJ_04.refused(crate::rule::Kind::Missing, message),
    )
}

/// A list has room for as many elements from the start (OBJ-03).
const LIST_ROOM: usize = 4;

/// A mutable sequence, shared by all who hold it, on any thread: each operation happens at once for all others.
#[derive(Clone)]
#[repr(transparent)]
pub struct List(Ref<ListObj>);

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
            data_deleter: Some(free_data),
        };
        let header = Header::new(index::LIST, delete);
        // SAFETY: the block holds the head, and is aligned for any object.
        unsafe { object.cast::<SeqObj>().write(SeqObj { header, body }) };
        // SAFETY: a fresh object has one reference, which is this one.
        List(unsafe { Ref::from_raw(object.cast()) })
    }

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
        alone(self.0.as_object().as_ptr(), work)
    }

    /// The elements as they are now, each counted once more: the list may change while they are looked at.
    pub fn to_vec(&self) -> Vec<Any> {
        self.alone(|| self.items().to_vec())
    }

    /// The elements. Called alone, and not kept beyond that.
    #[inline]
    fn items(&self) -> &[Any] {
        self.0.0.items()
    }

    /// Number of elements now.
    fn count(&self) -> usize {
        self.alone(|| self.items().len())
    }

    /// Element `at`, or an IndexError.
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04.
    #[inline(always)]
    pub fn at(&self, at: i64) -> Result {
        let turn = turn(self.seq());
        if let Some(cell) = self.cell_of(at) {
            // SAFETY: an element of the list, with which this thread is alone.
            let found = unsafe { &*cell }.clone();
            drop(turn);
            return Ok(found);
        }
        drop(turn);
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

    /// Replaces element `at`.
    ///
    /// # Errors
    ///
    /// An IndexError with OBJ-04; the list is as it was.
    #[inline]
    pub fn set(&self, at: i64, value: Any) -> Result<()> {
        // The old element, or `value`, is dropped when this thread is not at the list.
        let turn = turn(self.seq());
        if let Some(cell) = self.cell_of(at) {
            // SAFETY: an element of the list, with which this thread is alone.
            let old = unsafe { cell.replace(value) };
            drop(turn);
            drop(old);
            return Ok(());
        }
        drop(turn);
        Err(out_of_bounds(format_args!("Index {at}"), self.count()))
    }

    /// Room for elements; what another library wrote there may be anything. Called alone.
    fn capacity(&self) -> usize {
        // SAFETY: the list lives while `self` does, and no other thread is at it: callers are alone.
        usize::try_from(unsafe { (*self.seq()).body.capacity }).unwrap_or(0)
    }

    /// Makes room for `capacity` elements; the InternalError of the reference where there is no such memory, and the list
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
                return Err(Error::new("InternalError", "std::bad_alloc"));
            };
            self.move_to(data.cast(), capacity);
            Ok(())
        })
    }

    /// Makes room for `capacity` elements. Panics when memory cannot hold as many and ends the process when there is no
    /// such memory, as [`Vec`] does; [`List::try_reserve`] does neither.
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

    /// Called alone.
    fn grow_for(&self, extra: usize) {
        let count = self.items().len();
        let capacity = self.capacity();
        let needed = count.saturating_add(extra);
        if needed > capacity {
            self.make_room(needed.max(capacity.saturating_mul(2)).max(LIST_ROOM));
        }
    }

    /// Appends.
    #[inline]
    pub fn push(&self, value: Any) {
        let turn = turn(self.seq());
        // SAFETY: the list lives while `self` does, and this thread is alone with it.
        let body = unsafe { &mut (*self.seq()).body };
        if body.size >= 0 && body.size < body.capacity && !body.data.is_null() {
            // SAFETY: there is room for more than `size` elements at the address (OBJ-03).
            unsafe { body.data.wrapping_add(body.size as usize).write(value) };
            body.size += 1;
            return;
        }
        drop(turn);
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
            self.put_in(start, &mut items).map(|()| gone)
        })
    }

    /// Turns the order round.
    pub fn reverse(&self) {
        self.alone(|| {
            let count = self.items().len();
            if count > 1 {
                // SAFETY: `count` elements lie at the address (OBJ-03), and this thread is alone with the list.
                unsafe { std::slice::from_raw_parts_mut(self.cell(0), count) }.reverse();
            }
        });
    }

    /// Removes everything.
    pub fn clear(&self) {
        let gone = self.alone(|| {
            let count = self.items().len() as i64;
            self.take_out(0, count)
        });
        drop(gone);
    }

    /// The object.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }

    /// The object, borrowed.
    pub const fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }
}

macro_rules! sequence {
    ($type:ident, $object:ident, $schema:expr, $other:ident) => {
        impl From<$type> for Any {
            fn from(value: $type) -> Any {
                value.0.into()
            }
        }

        impl<'a> From<&'a $type> for AnyView<'a> {
            fn from(value: &'a $type) -> AnyView<'a> {
                AnyView::from(value.as_object())
            }
        }

        crate::value::try_from_any!($type);

        impl Argument for $type {
            const RULE: crate::rule::Rule = VAL_10;

            fn schema() -> Schema {
                $schema
            }

            #[inline]
            fn try_from_view(view: AnyView<'_>) -> Option<$type> {
                match Ref::<$object>::try_from_view(view) {
                    Some(found) => Some($type(found)),
                    // The other sequence converts by copying.
                    None => elements_of::<$other>(view).map(|items| $type::new(items.into_owned())),
                }
            }
        }

        impl $type {
            /// The sequence that `object` is, or `object` back.
            ///
            /// # Errors
            ///
            /// The object itself when it is of another type.
            pub fn from_object(object: ObjectRef) -> std::result::Result<$type, ObjectRef> {
                object.downcast().map($type)
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                self.count()
            }

            /// Whether there is none.
            pub fn is_empty(&self) -> bool {
                self.count() == 0
            }
        }

        impl FromIterator<Any> for $type {
            fn from_iter<I: IntoIterator<Item = Any>>(items: I) -> $type {
                // One by one: collecting is a copy of more code for each type of iterator.
                let mut all = Vec::new();
                for item in items {
                    all.push(item);
                }
                $type::new(all)
            }
        }
    };
}

sequence!(Array, ArrayObj, Schema::plain("ffi.Array"), ListObj);
// As C++ declares a list that a function changes.
sequence!(
    List,
    ListObj,
    Schema::with("ffi.List", &[Any::schema]),
    ArrayObj
);
lent!(Array, ArrayObj, index::ARRAY);
lent!(List, ListObj, index::LIST);

fn elements_of<T: crate::value::Object>(view: AnyView<'_>) -> Option<Cow<'_, [Any]>> {
    if !T::matches(view.type_index()) {
        return None;
    }
    sequence_of(view)
}

/// The elements of a sequence of either kind: those of an array are borrowed, those of a list, which may change meanwhile, are
/// as they were now.
pub fn sequence_of<'a>(view: AnyView<'a>) -> Option<Cow<'a, [Any]>> {
    with_items(view, |items| match view.type_index() {
        index::LIST => Cow::Owned(items.to_vec()),
        _ => Cow::Borrowed(items),
    })
}

/// Number of elements of a sequence of either kind.
pub(crate) fn item_count(view: AnyView<'_>) -> Option<usize> {
    with_items(view, <[Any]>::len)
}

/// What `work` makes of the elements of a sequence of either kind. It runs alone at a list, whose elements it does not keep.
fn with_items<'a, R>(view: AnyView<'a>, work: impl FnOnce(&'a [Any]) -> R) -> Option<R> {
    let seq = view.as_raw().ptr().cast::<SeqObj>();
    // SAFETY: only called where the index is a sequence's: such an object begins with a `SeqObj` (OBJ-03) and lives for `'a`.
    let items = || unsafe { &*seq }.items();
    match view.type_index() {
        index::ARRAY => Some(work(items())),
        index::LIST => Some(alone(seq, || work(items()))),
        _ => None,
    }
}

/// Where element `at` of a sequence of either kind lies, for code that changes it in place. No reference to the elements
/// may be in use meanwhile.
pub(crate) fn element_cell(view: AnyView<'_>, at: usize) -> Option<*mut Any> {
    let count = item_count(view)?;
    let seq = view.as_raw().ptr().cast::<SeqObj>();
    // SAFETY: `item_count` finds a number for sequences alone, which begin with a `SeqObj` (OBJ-03).
    (at < count).then(|| unsafe { (*seq).body.data }.wrapping_add(at))
}

/// Replaces element `at` of a sequence of either kind, an array's too, and gives the old one; None past the end. For
/// those who hold the sequence alone, or know that nothing reads it meanwhile.
#[cfg(feature = "frontend")]
pub(crate) fn swap_element(object: &ObjectRef, at: usize, value: Any) -> Option<Any> {
    // What it holds afterwards is dropped outside of what runs alone.
    let mut value = value;
    let view = AnyView::from(object);
    let is_inside = with_items(view, |items| {
        let seq = object.as_ptr().cast::<SeqObj>();
        let is_inside = at < items.len();
        if is_inside {
            // SAFETY: `with_items` calls this for sequences alone, which begin with a `SeqObj` (OBJ-03).
            let cell = unsafe { (*seq).body.data }.wrapping_add(at);
            // SAFETY: an element, of a list that this thread is alone with, or of an array that the caller holds alone.
            value = unsafe { cell.replace(std::mem::take(&mut value)) };
        }
        is_inside
    })?;
    is_inside.then_some(value)
}
