//! Structural hash: equal values have equal hashes, independent of the names of bound variables.

use super::result_cache::SharedWork;
use super::{described_type, root_region, run_in_hook_region, structural_kind, tensor_bytes};
use crate::function::{Error, Function, Result};
use crate::lock::lock;
use crate::object::hash::{combine, hash_bytes};
use crate::object::reflect::column;
use crate::object::reflect::field_access::fields_of;
use crate::object::walk::depth::Levels;
use crate::object::walk::region::Region;
use crate::object::{Tensor, big_int, extents_of, pair_count, pairs_of, sequence_of};
use crate::value::header::ObjectRef;
use crate::value::types::{TypeInfo, flag};
use crate::value::{Any, AnyView, bytes_bytes, cast, index, str_bytes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Hashes structurally: equal values have equal hashes, except that short and long bytes differ, as in the reference.
///
/// # Errors
///
/// Returns the same errors as [`equal`](super::equal).
pub fn hash(value: AnyView<'_>, map_free_vars: bool, skip_tensors: bool) -> Result<u64> {
    let walk = StructuralHasher {
        region: root_region(map_free_vars),
        depth: Levels::default(),
        skip_tensors,
        done: Mutex::default(),
        containers: SharedWork::default(),
        variables: AtomicU64::new(0),
        nodes: AtomicU64::new(0),
    };
    Arc::new(walk).any(value)
}

/// A hash computation. Hooks of types call back into it, so it is shared, and its parts have locks.
struct StructuralHasher {
    /// The current region for binding variables.
    region: Region,
    /// The current depth.
    depth: Levels,
    /// True if tensors hash only by extents and data type.
    skip_tensors: bool,
    /// Finished objects by address, kept alive.
    done: Mutex<HashMap<usize, (ObjectRef, u64)>>,
    /// Finished sequences and maps with other holders. Separate from `done`, in which a map looks up its keys.
    containers: SharedWork<u64>,
    /// Number of bound variables so far. A variable hashes by its number instead of its name.
    variables: AtomicU64,
    /// Number of graph nodes (kind 3) so far, which is the number of the next one.
    nodes: AtomicU64,
}

/// Returns the hash of a value if it does not depend on the walk.
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
        // Bytes in a cell (VAL-03) hash by tag and payload, unlike the same bytes in an object, as in the table of spec/object.md.
        own if own < index::OBJECT_BEGIN => Some(combine(own as u64, raw.bits())),
        _ => None,
    }
}

impl StructuralHasher {
    /// Returns the hash of any value, as in the column "structural" of the table in `spec/object.md`.
    fn any(self: &Arc<Self>, value: AnyView<'_>) -> Result<u64> {
        let raw = value.as_raw();
        // OBJ-14: NaN equals NaN for all bit patterns, so all NaNs have one hash.
        if raw.type_index == index::FLOAT && raw.float().is_nan() {
            return Ok(combine(index::FLOAT as u64, f64::NAN.to_bits()));
        }
        if let Some(hash) = independent(value) {
            return Ok(hash);
        }
        let Some(object) = value.as_object() else {
            return Ok(combine(raw.type_index as u64, raw.bits()));
        };
        self.depth.deeper(|| self.object(object))
    }

    /// Returns the hash of an object, which starts from the hash of its type key.
    fn object(self: &Arc<Self>, object: &ObjectRef) -> Result<u64> {
        let view = AnyView::from(object);
        let info = described_type(object.type_index())?;
        // By key instead of index, because processes may register a type at different indices.
        let key = info.key_hash;
        if let Some(items) = sequence_of(view) {
            return self.containers.get_or_run(&[object], || {
                let mut hash = combine(key, items.len() as u64);
                for item in &*items {
                    hash = combine(hash, self.any(item.view())?);
                }
                Ok(hash)
            });
        }
        if pairs_of(view).is_some() {
            return self
                .containers
                .get_or_run(&[object], || self.map(view, key));
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

    /// Returns the hash of a map or dict, independent of the order of its pairs.
    fn map(self: &Arc<Self>, view: AnyView<'_>, key: u64) -> Result<u64> {
        let mut items: Vec<(u64, Any)> = Vec::new();
        for (key, value) in pairs_of(view).iter().flatten() {
            // A key that is an object counts only if it was hashed before, such as a variable that an outer field binds.
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
        // Equal maps may differ in insertion order (OBJ-08), so pairs count in the order of their keys' hashes. A key whose hash depends on
        // this walk has no place in that order, so its pair does not count.
        items.sort_by_key(|(hash, _)| *hash);
        let mut hash = combine(key, pair_count(view) as u64);
        for group in items.chunk_by(|a, b| a.0 == b.0) {
            let [(key, value), rest @ ..] = group else {
                continue;
            };
            hash = combine(hash, *key);
            // Keys with equal hashes cannot be distinguished, so their values do not count.
            if rest.is_empty() {
                hash = combine(hash, self.any(value.view())?);
            }
        }
        Ok(hash)
    }

    /// Returns the hash of a tensor: rank, extents and data type, and its bytes unless they are skipped.
    fn tensor(&self, tensor: &Tensor, key: u64) -> Result<u64> {
        let start = combine(key, tensor.shape().len() as u64);
        let mut hash = tensor
            .shape()
            .iter()
            .fold(start, |hash, extent| combine(hash, *extent as u64));
        hash = combine(hash, Any::from(tensor.dl().dtype).as_raw().bits());
        // The bytes in memory, so that only compact tensors on the CPU have a hash.
        if !self.skip_tensors {
            hash = combine(hash, hash_bytes(&tensor_bytes(tensor)?));
        }
        Ok(hash)
    }

    /// Returns the hash of an object by its structural kind. Computed once: a repeated object has the same hash.
    fn described(self: &Arc<Self>, object: &ObjectRef, info: &'static TypeInfo) -> Result<u64> {
        let kind = structural_kind(info)?;
        let at = object.as_ptr() as usize;
        if let Some((_, known)) = lock(&self.done).get(&at) {
            return Ok(*known);
        }
        let fields = || self.fields(object, info);
        let mut hash = if kind == 2 {
            let hash = self.region.run_for_variable_type(fields)?;
            // An unbound variable hashes as itself. A bound one hashes by its number, independent of its name.
            if self.region.kind() == Region::NONE {
                // By its address, because it equals only itself. The hash differs between processes.
                at as u64
            } else {
                combine(hash, self.variables.fetch_add(1, Ordering::Relaxed))
            }
        } else {
            fields()?
        };
        // A graph node includes its number: one node used twice and two equal nodes are different graphs (OBJ-14).
        if kind == 3 {
            hash = combine(hash, self.nodes.fetch_add(1, Ordering::Relaxed));
        }
        // The object is kept alive with its hash, so that no other gets its address during the walk.
        lock(&self.done).insert(at, (object.clone(), hash));
        Ok(hash)
    }

    /// Returns the hash of the fields of an object, or the result of its type's hook `__s_hash__`.
    fn fields(self: &Arc<Self>, object: &ObjectRef, info: &'static TypeInfo) -> Result<u64> {
        let mut hash = info.key_hash;
        if let Some(hook) = column::S_HASH.value(info.type_index) {
            let walk = self.clone();
            let callback =
                Function::named(None, move |value: Any, before: i64, region_kind: i64| {
                    let own =
                        run_in_hook_region(&walk.region, region_kind, || walk.any(value.view()))?;
                    Ok::<i64, Error>(combine(before as u64, own) as i64)
                });
            let args = [object.into(), (hash as i64).into(), (&callback).into()];
            let answer = cast::<Function>(hook)?.call_packed(&args)?;
            return Ok(cast::<i64>(answer.view())? as u64);
        }
        for field in fields_of(object) {
            // Fields that equality ignores are not hashed, so that equal objects have equal hashes.
            if field.flags & flag::EQ_HASH_IGNORE != 0 {
                continue;
            }
            let value = field.get()?;
            let own = self
                .region
                .run_for_field(&field, || self.any(value.view()))?;
            hash = combine(hash, own);
        }
        Ok(hash)
    }
}
