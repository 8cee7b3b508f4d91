//! What a typed function takes and returns: values of its own, or borrowed for the call.

use super::{Error, Result};
use crate::value::header::{Header, ObjectRef, inc_ref};
use crate::value::{Any, AnyPayload, AnyView, Argument, RawAny, Schema, index, str_bytes};

/// What a typed function may return: a value, or a `Result` of one.
pub trait CallResult {
    /// Its name in metadata.
    fn schema() -> Schema;

    /// Turns it into the result of a call.
    ///
    /// # Errors
    ///
    /// The error that it holds.
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
    /// The schema, which metadata states.
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

/// What a function takes: an [`Argument`] of its own, or one that is borrowed for the call, which counts no reference: a view
/// of any value, `&str`, or `&Array` and its like.
pub trait Parameter: 'static {
    /// What the function gets.
    type At<'a>;

    /// How the parameter is named and borrowed.
    const PARAM: &'static Param;

    /// Converts or borrows, or `None`.
    fn read<'a>(view: &'a AnyView<'_>) -> Option<Self::At<'a>>;
}

/// What is known of a parameter without its type.
#[derive(Debug)]
pub struct Param {
    /// Its type.
    pub(crate) schema: fn() -> Schema,
    /// How it is borrowed, if it is.
    pub(crate) borrowed: Option<Borrowing>,
    /// Whether it reads a view, which may take what an r-value reference leads to.
    pub(crate) reads: fn(AnyView<'_>) -> bool,
}

/// How a value is borrowed for a call.
#[derive(Debug)]
pub(crate) struct Borrowing {
    /// Which can be borrowed as they are.
    pub condition: BorrowCondition,
    /// Converts any other beforehand.
    pub convert: fn(AnyView<'_>) -> Option<Any>,
}

/// Which values are borrowed as they are. In words where it can be: a call of a function each time is more than the question.
#[derive(Debug)]
pub(crate) enum BorrowCondition {
    /// Those of this type.
    Type(i32),
    /// All that can be owned as they are.
    Owned,
    /// Those that this finds fit.
    Fit(fn(AnyView<'_>) -> bool),
}

impl BorrowCondition {
    /// Whether `view` is one of them. No r-value reference is.
    fn holds(&self, view: AnyView<'_>) -> bool {
        let own = view.type_index();
        match self {
            BorrowCondition::Type(wanted) => own == *wanted,
            BorrowCondition::Owned => {
                // VAL-09: owning one of these makes another value of it. A tensor's description is copied as it is.
                !matches!(own, index::RAW_STR | index::BYTE_ARRAY | index::RVALUE_REF)
            }
            BorrowCondition::Fit(fits) => fits(view),
        }
    }
}

impl Param {
    /// What has to convert `view` beforehand.
    pub(super) fn converts(&self, view: AnyView<'_>) -> Option<&Borrowing> {
        let borrowed = self.borrowed.as_ref();
        borrowed.filter(|borrowed| !borrowed.condition.holds(view))
    }

    /// Whether `view` converts. Takes nothing.
    pub(super) fn accepts(&self, view: AnyView<'_>) -> bool {
        if view.type_index() != index::RVALUE_REF {
            return self.converts_and_reads(view);
        }
        // What would be taken is tried on a slot that has a reference of its own.
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
        // SAFETY: the slot owns what is in it, outlives the view, and is of this thread.
        let accepted = self.converts_and_reads(unsafe { AnyView::from_raw(cell) });
        // SAFETY: what is left in the slot is the reference that it owns.
        drop(unsafe { ObjectRef::from_nullable(tried) });
        accepted
    }

    fn converts_and_reads(&self, view: AnyView<'_>) -> bool {
        match self.converts(view) {
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
            // A view of what lives for the call alone becomes a value of its own, so that the body may keep it.
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
                // SAFETY: a `$type` is nothing but a reference of an object of this type.
                Some(unsafe { &*std::ptr::from_ref(object).cast::<$type>() })
            }
        }
    };
}
pub(crate) use borrowed;
