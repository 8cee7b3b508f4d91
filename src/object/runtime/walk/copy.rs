//! Deep copies: containers and objects are copied once each, leaves are shared.

use super::depth;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::reflect::builtin::enum_index;
use crate::object::reflect::column;
use crate::object::reflect::record::{fields_of, fields_of_both};
use crate::object::{Array, Dict, List, Map, pairs_of, sequence_of};
use crate::value::header::ObjectRef;
use crate::value::types;
use crate::value::{Any, AnyView, cast, index};
use std::collections::{HashMap, HashSet};

/// A copy of everything reachable from `value`. Strings, bytes, shapes, big integers and members of enumerations are
/// shared; an object that is met twice is copied once.
///
/// # Errors
///
/// An InternalError for a type without `__ffi_shallow_copy__`; a TypeError with the meaning of OBJ-14 where that function returns an
/// object of another type; a ValueError where values nest too deep; what it, a getter or a setter fails with.
pub(crate) fn deep_copy(value: AnyView<'_>) -> Result {
    let mut copier = Copier::default();
    let copy = copier.copy(value, 0)?;
    // Rarely: only where something immutable contains itself, by way of a list, a dict or an object.
    if copier.deferred {
        copier.patch()?;
    }
    Ok(copy)
}

/// A deep copy in the making.
#[derive(Default)]
struct Copier {
    /// Originals by address, kept, and their copies.
    copies: HashMap<usize, (ObjectRef, Any)>,
    /// Immutable containers on the way: they have no copy yet that could be referred to.
    open: HashSet<usize>,
    /// Whether an open container was met inside itself and its original put in its place for now.
    deferred: bool,
}

impl Copier {
    /// The copy of a value, or the value itself where it is a leaf.
    ///
    /// # Errors
    ///
    /// A ValueError where values nest too deep; as [`deep_copy`].
    fn copy(&mut self, value: AnyView<'_>, depth: usize) -> Result {
        let Some(object) = value.as_object() else {
            return Ok(value.to_any());
        };
        let at = object.as_ptr() as usize;
        if let Some((_, copy)) = self.copies.get(&at) {
            return Ok(copy.clone());
        }
        // An array or a map inside itself, by way of something that can change: its copy does not exist yet.
        if self.open.contains(&at) {
            self.deferred = true;
            return Ok(value.to_any());
        }
        let shared = matches!(
            object.type_index(),
            // These never change, so that sharing them does no harm.
            index::STR | index::BYTES | index::SHAPE | index::BIG_INT
        ) || types::is_instance(object.type_index(), enum_index());
        if shared {
            return Ok(value.to_any());
        }
        depth::check(depth)?;
        self.compound(object, depth)
    }

    /// The copy stands for the original from now on (OBJ-14: a deep copy shares what the original shares).
    fn remember(&mut self, original: &ObjectRef, copy: &Any) {
        let at = original.as_ptr() as usize;
        // The original is held, so that no other object takes its address during the copy.
        self.copies.insert(at, (original.clone(), copy.clone()));
    }

    /// The copy of a container or an object that is met for the first time.
    fn compound(&mut self, object: &ObjectRef, depth: usize) -> Result {
        let view = AnyView::from(object);
        let at = object.as_ptr() as usize;
        match object.type_index() {
            // OBJ-03: an array does not change once others see it, so its elements are copied before it is made.
            index::ARRAY => {
                self.open.insert(at);
                let items = sequence_of(view).unwrap_or_default();
                let copies: Result<Vec<Any>> = items
                    .iter()
                    .map(|item| self.copy(item.view(), depth + 1))
                    .collect();
                let copy = Any::from(Array::new(copies?));
                self.open.remove(&at);
                self.remember(object, &copy);
                Ok(copy)
            }
            index::LIST => {
                let list = List::new(Vec::new());
                let copy = Any::from(list.clone());
                // Known before its elements are: a list may contain itself, and its copy then contains the copy.
                self.remember(object, &copy);
                for item in &*sequence_of(view).unwrap_or_default() {
                    let item = self.copy(item.view(), depth + 1)?;
                    list.push(item);
                }
                Ok(copy)
            }
            index::MAP => {
                self.open.insert(at);
                let mut map = Map::new();
                for (key, value) in owned_pairs(view) {
                    let key = self.copy(key.view(), depth + 1)?;
                    map.set(key, self.copy(value.view(), depth + 1)?)?;
                }
                let copy = Any::from(map);
                self.open.remove(&at);
                self.remember(object, &copy);
                Ok(copy)
            }
            index::DICT => {
                // As for a list: known before its pairs are, since a dict may contain itself.
                let dict = Dict::new();
                let copy = Any::from(dict.clone());
                self.remember(object, &copy);
                for (key, value) in owned_pairs(view) {
                    let key = self.copy(key.view(), depth + 1)?;
                    dict.set(key, self.copy(value.view(), depth + 1)?)?;
                }
                Ok(copy)
            }
            _ => self.object(object, depth),
        }
    }

    /// The copy of an object: a shallow one by the hook of its type, in which each field that holds something to copy is replaced.
    ///
    /// # Errors
    ///
    /// An InternalError for a type without the hook, a TypeError with OBJ-14 where it returns an object of another type; what the
    /// hook, a getter or a setter fails with.
    fn object(&mut self, object: &ObjectRef, depth: usize) -> Result {
        let Some(shallow) = column::SHALLOW_COPY.value(object.type_index()) else {
            return Err(Error::new(
                ErrorKind::Internal,
                format!(
                    "Cannot deep copy object of type \"{}\" because it is not copy-constructible",
                    types::key_of(object.type_index())
                ),
            ));
        };
        // A shallow copy shares all fields, so that those without a setter need none.
        let copy = cast::<Function>(shallow)?.call(&[AnyView::from(object)])?;
        self.remember(object, &copy);
        let target = cast::<ObjectRef>(copy.view())?;
        // OBJ-14: upstream returns the object of the other type.
        if target.type_index() != object.type_index() {
            return Err(Error::new(
                ErrorKind::Type,
                format!(
                    "__ffi_shallow_copy__ of type `{}` made an object of type `{}`",
                    types::key_of(object.type_index()),
                    types::key_of(target.type_index())
                ),
            ));
        }
        // OBJ-14: held to one type above, since fields are written at the offsets of that type.
        for (field, copied) in fields_of_both(object, &target) {
            let before = field.get()?;
            let after = self.copy(before.view(), depth + 1)?;
            // A field that nothing changes in is not written: it may have no setter.
            if !same(&before, &after) {
                copied.set(after.view())?;
            }
        }
        Ok(copy)
    }

    /// Replaces the originals that stood in for open containers.
    /// Looks into what can change, after all copies are made.
    ///
    /// # Errors
    ///
    /// What a getter, a setter or the hash of a key fails with.
    fn patch(&self) -> Result<()> {
        for (_, copy) in self.copies.values() {
            let Some(object) = copy.as_object() else {
                continue;
            };
            match object.type_index() {
                index::LIST => {
                    let list = cast::<List>(copy.view())?;
                    for (at, item) in (0i64..).zip(list.to_vec()) {
                        if let Some(copy) = self.copy_of(&item) {
                            list.set(at, copy)?;
                        }
                    }
                }
                index::DICT => {
                    let dict = cast::<Dict>(copy.view())?;
                    for (key, value) in owned_pairs(copy.view()) {
                        let (new_key, new_value) = (self.copy_of(&key), self.copy_of(&value));
                        if new_key.is_some() || new_value.is_some() {
                            dict.remove(key.view())?;
                            dict.set(new_key.unwrap_or(key), new_value.unwrap_or(value))?;
                        }
                    }
                }
                own if own >= index::STATIC_END => {
                    for field in fields_of(object) {
                        if let Some(copy) = self.copy_of(&field.get()?) {
                            field.set(copy.view())?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The copy of what a value was before, if it was copied.
    fn copy_of(&self, value: &Any) -> Option<Any> {
        let object = value.as_object()?;
        let (_, copy) = self.copies.get(&(object.as_ptr() as usize))?;
        Some(copy.clone())
    }
}

/// The pairs of a map or dict, held: setters and hooks that run meanwhile may change the dict.
fn owned_pairs(view: AnyView<'_>) -> Vec<(Any, Any)> {
    pairs_of(view)
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether both are the same plain value or the same object.
fn same(left: &Any, right: &Any) -> bool {
    let (left, right) = (left.as_raw(), right.as_raw());
    left.type_index == right.type_index && left.bits() == right.bits() && left.aux == right.aux
}
