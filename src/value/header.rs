//! The object header and what counts references.
//!
//! | bytes   | field                                                        | rule   |
//! |---------|--------------------------------------------------------------|--------|
//! | 0..8    | strong count in the low 32 bits, weak count in the high 32   | VAL-04 |
//! | 8..12   | type index, i32                                              | VAL-04 |
//! | 12..16  | padding, zero                                                | VAL-04 |
//! | 16..24  | deleter: `fn(object, flags)`; may be null                    | VAL-05 |

use super::index;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// What ends an object: `flags` holds [`DELETE_STRONG`], [`DELETE_WEAK`] or both.
pub(crate) type Deleter = unsafe extern "C-unwind" fn(object: *mut Header, flags: i32);

/// Deleter flag: the last strong reference went, so run the destructor.
pub(crate) const DELETE_STRONG: i32 = 1;
/// Deleter flag: the last weak reference went, so free the memory.
pub(crate) const DELETE_WEAK: i32 = 2;
const DELETE_BOTH: i32 = DELETE_STRONG | DELETE_WEAK;

const WEAK_ONE: u64 = 1 << 32;
/// A fresh object: one strong reference, and the weak one that all strong ones share.
pub(crate) const FRESH: u64 = WEAK_ONE | 1;

/// The first 24 bytes of every object (`TVMFFIObject`).
#[repr(C)]
pub struct Header {
    /// Strong count below, weak count above bit 32.
    pub(crate) combined: AtomicU64,
    /// Index of the object's type.
    pub(crate) type_index: i32,
    /// Zero.
    pub(crate) padding: u32,
    /// Ends the object.
    pub(crate) deleter: Option<Deleter>,
}

const _: () = assert!(size_of::<Header>() == 24);
const _: () = assert!(std::mem::offset_of!(Header, type_index) == 8);
const _: () = assert!(std::mem::offset_of!(Header, deleter) == 16);

impl Header {
    /// The header of a fresh object.
    pub fn new(type_index: i32, deleter: Deleter) -> Header {
        Header {
            combined: AtomicU64::new(FRESH),
            type_index,
            padding: 0,
            deleter: Some(deleter),
        }
    }

    /// How many strong references there are.
    pub fn strong_count(&self) -> u32 {
        self.combined.load(Ordering::Relaxed) as u32
    }

    /// How many weak references there are, the one shared by all strong ones included.
    #[cfg(feature = "suite")]
    pub(crate) fn weak_count(&self) -> u32 {
        (self.combined.load(Ordering::Relaxed) >> 32) as u32
    }
}

/// Adds a strong reference. Null is allowed and does nothing.
///
/// # Safety
/// A non-null `object` is alive.
#[inline]
pub(crate) unsafe fn inc_ref(object: *mut Header) {
    if let Some(object) = NonNull::new(object) {
        // SAFETY: alive, by this contract. Relaxed is enough: the holder of a reference already synchronised to get it.
        unsafe { object.as_ref() }
            .combined
            .fetch_add(1, Ordering::Relaxed);
    }
}

/// Drops a strong reference and ends the object when it was the last (VAL-05). Null does nothing.
///
/// # Safety
/// A non-null `object` is alive and the caller owns one reference, which is gone afterwards.
#[inline]
pub(crate) unsafe fn dec_ref(object: *mut Header) {
    if object.is_null() {
        return;
    }
    // SAFETY: alive until this reference is dropped, by this contract.
    let before = unsafe { &(*object).combined }.fetch_sub(1, Ordering::Release);
    if before as u32 == 1 {
        // SAFETY: the strong count is now zero and we hold the implicit weak reference.
        unsafe { last_strong(object, before) }
    }
}

/// Orders everything that other holders did before this, and answers how the object ends. A load, rather than a fence, is
/// what a race detector understands.
///
/// # Safety
/// The memory of `object` is there.
unsafe fn deleter_of(object: *mut Header) -> Option<Deleter> {
    // SAFETY: the memory is there, by this contract.
    unsafe { &(*object).combined }.load(Ordering::Acquire);
    // SAFETY: as for the counts.
    unsafe { (*object).deleter }
}

/// # Safety
/// The strong count of `object` has just become zero, from counts of `before`, and the caller holds the weak reference that
/// the strong ones shared.
#[cold]
#[inline(never)]
unsafe fn last_strong(object: *mut Header, before: u64) {
    // SAFETY: the memory stays until that weak reference is dropped below.
    let deleter = unsafe { deleter_of(object) };
    if before == FRESH {
        if let Some(delete) = deleter {
            // SAFETY: nothing else refers to the object, strongly or weakly.
            unsafe { delete(object, DELETE_STRONG | DELETE_WEAK) }
        }
        return;
    }
    if let Some(delete) = deleter {
        // SAFETY: no strong reference is left; weak ones only look at the counts.
        unsafe { delete(object, DELETE_STRONG) }
    }
    // SAFETY: drops the weak reference that the strong ones shared.
    unsafe { dec_weak(object) }
}

/// Drops a weak reference and frees the memory when it was the last.
///
/// # Safety
/// The caller owns one weak reference, which is gone afterwards.
pub unsafe fn dec_weak(object: *mut Header) {
    // SAFETY: the memory is there while the weak reference of this contract is.
    let before = unsafe { &(*object).combined }.fetch_sub(WEAK_ONE, Ordering::Release);
    if before >> 32 != 1 {
        return;
    }
    // SAFETY: the memory stays until the deleter frees it.
    let deleter = unsafe { deleter_of(object) };
    if let Some(delete) = deleter {
        // SAFETY: nothing refers to the object any more.
        unsafe { delete(object, DELETE_WEAK) }
    }
}

/// How many objects end inside one another before the rest waits its turn.
const NESTED: u32 = 64;

/// An object whose end waits, and how it ends.
struct Waiting(*mut Header, i32, Deleter);

/// The objects that end on a thread.
struct Ending {
    /// How many end inside one another.
    depth: Cell<u32>,
    /// Whether some wait.
    queued: Cell<bool>,
}

thread_local! {
    static ENDING: Ending = const {
        Ending {
            depth: Cell::new(0),
            queued: Cell::new(false),
        }
    };
    static WAITING: RefCell<Vec<Waiting>> = const { RefCell::new(Vec::new()) };
}

/// One level of objects that end inside one another, also when a destructor panics.
struct Level<'a>(&'a Cell<u32>, u32);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Ends an object by `body`, now or, below [`NESTED`] others that are ending on this thread, once the last of those has ended:
/// a chain of any length costs no stack. For deleters of objects that refer to others.
///
/// # Safety
/// `body` is a deleter's work on `object` with `flags`, as the header's rules call it (VAL-05): once for each flag.
#[inline]
pub(crate) unsafe fn end_nested(object: *mut Header, flags: i32, body: Deleter) {
    // One look for the thread's own memory: in a shared library that is a call.
    ENDING.with(|ending| {
        let depth = ending.depth.get();
        if depth >= NESTED {
            // SAFETY: this function's contract.
            return unsafe { wait(ending, object, flags, body) };
        }
        let level = Level(&ending.depth, depth);
        ending.depth.set(depth + 1);
        // SAFETY: `body` and `flags` are as this function's contract says.
        unsafe { body(object, flags) };
        if ending.queued.get() {
            end_waiting(ending);
        }
        drop(level);
    });
}

/// # Safety
/// As [`end_nested`].
#[cold]
#[inline(never)]
unsafe fn wait(ending: &Ending, object: *mut Header, flags: i32, body: Deleter) {
    if flags & DELETE_WEAK == 0 {
        // Who calls a deleter without DELETE_WEAK drops the shared weak reference next; this one keeps the memory.
        // SAFETY: that shared reference is still counted.
        unsafe { inc_weak(object) };
    }
    let queued =
        WAITING.try_with(|waiting| waiting.borrow_mut().push(Waiting(object, flags, body)));
    ending.queued.set(true);
    if queued.is_err() {
        // The thread is ending and has no queue any more.
        // SAFETY: the object's end was not queued, so this is the one call for it.
        unsafe { end_one(Waiting(object, flags, body)) }
    }
}

/// # Safety
/// `waiting` was made by [`wait`] and is ended once.
unsafe fn end_one(Waiting(object, flags, body): Waiting) {
    // SAFETY: the one call of the deleter for these flags.
    unsafe { body(object, flags) };
    if flags & DELETE_WEAK == 0 {
        // SAFETY: the weak reference that `wait` counted.
        unsafe { dec_weak(object) }
    }
}

#[cold]
fn end_waiting(ending: &Ending) {
    while let Ok(Some(next)) = WAITING.try_with(|waiting| waiting.borrow_mut().pop()) {
        // SAFETY: what waits was put there by `wait`, and is taken out once.
        unsafe { end_one(next) }
    }
    ending.queued.set(false);
}

/// Turns a weak reference into a strong one, unless the object has ended; the weak one stays.
///
/// # Safety
/// The caller owns a weak reference of `object`.
pub unsafe fn upgrade(object: *mut Header) -> Option<ObjectRef> {
    // SAFETY: the memory is there while the weak reference of this contract is.
    let counts = unsafe { &(*object).combined };
    let mut seen = counts.load(Ordering::Relaxed);
    while seen as u32 != 0 {
        match counts.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
            // SAFETY: the strong reference just added is ours.
            Ok(_) => return Some(unsafe { ObjectRef::from_raw(object) }),
            Err(now) => seen = now,
        }
    }
    None
}

/// Adds a weak reference.
///
/// # Safety
/// `object` is alive, or the caller holds a weak reference.
pub unsafe fn inc_weak(object: *mut Header) {
    // SAFETY: the memory is there while a reference of either kind is, by this contract.
    unsafe { &(*object).combined }.fetch_add(WEAK_ONE, Ordering::Relaxed);
}

/// A counted reference of any object. One non-null pointer wide.
#[repr(transparent)]
pub struct ObjectRef(NonNull<Header>);

// SAFETY: counts are atomic, and any thread may look at an object and drop it (the contract of `Object`): the types of this
// crate that change in place, such as lists and dicts, order what threads do to one of them.
unsafe impl Send for ObjectRef {}
// SAFETY: counts are atomic, and any thread may look at an object and drop it (the contract of `Object`): the types of this
// crate that change in place, such as lists and dicts, order what threads do to one of them.
unsafe impl Sync for ObjectRef {}

impl ObjectRef {
    /// Takes over a reference.
    ///
    /// # Safety
    /// `object` is non-null and alive, and one of its references belongs to the caller.
    #[inline]
    pub const unsafe fn from_raw(object: *mut Header) -> ObjectRef {
        // SAFETY: non-null, by this contract.
        ObjectRef(unsafe { NonNull::new_unchecked(object) })
    }

    /// Takes over a reference unless `object` is null.
    ///
    /// # Safety
    /// As [`ObjectRef::from_raw`] if not null.
    #[inline]
    pub unsafe fn from_nullable(object: *mut Header) -> Option<ObjectRef> {
        NonNull::new(object).map(ObjectRef)
    }

    /// Counts a new reference of a borrowed object.
    ///
    /// # Safety
    /// `object` is non-null and alive.
    #[inline]
    pub unsafe fn retain(object: *mut Header) -> ObjectRef {
        // SAFETY: alive, by this contract.
        unsafe { inc_ref(object) };
        // SAFETY: the reference just added is ours.
        unsafe { ObjectRef::from_raw(object) }
    }

    /// Gives the reference away.
    #[inline]
    pub const fn into_raw(self) -> *mut Header {
        let ptr = self.0.as_ptr();
        std::mem::forget(self);
        ptr
    }

    /// The address of the header; the reference stays here.
    #[inline]
    pub const fn as_ptr(&self) -> *mut Header {
        self.0.as_ptr()
    }

    /// The header.
    #[inline]
    pub const fn header(&self) -> &Header {
        // SAFETY: alive while `self` is.
        unsafe { self.0.as_ref() }
    }

    /// Index of the object's own type.
    #[inline]
    pub const fn type_index(&self) -> i32 {
        self.header().type_index
    }

    /// Whether this is the only strong reference, so that the holder may change the object in place.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.header().combined.load(Ordering::Acquire) as u32 == 1
    }

    /// Whether the object is an instance of `T` or of a type derived from it.
    #[inline]
    pub fn is<T: Object>(&self) -> bool {
        T::matches(self.type_index())
    }

    /// A typed reference, or `self` back.
    #[inline]
    pub(crate) fn downcast<T: Object>(self) -> Result<Ref<T>, ObjectRef> {
        if self.is::<T>() {
            Ok(Ref(self, PhantomData))
        } else {
            Err(self)
        }
    }

    /// The object as a `T`, borrowed.
    #[inline]
    pub fn get<T: Object>(&self) -> Option<&T> {
        // SAFETY: the type index says that the object starts with a `T` (the contract of `Object`).
        self.is::<T>()
            .then(|| unsafe { &*self.as_ptr().cast::<T>() })
    }
}

impl Clone for ObjectRef {
    #[inline]
    fn clone(&self) -> ObjectRef {
        // SAFETY: alive while `self` is.
        unsafe { ObjectRef::retain(self.as_ptr()) }
    }
}

impl Drop for ObjectRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns one reference.
        unsafe { dec_ref(self.0.as_ptr()) }
    }
}

/// A Rust type that is an object: `#[repr(C)]` with [`Header`] as its first field. It is dropped elsewhere than it lay when
/// weak references outlive it.
///
/// # Safety
/// * The layout is as said, and every object whose type index [`Object::matches`] really starts with this type.
/// * Any thread may look at a value of this type while others do, and drop it: references of objects go between threads.
pub unsafe trait Object: Sized + 'static {
    /// The index under which new objects of this type are made.
    fn type_index() -> i32;

    /// Whether an object with `type_index` is an instance, derived types included.
    #[inline]
    fn matches(type_index: i32) -> bool {
        super::types::is_instance(type_index, Self::type_index())
    }
}

/// A counted reference of an object known to be a `T`.
#[repr(transparent)]
pub struct Ref<T: Object>(ObjectRef, PhantomData<T>);

impl<T: Object> Ref<T> {
    /// What ends an object of [`Ref::new`].
    const DELETER: Deleter = match std::mem::needs_drop::<T>() {
        true => delete_boxed::<T>,
        false => end_boxed::<T>,
    };

    /// Puts `value` on the heap. Its header is overwritten with that of a fresh `T`.
    pub fn new(value: T) -> Ref<T> {
        let object = Box::into_raw(Box::new(value)).cast::<Header>();
        // SAFETY: `T` starts with a header (the contract of `Object`).
        unsafe { object.write(Header::new(T::type_index(), Self::DELETER)) };
        // SAFETY: a whole object, whose only reference this is; its deleter, of the same type, frees the box.
        let object = unsafe { ObjectRef::from_raw(object) };
        Ref(object, PhantomData)
    }

    /// Takes over a reference.
    ///
    /// # Safety
    /// As [`ObjectRef::from_raw`], and the object starts with a `T`.
    #[inline]
    pub const unsafe fn from_raw(object: *mut Header) -> Ref<T> {
        // SAFETY: the contract of `ObjectRef::from_raw` is part of this one.
        Ref(unsafe { ObjectRef::from_raw(object) }, PhantomData)
    }

    /// A new reference of `object`, if it is a `T`.
    #[inline]
    pub(crate) fn of(object: &ObjectRef) -> Option<Ref<T>> {
        object.is::<T>().then(|| Ref(object.clone(), PhantomData))
    }

    /// `object` as what [`Ref::new`] made of a `T`, which its deleter shows. `None` for one that it did not make, and perhaps for
    /// one that another copy of this function made.
    pub(crate) fn made(object: &ObjectRef) -> Option<&T> {
        let deleter = object.header().deleter?;
        let own = std::ptr::fn_addr_eq(deleter, Self::DELETER);
        // SAFETY: `Ref::new` alone gives an object this deleter, and it made it of a `T`; the index excludes another type whose
        // deleter the linker found to be the same code.
        (own && object.type_index() == T::type_index())
            .then(|| unsafe { &*object.as_ptr().cast::<T>() })
    }

    /// The untyped reference.
    #[inline]
    pub fn into_object(self) -> ObjectRef {
        self.0
    }

    /// The untyped reference, borrowed.
    #[inline]
    pub const fn as_object(&self) -> &ObjectRef {
        &self.0
    }

    /// The address of the object.
    #[inline]
    pub const fn as_ptr(&self) -> *mut T {
        self.0.as_ptr().cast()
    }
}

/// Deleter of objects made by [`Ref::new`] that refer to others.
unsafe extern "C-unwind" fn delete_boxed<T: Object>(object: *mut Header, flags: i32) {
    // SAFETY: the caller of a deleter follows VAL-05, which is the contract of `end_boxed` too.
    unsafe { end_nested(object, flags, end_boxed::<T>) }
}

/// The work of [`delete_boxed`], and the deleter of objects of [`Ref::new`] that refer to no others.
///
/// # Safety
/// As a deleter is called (VAL-05), for an object of [`Ref::new`].
unsafe extern "C-unwind" fn end_boxed<T: Object>(object: *mut Header, flags: i32) {
    match flags & DELETE_BOTH {
        // SAFETY: called once when the last strong reference went, and there is no weak one.
        DELETE_BOTH => unsafe {
            std::ptr::drop_in_place(object.cast::<T>());
        },
        // SAFETY: called once when the last strong reference went.
        DELETE_STRONG => unsafe { drop_copy(object.cast::<T>()) },
        _ => {}
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: called once when nothing refers to the memory; the contents were dropped before.
        drop(unsafe { Box::from_raw(object.cast::<std::mem::ManuallyDrop<T>>()) });
    }
}

/// Ends the contents of an object whose counts weak references still look at: `&mut T` in its destructor must not cover
/// those counts, so the contents move to a copy with a header of its own.
///
/// # Safety
/// No strong reference is left, and the contents are not used again.
#[cold]
unsafe fn drop_copy<T: Object>(object: *mut T) {
    let mut copy = MaybeUninit::<T>::uninit();
    let head = size_of::<Header>();
    // SAFETY: an object starts with its header, whose type index never changes.
    let type_index = unsafe { (*object.cast::<Header>()).type_index };
    let header = Header::new(type_index, Ref::<T>::DELETER);
    // SAFETY: the copy starts with a header.
    unsafe { copy.as_mut_ptr().cast::<Header>().write(header) };
    let from = object.wrapping_byte_add(head).cast::<u8>();
    let to = copy.as_mut_ptr().wrapping_byte_add(head).cast::<u8>();
    // SAFETY: the rest of the object, which is ours alone, by this contract.
    unsafe { std::ptr::copy_nonoverlapping(from, to, size_of::<T>() - head) };
    // SAFETY: header and rest are written, and the original is not dropped, by this contract.
    unsafe { copy.assume_init_drop() }
}

impl<T: Object> std::ops::Deref for Ref<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a `Ref<T>` only exists for an object that starts with a `T`.
        unsafe { &*self.as_ptr() }
    }
}

impl<T: Object> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Ref<T> {
        Ref(self.0.clone(), PhantomData)
    }
}

impl<T: Object> From<Ref<T>> for ObjectRef {
    #[inline]
    fn from(object: Ref<T>) -> ObjectRef {
        object.0
    }
}

impl<T: Object> From<Ref<T>> for super::Any {
    #[inline]
    fn from(object: Ref<T>) -> super::Any {
        object.0.into()
    }
}

/// Declares the Rust view of an object type with a fixed index.
macro_rules! static_object {
    ($type:ty, $index:expr) => {
        // SAFETY: `#[repr(C)]` with the header first, and fixed indices of this family are final or share the layout.
        unsafe impl $crate::value::Object for $type {
            #[inline]
            fn type_index() -> i32 {
                $index
            }

            #[inline]
            fn matches(type_index: i32) -> bool {
                type_index == $index
            }
        }
    };
}
pub(crate) use static_object;

/// The root of all objects: only the header.
#[repr(C)]
pub(crate) struct BareObject(Header);

// SAFETY: every object starts with a header.
unsafe impl Object for BareObject {
    fn type_index() -> i32 {
        index::OBJECT
    }
}

impl BareObject {
    /// A bare object, useful as a sentinel that is only equal to itself.
    #[allow(clippy::new_ret_no_self)]
    pub(crate) fn new() -> ObjectRef {
        let header = Header::new(index::OBJECT, Ref::<BareObject>::DELETER);
        Ref::new(BareObject(header)).into_object()
    }
}
