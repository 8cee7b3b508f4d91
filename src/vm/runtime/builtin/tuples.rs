//! Tuples (VM-49, VM-58).

use super::super::error::VmResult;
use super::arguments::{arg, int};
use crate::function::Error;
use crate::object::{Array, element_cell, item_count, sequence_of};
use crate::rule::Kind;
use crate::value::{Any, AnyView, ObjectRef};
use crate::vm::VM_49;

/// Creates a tuple of the values (VM-49); arguments: `(values...)`.
pub(super) fn make_tuple(args: &[AnyView<'_>]) -> VmResult {
    Ok(Array::new(args.iter().map(|value| value.to_any())).into())
}

/// Returns the element at an index, or VM-49 beyond the end; arguments: `(tuple, index)`. A negative index has no element.
pub(super) fn tuple_getitem(args: &[AnyView<'_>]) -> VmResult {
    let at = int(args, 1)?;
    let items = sequence_of(arg(args, 0));
    let found = items
        .as_deref()
        .and_then(|items| items.get(usize::try_from(at).ok()?));
    match found {
        Some(value) => Ok(value.clone()),
        _ => Err(no_element(at, items.as_deref().map_or(0, <[Any]>::len))),
    }
}

/// Creates the error of VM-49 for an index outside of the tuple.
fn no_element(at: i64, count: usize) -> Error {
    let message = format!("there is no element {at} in a tuple of {count}");
    VM_49.rejected(Kind::Missing, message).into()
}

/// Resets an element as [`tuple_reset_item`] does, unless the tuple has another holder that may read the element. In that case, the
/// tuple is unchanged, and the element's memory is freed when that holder drops the tuple.
pub(in crate::vm::runtime) fn reset_item_held_alone(args: &[AnyView<'_>]) -> VmResult {
    // VM-58: 0.16 to 0.20 wrote into a copy, which no holder saw. The argument's holder has one reference, and `to_any` adds one
    // here.
    let shared = |object: &ObjectRef| object.header().strong_count() > 2;
    if arg(args, 0).to_any().as_object().is_some_and(shared) {
        // VM-49: an index without an element is also rejected here.
        return tuple_getitem(args).map(|_| Any::none());
    }
    tuple_reset_item(args)
}

/// Replaces an element with None, so that its memory can be reused; arguments: `(tuple, index)`. Every holder of the tuple sees
/// this (VM-58).
pub(super) fn tuple_reset_item(args: &[AnyView<'_>]) -> VmResult {
    let at = int(args, 1)?;
    let tuple = arg(args, 0);
    let found = usize::try_from(at).ok();
    let Some(found) = found.and_then(|at| element_cell(tuple, at)) else {
        return Err(no_element(at, item_count(tuple).unwrap_or(0)));
    };
    // SAFETY: the cell is an owned value of the tuple. The caller guarantees that the element is not borrowed (`registry::lookup_raw`).
    // Compiled code guarantees it when a machine calls this.
    drop(unsafe { found.replace(Any::none()) });
    Ok(Any::none())
}
