//! Rewrites with callbacks: [`map`] calls them before or after the parts are rewritten, and [`mutate`] leaves the parts to them.

use super::context::attach;
use super::mutate::{Mutator, MutatorObj, MutatorTable, is_same, is_unshared, resolve, unchanged};
use super::walk::{Links, VisitOrder};
use super::{Callback, answer};
use crate::function::{Error, ErrorKind, Result};
use crate::object::reflect::key_hooks;
use crate::object::sequence_of;
use crate::object::walk::depth::Levels;
use crate::value::Schema;
use crate::value::header::{Object, ObjectRef, Ref};
use crate::value::types::ObjectIndex;
use crate::value::{Any, AnyView, Argument, RawAny, VAL_10, cast, index};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A list of `(type index, function, takes the mode)`.
#[derive(Clone)]
pub(crate) struct Rewriters(Vec<(Callback, bool)>);

impl Argument for Rewriters {
    const RULE: crate::rule::Rule = VAL_10;

    fn schema() -> Schema {
        let [int, function, flag] = ["int", "ffi.Function", "bool"].map(Schema::plain);
        let entry = Schema::of("Tuple", vec![int, function, flag]);
        Schema::of("ffi.Array", vec![entry])
    }

    fn try_from_view(view: AnyView<'_>) -> Option<Rewriters> {
        let entry = |entry: &Any| {
            let items = sequence_of(entry.view())?;
            let takes_mode = cast::<bool>(items.get(2)?.view()).ok()?;
            Some((Callback::from_tuple(&items)?, takes_mode))
        };
        let entries = sequence_of(view)?;
        let entries = entries.iter().map(entry);
        entries.collect::<Option<Vec<_>>>().map(Rewriters)
    }
}

/// The mode of a rewrite.
#[derive(Clone)]
enum RewriteMode {
    /// Calls a callback before or after the parts are rewritten.
    Map(Links, VisitOrder),
    /// Leaves the value and its parts to a callback, which calls the mutator for them.
    Mutate(Rewriters),
}

/// Replacements of objects, by address. The originals are kept alive.
type Remap = HashMap<usize, (ObjectRef, Any)>;

/// A mutator that calls callbacks.
#[repr(C)]
struct Rewrite {
    /// The part that code of any library sees. It is first, so that a pointer to one is a pointer to the other.
    mutator: MutatorObj,
    /// The callbacks, and the time of their calls.
    way: RewriteMode,
    /// Replacements of variables and shared nodes, by address. The originals are kept alive.
    remap: Mutex<Remap>,
    /// The depth of the rewrite.
    depth: Levels,
}

// SAFETY: `#[repr(C)]` with the header first; only reached through its own table.
unsafe impl Object for Rewrite {
    fn type_index() -> ObjectIndex {
        MutatorObj::type_index()
    }

    // Other mutators have the same type index, so only the table identifies a `Rewrite`.
    fn matches(_: i32) -> bool {
        false
    }
}

/// The table of every [`Rewrite`]. [`copy`] recognizes one by the address of its table.
static TABLE: MutatorTable = MutatorTable {
    mutate: dispatch::<false>,
    maybe_in_place: dispatch::<true>,
    remap_get,
    remap_set,
};

/// Implements `mutate` and `maybe_inplace_mutate` of the table: rewrites a value one level deeper.
unsafe extern "C-unwind" fn dispatch<const IN_PLACE: bool>(
    mutator: *mut MutatorObj,
    value: RawAny,
) -> RawAny {
    answer(|| {
        // SAFETY: only a `Rewrite` has this table, and it is alive for the call.
        let rewrite = unsafe { &*mutator.cast::<Rewrite>() };
        // SAFETY: the value lives for the call.
        let value = unsafe { AnyView::from_raw(value) };
        // SAFETY: alive for the call.
        let mutator = unsafe { Mutator::from_raw(mutator) };
        rewrite
            .depth
            .deeper(|| rewrite.step(mutator, value, IN_PLACE))
    })
}

/// Implements `var_remap_get` of the table: returns the replacement of a variable, or None.
unsafe extern "C-unwind" fn remap_get(mutator: *mut MutatorObj, variable: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: only a `Rewrite` has this table, and it is alive for the call.
        let rewrite = unsafe { &*mutator.cast::<Rewrite>() };
        // SAFETY: the value lives for the call.
        let variable = unsafe { AnyView::from_raw(variable) };
        let at = key_of(variable)?.as_ptr() as usize;
        let found = rewrite.remap().get(&at).map(|(_, mapped)| mapped.clone());
        Ok(found.unwrap_or_default())
    })
}

/// Implements `var_remap_set` of the table. Returns None.
unsafe extern "C-unwind" fn remap_set(
    mutator: *mut MutatorObj,
    variable: RawAny,
    mapped: RawAny,
) -> RawAny {
    answer(|| {
        // SAFETY: only a `Rewrite` has this table, and it is alive for the call.
        let rewrite = unsafe { &*mutator.cast::<Rewrite>() };
        // SAFETY: the value lives for the call.
        let variable = unsafe { AnyView::from_raw(variable) };
        // SAFETY: the value lives for the call.
        let mapped = unsafe { AnyView::from_raw(mapped) };
        let key = key_of(variable)?;
        let entry = (key.clone(), mapped.to_any());
        let before = rewrite.remap().insert(key.as_ptr() as usize, entry);
        // Dropped after the lock is released, because the destructor of the old entry may run any code, including this rewrite.
        drop(before);
        Ok(Any::none())
    })
}

/// Returns the object of a variable, whose address identifies it.
fn key_of<'a>(variable: AnyView<'a>) -> Result<ObjectRef> {
    variable.as_object().cloned().ok_or_else(|| {
        Error::new(
            ErrorKind::Type,
            "Variable-remap key must be an object-backed value",
        )
    })
}

impl Rewrite {
    /// Rewrites a root with a new mutator. Returns the new value or `ffi.Unchanged`.
    fn start(way: RewriteMode, root: &Any) -> Result {
        let rewrite = Ref::new(Rewrite {
            mutator: MutatorObj::new(&TABLE, super::Region::NONE),
            way,
            remap: Mutex::default(),
            depth: Levels::default(),
        });
        // SAFETY: `rewrite` is kept alive until the end.
        let mutator = unsafe { Mutator::from_raw(rewrite.as_ptr().cast()) };
        mutator.mutate(root.view(), true)
    }

    /// Locks the replacements, ignoring poison after a panic in a callback, because they change only by single insertions.
    fn remap(&self) -> MutexGuard<'_, Remap> {
        self.remap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rewrites one value according to the mode. `in_place` is true if only its caller holds it.
    fn step(&self, mutator: Mutator, value: AnyView<'_>, in_place: bool) -> Result {
        match &self.way {
            RewriteMode::Map(links, VisitOrder::Pre) => {
                before_parts(links, mutator, value, in_place)
            }
            RewriteMode::Map(links, VisitOrder::Post) => {
                after_parts(links, mutator, value, in_place)
            }
            RewriteMode::Mutate(entries) => {
                let own = |entry: &&(Callback, bool)| entry.0.applies_to(value.type_index());
                let Some((link, takes_mode)) = entries.0.iter().find(own) else {
                    return mutator.default_mutate(value, in_place);
                };
                let mode = AnyView::from(i64::from(in_place));
                let args = [value, mutator.view(), mode];
                // A callback without the third parameter would fail with one argument too many.
                let count = if *takes_mode { 3 } else { 2 };
                link.function
                    .call_packed(args.get(..count).unwrap_or(&args))
                    .and_then(key_hooks::raise_error_object)
                    .inspect_err(|error| attach(error, value))
            }
        }
    }
}

/// Calls the callback for a value, if there is one. An error records the value in its context.
fn call(links: &Links, mutator: Mutator, value: AnyView<'_>) -> Option<Result> {
    let answered = links.call(value, mutator.region().kind())?;
    let answered = answered.and_then(key_hooks::raise_error_object);
    Some(answered.inspect_err(|error| attach(error, value)))
}

/// Calls the callback first, then rewrites the parts of its result.
fn before_parts(links: &Links, mutator: Mutator, value: AnyView<'_>, in_place: bool) -> Result {
    let Some(made) = call(links, mutator, value) else {
        return mutator.default_mutate(value, in_place);
    };
    let made = made?;
    let same = is_same(value, &made);
    let now = if same { value } else { made.view() };
    // A new result of the callback has no other holder and may be changed in place. A result that it took from elsewhere may not (OBJ-35).
    let after = mutator.default_mutate(now, in_place && (same || is_unshared(now)))?;
    Ok(if after.type_index() == index::UNCHANGED {
        made
    } else {
        after
    })
}

/// Rewrites the parts first, then calls the callback with the result.
fn after_parts(links: &Links, mutator: Mutator, value: AnyView<'_>, in_place: bool) -> Result {
    let after = mutator.default_mutate(value, in_place)?;
    let now = if after.type_index() == index::UNCHANGED {
        value
    } else {
        after.view()
    };
    match call(links, mutator, now) {
        None => Ok(after),
        Some(made) => {
            let made = made?;
            Ok(if made.type_index() == index::UNCHANGED {
                after
            } else {
                made
            })
        }
    }
}

/// Rewrites a value and everything in it with callbacks that return replacements. Unchanged parts are shared with the original. An original
/// without other holders is changed in place.
pub(crate) fn map(root: Any, links: Links, order: VisitOrder) -> Result {
    let after = Rewrite::start(RewriteMode::Map(links, order), &root)?;
    Ok(resolve(after, root.view()))
}

/// Calls callbacks with values and the mutator. The callbacks decide whether and how the parts are rewritten.
pub(crate) fn mutate(root: Any, callbacks: Rewriters) -> Result {
    let after = Rewrite::start(RewriteMode::Mutate(callbacks), &root)?;
    Ok(resolve(after, root.view()))
}

/// Copies a mutator, as [`super::walk::copy`] copies a visitor.
pub(crate) fn copy(source: &Ref<MutatorObj>) -> ObjectRef {
    let region = source.region.kind();
    if !std::ptr::eq(source.table, &TABLE) {
        return Ref::new(MutatorObj::new(&REJECTING, region)).into_object();
    }
    // SAFETY: only a `Rewrite` has this table.
    let rewrite = unsafe { &*source.as_ptr().cast::<Rewrite>() };
    let remap = rewrite.remap().clone();
    Ref::new(Rewrite {
        mutator: MutatorObj::new(&TABLE, region),
        way: rewrite.way.clone(),
        remap: Mutex::new(remap),
        // A copy begins at depth 0, because it is an independent rewrite.
        depth: Levels::default(),
    })
    .into_object()
}

/// The table of a copy whose original belongs to another library.
static REJECTING: MutatorTable = MutatorTable {
    mutate: reject,
    maybe_in_place: reject,
    remap_get: reject,
    remap_set: reject_set,
};

/// Returns the error for all functions of that table: the original's private part follows its public part, and its size is unknown here.
fn rejected() -> Result {
    Err(Error::new(
        ErrorKind::Type,
        "this is the copy of a mutator whose own part is not known here",
    ))
}

/// Fails, with the signature of a function over a value.
unsafe extern "C-unwind" fn reject(_: *mut MutatorObj, _: RawAny) -> RawAny {
    answer(rejected)
}

/// Fails, with the signature of a function over a variable and a value.
unsafe extern "C-unwind" fn reject_set(_: *mut MutatorObj, _: RawAny, _: RawAny) -> RawAny {
    answer(rejected)
}

/// Implements the hooks of strings, bytes and big integers: changes nothing.
pub(crate) unsafe extern "C-unwind" fn leaf(_: *mut MutatorObj, _: RawAny) -> RawAny {
    unchanged().into_raw()
}
