//! Visits and rewrites of containers: the elements of sequences and the values of maps. Keys are not visited.

use super::mutate::{MutateFn, Mutator, MutatorObj, is_same, resolve, unchanged};
use super::{VisitFn, Visitor, VisitorObj, answer};
use crate::function::Result;
use crate::object::reflect::column;
use crate::object::{
    Array, Dict, List, Map, Pairs, item_count, pairs_of, sequence_of, swap_element, swap_value,
};
use crate::value::types::set_any_attr;
use crate::value::{Any, AnyView, RawAny, index};
use std::borrow::Cow;
use std::ffi::c_void;

/// Registers the hooks of the builtin container and leaf types.
pub(crate) fn register() {
    for container in [index::ARRAY, index::LIST, index::MAP, index::DICT] {
        visited_by(container, visit_parts);
        mutated_by(container, mutate_parts, mutate_in_place);
    }
    for leaf in [index::STR, index::BYTES, index::BIG_INT] {
        mutated_by(leaf, super::rewrite::leaf, super::rewrite::leaf);
    }
}

/// Registers the hook `__s_visit__` of a type.
fn visited_by(type_index: i32, hook: VisitFn) {
    set(type_index, &column::S_VISIT, hook as *mut c_void);
}

/// Registers the hooks `__s_mutate__` and `__s_maybe_inplace_mutate__` of a type.
fn mutated_by(type_index: i32, hook: MutateFn, in_place: MutateFn) {
    set(type_index, &column::S_MUTATE, hook as *mut c_void);
    set(
        type_index,
        &column::S_MAYBE_INPLACE,
        in_place as *mut c_void,
    );
}

/// Registers a hook. It must be a function of the attribute's type.
fn set(type_index: i32, column: &column::TypeAttribute, hook: *mut c_void) {
    // SAFETY: a C function with the calling convention of the attribute.
    let hook = unsafe { Any::handle(hook) };
    // SAFETY: as for `Any::handle`; code of this library is never unloaded. It is rejected only if another thread was faster, whose hook
    // then stays.
    let _ = unsafe { set_any_attr(type_index, column.name(), hook) };
}

/// The contents of a container. Those of an array or a map are borrowed, so that a callback sees the original reference counts. A list or a
/// dict may change meanwhile.
enum Contents<'a> {
    /// The elements of an array or a list.
    Items(Cow<'a, [Any]>),
    /// The pairs of a map or dict, in order of insertion (OBJ-08).
    Pairs(Option<Pairs<'a>>),
}

impl<'a> Contents<'a> {
    /// Returns the contents of a container, and no pairs for other values.
    fn of(value: AnyView<'a>) -> Contents<'a> {
        sequence_of(value).map_or_else(|| Contents::Pairs(pairs_of(value)), Contents::Items)
    }

    /// Returns the elements of a sequence or the values of a map.
    fn parts(&self) -> Vec<AnyView<'_>> {
        match self {
            Contents::Items(items) => items.iter().map(Any::view).collect(),
            Contents::Pairs(pairs) => pairs
                .iter()
                .flatten()
                .map(|(_, part)| part.view())
                .collect(),
        }
    }

    /// Returns the keys of a map, which a copy reuses unchanged. Returns no keys for a sequence.
    fn keys(&self) -> Vec<Any> {
        match self {
            Contents::Items(_) => Vec::new(),
            Contents::Pairs(pairs) => pairs.iter().flatten().map(|(key, _)| key.clone()).collect(),
        }
    }
}

/// Implements the hook `__s_visit__` of containers: visits each part and ends at the first interrupt (OBJ-34).
unsafe extern "C-unwind" fn visit_parts(visitor: *mut VisitorObj, value: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: alive for the call.
        let visitor = unsafe { Visitor::from_raw(visitor) };
        // SAFETY: alive for the call.
        let value = unsafe { AnyView::from_raw(value) };
        for part in Contents::of(value).parts() {
            let stop = visitor.visit(part)?;
            if !stop.is_none() {
                return Ok(stop);
            }
        }
        Ok(Any::none())
    })
}

/// Implements the hook `__s_mutate__` of containers: returns a new container with the rewritten parts, or `ffi.Unchanged` if none changed
/// (OBJ-35).
unsafe extern "C-unwind" fn mutate_parts(mutator: *mut MutatorObj, value: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: alive for the call.
        let mutator = unsafe { Mutator::from_raw(mutator) };
        // SAFETY: alive for the call.
        let value = unsafe { AnyView::from_raw(value) };
        let contents = Contents::of(value);
        let (before, keys) = (contents.parts(), contents.keys());
        let mut after = Vec::with_capacity(before.len());
        let mut changed = false;
        for part in before.iter().copied() {
            // Never in place, because the container that is copied also holds the part (OBJ-35).
            let made = mutator.mutate(part, false)?;
            changed |= !is_same(part, &made);
            after.push(made);
        }
        if !changed {
            return Ok(unchanged());
        }
        let after = after.into_iter().zip(before);
        let values = after.map(|(made, part)| resolve(made, part)).collect();
        container(value.type_index(), keys, values)
    })
}

/// Creates a container of a kind.
fn container(kind: i32, keys: Vec<Any>, values: Vec<Any>) -> Result {
    Ok(match kind {
        index::ARRAY => Array::new(values).into(),
        index::LIST => List::new(values).into(),
        index::MAP => Map::from_pairs(keys.into_iter().zip(values).collect())?.into(),
        _ => {
            let dict = Dict::new();
            for (key, value) in keys.into_iter().zip(values) {
                dict.set(key, value)?;
            }
            dict.into()
        }
    })
}

/// Implements the hook `__s_maybe_inplace_mutate__` of containers. Rewrites the parts within the container, whose only holder is the caller
/// (OBJ-35). Returns `ffi.Unchanged`, because the container is the same object.
unsafe extern "C-unwind" fn mutate_in_place(mutator: *mut MutatorObj, value: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: alive for the call.
        let mutator = unsafe { Mutator::from_raw(mutator) };
        // SAFETY: alive for the call.
        let value = unsafe { AnyView::from_raw(value) };
        let Some(object) = value.as_object() else {
            return Ok(unchanged());
        };
        if item_count(value).is_some() {
            let mut at = 0;
            // SAFETY: the hook for a rewrite in place is only called with a value whose only holder is the caller.
            while let Some(part) = unsafe { swap_element(object, at, Any::none()) } {
                rewrite_part(mutator, part, |made| {
                    // SAFETY: the same value; the rewritten part does not hold it.
                    unsafe { swap_element(object, at, made) };
                    Ok(())
                })?;
                at += 1;
            }
            return Ok(unchanged());
        }
        // By key instead of pair: a callback may reach a dict and change it while its parts are rewritten.
        for key in Contents::of(value).keys() {
            // SAFETY: as for sequences above.
            if let Some(part) = unsafe { swap_value(object, key.view(), Any::none()) }? {
                rewrite_part(mutator, part, |made| {
                    // SAFETY: the same value.
                    unsafe { swap_value(object, key.view(), made) }.map(drop)
                })?;
            }
        }
        Ok(unchanged())
    })
}

/// Rewrites a part that was taken out of its container, so that its reference count shows that nothing else holds it. Puts the result back,
/// or the old part after an error.
fn rewrite_part(mutator: Mutator, part: Any, put: impl FnOnce(Any) -> Result<()>) -> Result<()> {
    match mutator.mutate(part.view(), true) {
        Ok(made) => put(resolve_owned(made, part)),
        Err(error) => {
            put(part)?;
            Err(error)
        }
    }
}

/// Like [`resolve`], for a part that is owned here.
fn resolve_owned(made: Any, part: Any) -> Any {
    if made.type_index() == index::UNCHANGED {
        part
    } else {
        made
    }
}
