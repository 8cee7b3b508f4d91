//! Arguments of a call: tuples and arrays as a list of borrowed values.

use crate::value::{Any, AnyView};

/// The arguments of [`Function::call`](super::Function::call): a tuple of up to eight values, an array or a slice of [`Any`].
///
/// Each element of a tuple converts to [`Any`]: numbers, texts, tensors, functions and references to them, `None`, other values. A
/// reference shares its object with the function, and the caller keeps it.
///
/// ```
/// use tvmspec::function::Function;
/// use tvmspec::value::Any;
///
/// let sum = Function::from_typed(|a: i64, b: f64| a as f64 + b);
/// assert_eq!(sum.call_as::<f64>((2, 0.5))?, 2.5);
/// assert_eq!(sum.call_as::<f64>([Any::from(2), Any::from(0.5)])?, 2.5);
///
/// let apply = Function::from_typed(|f: Function, x: i64| f.call((x,)));
/// let double = Function::from_typed(|x: i64| x * 2);
/// assert_eq!(apply.call_as::<i64>((&double, 21))?, 42);
/// # Ok::<(), tvmspec::Error>(())
/// ```
pub trait IntoArgs {
    /// Calls `body` with the arguments, and frees them afterwards.
    fn with_views<R>(self, body: impl FnOnce(&[AnyView<'_>]) -> R) -> R;
}

impl<const N: usize> IntoArgs for [Any; N] {
    #[inline]
    fn with_views<R>(self, body: impl FnOnce(&[AnyView<'_>]) -> R) -> R {
        body(AnyView::of_values(&self))
    }
}

impl IntoArgs for &[Any] {
    #[inline]
    fn with_views<R>(self, body: impl FnOnce(&[AnyView<'_>]) -> R) -> R {
        body(AnyView::of_values(self))
    }
}

impl IntoArgs for () {
    #[inline]
    fn with_views<R>(self, body: impl FnOnce(&[AnyView<'_>]) -> R) -> R {
        body(&[])
    }
}

macro_rules! tuples {
    ($(($($element:ident)*))*) => {$(
        impl<$($element: Into<Any>),*> IntoArgs for ($($element,)*) {
            #[inline]
            #[allow(non_snake_case, reason = "an element has the name of its type")]
            fn with_views<R>(self, body: impl FnOnce(&[AnyView<'_>]) -> R) -> R {
                let ($($element,)*) = self;
                [$(Into::<Any>::into($element)),*].with_views(body)
            }
        }
    )*};
}

tuples! {
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
}
