//! Sequences: [`Array`] (copied when changed) and [`List`] (changed in place).
//!
//! | bytes   | field                                                   | rule   |
//! |---------|---------------------------------------------------------|--------|
//! | 24..32  | address of the first element                            | OBJ-03 |
//! | 32..40  | number of elements                                      | OBJ-03 |
//! | 40..48  | room for elements                                       | OBJ-03 |
//! | 48..56  | frees the elements' memory; null when it is the object's | OBJ-03 |
//! | 56..    | elements of an array, 16 bytes each                     | OBJ-03 |

//!
//! `layout` has that memory and its end; `array` and `list` the two sequences.

mod array;
mod layout;
mod list;

pub use array::Array;
pub use list::List;

use super::lock::with_lock;
use crate::function::{Error, ErrorKind, Result, borrowed};
use crate::object::OBJ_04;
use crate::value::header::{ObjectRef, Ref};
use crate::value::{Any, AnyView, Argument, Schema, VAL_10, index};
use layout::{ArrayObj, ListObj, SeqObj};
use std::borrow::Cow;

/// What both sequences have in common: conversion to and from a value, the length, and making one of an iterator. `$object` is the
/// memory of the type, `$other` that of the one that converts to it, `$schema` what metadata of functions call it.
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
borrowed!(Array, ArrayObj, index::ARRAY);
borrowed!(List, ListObj, index::LIST);

/// The elements of a sequence of the kind `T`; `None` for any other value.
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
    // Only an address so far: it is followed where the tag below says that it is a sequence.
    let seq = view.as_raw().ptr().cast::<SeqObj>();
    let items = || {
        // SAFETY: only called where the index is a sequence's: such an object begins with a `SeqObj` (OBJ-03) and lives for `'a`.
        let seq = unsafe { &*seq };
        // SAFETY: an array does not change once others see it; at a list this thread is alone, and `work` keeps none of its elements.
        unsafe { seq.items() }
    };
    match view.type_index() {
        index::ARRAY => Some(work(items())),
        index::LIST => Some(with_lock(seq, || work(items()))),
        _ => None,
    }
}

/// Where element `at` of a sequence of either kind lies, for `unsafe` code that changes it in place: no reference to the elements is
/// in use meanwhile.
#[cfg(feature = "vm")]
pub(crate) fn element_cell(view: AnyView<'_>, at: usize) -> Option<*mut Any> {
    let seq = view.as_raw().ptr().cast::<SeqObj>();
    with_items(view, |items| {
        // SAFETY: `with_items` calls this for sequences alone, which begin with a `SeqObj` (OBJ-03).
        (at < items.len()).then(|| unsafe { (*seq).body.data }.wrapping_add(at))
    })?
}

/// Replaces element `at` of a sequence of either kind, an array's too, and returns the old one; None past the end.
///
/// # Safety
/// An array has no other holder, and nothing borrows its elements.
#[cfg(feature = "frontend")]
pub(crate) unsafe fn swap_element(object: &ObjectRef, at: usize, value: Any) -> Option<Any> {
    // What it holds afterwards is dropped outside of what runs alone.
    let mut value = value;
    let view = AnyView::from(object);
    let is_inside = with_items(view, |items| {
        let seq = object.as_ptr().cast::<SeqObj>();
        let is_inside = at < items.len();
        if is_inside {
            // SAFETY: `with_items` calls this for sequences alone, which begin with a `SeqObj` (OBJ-03).
            let cell = unsafe { (*seq).body.data }.wrapping_add(at);
            // SAFETY: an element, of a list that this thread is alone with, or of an array that no one else holds (this contract).
            value = unsafe { cell.replace(std::mem::take(&mut value)) };
        }
        is_inside
    })?;
    is_inside.then_some(value)
}

/// `count`, if memory can hold so many elements; panics where it cannot, before a product with the size of one overflows.
#[inline]
fn countable(count: usize) -> usize {
    if count >= SeqObj::TOO_MANY {
        overflow();
    }
    count
}

/// The panic of [`countable`], apart from the code that runs.
#[cold]
#[inline(never)]
fn overflow() -> ! {
    panic!("a sequence of more elements than memory can hold");
}

/// A copy of element `at`, counted from 0.
#[inline]
fn element(items: &[Any], at: i64) -> Result {
    usize::try_from(at)
        .ok()
        .and_then(|at| items.get(at))
        .cloned()
        .ok_or_else(|| out_of_bounds(format_args!("Index {at}"), items.len()))
}

/// An IndexError with OBJ-04, in upstream's words: `Index 3 out of bounds 2`.
#[cold]
fn out_of_bounds(what: impl std::fmt::Display, bounds: impl std::fmt::Display) -> Error {
    let message = format!("{what} out of bounds {bounds}");
    Error::of_violation(
        ErrorKind::Index,
        OBJ_04.rejected(crate::rule::Kind::Missing, message),
    )
}
