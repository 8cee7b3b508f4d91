//! Structural equality and hash: by contents, up to the names of bound variables.
//!
//! A type says how it takes part: 0 not at all, 1 as a tree, 2 as a variable, 3 as a node of a graph (shared or not
//! matters), 4 as a tree that is the same when it is the same object, 5 by identity. A variable is bound where a field
//! defines it; elsewhere it is itself.

use super::depth;
use crate::function::{Error, Function, Result};
use crate::object::hash::{combine, hash_bytes};
use crate::object::reflect::builtin::{Path, StepKind, extend, root};
use crate::object::reflect::column;
use crate::object::reflect::record::{fields_of, fields_of_both};
use crate::object::{
    Array, Tensor, big_int, extents_of, lookup_in, pair_count, pairs_of, sequence_of,
};
use crate::value::header::ObjectRef;
use crate::value::types::{self, FieldInfo, TypeInfo, flag};
use crate::value::{Any, AnyView, Str, bytes_bytes, cast, index, str_bytes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where variables may be bound.
mod region {
    pub(super) const NONE: i32 = 0;
    pub(super) const PATTERN: i32 = 1;
    pub(super) const SIMPLE: i32 = 2;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region in which a walk is now, and how deep it is.
#[derive(Default)]
struct Place {
    region: AtomicI32,
    depth: AtomicUsize,
}

impl Place {
    fn region(&self) -> i32 {
        self.region.load(Ordering::Relaxed)
    }

    /// Runs `body` in another region. A pattern region stays one.
    fn within<T>(&self, wanted: i32, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
        if before != region::PATTERN {
            self.region.store(wanted, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    /// Runs `body` for the type of a variable, which a simple region does not bind.
    fn of_variable<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.region();
        if before == region::SIMPLE {
            self.region.store(region::NONE, Ordering::Relaxed);
        }
        let result = body();
        self.region.store(before, Ordering::Relaxed);
        result
    }

    fn of_field<T>(&self, field: &FieldInfo, body: impl FnOnce() -> Result<T>) -> Result<T> {
        if field.flags & flag::DEF_SIMPLE != 0 {
            self.within(region::SIMPLE, body)
        } else if field.flags & flag::DEF_PATTERN != 0 {
            self.within(region::PATTERN, body)
        } else {
            body()
        }
    }

    /// As a hook of a type asks for it: 0 keeps the region.
    fn as_asked<T>(&self, asked: i64, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let asked = i32::try_from(asked)
            .map_err(|_| Error::new("ValueError", format!("there is no region {asked}")))?;
        match asked {
            region::NONE => self.within(self.region(), body),
            wanted => self.within(wanted, body),
        }
    }

    fn deeper<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let levels = self.depth.fetch_add(1, Ordering::Relaxed);
        let result = depth::check(levels).and_then(|()| body());
        self.depth.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

fn structural_kind(info: &TypeInfo) -> Result<i32> {
    let Some(metadata) = info.metadata() else {
        return Err(Error::new(
            "TypeError",
            format!(
                "Type metadata is not set for type `{}`, so StructuralHash is not supported for this type",
                info.key()
            ),
        ));
    };
    if metadata.structural_kind == 0 {
        return Err(Error::new(
            "TypeError",
            format!(
                "_type_s_eq_hash_kind is not set for type `{}`, so StructuralHash is not supported for this type",
                info.key()
            ),
        ));
    }
    Ok(metadata.structural_kind)
}

fn info(type_index: i32) -> Result<&'static TypeInfo> {
    types::info(type_index)
        .ok_or_else(|| Error::new("InternalError", format!("unknown type index {type_index}")))
}

fn tensor_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    if tensor.dl().device.device_type != 1 {
        return Err(Error::new("InternalError", "can only compare CPU tensor"));
    }
    match tensor.to_bytes() {
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(Error::new(
            "InternalError",
            "Can only compare contiguous tensor",
        )),
    }
}

/// Whether two values are structurally equal. `map_free_vars` lets free variables be bound to each other.
///
/// # Errors
///
/// A ValueError where values nest too deep; a TypeError for a type that does not state its structure; an InternalError for a
/// tensor that is not compact on the CPU; what the comparison of an object's own type raises.
pub fn equal(
    left: AnyView<'_>,
    right: AnyView<'_>,
    map_free_vars: bool,
    skip_tensors: bool,
) -> Result<bool> {
    Arc::new(Equal::new(map_free_vars, skip_tensors, false)).any(left, right)
}

/// Where two values first differ, as paths in each, or nothing when they are equal.
pub(crate) fn first_mismatch(
    left: AnyView<'_>,
    right: AnyView<'_>,
    map_free_vars: bool,
    skip_tensors: bool,
) -> Result<Option<(Path, Path)>> {
    let walk = Arc::new(Equal::new(map_free_vars, skip_tensors, true));
    if walk.any(left, right)? {
        return Ok(None);
    }
    let mut paths = (root(), root());
    for (left, right) in lock(&walk.steps).iter().rev() {
        paths.0 = extend(&paths.0, left.0, left.1.clone());
        paths.1 = extend(&paths.1, right.0, right.1.clone());
    }
    Ok(Some(paths))
}

type Step = (StepKind, Any);

/// Objects that were found to be each other's, by address of one side. Both are kept.
#[derive(Default)]
struct Pairs {
    right_of: HashMap<usize, (ObjectRef, ObjectRef)>,
    left_of: HashMap<usize, (ObjectRef, ObjectRef)>,
}

struct Equal {
    place: Place,
    skip_tensors: bool,
    wants_path: bool,
    pairs: Mutex<Pairs>,
    /// Steps to the mismatch, innermost first.
    steps: Mutex<Vec<(Step, Step)>>,
}

impl Equal {
    fn new(map_free_vars: bool, skip_tensors: bool, wants_path: bool) -> Equal {
        let place = Place::default();
        if map_free_vars {
            place.region.store(region::PATTERN, Ordering::Relaxed);
        }
        Equal {
            place,
            skip_tensors,
            wants_path,
            pairs: Mutex::default(),
            steps: Mutex::default(),
        }
    }

    fn step(&self, left: Step, right: Step) {
        if self.wants_path {
            lock(&self.steps).push((left, right));
        }
    }

    fn any(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        if let (Some(a), Some(b)) = (str_bytes(&left), str_bytes(&right)) {
            return Ok(a == b);
        }
        if let (Some(a), Some(b)) = (bytes_bytes(&left), bytes_bytes(&right)) {
            return Ok(a == b);
        }
        let (a, b) = (left.as_raw(), right.as_raw());
        if a.type_index != b.type_index {
            return Ok(false);
        }
        let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else {
            if a.type_index == index::FLOAT && a.float().is_nan() {
                return Ok(b.float().is_nan());
            }
            return Ok(a.bits() == b.bits() && a.aux == b.aux);
        };
        self.place.deeper(|| self.objects(left, right))
    }

    fn objects(self: &Arc<Self>, left: &ObjectRef, right: &ObjectRef) -> Result<bool> {
        let (a, b) = (AnyView::from(left), AnyView::from(right));
        Ok(match left.type_index() {
            index::BIG_INT => big_int::words_of(&a) == big_int::words_of(&b),
            index::ARRAY | index::LIST => return self.sequences(a, b),
            index::MAP | index::DICT => return self.maps(a, b),
            index::SHAPE => extents_of(a) == extents_of(b),
            index::TENSOR => return self.tensors(a, b),
            own => return self.described(left, right, info(own)?),
        })
    }

    fn sequences(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let left = sequence_of(left).unwrap_or_default();
        let right = sequence_of(right).unwrap_or_default();
        if left.len() != right.len() && !self.wants_path {
            return Ok(false);
        }
        for (at, (a, b)) in (0i64..).zip(left.iter().zip(&*right)) {
            if !self.any(a.view(), b.view())? {
                let step = (StepKind::ArrayItem, Any::from(at));
                self.step(step.clone(), step);
                return Ok(false);
            }
        }
        let end = Any::from(left.len().min(right.len()));
        let (here, missing) = (
            (StepKind::ArrayItem, end.clone()),
            (StepKind::ArrayItemMissing, end),
        );
        match left.len().cmp(&right.len()) {
            std::cmp::Ordering::Equal => return Ok(true),
            std::cmp::Ordering::Greater => self.step(here, missing),
            std::cmp::Ordering::Less => self.step(missing, here),
        }
        Ok(false)
    }

    /// The partner of a key, or the key itself.
    fn partner(&self, key: &Any, of_left: bool) -> Any {
        let Some(object) = key.as_object() else {
            return key.clone();
        };
        let pairs = lock(&self.pairs);
        let map = if of_left {
            &pairs.right_of
        } else {
            &pairs.left_of
        };
        match map.get(&(object.as_ptr() as usize)) {
            Some((_, partner)) => partner.clone().into(),
            None => key.clone(),
        }
    }

    fn maps(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let same_size = pair_count(left) == pair_count(right);
        if !same_size && !self.wants_path {
            return Ok(false);
        }
        for (key, value) in pairs_of(left).iter().flatten() {
            let partner = self.partner(key, true);
            let Some(other) = lookup_in(right, partner.view())? else {
                self.step(
                    (StepKind::MapItem, key.clone()),
                    (StepKind::MapItemMissing, partner),
                );
                return Ok(false);
            };
            if !self.any(value.view(), other.view())? {
                self.step(
                    (StepKind::MapItem, key.clone()),
                    (StepKind::MapItem, partner),
                );
                return Ok(false);
            }
        }
        if same_size {
            return Ok(true);
        }
        for (key, _) in pairs_of(right).iter().flatten() {
            let partner = self.partner(key, false);
            if lookup_in(left, partner.view())?.is_none() {
                self.step(
                    (StepKind::MapItemMissing, partner),
                    (StepKind::MapItem, key.clone()),
                );
                break;
            }
        }
        Ok(false)
    }

    fn tensors(&self, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let (left, right) = (cast::<Tensor>(left)?, cast::<Tensor>(right)?);
        if left.as_object().as_ptr() == right.as_object().as_ptr() {
            return Ok(true);
        }
        if left.shape() != right.shape() || left.dl().dtype != right.dl().dtype {
            return Ok(false);
        }
        Ok(self.skip_tensors || tensor_bytes(&left)? == tensor_bytes(&right)?)
    }

    fn described(
        self: &Arc<Self>,
        left: &ObjectRef,
        right: &ObjectRef,
        info: &'static TypeInfo,
    ) -> Result<bool> {
        let same = left.as_ptr() == right.as_ptr();
        let kind = structural_kind(info)?;
        if kind == 5 || (kind == 4 && same) {
            return Ok(same);
        }
        if matches!(kind, 2 | 3) {
            let pairs = lock(&self.pairs);
            if let Some((_, known)) = pairs.right_of.get(&(left.as_ptr() as usize)) {
                return Ok(known.as_ptr() == right.as_ptr());
            }
            if pairs.left_of.contains_key(&(right.as_ptr() as usize)) {
                return Ok(false);
            }
        }
        let fields = || self.fields(left, right, info);
        let equal = if kind == 2 {
            self.place.of_variable(fields)?
        } else {
            fields()?
        };
        if !equal {
            return Ok(false);
        }
        match kind {
            2 if !same && self.place.region() == region::NONE => return Ok(false),
            2 | 3 => {
                let mut pairs = lock(&self.pairs);
                let both = (left.clone(), right.clone());
                pairs.right_of.insert(left.as_ptr() as usize, both);
                let both = (right.clone(), left.clone());
                pairs.left_of.insert(right.as_ptr() as usize, both);
            }
            _ => {}
        }
        Ok(true)
    }

    fn fields(
        self: &Arc<Self>,
        left: &ObjectRef,
        right: &ObjectRef,
        info: &'static TypeInfo,
    ) -> Result<bool> {
        if let Some(hook) = column::S_EQUAL.value(info.type_index) {
            let walk = self.clone();
            let callback = Function::from_packed(move |args| {
                let [left, right, asked, name] = args else {
                    return Err(Error::new("TypeError", "the callback takes four arguments"));
                };
                let asked = cast::<i64>(*asked)?;
                let equal = walk.place.as_asked(asked, || walk.any(*left, *right))?;
                if !equal && walk.wants_path {
                    let step = (StepKind::Attr, Any::from(cast::<Str>(*name)?));
                    walk.step(step.clone(), step);
                }
                Ok(Any::from(equal))
            });
            let args = [left.into(), right.into(), (&callback).into()];
            let answer = cast::<Function>(hook)?.call(&args)?;
            return Ok(cast::<bool>(answer.view())?);
        }
        for (field, other) in fields_of_both(left, right) {
            if field.flags & flag::EQ_HASH_IGNORE != 0 {
                continue;
            }
            let (a, b) = (field.get()?, other.get()?);
            if !self
                .place
                .of_field(&field, || self.any(a.view(), b.view()))?
            {
                let step = (StepKind::Attr, Any::from(field.name()));
                self.step(step.clone(), step);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Structural hash: equal values have equal hashes, except that short and long bytes differ as in the reference.
///
/// # Errors
///
/// As [`equal`].
pub fn hash(value: AnyView<'_>, map_free_vars: bool, skip_tensors: bool) -> Result<u64> {
    let place = Place::default();
    if map_free_vars {
        place.region.store(region::PATTERN, Ordering::Relaxed);
    }
    let walk = Hash {
        place,
        skip_tensors,
        done: Mutex::default(),
        variables: AtomicU64::new(0),
        nodes: AtomicU64::new(0),
    };
    Arc::new(walk).any(value)
}

struct Hash {
    place: Place,
    skip_tensors: bool,
    /// Finished objects by address, kept.
    done: Mutex<HashMap<usize, (ObjectRef, u64)>>,
    variables: AtomicU64,
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
        own if own < index::OBJECT_BEGIN => Some(combine(own as u64, raw.bits())),
        _ => None,
    }
}

impl Hash {
    fn any(self: &Arc<Self>, value: AnyView<'_>) -> Result<u64> {
        let raw = value.as_raw();
        if raw.type_index == index::FLOAT && raw.float().is_nan() {
            return Ok(combine(index::FLOAT as u64, f64::NAN.to_bits()));
        }
        if let Some(hash) = independent(value) {
            return Ok(hash);
        }
        let Some(object) = value.as_object() else {
            return Ok(combine(raw.type_index as u64, raw.bits()));
        };
        self.place.deeper(|| self.object(object))
    }

    fn object(self: &Arc<Self>, object: &ObjectRef) -> Result<u64> {
        let view = AnyView::from(object);
        let info = info(object.type_index())?;
        let key = info.key_hash;
        if let Some(items) = sequence_of(view) {
            let mut hash = combine(key, items.len() as u64);
            for item in &*items {
                hash = combine(hash, self.any(item.view())?);
            }
            return Ok(hash);
        }
        if pairs_of(view).is_some() {
            return self.map(view, key);
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

    fn map(self: &Arc<Self>, view: AnyView<'_>, key: u64) -> Result<u64> {
        let mut items: Vec<(u64, Any)> = Vec::new();
        for (key, value) in pairs_of(view).iter().flatten() {
            let known = independent(key.view()).or_else(|| {
                let at = key.as_object()?.as_ptr() as usize;
                lock(&self.done).get(&at).map(|(_, hash)| *hash)
            });
            if let Some(hash) = known {
                items.push((hash, value.clone()));
            }
        }
        items.sort_by_key(|(hash, _)| *hash);
        let mut hash = combine(key, pair_count(view) as u64);
        for group in items.chunk_by(|a, b| a.0 == b.0) {
            let [(key, value), rest @ ..] = group else {
                continue;
            };
            hash = combine(hash, *key);
            if rest.is_empty() {
                hash = combine(hash, self.any(value.view())?);
            }
        }
        Ok(hash)
    }

    fn tensor(&self, tensor: &Tensor, key: u64) -> Result<u64> {
        let start = combine(key, tensor.shape().len() as u64);
        let mut hash = tensor
            .shape()
            .iter()
            .fold(start, |hash, extent| combine(hash, *extent as u64));
        hash = combine(hash, Any::from(tensor.dl().dtype).as_raw().bits());
        if !self.skip_tensors {
            hash = combine(hash, hash_bytes(&tensor_bytes(tensor)?));
        }
        Ok(hash)
    }

    fn described(self: &Arc<Self>, object: &ObjectRef, info: &'static TypeInfo) -> Result<u64> {
        let kind = structural_kind(info)?;
        let at = object.as_ptr() as usize;
        if let Some((_, known)) = lock(&self.done).get(&at) {
            return Ok(*known);
        }
        let fields = || self.fields(object, info);
        let mut hash = if kind == 2 {
            let hash = self.place.of_variable(fields)?;
            if self.place.region() == region::NONE {
                at as u64
            } else {
                combine(hash, self.variables.fetch_add(1, Ordering::Relaxed))
            }
        } else {
            fields()?
        };
        if kind == 3 {
            hash = combine(hash, self.nodes.fetch_add(1, Ordering::Relaxed));
        }
        lock(&self.done).insert(at, (object.clone(), hash));
        Ok(hash)
    }

    fn fields(self: &Arc<Self>, object: &ObjectRef, info: &'static TypeInfo) -> Result<u64> {
        let mut hash = info.key_hash;
        if let Some(hook) = column::S_HASH.value(info.type_index) {
            let walk = self.clone();
            let callback = Function::named(None, move |value: Any, before: i64, asked: i64| {
                let own = walk.place.as_asked(asked, || walk.any(value.view()))?;
                Ok::<i64, Error>(combine(before as u64, own) as i64)
            });
            let args = [object.into(), (hash as i64).into(), (&callback).into()];
            let answer = cast::<Function>(hook)?.call(&args)?;
            return Ok(cast::<i64>(answer.view())? as u64);
        }
        for field in fields_of(object) {
            if field.flags & flag::EQ_HASH_IGNORE != 0 {
                continue;
            }
            let value = field.get()?;
            let own = self.place.of_field(&field, || self.any(value.view()))?;
            hash = combine(hash, own);
        }
        Ok(hash)
    }
}

/// A pair of paths as the array that the ABI passes for a tuple.
pub(crate) fn mismatch_value(paths: Option<(Path, Path)>) -> Any {
    match paths {
        Some((left, right)) => Array::new(vec![Any::from(left), Any::from(right)]).into(),
        None => Any::none(),
    }
}
