//! Conversions: the arguments that a typed function accepts.
//!
//! | target  | accepts                             | rule   |
//! |---------|-------------------------------------|--------|
//! | int     | int, bool                           | VAL-07 |
//! | bool    | bool, int                           | VAL-07 |
//! | float   | float, int, bool                    | VAL-07 |
//! | pointer | opaque pointer, None                | VAL-08 |
//! | string  | C string, small and heap string     | VAL-12 |
//! | bytes   | byte array, small and heap bytes    | VAL-12 |
//! | dtype   | dtype, text                         | VAL-13 |
//! | device  | device, text                        | VAL-13 |
//! | object  | instances, including derived types  | VAL-10 |
//! | option  | None, or values that the member accepts | VAL-11 |

mod handle;
mod schema;
mod try_from;

pub(crate) use handle::{handle_object, handle_value};
pub use schema::Schema;
pub(crate) use try_from::try_from_any;

use super::dlpack::DLTensor;
use super::header::{Object, ObjectRef, Ref};
use super::string::{Bytes, Str, bytes_bytes, str_bytes};
use super::{Any, AnyView, VAL_07, VAL_08, VAL_10, VAL_11, VAL_12, VAL_13, index, types};
use crate::rule::{Kind, Rule, Violation};
use crate::tensor::{Device, Dtype};
use std::ffi::c_void;

/// A Rust type that a value converts to. Typed functions take these as parameters.
///
/// ```
/// use tvmspec::rule::Rule;
/// use tvmspec::value::{Any, AnyView, Argument, Schema, cast};
///
/// /// An even number.
/// struct Even(i64);
///
/// impl Argument for Even {
///     const RULE: Rule = tvmspec::value::rules::VAL_07;
///
///     fn schema() -> Schema {
///         Schema::of("Even", vec![Schema::plain("int")])
///     }
///
///     fn try_from_view(view: AnyView<'_>) -> Option<Even> {
///         let number: i64 = cast(view).ok()?;
///         (number % 2 == 0).then_some(Even(number))
///     }
/// }
///
/// assert_eq!(cast::<Even>(Any::from(4_i64).view()).map(|even| even.0), Ok(4));
/// let odd = cast::<Even>(Any::from(5_i64).view()).err().unwrap();
/// assert!(odd.to_string().contains("Cannot convert from type `int` to `Even<int>`"), "{odd}");
/// ```
pub trait Argument: Sized {
    /// Returns the name of the type in messages and metadata.
    fn schema() -> Schema;

    /// The rule that a value breaks if it does not convert.
    const RULE: Rule;

    /// Converts a value. Returns `None` if it does not convert.
    fn try_from_view(view: AnyView<'_>) -> Option<Self>;

    /// True if a missing trailing argument counts as `None`. Never true; only used to complete the signature text.
    #[doc(hidden)]
    const ANY: bool = false;
}

/// Returns the violation for a value that does not convert to `T`.
pub(crate) fn mismatch<T: Argument>(view: AnyView<'_>) -> Violation {
    no_conversion(T::RULE, view.type_index(), T::schema)
}

#[cold]
#[inline(never)]
fn no_conversion(rule: Rule, type_index: i32, schema: fn() -> Schema) -> Violation {
    rule.rejected(
        Kind::Type,
        format!(
            "Cannot convert from type `{}` to `{}`",
            types::key_of(type_index),
            schema().text()
        ),
    )
}

/// Converts a value. For the types of this crate, `try_from` and `try_into` of an [`Any`] or an [`AnyView`] do the same, except for an
/// integer that does not fit. They reject it (VAL-07, limit), but `cast` truncates it, as VAL-07 requires for the arguments of functions.
///
/// ```
/// use tvmspec::object::Tensor;
/// use tvmspec::value::rules::VAL_10;
/// use tvmspec::value::Any;
///
/// let number: f64 = Any::from(true).try_into()?;
/// assert_eq!(number, 1.0);
/// let error = Tensor::try_from(Any::from("text")).unwrap_err();
/// assert_eq!(error.rule(), VAL_10);
/// # Ok::<(), tvmspec::rule::Violation>(())
/// ```
///
/// # Errors
///
/// Returns the rule of the target ([`Argument::RULE`]), of kind type, if the value does not convert. The message names both types.
pub fn cast<T: Argument>(view: AnyView<'_>) -> Result<T, Violation> {
    T::try_from_view(view).ok_or_else(|| mismatch::<T>(view))
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Argument for $type {
            const RULE: Rule = VAL_07;

            fn schema() -> Schema {
                Schema::plain("int")
            }

            #[inline]
            fn try_from_view(view: AnyView<'_>) -> Option<$type> {
                match view.type_index() {
                    // VAL-07: upper bits are truncated without an error, as in the releases.
                    index::INT | index::BOOL => Some(view.as_raw().int() as $type),
                    _ => None,
                }
            }
        }
    )*};
}

integers! { i64 u64 i32 u32 i16 u16 i8 u8 usize isize }

impl Argument for bool {
    const RULE: Rule = VAL_07;

    fn schema() -> Schema {
        Schema::plain("bool")
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<bool> {
        match view.type_index() {
            // VAL-07: every int except 0 is true. A float does not convert.
            index::INT | index::BOOL => Some(view.as_raw().int() != 0),
            _ => None,
        }
    }
}

impl Argument for f64 {
    const RULE: Rule = VAL_07;

    fn schema() -> Schema {
        Schema::plain("float")
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<f64> {
        match view.type_index() {
            index::FLOAT => Some(view.as_raw().float()),
            // VAL-07: numbers only convert to wider types. An int beyond 2^53 becomes the nearest float.
            index::INT | index::BOOL => Some(view.as_raw().int() as f64),
            _ => None,
        }
    }
}

impl Argument for f32 {
    const RULE: Rule = VAL_07;

    fn schema() -> Schema {
        Schema::plain("float")
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<f32> {
        // VAL-07 has only one width of floats. The nearest `f32` is passed, which is infinite beyond its range.
        f64::try_from_view(view).map(|value| value as f32)
    }
}

impl Argument for *mut c_void {
    const RULE: Rule = VAL_08;

    fn schema() -> Schema {
        Schema::plain(types::key_of(index::OPAQUE))
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<*mut c_void> {
        // VAL-08: a frontend passes null as None.
        match view.type_index() {
            index::OPAQUE => Some(view.as_raw().ptr()),
            index::NONE => Some(std::ptr::null_mut()),
            _ => None,
        }
    }
}

impl Argument for *mut DLTensor {
    const RULE: Rule = VAL_10;

    fn schema() -> Schema {
        Schema::plain(types::key_of(index::DLTENSOR_PTR))
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<*mut DLTensor> {
        match view.type_index() {
            index::DLTENSOR_PTR => Some(view.as_raw().ptr().cast()),
            // A tensor object is its header followed by the description.
            index::TENSOR => {
                let object = view.as_raw().ptr().cast::<u8>();
                Some(object.wrapping_add(size_of::<super::Header>()).cast())
            }
            _ => None,
        }
    }
}

impl Argument for () {
    const RULE: Rule = VAL_11;

    fn schema() -> Schema {
        Schema::plain("None")
    }

    fn try_from_view(view: AnyView<'_>) -> Option<()> {
        view.is_none().then_some(())
    }
}

impl Argument for Any {
    const RULE: Rule = VAL_11;

    fn schema() -> Schema {
        Schema::plain("Any")
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<Any> {
        // VAL-09: the function owns its arguments: a C string is copied, and an r-value is taken out of its slot.
        Some(view.to_any())
    }

    const ANY: bool = true;
}

impl Argument for Str {
    const RULE: Rule = VAL_12;

    fn schema() -> Schema {
        Schema::plain("ffi.String")
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<Str> {
        match view.type_index() {
            // VAL-12: bytes do not become text, even if they are valid UTF-8.
            index::SMALL_STR | index::STR | index::RAW_STR => Str::from_any(view.to_any()).ok(),
            _ => None,
        }
    }
}

impl Argument for String {
    const RULE: Rule = VAL_12;

    fn schema() -> Schema {
        Schema::plain("ffi.String")
    }

    fn try_from_view(view: AnyView<'_>) -> Option<String> {
        // Most text is valid UTF-8, and the check is faster than the lossy conversion.
        str_bytes(&view).map(|bytes| match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            // VAL-12: only the tag marks a value as text. A `String` must be valid UTF-8, so invalid bytes are replaced.
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        })
    }
}

impl Argument for Bytes {
    const RULE: Rule = VAL_12;

    fn schema() -> Schema {
        Schema::plain("ffi.Bytes")
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Bytes> {
        match view.type_index() {
            // VAL-12: text does not become bytes.
            index::SMALL_BYTES | index::BYTES | index::BYTE_ARRAY => {
                Bytes::from_any(view.to_any()).ok()
            }
            _ => None,
        }
    }
}

impl Argument for Vec<u8> {
    const RULE: Rule = VAL_12;

    fn schema() -> Schema {
        Schema::plain("ffi.Bytes")
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Vec<u8>> {
        bytes_bytes(&view).map(<[u8]>::to_vec)
    }
}

impl Argument for Dtype {
    const RULE: Rule = VAL_13;

    fn schema() -> Schema {
        Schema::plain(types::key_of(index::DATA_TYPE))
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Dtype> {
        if view.type_index() == index::DATA_TYPE {
            return Some(view.as_raw().dtype());
        }
        // VAL-13: any string is parsed. For an argument, the error for text that names no data type is `type`; for the text itself it would
        // be `malformed`.
        let text = str_bytes(&view)?;
        super::dtype_from_text(std::str::from_utf8(text).ok()?).ok()
    }
}

impl Argument for Device {
    const RULE: Rule = VAL_13;

    fn schema() -> Schema {
        Schema::plain(types::key_of(index::DEVICE))
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Device> {
        if view.type_index() == index::DEVICE {
            return Some(view.as_raw().device());
        }
        // VAL-13: as for a data type.
        let text = str_bytes(&view)?;
        super::device_from_text(std::str::from_utf8(text).ok()?).ok()
    }
}

impl Argument for ObjectRef {
    const RULE: Rule = VAL_10;

    fn schema() -> Schema {
        Schema::plain(types::key_of(index::OBJECT))
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<ObjectRef> {
        // VAL-10: None is rejected. Nullable C++ references accept it; here that is `Option<ObjectRef>` (VAL-11).
        // An r-value reference is not an object here, as in the releases. A parameter of any type empties its slot (VAL-09).
        view.as_object().cloned()
    }
}

impl<T: Object> Argument for Ref<T> {
    const RULE: Rule = VAL_10;

    fn schema() -> Schema {
        Schema::plain(types::key_of(T::type_index().get()))
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<Ref<T>> {
        // VAL-10: checks the ancestors of the type. Rejects None, which nullable C++ references accept as null (VAL-11 here).
        Ref::try_from_object(view.as_object()?)
    }
}

impl<T: Argument> Argument for Option<T> {
    const RULE: Rule = VAL_11;

    fn schema() -> Schema {
        Schema::with("Optional", &[T::schema])
    }

    #[inline]
    fn try_from_view(view: AnyView<'_>) -> Option<Option<T>> {
        // VAL-11: None means absent, even if T itself accepts None, as a pointer does (VAL-08).
        if view.is_none() {
            return Some(None);
        }
        T::try_from_view(view).map(Some)
    }
}
