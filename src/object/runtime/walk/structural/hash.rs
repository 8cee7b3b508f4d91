//! Structural hash: equal values have equal hashes, whatever their bound variables are called.

use super::scope::{BindingScope, lock, region};
use super::shared::SharedWork;
use super::{described_type, structural_kind, tensor_bytes};
use crate::function::{Error, Function, Result};
use crate::object::hash::{combine, hash_bytes};
use crate::object::reflect::column;
use crate::object::reflect::record::fields_of;
use crate::object::{Tensor, big_int, extents_of, pair_count, pairs_of, sequence_of};
use crate::value::header::ObjectRef;
use crate::value::types::{TypeInfo, flag};
use crate::value::{Any, AnyView, bytes_bytes, cast, index, str_bytes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Structural hash: equal values have equal hashes, except that short and long bytes differ as in the reference.
///
/// # Errors
///
/// As [`equal`](super::equal).
pub fn hash(value: AnyView<'_>, map_free_vars: bool, skip_tensors: bool) -> Result<u64> {
    let scope = BindingScope::default();
    if map_free_vars {
        scope.region.store(region::PATTERN, Ordering::Relaxed);
    }
    let walk = StructuralHasher {
        scope,
        skip_tensors,
        done: Mutex::default(),
        containers: SharedWork::default(),
        variables: AtomicU64::new(0),
        nodes: AtomicU64::new(0),
    };
    Arc::new(walk).any(value)
}

/// One hash. Hooks of types call back into it, so it is shared, and its parts have locks.
struct StructuralHasher {
    /// Where variables may be bound now, and how deep the walk is.
    scope: BindingScope,
    /// Whether tensors hash by extents and data type alone.
    skip_tensors: bool,
    /// Finished objects by address, kept.
    done: Mutex<HashMap<usize, (ObjectRef, u64)>>,
    /// Finished sequences and maps with other holders. Apart from `done`, in which a map looks for its keys.
    containers: SharedWork<u64>,
    /// How many bound variables were met: the next one's number, which takes the place of its name.
    variables: AtomicU64,
    /// How many nodes of graphs (kind 3) were met: the next one's number.
    nodes: AtomicU64,
}

/// Hash of a value that does not depend on the walk, if it is one.
fn independent(value: AnyView<'_>) -> Option<u64> {
    let raw = value.as_raw();
    match raw.type_index {
        index::SMALL_STR | index::STR => {
            let bytes = str_bytes(&value).unwrap_or_default();
            Some(combine(index::STR as u64, hash_bytes(bytes)))
        }
        index::BYTES => {
            let bytes = bytes_bytes(&value).unwrap_or_default();
            Some(combine(index::BYTES as u64, hash_bytes(bytes)))
        }
        index::BIG_INT => {
            let words = big_int::words_of(&value).unwrap_or_default();
            Some(combine(index::BIG_INT as u64, big_int::hash(words)))
        }
        // Bytes in a cell (VAL-03) hash by tag and payload and so unlike the same bytes in an object, as the table of
        // spec/object.md has it.
        own if own < index::OBJECT_BEGIN => Some(combine(own as u64, raw.bits())),
        _ => None,
    }
}

impl StructuralHasher {
    /// The hash of any value, as the column "structural" of the table in `spec/object.md` has it.
    fn any(self: &Arc<Self>, value: AnyView<'_>) -> Result<u64> {
        let raw = value.as_raw();
        // OBJ-14: NaN equals NaN, whatever its bits, so all hash alike.
        if raw.type_index == index::FLOAT && raw.float().is_nan() {
            return Ok(combine(index::FLOAT as u64, f64::NAN.to_bits()));
        }
        if let Some(hash) = independent(value) {
            return Ok(hash);
        }
        let Some(object) = value.as_object() else {
            return Ok(combine(raw.type_index as u64, raw.bits()));
        };
        self.scope.deeper(|| self.object(object))
    }

    /// The hash of an object, whose first step is the hash of its type key.
    fn object(self: &Arc<Self>, object: &ObjectRef) -> Result<u64> {
        let view = AnyView::from(object);
        let info = described_type(object.type_index())?;
        // By its key and not by its index: a process may register a type at any index.
        let key = info.key_hash;
        if let Some(items) = sequence_of(view) {
            return self.containers.once(&[object], || {
                let mut hash = combine(key, items.len() as u64);
                for item in &*items {
                    hash = combine(hash, self.any(item.view())?);
                }
                Ok(hash)
            });
        }
        if pairs_of(view).is_some() {
            return self.containers.once(&[object], || self.map(view, key));
        }
        if let Some(extents) = extents_of(view) {
            let start = combine(key, extents.len() as u64);
            return Ok(extents
                .iter()
                .fold(start, |hash, extent| combine(hash, *extent as u64)));
        }
        if object.type_index() == index::TENSOR {
            return self.tensor(&cast::<Tensor>(view)?, key);
        }
        self.described(object, info)
    }

    /// The hash of a map or dict, whatever the order of its pairs.
    fn map(self: &Arc<Self>, view: AnyView<'_>, key: u64) -> Result<u64> {
        let mut items: Vec<(u64, Any)> = Vec::new();
        for (key, value) in pairs_of(view).iter().flatten() {
            // A key that is an object counts where it was hashed before, as a variable that an outer field binds.
            let known = independent(key.view()).or_else(|| {
                let at = key.as_object()?.as_ptr() as usize;
                lock(&self.done).get(&at).map(|(_, hash)| *hash)
            });
            match known {
                Some(hash) => items.push((hash, value.clone())),
                // The key may be hashed later.
                None => self.containers.is_not_final(),
            }
        }
        // Equal maps may have another order of insertion (OBJ-08), so pairs count in the order of the hashes of their keys. A
        // key that hashes only inside this walk has no place in that order, and its pair does not count.
        items.sort_by_key(|(hash, _)| *hash);
        let mut hash = combine(key, pair_count(view) as u64);
        for group in items.chunk_by(|a, b| a.0 == b.0) {
            let [(key, value), rest @ ..] = group else {
                continue;
            };
            hash = combine(hash, *key);
            // Keys of one hash cannot be distinguished, so their values do not count.
            if rest.is_empty() {
                hash = combine(hash, self.any(value.view())?);
            }
        }
        Ok(hash)
    }

    /// The hash of a tensor: rank, extents and data type, and its bytes unless they are left out.
    fn tensor(&self, tensor: &Tensor, key: u64) -> Result<u64> {
        let start = combine(key, tensor.shape().len() as u64);
        let mut hash = tensor
            .shape()
            .iter()
            .fold(start, |hash, extent| combine(hash, *extent as u64));
        hash = combine(hash, Any::from(tensor.dl().dtype).as_raw().bits());
        // The bytes as they lie in memory, so that only compact tensors on the CPU have a hash.
        if !self.skip_tensors {
            hash = combine(hash, hash_bytes(&tensor_bytes(tensor)?));
        }
        Ok(hash)
    }

    /// The hash of an object by its structural kind, finished once: what occurs again has the hash that it had.
    fn described(self: &Arc<Self>, object: &ObjectRef, info: &'static TypeInfo) -> Result<u64> {
        let kind = structural_kind(info)?;
        let at = object.as_ptr() as usize;
        if let Some((_, known)) = lock(&self.done).get(&at) {
            return Ok(*known);
        }
        let fields = || self.fields(object, info);
        let mut hash = if kind == 2 {
            let hash = self.scope.of_variable(fields)?;
            // A variable that nothing binds is itself; a bound one is its number, whatever it is called.
            if self.scope.region() == region::NONE {
                // By its address, as it equals itself alone: in another process it has another hash.
                at as u64
            } else {
                combine(hash, self.variables.fetch_add(1, Ordering::Relaxed))
            }
        } else {
            fields()?
        };
        // A node of a graph counts with its number: one node twice and two equal nodes are different graphs (OBJ-14).
        if kind == 3 {
            hash = combine(hash, self.nodes.fetch_add(1, Ordering::Relaxed));
        }
        // The object is held with its hash, so that no other takes its address during the walk.
        lock(&self.done).insert(at, (object.clone(), hash));
        Ok(hash)
    }

    /// The hash of the fields of an object, or what the hook `__s_hash__` of its type makes of them.
    fn fields(self: &Arc<Self>, object: &ObjectRef, info: &'static TypeInfo) -> Result<u64> {
        let mut hash = info.key_hash;
        if let Some(hook) = column::S_HASH.value(info.type_index) {
            let walk = self.clone();
            let callback =
                Function::named(None, move |value: Any, before: i64, region_kind: i64| {
                    let own = walk
                        .scope
                        .in_region_of_hook(region_kind, || walk.any(value.view()))?;
                    Ok::<i64, Error>(combine(before as u64, own) as i64)
                });
            let args = [object.into(), (hash as i64).into(), (&callback).into()];
            let answer = cast::<Function>(hook)?.call(&args)?;
            return Ok(cast::<i64>(answer.view())? as u64);
        }
        for field in fields_of(object) {
            // What equality leaves out the hash leaves out, so that equal objects have equal hashes.
            if field.flags & flag::EQ_HASH_IGNORE != 0 {
                continue;
            }
            let value = field.get()?;
            let own = self.scope.of_field(&field, || self.any(value.view()))?;
            hash = combine(hash, own);
        }
        Ok(hash)
    }
}
