//! Mutators: the state of a structural rewrite, and the rewriting of a value in the way of its type.
//!
//! A mutator's table has four functions. The first two return the new value, the tag `ffi.Unchanged`, or an error. The second one may
//! change the object in place, and is only called for an object without other holders. The other two read and set the replacement of a
//! variable or a shared node.

use super::context::attach;
use super::{Region, kind, structural_kind, view_of};
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::reflect::field_access::{OwnField, fields_of};
use crate::object::reflect::{column, key_hooks};
use crate::value::AnyPayload;
use crate::value::header::{HeaderSlot, ObjectRef, Ref, dynamic_object};
use crate::value::types::{self, TypeInfo, flag};
use crate::value::{Any, AnyView, RawAny, cast, index};
use std::ffi::c_void;

/// A function of the table, and the type of the hooks `__s_mutate__` and `__s_maybe_inplace_mutate__`.
pub(crate) type MutateFn =
    unsafe extern "C-unwind" fn(mutator: *mut MutatorObj, value: RawAny) -> RawAny;
/// The function of the table that sets the replacement of a variable. Its result is None or an error.
type SetFn = unsafe extern "C-unwind" fn(
    mutator: *mut MutatorObj,
    variable: RawAny,
    mapped: RawAny,
) -> RawAny;

/// The table of a mutator.
#[repr(C)]
pub(crate) struct MutatorTable {
    /// Rewrites a value without changing the object itself.
    pub(super) mutate: MutateFn,
    /// Rewrites a value and may change its object in place, because only its caller holds it (OBJ-35).
    pub(super) maybe_in_place: MutateFn,
    /// Returns the replacement of a variable, or None.
    pub(super) remap_get: MutateFn,
    /// Sets the replacement of a variable.
    pub(super) remap_set: SetFn,
}

/// The public part of a mutator.
#[repr(C)]
pub(crate) struct MutatorObj {
    header: HeaderSlot,
    /// At offset 24: the table, which outlives the mutator.
    pub(super) table: *const MutatorTable,
    /// At offset 32: the current region.
    pub(super) region: Region,
}

const _: () = assert!(size_of::<MutatorObj>() == 40);

dynamic_object!(MutatorObj, "ffi.StructuralMutator");

// SAFETY: the table never changes; the region is atomic.
unsafe impl Send for MutatorObj {}
// SAFETY: the table never changes; the region is atomic.
unsafe impl Sync for MutatorObj {}

impl MutatorObj {
    /// Creates a mutator with this table, in the region with this number.
    pub(super) fn new(table: &'static MutatorTable, region: i32) -> MutatorObj {
        MutatorObj {
            header: HeaderSlot::default(),
            table,
            region: Region::of(region),
        }
    }
}

/// Returns the value that means "unchanged".
pub(crate) fn unchanged() -> Any {
    // SAFETY: this tag has no object.
    unsafe { Any::from_raw(RawAny::of(index::UNCHANGED, AnyPayload { bits: 0 })) }
}

/// Returns whether a rewrite left a value unchanged.
pub(crate) fn is_same(before: AnyView<'_>, after: &Any) -> bool {
    let (left, right) = (before.as_raw(), after.as_raw());
    right.type_index == index::UNCHANGED
        || (left.type_index == right.type_index
            && left.aux == right.aux
            && left.bits() == right.bits())
}

/// Returns the final value of a rewrite of `before`, which is `before` itself if nothing changed.
pub(crate) fn resolve(after: Any, before: AnyView<'_>) -> Any {
    if after.type_index() == index::UNCHANGED {
        before.to_any()
    } else {
        after
    }
}

/// Returns whether only the caller holds the object of a value.
pub(super) fn is_unshared(value: AnyView<'_>) -> bool {
    value.as_object().is_some_and(ObjectRef::is_unique)
}

/// A mutator that stays alive during the rewrite.
#[derive(Clone, Copy)]
pub(crate) struct Mutator(*mut MutatorObj);

impl Mutator {
    /// Wraps the address of a mutator.
    ///
    /// # Safety
    /// `mutator` is alive for as long as the result is used.
    pub(crate) const unsafe fn from_raw(mutator: *mut MutatorObj) -> Mutator {
        Mutator(mutator)
    }

    /// Wraps a mutator. The caller keeps it alive while the result is used.
    pub(crate) fn of(mutator: &Ref<MutatorObj>) -> Mutator {
        Mutator(mutator.as_ptr())
    }

    /// Returns the region, which changes while parts are rewritten.
    pub(crate) const fn region(&self) -> &Region {
        // SAFETY: the mutator is alive (the contract of `from_raw`).
        unsafe { &(*self.0).region }
    }

    /// Returns the mutator as an argument.
    pub(crate) const fn view(&self) -> AnyView<'_> {
        // SAFETY: the mutator is alive (the contract of `from_raw`).
        unsafe { view_of(self.0.cast()) }
    }

    /// Returns the functions of this mutator.
    const fn table(self) -> &'static MutatorTable {
        // SAFETY: the mutator is alive (the contract of `from_raw`).
        let table = unsafe { (*self.0).table };
        // SAFETY: the table of a mutator outlives it.
        unsafe { &*table }
    }

    /// Rewrites a value with the mutator's own function. With `in_place`, the object may be changed itself if it has no other holder
    /// (OBJ-35).
    pub(crate) fn mutate(self, value: AnyView<'_>, in_place: bool) -> Result {
        let table = self.table();
        // OBJ-35: `in_place` states that the holder of the value allows it. The value's own reference count shows that nothing else
        // refers to it.
        let function = if in_place && is_unshared(value) {
            table.maybe_in_place
        } else {
            table.mutate
        };
        self.call(function, value)
    }

    /// Calls a function of the table or a hook, and converts a returned error to a Rust error.
    fn call(self, function: MutateFn, value: AnyView<'_>) -> Result {
        // SAFETY: the function belongs to this mutator, or is a hook for any; the value lives for the call.
        let answer = unsafe { function(self.0, *value.as_raw()) };
        // SAFETY: the caller owns the result of such a function.
        key_hooks::raise_error_object(unsafe { Any::from_raw(answer) })
    }

    /// Returns the replacement of a variable or a shared node, or None.
    pub(crate) fn remap_get(self, variable: AnyView<'_>) -> Result {
        self.call(self.table().remap_get, variable)
    }

    /// Sets the replacement of a variable or a shared node.
    pub(crate) fn remap_set(self, variable: AnyView<'_>, mapped: AnyView<'_>) -> Result<()> {
        let set = self.table().remap_set;
        // SAFETY: the function belongs to this mutator; the values live for the call.
        let answer = unsafe { set(self.0, *variable.as_raw(), *mapped.as_raw()) };
        // SAFETY: the caller owns the result of such a function.
        key_hooks::raise_error_object(unsafe { Any::from_raw(answer) }).map(drop)
    }

    /// Rewrites a value in the way of its type: by its hook, or field by field in a copy. An error records the value in its context.
    pub(crate) fn default_mutate(self, value: AnyView<'_>, in_place: bool) -> Result {
        let result = match column::S_MAYBE_INPLACE.value(value.type_index()) {
            Some(hook) if in_place => match self.hook(hook, value) {
                Some(result) => result,
                // An in-place hook only saves a copy. Without a callable one, the value is rewritten in a copy.
                None => return self.default_mutate(value, false),
            },
            _ => match column::S_MUTATE.value(value.type_index()) {
                Some(hook) => self.hook(hook, value).unwrap_or_else(|| Err(bad_hook())),
                None => match value.as_object() {
                    Some(object) => self.object(object),
                    // A plain value without a hook stays unchanged. So does an object of an unknown type, below.
                    None => Ok(value.to_any()),
                },
            },
        };
        result.inspect_err(|error| attach(error, value))
    }

    /// Calls a hook. Returns `None` if the attribute is not callable.
    fn hook(self, hook: AnyView<'_>, value: AnyView<'_>) -> Option<Result> {
        match hook.type_index() {
            index::OPAQUE => {
                let address = hook.as_raw().ptr();
                // SAFETY: a pointer that is an attribute is a function with its calling convention (the contract of `set_any_attr`).
                let hook = unsafe { std::mem::transmute::<*mut c_void, MutateFn>(address) };
                Some(self.call(hook, value))
            }
            index::FUNCTION => Some(
                key_hooks::function(hook)
                    .and_then(|hook| hook.call_packed(&[self.view(), value]))
                    .and_then(key_hooks::raise_error_object),
            ),
            _ => None,
        }
    }

    /// Rewrites an object without a hook. A variable or a shared node that was rewritten before reuses the earlier result.
    fn object(self, object: &ObjectRef) -> Result {
        let value = AnyView::from(object);
        let Some(info) = types::info(object.type_index()) else {
            return Ok(unchanged());
        };
        let (is_variable, is_shared) = match structural_kind(info) {
            kind::VARIABLE => (true, false),
            kind::SHARED => (false, true),
            _ => return self.fields(object, info),
        };
        // Through the table, because a mutator of another library stores its own replacements.
        let known = self.remap_get(value)?;
        if !known.is_none() {
            return Ok(known);
        }
        // A variable outside every region stays unchanged, unless it has a replacement, which `known` would be.
        if is_variable && self.region().kind() == Region::NONE {
            return Ok(unchanged());
        }
        // Also for a variable: if its type changes, it becomes another variable.
        let after = self.fields(object, info)?;
        let changed = after.type_index() != index::UNCHANGED;
        // A shared node is always recorded, so that its next occurrence reuses this result and is not rewritten again.
        if is_shared || changed || self.region().kind() == Region::PATTERN {
            self.remap_set(value, after.view())?;
        }
        Ok(after)
    }

    /// Returns a copy of the object with rewritten fields, or `ffi.Unchanged` if none changed (OBJ-35).
    fn fields(self, object: &ObjectRef, info: &'static TypeInfo) -> Result {
        // Works on the copy from the start: getters and setters need an object, and the original must not show a partial rewrite.
        let copy = shallow_copy(object)?;
        let changed = self.region().run_for_fields(info, || {
            let mut changed = false;
            for field in fields_of(&copy) {
                if field.flags & flag::EQ_HASH_IGNORE == 0 {
                    changed |= self.field(field, info)?;
                }
            }
            Ok::<bool, Error>(changed)
        })?;
        Ok(if changed { copy.into() } else { unchanged() })
    }

    /// Rewrites one field of a copy. Returns whether that changed it.
    fn field(self, field: OwnField<'_>, info: &TypeInfo) -> Result<bool> {
        let before = field.get()?;
        let after = self
            .region()
            // Never in place: the original holds the same value, because the copy is shallow.
            .run_for_field(&field, || self.mutate(before.view(), false))?;
        if is_same(before.view(), &after) {
            return Ok(false);
        }
        // Checked only now: a field without a setter is an error only if its value changes.
        if field.setter.is_null() {
            return Err(Error::new(
                ErrorKind::Type,
                format!(
                    "Cannot structurally mutate field `{}` of type `{}` because it does not define a setter",
                    field.name(),
                    info.key()
                ),
            ));
        }
        field.set(after.view())?;
        Ok(true)
    }
}

/// Returns a copy of an object that shares its fields, made by an attribute of its type.
fn shallow_copy(object: &ObjectRef) -> Result<ObjectRef> {
    let hook = column::SHALLOW_COPY
        .value(object.type_index())
        .filter(|hook| hook.type_index() == index::FUNCTION);
    let Some(hook) = hook else {
        return Err(Error::new(
            ErrorKind::Type,
            "__ffi_shallow_copy__ must be an ffi.Function",
        ));
    };
    let made =
        key_hooks::raise_error_object(cast::<Function>(hook)?.call_packed(&[object.into()])?)?;
    match made.into_object() {
        // Fields are written into the result of the hook, so it must not be the original and must have the same type.
        Ok(copy)
            if copy.type_index() == object.type_index() && copy.as_ptr() != object.as_ptr() =>
        {
            Ok(copy)
        }
        _ => Err(Error::new(
            ErrorKind::Type,
            "Shallow copy callback must return a distinct object with the same type as its input",
        )),
    }
}

/// Returns the error for an attribute `__s_mutate__` that is neither a C function nor a function object.
#[cold]
fn bad_hook() -> Error {
    Error::new(
        ErrorKind::Type,
        "__s_mutate__ must be a direct hook pointer or ffi.Function",
    )
}
