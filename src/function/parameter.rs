//! Parameters and results of typed functions: owned values, or values borrowed for the call.

use super::{Error, Result};
use crate::value::header::{Header, ObjectRef, inc_ref};
use crate::value::{Any, AnyPayload, AnyView, Argument, RawAny, Schema, index, str_bytes};

/// A type that a typed function may return: a value, or a `Result` of one.
pub trait CallResult {
    /// Returns the name of the type in metadata.
    fn schema() -> Schema;

    /// Converts the value to the result of a call.
    ///
    /// # Errors
    ///
    /// Returns the error that the value holds.
    fn into_result(self) -> Result;
}

impl<T: Into<Any> + ResultSchema> CallResult for T {
    fn schema() -> Schema {
        T::result_schema()
    }

    #[inline]
    fn into_result(self) -> Result {
        Ok(self.into())
    }
}

impl<T: Into<Any> + ResultSchema, E: Into<Error>> CallResult for std::result::Result<T, E> {
    fn schema() -> Schema {
        T::result_schema()
    }

    #[inline]
    fn into_result(self) -> Result {
        self.map(Into::into).map_err(Into::into)
    }
}

/// The schema of a result type.
pub(crate) trait ResultSchema {
    /// Returns the schema for metadata.
    fn result_schema() -> Schema;
}

impl<T: Argument> ResultSchema for T {
    fn result_schema() -> Schema {
        T::schema()
    }
}

impl ResultSchema for &str {
    fn result_schema() -> Schema {
        <String as Argument>::schema()
    }
}

/// A type that a function accepts: an owned [`Argument`], or a type that is borrowed for the call without a new reference. Borrowed
/// types are a view of any value, `&str`, `&Array` and similar types.
pub trait Parameter: 'static {
    /// The type that the function receives.
    type At<'a>;

    /// The description of the parameter: its name, and how it is borrowed.
    const PARAM: &'static Param;

    /// Converts or borrows the value. Returns `None` if that is not possible.
    fn read<'a>(view: &'a AnyView<'_>) -> Option<Self::At<'a>>;
}

/// A description of a parameter, independent of its type.
#[derive(Debug)]
pub struct Param {
    /// Returns the schema of its type.
    pub(crate) schema: fn() -> Schema,
    /// The kind of borrowing, for a borrowed parameter.
    pub(crate) borrowed: Option<Borrowing>,
    /// Returns whether it can read a view. May take the object of an r-value reference.
    pub(crate) reads: fn(AnyView<'_>) -> bool,
}

/// The way in which a value is borrowed for a call.
#[derive(Debug)]
pub(crate) struct Borrowing {
    /// The condition for borrowing without conversion.
    pub condition: BorrowCondition,
    /// Converts any other value before the call.
    pub convert: fn(AnyView<'_>) -> Option<Any>,
}

/// The values that can be borrowed without conversion. This is data instead of a function in most cases, because a function call costs
/// more than the check.
#[derive(Debug)]
pub(crate) enum BorrowCondition {
    /// The type has this index.
    Type(i32),
    /// All values that can be owned without conversion.
    Owned,
    /// Values that this function accepts.
    Fit(fn(AnyView<'_>) -> bool),
}

impl BorrowCondition {
    /// Returns whether `view` meets the condition. An r-value reference never does.
    fn holds(&self, view: AnyView<'_>) -> bool {
        let own = view.type_index();
        match self {
            BorrowCondition::Type(wanted) => own == *wanted,
            BorrowCondition::Owned => {
                // VAL-09: owning one of these creates another value. The description of a tensor is copied unchanged.
                !matches!(own, index::RAW_STR | index::BYTE_ARRAY | index::RVALUE_REF)
            }
            BorrowCondition::Fit(fits) => fits(view),
        }
    }
}

impl Param {
    /// Returns the conversion that `view` needs before the call, if any.
    pub(super) fn needed_conversion(&self, view: AnyView<'_>) -> Option<&Borrowing> {
        let borrowed = self.borrowed.as_ref();
        borrowed.filter(|borrowed| !borrowed.condition.holds(view))
    }

    /// Returns whether `view` converts, without taking anything.
    pub(super) fn accepts(&self, view: AnyView<'_>) -> bool {
        if view.type_index() != index::RVALUE_REF {
            return self.converts_and_reads(view);
        }
        // The check runs on a temporary slot with its own reference, so that the real slot stays unchanged.
        let slot = view.as_raw().ptr().cast::<*mut Header>();
        // SAFETY: an r-value reference is null or the address of an object slot (the contract of `AnyView::from_raw`).
        let object = unsafe { slot.as_ref() };
        let mut tried = object.copied().unwrap_or(std::ptr::null_mut());
        // SAFETY: null, or an object that the slot owns (the contract of `AnyView::from_raw`).
        unsafe { inc_ref(tried) };
        let cell = RawAny::of(
            index::RVALUE_REF,
            AnyPayload {
                ptr: (&raw mut tried).cast(),
            },
        );
        // SAFETY: the slot owns its content, outlives the view, and belongs to this thread.
        let accepted = self.converts_and_reads(unsafe { AnyView::from_raw(cell) });
        // SAFETY: the slot owns the reference that is left in it.
        drop(unsafe { ObjectRef::from_nullable(tried) });
        accepted
    }

    fn converts_and_reads(&self, view: AnyView<'_>) -> bool {
        match self.needed_conversion(view) {
            Some(borrowed) => (borrowed.convert)(view).is_some_and(|own| (self.reads)(own.view())),
            None => (self.reads)(view),
        }
    }
}

impl<T: Argument + 'static> Parameter for T {
    type At<'a> = T;

    const PARAM: &'static Param = &Param {
        schema: T::schema,
        borrowed: None,
        reads: |view| T::try_from_view(view).is_some(),
    };

    #[inline]
    fn read(view: &AnyView<'_>) -> Option<T> {
        T::try_from_view(*view)
    }
}

impl Parameter for AnyView<'static> {
    type At<'a> = AnyView<'a>;

    const PARAM: &'static Param = &Param {
        schema: <Any as Argument>::schema,
        borrowed: Some(Borrowing {
            // A view that is valid only for the call becomes an owned value, so that the body may keep it.
            condition: BorrowCondition::Owned,
            convert: |view| Some(view.to_any()),
        }),
        reads: |_| true,
    };

    #[inline]
    fn read<'a>(view: &'a AnyView<'_>) -> Option<AnyView<'a>> {
        Some(*view)
    }
}

impl Parameter for &'static str {
    type At<'a> = &'a str;

    const PARAM: &'static Param = &Param {
        schema: <String as Argument>::schema,
        borrowed: Some(Borrowing {
            condition: BorrowCondition::Fit(|view| <&str as Parameter>::read(&view).is_some()),
            // Invalid UTF-8 is replaced.
            convert: |view| String::try_from_view(view).map(Any::from),
        }),
        reads: |view| <Self as Parameter>::read(&view).is_some(),
    };

    #[inline]
    fn read<'a>(view: &'a AnyView<'_>) -> Option<&'a str> {
        str_bytes(view).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

/// Lets functions take `&$type`, which is `#[repr(transparent)]` over an `ObjectRef`, or over a `Ref` of a `$object`.
macro_rules! borrowed {
    ($type:ty, $object:ty, $index:expr) => {
        impl $crate::function::Parameter for &'static $type {
            type At<'a> = &'a $type;

            const PARAM: &'static $crate::function::Param = &$crate::function::Param {
                schema: <$type as $crate::value::Argument>::schema,
                borrowed: Some($crate::function::Borrowing {
                    condition: $crate::function::BorrowCondition::Type($index),
                    convert: |view| {
                        let own = <$type as $crate::value::Argument>::try_from_view(view)?;
                        Some($crate::value::Any::from(own))
                    },
                }),
                reads: |view| <Self as $crate::function::Parameter>::read(&view).is_some(),
            };

            #[inline]
            fn read<'a>(view: &'a $crate::value::AnyView<'_>) -> Option<&'a $type> {
                let object = view.as_object()?;
                if !object.is::<$object>() {
                    return None;
                }
                // SAFETY: a `$type` is only a reference to an object of this type.
                Some(unsafe { &*std::ptr::from_ref(object).cast::<$type>() })
            }
        }
    };
}
pub(crate) use borrowed;
