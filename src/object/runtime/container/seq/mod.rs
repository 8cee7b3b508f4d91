//! Sequences: [`Array`] (copied when changed) and [`List`] (changed in place).
//!
//! | bytes   | field                                                   | rule   |
//! |---------|---------------------------------------------------------|--------|
//! | 24..32  | address of the first element                            | OBJ-03 |
//! | 32..40  | number of elements                                      | OBJ-03 |
//! | 40..48  | capacity, in elements                                   | OBJ-03 |
//! | 48..56  | deleter of the elements' memory; null if it is the object's | OBJ-03 |
//! | 56..    | elements of an array, 16 bytes each                     | OBJ-03 |

//!
//! `layout` defines that memory and its deleter; `array` and `list` define the two sequences.

mod array;
mod layout;
mod list;

pub use array::Array;
pub use list::List;

use super::lock::with_lock;
use crate::function::{Error, ErrorKind, Result, borrowed};
use crate::object::OBJ_04;
use crate::value::{Any, AnyView, Schema, index};
use layout::{ArrayObj, ListObj, SeqObj};
use std::borrow::Cow;

/// Defines the common part of both sequences: conversion to and from a value, the length, and collection from an iterator. `$object` is the
/// memory of the type, `$other` that of the type that converts to it, and `$schema` its name in the metadata of functions.
macro_rules! sequence {
    ($type:ident, $object:ident, $schema:expr, $other:ident) => {
        // The other kind of sequence converts by copying.
        crate::value::handle_value!($type, $object, $schema, |view| {
            elements_of::<$other>(view).map(|items| $type::new(items.into_owned()))
        });
        crate::value::handle_object!($type);

        impl $type {
            /// Returns the number of elements.
            pub fn len(&self) -> usize {
                self.count()
            }

            /// Returns whether the sequence has no elements.
            pub fn is_empty(&self) -> bool {
                self.count() == 0
            }
        }

        impl FromIterator<Any> for $type {
            fn from_iter<I: IntoIterator<Item = Any>>(items: I) -> $type {
                // A plain loop: `collect` would compile more code for each type of iterator.
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
// The schema that C++ declares for a list that a function changes.
sequence!(
    List,
    ListObj,
    Schema::with("ffi.List", &[Any::schema]),
    ArrayObj
);
borrowed!(Array, ArrayObj, index::ARRAY);
borrowed!(List, ListObj, index::LIST);

/// Returns the elements of a sequence of kind `T`; `None` for other values.
fn elements_of<T: crate::value::Object>(view: AnyView<'_>) -> Option<Cow<'_, [Any]>> {
    if !T::matches(view.type_index()) {
        return None;
    }
    sequence_of(view)
}

/// Returns the elements of a sequence of either kind. Those of an array are borrowed, but those of a list are copied, because the list
/// may change.
pub fn sequence_of<'a>(view: AnyView<'a>) -> Option<Cow<'a, [Any]>> {
    with_items(view, |items| match view.type_index() {
        index::LIST => Cow::Owned(items.to_vec()),
        _ => Cow::Borrowed(items),
    })
}

/// Returns the number of elements of a sequence of either kind.
pub(crate) fn item_count(view: AnyView<'_>) -> Option<usize> {
    with_items(view, <[Any]>::len)
}

/// Runs `work` on the elements of a sequence of either kind. For a list, it runs under the lock, and must not keep the elements.
fn with_items<'a, R>(view: AnyView<'a>, work: impl FnOnce(&'a [Any]) -> R) -> Option<R> {
    // Only an address so far. It is dereferenced after the type index has shown that the value is a sequence.
    let seq = view.as_raw().ptr().cast::<SeqObj>();
    let items = || {
        // SAFETY: only called if the index is that of a sequence: such an object begins with a `SeqObj` (OBJ-03) and lives for `'a`.
        let seq = unsafe { &*seq };
        // SAFETY: a shared array does not change; for a list, this thread has exclusive access, and `work` keeps none of its elements.
        unsafe { seq.items() }
    };
    match view.type_index() {
        index::ARRAY => Some(work(items())),
        index::LIST => Some(with_lock(seq, || work(items()))),
        _ => None,
    }
}

/// Returns the address of element `at` of a sequence of either kind. `unsafe` code uses it to change the element in place, while no
/// reference to the elements is in use.
#[cfg(feature = "vm")]
pub(crate) fn element_cell(view: AnyView<'_>, at: usize) -> Option<*mut Any> {
    let seq = view.as_raw().ptr().cast::<SeqObj>();
    with_items(view, |items| {
        // SAFETY: `with_items` calls this only for sequences, which begin with a `SeqObj` (OBJ-03).
        (at < items.len()).then(|| unsafe { (*seq).body.data }.wrapping_add(at))
    })?
}

/// Replaces element `at` of a sequence of either kind, even of an array, and returns the old one. Returns `None` past the end.
///
/// # Safety
/// An array has no other holder, and nothing borrows its elements.
#[cfg(feature = "frontend")]
pub(crate) unsafe fn swap_element(
    object: &crate::value::ObjectRef,
    at: usize,
    value: Any,
) -> Option<Any> {
    // Its final value is dropped after the lock is released.
    let mut value = value;
    let view = AnyView::from(object);
    let is_inside = with_items(view, |items| {
        let seq = object.as_ptr().cast::<SeqObj>();
        let is_inside = at < items.len();
        if is_inside {
            // SAFETY: `with_items` calls this only for sequences, which begin with a `SeqObj` (OBJ-03).
            let cell = unsafe { (*seq).body.data }.wrapping_add(at);
            // SAFETY: an element of a list to which this thread has exclusive access, or of an array without other holders (this contract).
            value = unsafe { cell.replace(std::mem::take(&mut value)) };
        }
        is_inside
    })?;
    is_inside.then_some(value)
}

/// Returns `count` if memory can hold that many elements. Otherwise panics, before a product with the element size can overflow.
#[inline]
fn countable(count: usize) -> usize {
    if count >= SeqObj::TOO_MANY {
        overflow();
    }
    count
}

/// Panics for [`countable`]. Separate from the hot code.
#[cold]
#[inline(never)]
fn overflow() -> ! {
    panic!("a sequence of more elements than memory can hold");
}

/// Returns a copy of element `at`, counted from 0.
#[inline]
fn element(items: &[Any], at: i64) -> Result {
    usize::try_from(at)
        .ok()
        .and_then(|at| items.get(at))
        .cloned()
        .ok_or_else(|| out_of_bounds(format_args!("Index {at}"), items.len()))
}

/// Returns an IndexError with OBJ-04, in upstream's words: `Index 3 out of bounds 2`.
#[cold]
fn out_of_bounds(what: impl std::fmt::Display, bounds: impl std::fmt::Display) -> Error {
    let message = format!("{what} out of bounds {bounds}");
    Error::of_violation(
        ErrorKind::Index,
        OBJ_04.rejected(crate::rule::Kind::Missing, message),
    )
}
