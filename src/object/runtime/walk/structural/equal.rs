//! Structural equality: compares two values in parallel and binds the variables of one to those of the other.

use super::result_cache::SharedWork;
use super::{described_type, root_region, run_in_hook_region, structural_kind, tensor_bytes};
use crate::function::{Error, ErrorKind, Function, Result};
use crate::lock::lock;
use crate::object::reflect::builtin::{AccessKind, AccessPath, extend, root};
use crate::object::reflect::column;
use crate::object::reflect::field_access::fields_of_both;
use crate::object::walk::depth::Levels;
use crate::object::walk::region::Region;
use crate::object::{
    Array, Tensor, big_int, extents_of, lookup_in, pair_count, pairs_of, sequence_of,
};
use crate::value::header::ObjectRef;
use crate::value::types::{TypeInfo, flag};
use crate::value::{Any, AnyView, Str, bytes_bytes, cast, index, str_bytes};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Returns whether two values are structurally equal. With `map_free_vars`, free variables can be bound to each other.
///
/// # Errors
///
/// Returns a ValueError if values nest too deeply, and a TypeError for a type without a structural kind. Returns an InternalError for a
/// tensor that is not compact on the CPU. Returns the error of the comparison hook of an object's type.
pub fn equal(
    left: AnyView<'_>,
    right: AnyView<'_>,
    map_free_vars: bool,
    skip_tensors: bool,
) -> Result<bool> {
    Arc::new(StructuralComparer::new(map_free_vars, skip_tensors, false)).any(left, right)
}

/// Returns the paths to the first difference in each value; `None` if they are equal.
pub(crate) fn first_mismatch(
    left: AnyView<'_>,
    right: AnyView<'_>,
    map_free_vars: bool,
    skip_tensors: bool,
) -> Result<Option<(AccessPath, AccessPath)>> {
    let walk = Arc::new(StructuralComparer::new(map_free_vars, skip_tensors, true));
    if walk.any(left, right)? {
        return Ok(None);
    }
    let mut paths = (root(), root());
    // Recorded on the way back, so the outermost step is last.
    for (left, right) in lock(&walk.steps).iter().rev() {
        paths.0 = extend(&paths.0, left.0, left.1.clone());
        paths.1 = extend(&paths.1, right.0, right.1.clone());
    }
    Ok(Some(paths))
}

/// Returns a pair of paths as the array that the ABI passes for a tuple.
pub(crate) fn mismatch_value(paths: Option<(AccessPath, AccessPath)>) -> Any {
    match paths {
        Some((left, right)) => Array::new(vec![Any::from(left), Any::from(right)]).into(),
        None => Any::none(),
    }
}

/// One side of a step on the path to a mismatch.
type MismatchStep = (AccessKind, Any);

/// Objects that were matched with each other, by address, in both directions. Both are kept alive.
#[derive(Default)]
struct MatchedObjects {
    /// By the address of a left object: that object and its right partner.
    right_of: HashMap<usize, (ObjectRef, ObjectRef)>,
    /// By the address of a right object: that object and its left partner.
    left_of: HashMap<usize, (ObjectRef, ObjectRef)>,
}

/// A comparison. Hooks of types call back into it, so it is shared, and its parts have locks.
struct StructuralComparer {
    /// The current region for binding variables.
    region: Region,
    /// The current depth.
    depth: Levels,
    /// True if tensors are compared only by extents and data type.
    skip_tensors: bool,
    /// True if the steps to the first mismatch are recorded. Otherwise a comparison may end early.
    wants_path: bool,
    /// Matched variables and graph nodes.
    pairs: Mutex<MatchedObjects>,
    /// Results for pairs of sequences or maps with other holders.
    known: SharedWork<bool>,
    /// Steps to the mismatch, innermost first.
    steps: Mutex<Vec<(MismatchStep, MismatchStep)>>,
}

impl StructuralComparer {
    /// Creates a comparison from the root. With `map_free_vars` it begins in a pattern region, in which every variable may be bound.
    fn new(map_free_vars: bool, skip_tensors: bool, wants_path: bool) -> StructuralComparer {
        StructuralComparer {
            region: root_region(map_free_vars),
            depth: Levels::default(),
            skip_tensors,
            wants_path,
            pairs: Mutex::default(),
            known: SharedWork::default(),
            steps: Mutex::default(),
        }
    }

    /// Records a step to the mismatch if its path is needed. Called on the way back, so the innermost step comes first.
    fn step(&self, left: MismatchStep, right: MismatchStep) {
        if self.wants_path {
            lock(&self.steps).push((left, right));
        }
    }

    /// Compares two values. Values of different types are unequal, except text and bytes in a cell or an object (VAL-03).
    fn any(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        if let (Some(a), Some(b)) = (str_bytes(&left), str_bytes(&right)) {
            return Ok(a == b);
        }
        if let (Some(a), Some(b)) = (bytes_bytes(&left), bytes_bytes(&right)) {
            return Ok(a == b);
        }
        let (a, b) = (left.as_raw(), right.as_raw());
        // An array and a list with the same elements differ here, because the type decides how objects are compared.
        if a.type_index != b.type_index {
            return Ok(false);
        }
        let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else {
            // OBJ-14: NaN equals NaN. Otherwise the bits decide, so 0.0 and -0.0 differ.
            if a.type_index == index::FLOAT && a.float().is_nan() {
                return Ok(b.float().is_nan());
            }
            return Ok(a.bits() == b.bits() && a.aux == b.aux);
        };
        self.depth.deeper(|| self.objects(left, right))
    }

    /// Compares two objects of one type: containers by content, all others as their type describes.
    fn objects(self: &Arc<Self>, left: &ObjectRef, right: &ObjectRef) -> Result<bool> {
        let (a, b) = (AnyView::from(left), AnyView::from(right));
        Ok(match left.type_index() {
            // OBJ-10: each number has exactly one sequence of words, so the words decide.
            index::BIG_INT => big_int::words_of(&a) == big_int::words_of(&b),
            index::ARRAY | index::LIST | index::MAP | index::DICT => {
                return self
                    .known
                    .get_or_run(&[left, right], || self.containers(a, b));
            }
            index::SHAPE => extents_of(a) == extents_of(b),
            index::TENSOR => return self.tensors(a, b),
            own => return self.described(left, right, described_type(own)?),
        })
    }

    /// Compares two containers of one type.
    fn containers(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let equal = match left.type_index() {
            index::ARRAY | index::LIST => self.sequences(left, right)?,
            _ => self.maps(left, right)?,
        };
        // Each difference has a path, which is recorded where it is found.
        if !equal {
            self.known.is_not_final();
        }
        Ok(equal)
    }

    /// Compares two sequences of one type, element by element. If a path is needed, a different length is reported at the first element
    /// that only one side has.
    fn sequences(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let left = sequence_of(left).unwrap_or_default();
        let right = sequence_of(right).unwrap_or_default();
        // Different lengths decide, unless the first difference is needed, which may come before the end of the shorter one.
        if left.len() != right.len() && !self.wants_path {
            return Ok(false);
        }
        for (at, (a, b)) in (0i64..).zip(left.iter().zip(&*right)) {
            if !self.any(a.view(), b.view())? {
                let step = (AccessKind::ArrayItem, Any::from(at));
                self.step(step.clone(), step);
                return Ok(false);
            }
        }
        // All common elements are equal, so the mismatch is the first element that only one side has.
        let end = Any::from(left.len().min(right.len()));
        let (here, missing) = (
            (AccessKind::ArrayItem, end.clone()),
            (AccessKind::ArrayItemMissing, end),
        );
        match left.len().cmp(&right.len()) {
            std::cmp::Ordering::Equal => return Ok(true),
            std::cmp::Ordering::Greater => self.step(here, missing),
            std::cmp::Ordering::Less => self.step(missing, here),
        }
        Ok(false)
    }

    /// Returns the partner of a key, or the key itself.
    fn mapped_key(&self, key: &Any, of_left: bool) -> Any {
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
            None => {
                // The key may be bound later.
                self.known.is_not_final();
                key.clone()
            }
        }
    }

    /// Compares two maps of one type: first the pairs of the left one, then those that only the right one has.
    fn maps(self: &Arc<Self>, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let same_size = pair_count(left) == pair_count(right);
        if !same_size && !self.wants_path {
            return Ok(false);
        }
        for (key, value) in pairs_of(left).iter().flatten() {
            // A key that is a variable is looked up as its partner on the other side.
            let partner = self.mapped_key(key, true);
            // Keys are looked up instead of compared in order, because equal maps may have different orders (OBJ-08).
            let Some(other) = lookup_in(right, partner.view())? else {
                self.step(
                    (AccessKind::MapItem, key.clone()),
                    (AccessKind::MapItemMissing, partner),
                );
                return Ok(false);
            };
            if !self.any(value.view(), other.view())? {
                self.step(
                    (AccessKind::MapItem, key.clone()),
                    (AccessKind::MapItem, partner),
                );
                return Ok(false);
            }
        }
        if same_size {
            return Ok(true);
        }
        // Every pair of the left map has an equal one, so the mismatch is a pair that only the right one has.
        for (key, _) in pairs_of(right).iter().flatten() {
            let partner = self.mapped_key(key, false);
            if lookup_in(left, partner.view())?.is_none() {
                self.step(
                    (AccessKind::MapItemMissing, partner),
                    (AccessKind::MapItem, key.clone()),
                );
                break;
            }
        }
        Ok(false)
    }

    /// Compares two tensors: extents, data type, and bytes unless they are skipped. A tensor equals itself on every device.
    fn tensors(&self, left: AnyView<'_>, right: AnyView<'_>) -> Result<bool> {
        let (left, right) = (cast::<Tensor>(left)?, cast::<Tensor>(right)?);
        // Checked before the bytes, which are an error on devices other than the CPU (OBJ-11).
        if left.as_object().as_ptr() == right.as_object().as_ptr() {
            return Ok(true);
        }
        if left.shape() != right.shape() || left.dl().dtype != right.dl().dtype {
            return Ok(false);
        }
        Ok(self.skip_tensors || tensor_bytes(&left)? == tensor_bytes(&right)?)
    }

    /// Compares two objects of a type with a structural kind.
    fn described(
        self: &Arc<Self>,
        left: &ObjectRef,
        right: &ObjectRef,
        info: &'static TypeInfo,
    ) -> Result<bool> {
        let same = left.as_ptr() == right.as_ptr();
        let kind = structural_kind(info)?;
        // Kind 5 (a unique instance) equals only itself. An object of kind 4 (a constant tree) equals itself without inspection.
        if kind == 5 || (kind == 4 && same) {
            return Ok(same);
        }
        // A variable or a graph node stays matched with the same partner, on both sides.
        if matches!(kind, 2 | 3) {
            // The lock is released before fields are compared, because a hook may come back here.
            let pairs = lock(&self.pairs);
            if let Some((_, known)) = pairs.right_of.get(&(left.as_ptr() as usize)) {
                return Ok(known.as_ptr() == right.as_ptr());
            }
            // A right object with a partner cannot match a second left one: variables are matched one to one.
            if pairs.left_of.contains_key(&(right.as_ptr() as usize)) {
                return Ok(false);
            }
        }
        let fields = || self.fields(left, right, info);
        // In a simple region, the type of a variable contains uses, not definitions.
        let equal = if kind == 2 {
            self.region.run_for_variable_type(fields)?
        } else {
            fields()?
        };
        if !equal {
            return Ok(false);
        }
        match kind {
            // No region binds the variable here, so it equals only itself.
            2 if !same && self.region.kind() == Region::NONE => return Ok(false),
            // Recorded only after equality is known: a failed pair must not decide for the same objects elsewhere.
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

    /// Compares the fields of two objects of one type, or calls the type's hook `__s_equal__`. The hook's callback takes both sides, the
    /// kind of the region, and the name for the path.
    fn fields(
        self: &Arc<Self>,
        left: &ObjectRef,
        right: &ObjectRef,
        info: &'static TypeInfo,
    ) -> Result<bool> {
        if let Some(hook) = column::S_EQUAL.value(info.type_index) {
            let walk = self.clone();
            let callback = Function::from_packed(move |args| {
                // Packed, because the values may have any type.
                let [left, right, region_kind, name] = args else {
                    return Err(Error::new(
                        ErrorKind::Type,
                        "the callback takes four arguments",
                    ));
                };
                let region_kind = cast::<i64>(*region_kind)?;
                let equal =
                    run_in_hook_region(&walk.region, region_kind, || walk.any(*left, *right))?;
                if !equal && walk.wants_path {
                    let step = (AccessKind::Attr, Any::from(cast::<Str>(*name)?));
                    walk.step(step.clone(), step);
                }
                Ok(Any::from(equal))
            });
            let args = [left.into(), right.into(), (&callback).into()];
            let answer = cast::<Function>(hook)?.call_packed(&args)?;
            return Ok(cast::<bool>(answer.view())?);
        }
        for (field, other) in fields_of_both(left, right) {
            // An ignored field, such as a position in the source, does not affect equality.
            if field.flags & flag::EQ_HASH_IGNORE != 0 {
                continue;
            }
            let (a, b) = (field.get()?, other.get()?);
            if !self
                .region
                .run_for_field(&field, || self.any(a.view(), b.view()))?
            {
                let step = (AccessKind::Attr, Any::from(field.name()));
                self.step(step.clone(), step);
                return Ok(false);
            }
        }
        Ok(true)
    }
}
