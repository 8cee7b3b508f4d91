//! References to objects: of any type ([`ObjectRef`]) or of a known type ([`Ref`]).

use super::{
    DELETE_BOTH, DELETE_STRONG, DELETE_WEAK, Deleter, Header, dec_ref, end_nested, inc_ref,
};
use crate::value::types::{self, ObjectIndex};
use crate::value::{Any, index};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// A counted reference to any object. As wide as one non-null pointer.
#[repr(transparent)]
pub struct ObjectRef(NonNull<Header>);

/// Formats as the type key in angle brackets, as a value does.
impl std::fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", crate::value::types::key_of(self.type_index()))
    }
}

// SAFETY: counts are atomic, and any thread may read and drop an object (the contract of `Object`): the types of this crate that change in
// place, such as lists and dicts, synchronize their operations.
unsafe impl Send for ObjectRef {}
// SAFETY: counts are atomic, and any thread may read and drop an object (the contract of `Object`): the types of this crate that change in
// place, such as lists and dicts, synchronize their operations.
unsafe impl Sync for ObjectRef {}

impl ObjectRef {
    /// Takes over a reference.
    ///
    /// # Safety
    /// `object` is non-null and alive, and the caller owns one of its references.
    #[inline]
    pub const unsafe fn from_raw(object: *mut Header) -> ObjectRef {
        // SAFETY: non-null, by this contract.
        ObjectRef(unsafe { NonNull::new_unchecked(object) })
    }

    /// Takes over a reference unless `object` is null.
    ///
    /// # Safety
    /// As for [`ObjectRef::from_raw`] if not null.
    #[inline]
    pub unsafe fn from_nullable(object: *mut Header) -> Option<ObjectRef> {
        NonNull::new(object).map(ObjectRef)
    }

    /// Creates a new reference to a borrowed object.
    ///
    /// # Safety
    /// `object` is non-null and alive.
    #[inline]
    pub unsafe fn retain(object: *mut Header) -> ObjectRef {
        // SAFETY: alive, by this contract.
        unsafe { inc_ref(object) };
        // SAFETY: this function owns the reference that was just added.
        unsafe { ObjectRef::from_raw(object) }
    }

    /// Returns the address with the reference, which the caller then owns.
    #[inline]
    pub const fn into_raw(self) -> *mut Header {
        let ptr = self.0.as_ptr();
        std::mem::forget(self);
        ptr
    }

    /// Returns the address of the header. The reference stays here.
    #[inline]
    pub const fn as_ptr(&self) -> *mut Header {
        self.0.as_ptr()
    }

    /// Returns the header, which is the beginning of the object.
    #[inline]
    pub const fn header(&self) -> &Header {
        // SAFETY: alive while `self` is.
        unsafe { self.0.as_ref() }
    }

    /// Returns the index of the object's own type.
    #[inline]
    pub const fn type_index(&self) -> i32 {
        self.header().type_index
    }

    /// Returns whether this is the only strong reference, so that the holder may change the object in place.
    #[inline]
    pub fn is_unique(&self) -> bool {
        // The lower half counts strong references. Acquire: a change now sees the writes of others before they dropped their references.
        self.header().combined.load(Ordering::Acquire) as u32 == 1
    }

    /// Returns whether the object is an instance of `T` or of a derived type.
    #[inline]
    pub fn is<T: Object>(&self) -> bool {
        T::matches(self.type_index())
    }

    /// Converts to a typed reference, or returns `self`.
    #[inline]
    pub(crate) fn downcast<T: Object>(self) -> Result<Ref<T>, ObjectRef> {
        if self.is::<T>() {
            Ok(Ref(self, PhantomData))
        } else {
            Err(self)
        }
    }

    /// Borrows the object as a `T`.
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

/// A Rust type that is an object: `#[repr(C)]` with [`Header`] as its first field. If weak references still exist, the value is moved
/// out of the object before it is dropped.
///
/// # Safety
/// * The type has that layout, and every object whose type index [`Object::matches`] starts with this type.
/// * Any thread may read a value of this type while others do, and may drop it, because references to objects move between threads.
pub unsafe trait Object: Sized + 'static {
    /// Returns the type index for new objects of this type.
    fn type_index() -> ObjectIndex;

    /// Returns whether an object with `type_index` is an instance, including derived types.
    #[inline]
    fn matches(type_index: i32) -> bool {
        types::is_instance(type_index, Self::type_index().get())
    }
}

/// A counted reference to an object of type `T`.
#[repr(transparent)]
pub struct Ref<T: Object>(ObjectRef, PhantomData<T>);

impl<T: Object> std::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Object> Ref<T> {
    /// The deleter for objects of [`Ref::new`].
    const DELETER: Deleter = if std::mem::needs_drop::<T>() {
        delete_boxed::<T>
    } else {
        end_boxed::<T>
    };

    /// Moves `value` to the heap, and overwrites its header with the header of a fresh `T`.
    pub fn new(value: T) -> Ref<T> {
        // VAL-04: the header is written last, so the header in `value` does not matter.
        let object = Box::into_raw(Box::new(value)).cast::<Header>();
        // SAFETY: `T` starts with a header (the contract of `Object`).
        unsafe { object.write(Header::new(T::type_index().get(), Self::DELETER)) };
        // SAFETY: a complete object and its only reference; its deleter, of the same type, frees the box.
        let object = unsafe { ObjectRef::from_raw(object) };
        Ref(object, PhantomData)
    }

    /// Takes over a reference.
    ///
    /// # Safety
    /// As for [`ObjectRef::from_raw`], and the object starts with a `T`.
    #[inline]
    pub const unsafe fn from_raw(object: *mut Header) -> Ref<T> {
        // SAFETY: the contract of `ObjectRef::from_raw` is part of this one.
        Ref(unsafe { ObjectRef::from_raw(object) }, PhantomData)
    }

    /// Returns a new reference to `object`, if it is a `T`.
    #[inline]
    pub(crate) fn try_from_object(object: &ObjectRef) -> Option<Ref<T>> {
        object.is::<T>().then(|| Ref(object.clone(), PhantomData))
    }

    /// Returns the `T` if [`Ref::new`] created `object` from one, which its deleter shows. Returns `None` for other objects, and possibly
    /// for objects from another copy of this function.
    pub(crate) fn downcast_boxed(object: &ObjectRef) -> Option<&T> {
        let deleter = object.header().deleter?;
        // Compares the deleter: an object of another library may have the same type index, but another layout.
        let own = std::ptr::fn_addr_eq(deleter, Self::DELETER);
        // SAFETY: only `Ref::new` creates objects with this deleter, from a `T`; the index excludes another type whose deleter the linker
        // merged with this one.
        (own && object.type_index() == T::type_index().get())
            .then(|| unsafe { &*object.as_ptr().cast::<T>() })
    }

    /// Returns the untyped reference.
    #[inline]
    pub fn into_object(self) -> ObjectRef {
        self.0
    }

    /// Borrows the untyped reference.
    #[inline]
    pub const fn as_object(&self) -> &ObjectRef {
        &self.0
    }

    /// Returns the address of the object.
    #[inline]
    pub const fn as_ptr(&self) -> *mut T {
        self.0.as_ptr().cast()
    }
}

/// Deletes an object of [`Ref::new`] that refers to others.
unsafe extern "C-unwind" fn delete_boxed<T: Object>(object: *mut Header, flags: i32) {
    // SAFETY: the caller of a deleter follows VAL-05, which is the contract of `end_boxed` too.
    unsafe { end_nested(object, flags, end_boxed::<T>) }
}

/// Does the work of [`delete_boxed`]. This is also the deleter for objects of [`Ref::new`] that refer to no others.
///
/// # Safety
/// The call follows VAL-05, for an object of [`Ref::new`].
unsafe extern "C-unwind" fn end_boxed<T: Object>(object: *mut Header, flags: i32) {
    // VAL-05: one call with both flags, or two with one each.
    match flags & DELETE_BOTH {
        // SAFETY: called once, when the last strong reference is gone and there is no weak one.
        DELETE_BOTH => unsafe {
            std::ptr::drop_in_place(object.cast::<T>());
        },
        // SAFETY: called once, when the last strong reference is gone.
        DELETE_STRONG => unsafe { drop_copy(object.cast::<T>()) },
        _ => {}
    }
    if flags & DELETE_WEAK != 0 {
        // SAFETY: called once when nothing refers to the memory; the contents were dropped before.
        drop(unsafe { Box::from_raw(object.cast::<std::mem::ManuallyDrop<T>>()) });
    }
}

/// Drops the contents of an object whose counts weak references still read. `&mut T` in the destructor must not cover those counts, so
/// the contents move to a copy with a separate header.
///
/// # Safety
/// No strong reference is left, and the contents are not used again.
#[cold]
unsafe fn drop_copy<T: Object>(object: *mut T) {
    // VAL-05: weak references read the counts of the original meanwhile, also from other threads.
    let mut copy = MaybeUninit::<T>::uninit();
    let head = size_of::<Header>();
    // SAFETY: an object starts with its header, whose type index never changes.
    let type_index = unsafe { (*object.cast::<Header>()).type_index };
    let header = Header::new(type_index, Ref::<T>::DELETER);
    // SAFETY: the copy starts with a header.
    unsafe { copy.as_mut_ptr().cast::<Header>().write(header) };
    let from = object.wrapping_byte_add(head).cast::<u8>();
    let to = copy.as_mut_ptr().wrapping_byte_add(head).cast::<u8>();
    // SAFETY: the rest of the object, to which this call has exclusive access, by this contract.
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

impl<T: Object> From<Ref<T>> for Any {
    #[inline]
    fn from(object: Ref<T>) -> Any {
        object.0.into()
    }
}

/// Declares the Rust view of an object type with a fixed index.
macro_rules! static_object {
    ($type:ty, $index:expr) => {
        // SAFETY: `#[repr(C)]` with the header first, and fixed indices of this family are final or share the layout.
        unsafe impl $crate::value::Object for $type {
            #[inline]
            fn type_index() -> $crate::value::types::ObjectIndex {
                const { $crate::value::types::ObjectIndex::fixed($index) }
            }

            #[inline]
            fn matches(type_index: i32) -> bool {
                type_index == $index
            }
        }
    };
}
pub(crate) use static_object;

/// Declares the Rust view of an object type without a fixed index, by its key and, unless it is `ffi.Object`, its parent. The index differs
/// between processes and is never saved.
macro_rules! dynamic_object {
    (@ $type:ty, $index:expr) => {
        // SAFETY: `#[repr(C)]` with the header first; only this type and types derived from it have the index.
        unsafe impl $crate::value::Object for $type {
            fn type_index() -> $crate::value::types::ObjectIndex {
                static TYPE: $crate::value::types::DynamicType = $index;
                TYPE.index()
            }
        }
    };
    ($type:ty, $key:literal) => {
        $crate::value::header::dynamic_object!(@ $type, $crate::value::types::DynamicType::new($key));
    };
    ($type:ty, $key:literal, below $parent:ty) => {
        $crate::value::header::dynamic_object!(
            @ $type,
            $crate::value::types::DynamicType::derived_from($key, <$parent as $crate::value::Object>::type_index)
        );
    };
}
pub(crate) use dynamic_object;

/// Implements `Object` for a struct of this crate that begins with the public part of an `$index`. An object is not recognized by its
/// index, because objects of other libraries have only the public part.
///
/// # Safety
///
/// The struct is `#[repr(C)]`, it begins with the public part, and only code that knows an object of this crate accesses the data after it.
macro_rules! own_object {
    (unsafe $type:ty, $index:expr $(, $param:ident)?) => {
        // SAFETY: as for this macro.
        unsafe impl$(<$param: 'static>)? $crate::value::Object for $type {
            fn type_index() -> $crate::value::types::ObjectIndex {
                const { $crate::value::types::ObjectIndex::fixed($index) }
            }

            fn matches(_: i32) -> bool {
                false
            }
        }
    };
}
pub(crate) use own_object;

/// The root of all objects: only the header.
#[repr(C)]
pub(crate) struct BareObject(Header);

// SAFETY: every object starts with a header.
unsafe impl Object for BareObject {
    fn type_index() -> ObjectIndex {
        ObjectIndex::fixed(index::OBJECT)
    }
}

impl BareObject {
    /// Creates a bare object, useful as a sentinel that equals only itself.
    #[allow(
        clippy::new_ret_no_self,
        reason = "callers need the counted object alone"
    )]
    pub(crate) fn new() -> ObjectRef {
        Ref::new(BareObject(Header::placeholder())).into_object()
    }
}
