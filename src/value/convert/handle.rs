//! Implementations for handles: types such as `Array` that contain only a [`Ref`](crate::value::Ref).

/// Implements the conversions between `$type`, a handle of a `$object`, and values. `$schema` is the type's name in the metadata of
/// functions, and `$convert` reads values of other types (VAL-10).
macro_rules! handle_value {
    ($type:ident, $object:ty, $schema:expr) => {
        $crate::value::handle_value!($type, $object, $schema, |_| None);
    };
    ($type:ident, $object:ty, $schema:expr, $convert:expr) => {
        impl From<$type> for $crate::value::Any {
            fn from(handle: $type) -> $crate::value::Any {
                handle.0.into()
            }
        }

        $crate::value::try_from_any!($type);

        impl $crate::value::Argument for $type {
            const RULE: $crate::rule::Rule = $crate::value::VAL_10;

            fn schema() -> $crate::value::Schema {
                $schema
            }

            #[inline]
            fn try_from_view(view: $crate::value::AnyView<'_>) -> Option<$type> {
                match $crate::value::Ref::<$object>::try_from_view(view) {
                    Some(found) => Some($type(found)),
                    None => $convert(view),
                }
            }
        }
    };
}
pub(crate) use handle_value;

/// Implements the conversions between `$type`, a handle, and its object. The object can be viewed as a value.
macro_rules! handle_object {
    ($type:ident) => {
        impl $type {
            /// Converts `object` to this type, or returns it unchanged.
            ///
            /// # Errors
            ///
            /// Returns the object itself if it has another type.
            #[inline]
            pub fn from_object(
                object: $crate::value::ObjectRef,
            ) -> std::result::Result<$type, $crate::value::ObjectRef> {
                object.downcast().map($type)
            }

            /// Returns the object with this handle's reference.
            #[inline]
            pub fn into_object(self) -> $crate::value::ObjectRef {
                self.0.into_object()
            }

            /// Borrows the object.
            #[inline]
            pub const fn as_object(&self) -> &$crate::value::ObjectRef {
                self.0.as_object()
            }
        }

        impl<'a> From<&'a $type> for $crate::value::AnyView<'a> {
            fn from(handle: &'a $type) -> $crate::value::AnyView<'a> {
                $crate::value::AnyView::from(handle.as_object())
            }
        }
    };
}
pub(crate) use handle_object;
