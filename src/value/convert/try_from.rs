//! Implementations of `TryFrom` values for the Rust types that are an [`Argument`](super::Argument).

use super::cast;
use crate::rule::{Kind, Violation};
use crate::tensor::{Device, Dtype};
use crate::value::header::ObjectRef;
use crate::value::{AnyView, Bytes, Str, VAL_07};
use std::ffi::c_void;

/// Implements `TryFrom` borrowed and owned values, with [`cast`], for types that are an [`Argument`].
macro_rules! try_from_any {
    ($($type:ty)*) => {$(
        impl TryFrom<$crate::value::AnyView<'_>> for $type {
            type Error = $crate::rule::Violation;

            fn try_from(
                view: $crate::value::AnyView<'_>,
            ) -> std::result::Result<$type, $crate::rule::Violation> {
                $crate::value::cast(view)
            }
        }

        impl TryFrom<&$crate::value::Any> for $type {
            type Error = $crate::rule::Violation;

            fn try_from(
                value: &$crate::value::Any,
            ) -> std::result::Result<$type, $crate::rule::Violation> {
                $crate::value::cast(value.view())
            }
        }

        impl TryFrom<$crate::value::Any> for $type {
            type Error = $crate::rule::Violation;

            fn try_from(
                value: $crate::value::Any,
            ) -> std::result::Result<$type, $crate::rule::Violation> {
                $crate::value::cast(value.view())
            }
        }
    )*};
}
pub(crate) use try_from_any;

macro_rules! try_from_narrow {
    ($($type:ty)*) => {$(
        impl TryFrom<$crate::value::AnyView<'_>> for $type {
            type Error = Violation;

            fn try_from(view: AnyView<'_>) -> Result<$type, Violation> {
                // VAL-01: a cell has only signed ints. A `u64` above 2^63 - 1 is negative here and is rejected.
                let wide: i64 = cast(view)?;
                // An argument of a function loses bits here (VAL-07), but `TryFrom` must not lose any.
                <$type>::try_from(wide).map_err(|_| {
                    let message = format!("{wide} does not fit into `{}`", stringify!($type));
                    VAL_07.rejected(Kind::Limit, message)
                })
            }
        }

        impl TryFrom<&$crate::value::Any> for $type {
            type Error = Violation;

            fn try_from(value: &$crate::value::Any) -> Result<$type, Violation> {
                value.view().try_into()
            }
        }

        impl TryFrom<$crate::value::Any> for $type {
            type Error = Violation;

            fn try_from(value: $crate::value::Any) -> Result<$type, Violation> {
                value.view().try_into()
            }
        }
    )*};
}

try_from_narrow! { u64 i32 u32 i16 u16 i8 u8 usize isize }

impl TryFrom<AnyView<'_>> for f32 {
    type Error = Violation;

    fn try_from(view: AnyView<'_>) -> Result<f32, Violation> {
        let wide: f64 = cast(view)?;
        let narrow: f32 = cast(view)?;
        // As for integers: an argument of a function becomes infinite here (VAL-07). Both round digits.
        if narrow.is_infinite() && wide.is_finite() {
            let message = format!("{wide:e} does not fit into `f32`");
            return Err(VAL_07.rejected(Kind::Limit, message));
        }
        Ok(narrow)
    }
}

impl TryFrom<&crate::value::Any> for f32 {
    type Error = Violation;

    fn try_from(value: &crate::value::Any) -> Result<f32, Violation> {
        value.view().try_into()
    }
}

impl TryFrom<crate::value::Any> for f32 {
    type Error = Violation;

    fn try_from(value: crate::value::Any) -> Result<f32, Violation> {
        value.view().try_into()
    }
}

// VAL-07: narrower numbers are not listed here, because `cast` truncates them. The impls above cover them.
try_from_any! {
    i64 bool f64 String Str Bytes Vec<u8> Dtype Device ObjectRef *mut c_void
}
