//! Deep copies: containers and objects are copied once each, and leaves are shared.

use super::depth;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::reflect::builtin::enum_index;
use crate::object::reflect::column;
use crate::object::reflect::field_access::{fields_of, fields_of_both};
use crate::object::{Array, Dict, List, Map, pairs_of, sequence_of};
use crate::value::header::ObjectRef;
use crate::value::types;
use crate::value::{Any, AnyView, cast, index};
use std::collections::{HashMap, HashSet};

/// Copies everything reachable from `value`. Strings, bytes, shapes, big integers and members of enumerations are shared. An object that
/// occurs twice is copied once.
pub(crate) fn deep_copy(value: AnyView<'_>) -> Result {
    let mut copier = Copier::default();
    let copy = copier.copy(value, 0)?;
    // Rare: only if an immutable container contains itself through a list, a dict or an object.
    if copier.deferred {
        return copier.patch(&copy);
    }
    Ok(copy)
}

/// The state of a deep copy.
#[derive(Default)]
struct Copier {
    /// The originals, kept alive, and their copies, by address of the original.
    copies: HashMap<usize, (ObjectRef, Any)>,
    /// Immutable containers that are being copied: their copy does not exist yet.
    open: HashSet<usize>,
    /// True if an open container was reached inside itself, so that its original is a placeholder for now.
    deferred: bool,
}

impl Copier {
    /// Returns the copy of a value, or the value itself if it is a leaf.
    fn copy(&mut self, value: AnyView<'_>, depth: usize) -> Result {
        let Some(object) = value.as_object() else {
            return Ok(value.to_any());
        };
        let at = object.as_ptr() as usize;
        if let Some((_, copy)) = self.copies.get(&at) {
            return Ok(copy.clone());
        }
        // An array or a map inside itself, through something mutable: its copy does not exist yet.
        if self.open.contains(&at) {
            self.deferred = true;
            return Ok(value.to_any());
        }
        let shared = matches!(
            object.type_index(),
            // These never change, so sharing is safe.
            index::STR | index::BYTES | index::SHAPE | index::BIG_INT
        ) || types::is_instance(object.type_index(), enum_index());
        if shared {
            return Ok(value.to_any());
        }
        depth::check(depth)?;
        self.compound(object, depth)
    }

    /// Records that the copy replaces the original from now on (OBJ-14: a deep copy keeps the sharing of the original).
    fn remember(&mut self, original: &ObjectRef, copy: &Any) {
        let at = original.as_ptr() as usize;
        // The original is kept alive, so that no other object gets its address during the copy.
        self.copies.insert(at, (original.clone(), copy.clone()));
    }

    /// Copies a container or an object that is reached for the first time.
    fn compound(&mut self, object: &ObjectRef, depth: usize) -> Result {
        let view = AnyView::from(object);
        let at = object.as_ptr() as usize;
        match object.type_index() {
            // OBJ-03: a shared array does not change, so its elements are copied before it is created.
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
                // Recorded before the elements: a list may contain itself, and its copy must then contain the copy.
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
                // As for a list: recorded before the pairs, because a dict may contain itself.
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

    /// Copies an object: the hook of its type makes a shallow copy, whose fields are then replaced by deep copies.
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
        // A shallow copy shares all fields, so fields without a setter are covered.
        let copy = cast::<Function>(shallow)?.call_packed(&[AnyView::from(object)])?;
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
        // OBJ-14: both have one type, which was checked above, because fields are written at the offsets of that type.
        for (field, copied) in fields_of_both(object, &target) {
            let before = field.get()?;
            let after = self.copy(before.view(), depth + 1)?;
            // An unchanged field is not written, because it may have no setter.
            if !is_same(&before, &after) {
                copied.set(after.view())?;
            }
        }
        Ok(copy)
    }

    /// Returns the copy of the root, with all placeholders of open containers replaced. Checks everything that was copied, after all copies
    /// exist.
    fn patch(&self, root: &Any) -> Result {
        let mut remade = Remade::new();
        for (_, copy) in self.copies.values() {
            let Some(object) = copy.as_object() else {
                continue;
            };
            match object.type_index() {
                index::LIST => {
                    let list = cast::<List>(copy.view())?;
                    for (at, item) in (0i64..).zip(list.to_vec()) {
                        if let Some(item) = self.patched(&item, &mut remade, 0)? {
                            list.set(at, item)?;
                        }
                    }
                }
                index::DICT => {
                    let dict = cast::<Dict>(copy.view())?;
                    for (key, value) in owned_pairs(copy.view()) {
                        let new_key = self.patched(&key, &mut remade, 0)?;
                        let new_value = self.patched(&value, &mut remade, 0)?;
                        if new_key.is_some() || new_value.is_some() {
                            // OBJ-14, OBJ-08: the pair moves to the end, as in upstream.
                            dict.remove(key.view())?;
                            dict.set(new_key.unwrap_or(key), new_value.unwrap_or(value))?;
                        }
                    }
                }
                own if own >= index::STATIC_END => {
                    for field in fields_of(object) {
                        if let Some(value) = self.patched(&field.get()?, &mut remade, 0)? {
                            field.set(value.view())?;
                        }
                    }
                }
                _ => {}
            }
        }
        let patched = self.patched(root, &mut remade, 0)?;
        Ok(patched.unwrap_or_else(|| root.clone()))
    }

    /// Returns the replacement of `value` inside a copy. An original is replaced by its copy, and an array or a map that contains an
    /// original by a new one. Returns `None` if `value` stays.
    fn patched(&self, value: &Any, remade: &mut Remade, depth: usize) -> Result<Option<Any>> {
        let Some(object) = value.as_object() else {
            return Ok(None);
        };
        if let Some((_, copy)) = self.copies.get(&(object.as_ptr() as usize)) {
            let patched = self.without_originals(copy, remade, depth)?;
            return Ok(Some(patched.unwrap_or_else(|| copy.clone())));
        }
        self.without_originals(value, remade, depth)
    }

    /// Creates a new array or map if it contains an original, because neither can be changed any more (OBJ-03). Returns `None` for other
    /// values.
    fn without_originals(
        &self,
        copy: &Any,
        remade: &mut Remade,
        depth: usize,
    ) -> Result<Option<Any>> {
        let at = match copy.as_object() {
            Some(object) if matches!(object.type_index(), index::ARRAY | index::MAP) => {
                object.as_ptr() as usize
            }
            _ => return Ok(None),
        };
        if let Some((_, done)) = remade.get(&at) {
            return Ok(done.clone());
        }
        depth::check(depth)?;
        // Kept alive, so that no other object gets its address, and recorded, so that none is checked twice.
        remade.insert(at, (copy.clone(), None));
        let mut has_changed = false;
        let mut part = |value: &Any, remade: &mut Remade| -> Result {
            let patched = self.patched(value, remade, depth + 1)?;
            has_changed |= patched.is_some();
            Ok(patched.unwrap_or_else(|| value.clone()))
        };
        let anew = match sequence_of(copy.view()) {
            Some(items) => {
                let items: Result<Vec<Any>> = items.iter().map(|item| part(item, remade)).collect();
                Any::from(Array::new(items?))
            }
            None => {
                let mut map = Map::new();
                for (key, value) in owned_pairs(copy.view()) {
                    let key = part(&key, remade)?;
                    map.set(key, part(&value, remade)?)?;
                }
                Any::from(map)
            }
        };
        let done = has_changed.then_some(anew);
        remade.insert(at, (copy.clone(), done.clone()));
        Ok(done)
    }
}

/// Arrays and maps that are copies, kept alive, by address, with their replacements.
type Remade = HashMap<usize, (Any, Option<Any>)>;

/// Returns the pairs of a map or dict with a reference to each, because setters and hooks may change the dict meanwhile.
fn owned_pairs(view: AnyView<'_>) -> Vec<(Any, Any)> {
    pairs_of(view)
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns whether both are the same plain value or the same object.
fn is_same(left: &Any, right: &Any) -> bool {
    let (left, right) = (left.as_raw(), right.as_raw());
    left.type_index == right.type_index && left.bits() == right.bits() && left.aux == right.aux
}
