//! The tagged value: one cell ([`RawAny`]), owned ([`Any`]) or borrowed ([`AnyView`]).

use super::dlpack::DLTensor;
use super::header::{Header, ObjectRef, dec_ref, inc_ref};
use super::index;
use super::raw::{AnyPayload, RawAny};
use crate::tensor::{Device, Dtype};
use std::ffi::c_void;
use std::marker::PhantomData;

/// An owned value. A value that is an object has one reference to the object.
#[repr(transparent)]
pub struct Any(RawAny);

impl Any {
    /// Returns None, the absent value.
    #[inline]
    pub const fn none() -> Any {
        Any(RawAny::NONE)
    }

    /// Takes over the reference in `raw`.
    ///
    /// # Safety
    /// `raw` is an owned cell: its tag is not view-only, and its object, if any, has a reference counted for this cell.
    #[inline]
    pub const unsafe fn from_raw(raw: RawAny) -> Any {
        Any(raw)
    }

    /// Returns the cell with its reference, which the caller then owns.
    #[inline]
    pub const fn into_raw(self) -> RawAny {
        let raw = self.0;
        // The reference stays with the cell. A drop here would decrement it twice.
        std::mem::forget(self);
        raw
    }

    /// Returns the cell, which `self` still owns.
    #[inline]
    pub const fn as_raw(&self) -> &RawAny {
        &self.0
    }

    /// Returns a borrowed view of the value.
    #[inline]
    pub const fn view(&self) -> AnyView<'_> {
        AnyView(self.0, PhantomData)
    }

    /// Returns the tag: a type index, below 64 for a plain value and 64 or more for an object.
    #[inline]
    pub const fn type_index(&self) -> i32 {
        self.0.type_index
    }

    /// Returns whether this is None.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.type_index == index::NONE
    }

    /// Creates an opaque pointer, which may be null (VAL-08).
    ///
    /// # Safety
    /// As for [`AnyView::handle`].
    #[inline]
    pub const unsafe fn handle(value: *mut c_void) -> Any {
        Any(RawAny::from_handle(value))
    }

    /// Takes the value and leaves None.
    #[inline]
    pub fn take(&mut self) -> Any {
        std::mem::take(self)
    }

    /// Returns the object in the value, if any, without a new reference.
    #[inline]
    pub const fn as_object(&self) -> Option<&ObjectRef> {
        if !self.0.is_object() {
            return None;
        }
        // SAFETY: `ObjectRef` is one non-null pointer, like an object payload; the borrow keeps it alive.
        Some(unsafe { &*(&raw const self.0.payload).cast::<ObjectRef>() })
    }

    /// Returns the object in the value, or the value itself.
    ///
    /// # Errors
    ///
    /// Returns the value itself if it is not an object.
    #[inline]
    pub fn into_object(self) -> Result<ObjectRef, Any> {
        let Some(_) = self.as_object() else {
            return Err(self);
        };
        let raw = self.into_raw();
        // SAFETY: the reference of the cell moves into the `ObjectRef`.
        Ok(unsafe { ObjectRef::from_raw(raw.ptr().cast()) })
    }
}

impl Drop for Any {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_object() {
            // SAFETY: an owned object cell holds one reference.
            unsafe { dec_ref(self.0.ptr().cast::<Header>()) }
        }
    }
}

impl Clone for Any {
    #[inline]
    fn clone(&self) -> Any {
        if self.0.is_object() {
            // SAFETY: the object is alive while `self` is.
            unsafe { inc_ref(self.0.ptr().cast::<Header>()) }
        }
        Any(self.0)
    }
}

impl Default for Any {
    fn default() -> Any {
        Any::none()
    }
}

/// A borrowed value: an argument of a call. A copy does not change reference counts. It stays on its thread, because the object of an
/// r-value reference (VAL-09) is taken out without a lock:
///
/// ```compile_fail,E0277
/// fn elsewhere(_: impl Send) {}
/// elsewhere(tvmspec::value::AnyView::none());
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct AnyView<'a>(RawAny, PhantomData<(&'a (), *mut Header)>);

impl<'a> AnyView<'a> {
    /// Returns None.
    #[inline]
    pub const fn none() -> AnyView<'a> {
        AnyView(RawAny::NONE, PhantomData)
    }

    /// Creates a view of a cell.
    ///
    /// # Safety
    /// The payload matches the tag, and its target stays alive and unmoved for `'a`. The slot of an r-value reference holds null or an
    /// owned object, and is read and written only on this thread for `'a`.
    #[inline]
    pub const unsafe fn from_raw(raw: RawAny) -> AnyView<'a> {
        AnyView(raw, PhantomData)
    }

    /// Creates views of `count` cells from the C ABI.
    ///
    /// # Safety
    /// `cells` points to `count` cells that live for `'a` and are not written. [`AnyView::from_raw`] may be called with each for `'a`.
    /// `cells` may be null if `count` is zero.
    #[inline]
    pub unsafe fn slice(cells: *const RawAny, count: usize) -> &'a [AnyView<'a>] {
        // C callers pass null or a dangling address for no cells, but a slice needs an aligned address.
        if count == 0 || cells.is_null() {
            return &[];
        }
        // SAFETY: `count` cells that live for `'a`, by this contract; `AnyView` is a transparent wrapper of `RawAny`.
        unsafe { std::slice::from_raw_parts(cells.cast(), count) }
    }

    /// Returns views of all `values`, in place.
    #[inline]
    pub const fn of_values(values: &'a [Any]) -> &'a [AnyView<'a>] {
        // SAFETY: both are transparent wrappers of `RawAny`. An owned value is valid as a view while it is borrowed, and no owned value
        // is an r-value reference, which a view could empty.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }

    /// Returns the cell of 16 bytes. The reference stays with this value.
    #[inline]
    pub const fn as_raw(&self) -> &RawAny {
        &self.0
    }

    /// Returns the tag: a type index, below 64 for a plain value and 64 or more for an object.
    #[inline]
    pub const fn type_index(&self) -> i32 {
        self.0.type_index
    }

    /// Returns whether this is None.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.type_index == index::NONE
    }

    /// Creates a borrowed C pointer, which may be null (VAL-08).
    ///
    /// # Safety
    /// The receiver of the view, or of a copy, may use the pointer as a pointer of the type that it expects.
    #[inline]
    pub const unsafe fn handle(value: *mut c_void) -> AnyView<'a> {
        AnyView(RawAny::from_handle(value), PhantomData)
    }

    /// Creates a view of a borrowed tensor description. A [`Tensor`](crate::object::Tensor) converts safely without this.
    ///
    /// # Safety
    /// `value` describes memory that is valid for `'a`. `shape` and `strides` have `ndim` extents (`strides` may be null). `data`
    /// contains all elements within these extents and strides, and the receiver of the view may read and write them.
    #[inline]
    pub const unsafe fn dltensor(value: &'a DLTensor) -> AnyView<'a> {
        let ptr = (&raw const *value).cast_mut().cast();
        AnyView(
            RawAny::of(index::DLTENSOR_PTR, AnyPayload { ptr }),
            PhantomData,
        )
    }

    /// Creates a view of a borrowed C string (`const char*`).
    #[inline]
    pub(crate) const fn c_str(value: &'a std::ffi::CStr) -> AnyView<'a> {
        let ptr = value.as_ptr().cast_mut().cast();
        AnyView(RawAny::of(index::RAW_STR, AnyPayload { ptr }), PhantomData)
    }

    /// Returns the object in the view, if any, without a new reference.
    #[inline]
    pub const fn as_object(&self) -> Option<&ObjectRef> {
        if !self.0.is_object() {
            return None;
        }
        // SAFETY: as in `Any::as_object`.
        Some(unsafe { &*(&raw const self.0.payload).cast::<ObjectRef>() })
    }

    /// Creates an owned copy (VAL-09). C strings and byte arrays become owned strings and bytes. The object of an r-value reference moves
    /// out of its slot, and the value of an extension is cloned by its type (VAL-22). Other values are copied, or get a new reference.
    #[inline]
    pub fn to_any(self) -> Any {
        let (mut head, mut payload) = self.0.words();
        if self.0.type_index >= index::OBJECT_BEGIN {
            // SAFETY: the object is alive for the view's life.
            unsafe { inc_ref(self.0.ptr().cast::<Header>()) }
        } else if !(index::NONE..index::RAW_STR).contains(&self.0.type_index) {
            // Most tags are below those that VAL-09 converts, so they skip the call. Tags of extensions are below zero.
            (head, payload) = self.owned_words();
        }
        Any(RawAny::of_words(head, payload))
    }

    /// Creates an owned copy in two registers. If the result were in memory, the compiler would also pass the other copies of
    /// [`AnyView::to_any`] through that memory. It would then store a cell in three parts and load it at once, and the load would wait
    /// until the stores have retired.
    #[inline(never)]
    fn owned_words(self) -> (u64, *mut c_void) {
        self.owned().into_raw().words()
    }

    fn owned(self) -> Any {
        match self.0.type_index {
            // VAL-03, VAL-09: a copy, because the text may be freed after the call. Up to 7 bytes are stored in the cell.
            index::RAW_STR => {
                // SAFETY: a C string that lives while the view does (the contract of `from_raw`).
                let text = unsafe { std::ffi::CStr::from_ptr(self.0.ptr().cast()) };
                super::string::Str::new(text.to_bytes()).into()
            }
            index::BYTE_ARRAY => {
                // SAFETY: a byte array that lives while the view does (the contract of `from_raw`).
                let array = unsafe { &*self.0.ptr().cast::<super::string::ByteArray>() };
                // SAFETY: its bytes live as long (the contract of `from_raw`).
                super::string::Bytes::new(unsafe { array.as_slice() }).into()
            }
            index::RVALUE_REF => {
                // SAFETY: null, or a slot that is read and written only on this thread (the contract of `from_raw`).
                let slot = unsafe { self.0.ptr().cast::<*mut Header>().as_mut() };
                // The callee may take the object by replacing it with null (VAL-09).
                let object = slot.map(|slot| std::mem::replace(slot, std::ptr::null_mut()));
                // SAFETY: this function now owns the reference of the slot.
                let object = object.and_then(|object| unsafe { ObjectRef::from_nullable(object) });
                object.into()
            }
            // VAL-22: the caller owns an argument of an extension, so an owned value is a copy.
            ..index::NONE => super::extension::owned_copy(self),
            _ => Any(self.0),
        }
    }
}

impl<'a> From<&'a Any> for AnyView<'a> {
    #[inline]
    fn from(value: &'a Any) -> AnyView<'a> {
        value.view()
    }
}

/// The owned form of everything that has a borrowed form: it shares the object, and counts one more reference to it.
impl<'a, T> From<&'a T> for Any
where
    AnyView<'a>: From<&'a T>,
{
    #[inline]
    fn from(value: &'a T) -> Any {
        AnyView::from(value).to_any()
    }
}

impl From<AnyView<'_>> for Any {
    #[inline]
    fn from(view: AnyView<'_>) -> Any {
        view.to_any()
    }
}

macro_rules! plain {
    ($($type:ty, |$value:ident| $cell:expr;)*) => {$(
        impl From<$type> for Any {
            #[inline]
            fn from($value: $type) -> Any {
                Any($cell)
            }
        }

        impl From<$type> for AnyView<'_> {
            #[inline]
            fn from($value: $type) -> Self {
                AnyView($cell, PhantomData)
            }
        }
    )*};
}

// VAL-01: all integers have the same tag. A `u64` beyond 2^63 - 1 keeps its bits, and converts back to the same `u64`.
plain! {
    i64, |v| RawAny::from_int(v);
    i32, |v| RawAny::from_int(v.into());
    i16, |v| RawAny::from_int(v.into());
    i8, |v| RawAny::from_int(v.into());
    u32, |v| RawAny::from_int(v.into());
    u16, |v| RawAny::from_int(v.into());
    u8, |v| RawAny::from_int(v.into());
    usize, |v| RawAny::from_int(v as i64);
    u64, |v| RawAny::from_int(v as i64);
    bool, |v| RawAny::from_bool(v);
    f64, |v| RawAny::from_float(v);
    f32, |v| RawAny::from_float(v.into());
    Dtype, |v| RawAny::from_dtype(v);
    Device, |v| RawAny::from_device(v);
    (), |_v| RawAny::NONE;
}

impl From<ObjectRef> for Any {
    #[inline]
    fn from(object: ObjectRef) -> Any {
        // VAL-01: the tag is the index of the dynamic type, not of the static type of the reference.
        let ptr = object.into_raw();
        // SAFETY: `ptr` is a live object; its reference moves into the cell.
        let type_index = unsafe { (*ptr).type_index };
        Any(RawAny::of(type_index, AnyPayload { ptr: ptr.cast() }))
    }
}

impl<'a> From<&'a ObjectRef> for AnyView<'a> {
    #[inline]
    fn from(object: &'a ObjectRef) -> AnyView<'a> {
        let ptr = object.as_ptr();
        AnyView(
            RawAny::of(object.type_index(), AnyPayload { ptr: ptr.cast() }),
            PhantomData,
        )
    }
}

impl<T: Into<Any>> From<Option<T>> for Any {
    #[inline]
    fn from(value: Option<T>) -> Any {
        value.map_or_else(Any::none, Into::into)
    }
}

impl std::fmt::Debug for AnyView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let raw = self.as_raw();
        match raw.type_index {
            index::NONE => f.write_str("None"),
            index::INT => write!(f, "{}", raw.int()),
            index::BOOL => write!(f, "{}", raw.int() != 0),
            index::FLOAT => write!(f, "{:?}", raw.float()),
            // Escaped, because text from C may be invalid UTF-8 (VAL-12).
            other => match super::str_bytes(self) {
                Some(text) => write!(f, "\"{}\"", text.escape_ascii()),
                None => write!(f, "<{}>", super::types::key_of(other)),
            },
        }
    }
}

impl std::fmt::Debug for Any {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.view(), f)
    }
}
