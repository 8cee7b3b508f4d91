//! Comparison and hash by content, as data classes use them (OBJ-14).

use super::depth;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::hash::{combine, hash_bytes};
use crate::object::reflect::column;
use crate::object::reflect::field_access::{fields_of, fields_of_both};
use crate::object::{OBJ_14, big_int, extents_of, lookup_in, pair_count, pairs_of, sequence_of};
use crate::rule::Kind;
use crate::value::header::ObjectRef;
use crate::value::types::{self, flag};
use crate::value::{Any, AnyView, bytes_bytes, cast, index, str_bytes};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hashes by content: equal values have equal hashes.
///
/// # Errors
///
/// Returns a ValueError if values nest too deeply, and for a type that has a comparison hook but no hash hook. Returns the error of the
/// `__ffi_hash__` hook of an object's type.
pub fn hash(value: AnyView<'_>) -> Result<u64> {
    Hasher::default().hash(value, 0)
}

/// Compares by content for equality.
///
/// # Errors
///
/// Returns a ValueError if values nest too deeply, and the error of the comparison hook of an object's type.
pub fn equal(left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
    let comparer = Comparer {
        pairs: Arc::default(),
        only_equal: true,
    };
    Ok(comparer.compare(left, right, 0)? == 0)
}

/// Compares by content for order: negative, 0 or positive.
///
/// # Errors
///
/// Returns a TypeError with OBJ-14 if the values have no order, and the errors of [`equal`].
pub fn compare(left: AnyView<'_>, right: AnyView<'_>) -> Result<i64> {
    let comparer = Comparer {
        pairs: Arc::default(),
        only_equal: false,
    };
    comparer.compare(left, right, 0)
}

/// Hashes of objects by address, so that shared objects are hashed only once (OBJ-14).
type HashMemo = HashMap<usize, (ObjectRef, Option<u64>)>;

/// A hash computation by content. Hooks of types get a callback that they may keep after the call, so the state is shared, not borrowed.
#[derive(Clone, Default)]
struct Hasher {
    /// Finished hashes by address; `None` while an object is being hashed. The object is kept alive.
    seen: Arc<Mutex<HashMemo>>,
}

impl Hasher {
    /// Locks the memo, ignoring poison after a panic in a hook, because it changes only by single insertions.
    fn seen(&self) -> MutexGuard<'_, HashMemo> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hash of any value, as in the column "recursive" of the table in `spec/object.md`. `depth` counts the objects around it.
    fn hash(&self, value: AnyView<'_>, depth: usize) -> Result<u64> {
        let raw = value.as_raw();
        let own = raw.type_index;
        // OBJ-01: text in a cell equals text in an object, so both hash with the tag of the object.
        if let Some(text) = str_bytes(&value) {
            return Ok(combine(index::STR as u64, hash_bytes(text)));
        }
        if let Some(bytes) = bytes_bytes(&value) {
            return Ok(combine(index::BYTES as u64, hash_bytes(bytes)));
        }
        let Some(object) = value.as_object() else {
            return Ok(hash_plain(value));
        };
        let key_hash = types::info(own).map_or(0, |info| info.key_hash);
        let at = object.as_ptr() as usize;
        if let Some((_, known)) = self.seen().get(&at) {
            // An object inside itself counts only by its type, because its own hash is not known yet.
            return Ok(known.unwrap_or(key_hash));
        }
        depth::check(depth)?;
        self.seen().insert(at, (object.clone(), None));
        let hash = self.object(object, key_hash, depth)?;
        self.seen().insert(at, (object.clone(), Some(hash)));
        Ok(hash)
    }

    /// Hashes an object that is reached for the first time: by the hook `__ffi_hash__` of its type, as a container, or field by field.
    /// `key_hash` is the hash of its type key. It is the initial value for all of these except the hook.
    fn object(&self, object: &ObjectRef, key_hash: u64, depth: usize) -> Result<u64> {
        let view = AnyView::from(object);
        let own = object.type_index();
        // A shape hashes its extents as plain i64, not as tagged items.
        if let Some(extents) = extents_of(view) {
            let start = combine(key_hash, extents.len() as u64);
            return Ok(extents
                .iter()
                .fold(start, |hash, extent| combine(hash, *extent as u64)));
        }
        if let Some(hook) = column::HASH.value(own) {
            // The callback shares the memo, so that objects reached through the hook are also hashed only once (OBJ-14).
            let hasher = self.clone();
            let callback = Function::named(None, move |value: Any| {
                hasher.hash(value.view(), depth + 1).map(|hash| hash as i64)
            });
            let hash = cast::<Function>(hook)?.call_packed(&[view, (&callback).into()])?;
            return Ok(cast::<i64>(hash.view())? as u64);
        }
        if let Some(items) = sequence_of(view) {
            // Each item is first combined with its position, as in the table of `spec/object.md`.
            let mut hash = combine(key_hash, items.len() as u64);
            for (at, item) in (0u64..).zip(&*items) {
                hash = combine(hash, combine(self.hash(item.view(), depth + 1)?, at));
            }
            return Ok(hash);
        }
        if let Some(pairs) = pairs_of(view) {
            let mut parts = Vec::with_capacity(pair_count(view));
            for (key, value) in &pairs {
                let key = self.hash(key.view(), depth + 1)?;
                parts.push(combine(key, self.hash(value.view(), depth + 1)?));
            }
            // OBJ-14: equal maps may have their pairs in a different order (OBJ-08), but must have equal hashes.
            parts.sort_unstable();
            let start = combine(key_hash, parts.len() as u64);
            return Ok(parts.into_iter().fold(start, combine));
        }
        let compared = column::EQ.value(own).is_some() || column::COMPARE.value(own).is_some();
        // A hash by fields could differ for two objects that the type's comparison finds equal, which OBJ-14 forbids. Such a type must
        // define its hash.
        if own >= index::STATIC_END && compared {
            return Err(Error::new(
                ErrorKind::Value,
                format!(
                    "RecursiveHash: type '{}' defines __ffi_eq__ or __ffi_compare__ but not __ffi_hash__. Add a __ffi_hash__ hook to maintain the invariant RecursiveEq(a,b) => RecursiveHash(a)==RecursiveHash(b).",
                    types::key_of(own)
                ),
            ));
        }
        let mut hash = key_hash;
        for field in fields_of(object) {
            // OBJ-14: a field that does not take part in equality does not take part in the hash, so that equal objects have equal hashes.
            if field.flags & (flag::HASH_OFF | flag::COMPARE_OFF) != 0 {
                continue;
            }
            let value = field.get()?;
            hash = combine(hash, self.hash(value.view(), depth + 1)?);
        }
        Ok(hash)
    }
}

/// Hashes a value that is not an object. All NaNs have one hash, and so do both zeros.
fn hash_plain(value: AnyView<'_>) -> u64 {
    let raw = value.as_raw();
    let own = raw.type_index as u64;
    match raw.type_index {
        index::NONE => combine(0, 0),
        // A cell of another library may hold any nonzero number for true.
        index::BOOL => combine(own, u64::from(raw.int() != 0)),
        index::FLOAT => combine(own, canonical(raw.float())),
        index::DATA_TYPE => {
            let dtype = raw.dtype();
            let hash = combine(combine(own, dtype.code.into()), dtype.bits.into());
            combine(hash, dtype.lanes.into())
        }
        index::DEVICE => {
            let device = raw.device();
            combine(combine(own, device.kind as u64), device.id as u64)
        }
        _ => combine(own, raw.bits()),
    }
}

/// Returns the bits by which a float hashes. NaN equals NaN and 0.0 equals -0.0 (OBJ-14), so each of these pairs has one hash.
fn canonical(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}

/// Pairs of objects by address.
#[derive(Default)]
struct ComparedPairs {
    /// The pairs that are being compared.
    open: HashSet<(usize, usize)>,
    /// Equal containers with other holders, kept alive. Shared containers are compared once (OBJ-14).
    equal: HashMap<(usize, usize), [ObjectRef; 2]>,
    /// Number of times that an open pair was reached again and assumed to be equal.
    assumed: usize,
}

/// A comparison by content, for equality or for an order. Hooks of types get a callback, so the state is shared.
#[derive(Clone)]
struct Comparer {
    /// The state of the pairs of objects.
    pairs: Arc<Mutex<ComparedPairs>>,
    /// True if only equality is needed. Values without an order are then different, which is not an error.
    only_equal: bool,
}

/// Returns -1, 0 or 1, as `ffi.RecursiveCompare` does.
const fn sign(order: Ordering) -> i64 {
    order as i64
}

impl Comparer {
    /// Locks the pairs, ignoring poison after a panic in a hook, because they change one at a time.
    fn pairs(&self) -> MutexGuard<'_, ComparedPairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns "different", or a TypeError if the caller needs an order.
    fn unordered(&self, message: impl FnOnce() -> String) -> Result<i64> {
        OBJ_14.demand(Kind::Type, self.only_equal, message)?;
        Ok(1)
    }

    /// Compares two values of any type: negative, 0 if they are equal, or positive. `depth` counts the objects around them.
    fn compare(&self, left: AnyView<'_>, right: AnyView<'_>, depth: usize) -> Result<i64> {
        let (a, b) = (left.as_raw(), right.as_raw());
        // OBJ-14: None precedes all other values. Otherwise values of different types have no order, except ints and big integers.
        match (a.type_index, b.type_index) {
            (index::NONE, index::NONE) => return Ok(0),
            (index::NONE, _) => return Ok(-1),
            (_, index::NONE) => return Ok(1),
            _ => {}
        }
        if let (Some(a), Some(b)) = (str_bytes(&left), str_bytes(&right)) {
            return Ok(sign(a.cmp(b)));
        }
        if let (Some(a), Some(b)) = (bytes_bytes(&left), bytes_bytes(&right)) {
            return Ok(sign(a.cmp(b)));
        }
        // OBJ-10: a number that fits 64 bits is an int, so a big integer never equals an int. Both are numbers and have an order.
        let integers = |index: i32| matches!(index, index::INT | index::BIG_INT);
        let big = a.type_index == index::BIG_INT || b.type_index == index::BIG_INT;
        if big && integers(a.type_index) && integers(b.type_index) {
            let (Some(a), Some(b)) = (big_int::words_of(&left), big_int::words_of(&right)) else {
                return Ok(1);
            };
            return Ok(sign(big_int::compare(a, b)));
        }
        if a.type_index != b.type_index {
            return self.unordered(|| {
                let kind = if left.as_object().is_some() && right.as_object().is_some() {
                    "objects"
                } else {
                    "values"
                };
                format!(
                    "Cannot compare {kind} of different types: {} vs {}",
                    types::key_of(a.type_index),
                    types::key_of(b.type_index)
                )
            });
        }
        match (left.as_object(), right.as_object()) {
            (Some(left), Some(right)) => self.objects(left, right, depth),
            _ => self.compare_non_objects(left, right),
        }
    }

    /// Compares two values of one type that are not objects.
    fn compare_non_objects(&self, left: AnyView<'_>, right: AnyView<'_>) -> Result<i64> {
        let (a, b) = (left.as_raw(), right.as_raw());
        Ok(match a.type_index {
            index::BOOL => sign((a.int() != 0).cmp(&(b.int() != 0))),
            index::INT => sign(a.int().cmp(&b.int())),
            index::FLOAT => match a.float().partial_cmp(&b.float()) {
                Some(order) => sign(order),
                // OBJ-14: NaN equals NaN, but has no order.
                None if self.only_equal && a.float().is_nan() && b.float().is_nan() => 0,
                None => return self.unordered(|| "Cannot order NaN values".into()),
            },
            index::DATA_TYPE => {
                let (a, b) = (a.dtype(), b.dtype());
                sign((a.code, a.bits, a.lanes).cmp(&(b.code, b.bits, b.lanes)))
            }
            index::DEVICE => {
                let (a, b) = (a.device(), b.device());
                sign((a.kind, a.id).cmp(&(b.kind, b.id)))
            }
            // A pointer or a bare tag: equal or not, without an order.
            _ if a.bits() == b.bits() && a.aux == b.aux => 0,
            own => {
                return self
                    .unordered(|| format!("Cannot order values of type {}", types::key_of(own)));
            }
        })
    }

    /// Compares two objects of one type. An object equals itself without inspection, even if it contains a NaN.
    fn objects(&self, left: &ObjectRef, right: &ObjectRef, depth: usize) -> Result<i64> {
        // Addresses suffice: both objects outlive this call, and the pair is removed before it returns.
        let pair = (left.as_ptr() as usize, right.as_ptr() as usize);
        if pair.0 == pair.1 {
            return Ok(0);
        }
        if let (Some(a), Some(b)) = (extents_of(left.into()), extents_of(right.into())) {
            return Ok(sign(a.cmp(b)));
        }
        depth::check(depth)?;
        // An object with one holder occurs once, unless its holder occurs several times.
        let is_kept = matches!(
            left.type_index(),
            index::ARRAY | index::LIST | index::MAP | index::DICT
        ) && !left.is_unique()
            && !right.is_unique();
        let mut pairs = self.pairs();
        if is_kept && pairs.equal.contains_key(&pair) {
            return Ok(0);
        }
        // A caller further up compares this pair, so both objects contain themselves. Equality can assume that they are equal, but an
        // order cannot be derived.
        if !pairs.open.insert(pair) {
            if self.only_equal {
                pairs.assumed += 1;
                return Ok(0);
            }
            return Err(Error::new(
                ErrorKind::Value,
                "RecursiveCompare: cyclic reference detected in ordering",
            ));
        }
        let assumed = pairs.assumed;
        // Released before the contents are compared, because hooks may come back here.
        drop(pairs);
        let order = self.contents(left, right, depth);
        let mut pairs = self.pairs();
        pairs.open.remove(&pair);
        if is_kept && matches!(order, Ok(0)) && pairs.assumed == assumed {
            pairs.equal.insert(pair, [left.clone(), right.clone()]);
        }
        order
    }

    /// Compares the contents of two objects of one type, by the hook of the type or part by part.
    fn contents(&self, left: &ObjectRef, right: &ObjectRef, depth: usize) -> Result<i64> {
        let own = left.type_index();
        // Types of the runtime have no hooks, even if some are registered for them.
        if own >= index::STATIC_END
            && let Some(order) = self.hook(left, right, depth)?
        {
            return Ok(order);
        }
        if let (Some(a), Some(b)) = (sequence_of(left.into()), sequence_of(right.into())) {
            // OBJ-14: the first different element decides, then the length, as for text.
            for (a, b) in a.iter().zip(&*b) {
                let order = self.compare(a.view(), b.view(), depth + 1)?;
                if order != 0 {
                    return Ok(order);
                }
            }
            return Ok(sign(a.len().cmp(&b.len())));
        }
        if let Some(pairs) = pairs_of(left.into()) {
            // OBJ-14: maps have no order, so any difference between them is an error if an order is needed.
            let unordered = || self.unordered(|| "Cannot order Map/Dict values".into());
            if pair_count(left.into()) != pair_count(right.into()) {
                return unordered();
            }
            for (key, value) in &pairs {
                // By lookup, because the pairs of equal maps may be in a different order (OBJ-08).
                let Some(other) = lookup_in(right.into(), key.view())? else {
                    return unordered();
                };
                if self.compare(value.view(), other.view(), depth + 1)? != 0 {
                    return unordered();
                }
            }
            return Ok(0);
        }
        for (field, other) in fields_of_both(left, right) {
            if field.flags & flag::COMPARE_OFF != 0 {
                continue;
            }
            let (a, b) = (field.get()?, other.get()?);
            let order = self.compare(a.view(), b.view(), depth + 1)?;
            if order != 0 {
                return Ok(order);
            }
        }
        Ok(0)
    }

    /// Returns the result of a type's hook: `__ffi_eq__` if only equality is needed, otherwise `__ffi_compare__`. Returns `None` for a type
    /// without one. Both hooks get a callback for parts.
    fn hook(&self, left: &ObjectRef, right: &ObjectRef, depth: usize) -> Result<Option<i64>> {
        let own = left.type_index();
        // The callback shares the open pairs, so that objects which contain themselves also terminate through a hook.
        let comparer = self.clone();
        // A type may define only its equality, or an order from which equality follows.
        if self.only_equal
            && let Some(hook) = column::EQ.value(own)
        {
            let callback = Function::named(None, move |left: Any, right: Any| {
                let order = comparer.compare(left.view(), right.view(), depth + 1)?;
                Ok::<bool, Error>(order == 0)
            });
            let args = [left.into(), right.into(), (&callback).into()];
            let answer = cast::<Function>(hook)?.call_packed(&args)?;
            return Ok(Some(i64::from(!cast::<bool>(answer.view())?)));
        }
        let Some(hook) = column::COMPARE.value(own) else {
            return Ok(None);
        };
        let callback = Function::named(None, move |left: Any, right: Any| {
            comparer.compare(left.view(), right.view(), depth + 1)
        });
        let args = [left.into(), right.into(), (&callback).into()];
        let answer = cast::<Function>(hook)?.call_packed(&args)?;
        Ok(Some(cast::<i64>(answer.view())?))
    }
}
