//! Rewrites with callbacks: [`map`] calls them before or after the parts are rewritten, [`mutate`] leaves the parts to
//! them.

use super::context::attach;
use super::mutate::{Mutator, MutatorObj, MutatorTable, is_same, is_unshared, resolve, unchanged};
use super::walk::{Links, VisitOrder};
use super::{Callback, VisitDepth, answer};
use crate::function::{Error, ErrorKind, Result};
use crate::object::reflect::native;
use crate::object::sequence_of;
use crate::value::Schema;
use crate::value::header::{Object, ObjectRef, Ref};
use crate::value::types::ObjectIndex;
use crate::value::{Any, AnyView, Argument, RawAny, VAL_10, cast, index};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A list of `(type index, function, whether it takes the mode)`.
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

/// What a rewrite does with a value.
#[derive(Clone)]
enum RewriteMode {
    /// Calls a callback before or after the parts are rewritten.
    Map(Links, VisitOrder),
    /// Leaves value and parts to a callback, which calls the mutator for them.
    Mutate(Rewriters),
}

/// What stands for objects, by their address.
type Remap = HashMap<usize, (ObjectRef, Any)>;

/// A mutator that calls callbacks.
#[repr(C)]
struct Rewrite {
    /// The part that code of any library sees. It comes first, so that a pointer to one is a pointer to the other.
    mutator: MutatorObj,
    /// The callbacks, and when they are called.
    way: RewriteMode,
    /// What stands for variables and shared nodes, by address; the originals are kept.
    remap: Mutex<Remap>,
    /// How deep the rewrite is.
    depth: VisitDepth,
}

// SAFETY: `#[repr(C)]` with the header first; only reached through its own table.
unsafe impl Object for Rewrite {
    fn type_index() -> ObjectIndex {
        MutatorObj::type_index()
    }

    // Other mutators have the same type index, so the index proves nothing: only the table tells that one is a `Rewrite`.
    fn matches(_: i32) -> bool {
        false
    }
}

/// The table of every [`Rewrite`], by whose address [`copy`] knows one.
static TABLE: MutatorTable = MutatorTable {
    mutate: dispatch::<false>,
    maybe_in_place: dispatch::<true>,
    remap_get,
    remap_set,
};

/// `mutate` and `maybe_inplace_mutate` of the table: rewrites a value one level further down.
unsafe extern "C-unwind" fn dispatch<const IN_PLACE: bool>(
    mutator: *mut MutatorObj,
    value: RawAny,
) -> RawAny {
    answer(|| {
        // SAFETY: the table is only ever in a `Rewrite`, which is alive for the call.
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

/// `var_remap_get` of the table: what stands for a variable, or None.
unsafe extern "C-unwind" fn remap_get(mutator: *mut MutatorObj, variable: RawAny) -> RawAny {
    answer(|| {
        // SAFETY: the table is only ever in a `Rewrite`, which is alive for the call.
        let rewrite = unsafe { &*mutator.cast::<Rewrite>() };
        // SAFETY: the value lives for the call.
        let variable = unsafe { AnyView::from_raw(variable) };
        let at = key_of(variable)?.as_ptr() as usize;
        let found = rewrite.remap().get(&at).map(|(_, mapped)| mapped.clone());
        Ok(found.unwrap_or_default())
    })
}

/// `var_remap_set` of the table. Returns None.
unsafe extern "C-unwind" fn remap_set(
    mutator: *mut MutatorObj,
    variable: RawAny,
    mapped: RawAny,
) -> RawAny {
    answer(|| {
        // SAFETY: the table is only ever in a `Rewrite`, which is alive for the call.
        let rewrite = unsafe { &*mutator.cast::<Rewrite>() };
        // SAFETY: the value lives for the call.
        let variable = unsafe { AnyView::from_raw(variable) };
        // SAFETY: the value lives for the call.
        let mapped = unsafe { AnyView::from_raw(mapped) };
        let key = key_of(variable)?;
        let entry = (key.clone(), mapped.to_any());
        let before = rewrite.remap().insert(key.as_ptr() as usize, entry);
        // Only now, when the lock is free again: the destructor of what stood there may run any code, this rewrite's included.
        drop(before);
        Ok(Any::none())
    })
}

/// The object that a variable is, by whose address it is known.
fn key_of<'a>(variable: AnyView<'a>) -> Result<ObjectRef> {
    variable.as_object().cloned().ok_or_else(|| {
        Error::new(
            ErrorKind::Type,
            "Variable-remap key must be an object-backed value",
        )
    })
}

impl Rewrite {
    /// Rewrites a root under a new mutator: the new value, or `ffi.Unchanged`.
    fn start(way: RewriteMode, root: &Any) -> Result {
        let rewrite = Ref::new(Rewrite {
            mutator: MutatorObj::new(&TABLE, super::Region::NONE),
            way,
            remap: Mutex::default(),
            depth: VisitDepth::default(),
        });
        // SAFETY: `rewrite` is held until the end.
        let mutator = unsafe { Mutator::from_raw(rewrite.as_ptr().cast()) };
        mutator.mutate(root.view(), true)
    }

    /// The map, also after a panic in a callback: it is changed by single insertions.
    fn remap(&self) -> MutexGuard<'_, Remap> {
        self.remap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rewrites one value as the mode says. `in_place` is true for one that its caller alone holds.
    fn step(&self, mutator: Mutator, value: AnyView<'_>, in_place: bool) -> Result {
        match &self.way {
            RewriteMode::Map(links, VisitOrder::Pre) => {
                before_parts(links, mutator, value, in_place)
            }
            RewriteMode::Map(links, VisitOrder::Post) => {
                after_parts(links, mutator, value, in_place)
            }
            RewriteMode::Mutate(entries) => {
                let own = |entry: &&(Callback, bool)| entry.0.takes(value.type_index());
                let Some((link, takes_mode)) = entries.0.iter().find(own) else {
                    return mutator.default_mutate(value, in_place);
                };
                let mode = AnyView::from(i64::from(in_place));
                let args = [value, mutator.view(), mode];
                // A callback without the third parameter would fail by an argument too many.
                let count = if *takes_mode { 3 } else { 2 };
                link.function
                    .call(args.get(..count).unwrap_or(&args))
                    .and_then(native::settle)
                    .inspect_err(|error| attach(error, value))
            }
        }
    }
}

/// Calls the callback for a value, if there is one. An error carries the value on its way up.
fn call(links: &Links, mutator: Mutator, value: AnyView<'_>) -> Option<Result> {
    let answered = links.call(value, mutator.region().kind())?;
    let answered = answered.and_then(native::settle);
    Some(answered.inspect_err(|error| attach(error, value)))
}

/// The callback makes the node, then the parts of what it made are rewritten.
fn before_parts(links: &Links, mutator: Mutator, value: AnyView<'_>, in_place: bool) -> Result {
    let Some(made) = call(links, mutator, value) else {
        return mutator.default_mutate(value, in_place);
    };
    let made = made?;
    let same = is_same(value, &made);
    let now = if same { value } else { made.view() };
    // What the callback made anew is held by nothing else and may be changed itself; what it took from elsewhere may not (OBJ-35).
    let after = mutator.default_mutate(now, in_place && (same || is_unshared(now)))?;
    Ok(if after.type_index() == index::UNCHANGED {
        made
    } else {
        after
    })
}

/// The parts are rewritten, then the callback gets the node.
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

/// Rewrites a value and everything in it with callbacks that answer with what a value becomes. What no callback changes
/// is shared with the original; an original without another holder is changed itself.
pub(crate) fn map(root: Any, links: Links, order: VisitOrder) -> Result {
    let after = Rewrite::start(RewriteMode::Map(links, order), &root)?;
    Ok(resolve(after, root.view()))
}

/// Hands values to callbacks together with the mutator; whether and how the parts are rewritten is left to them.
pub(crate) fn mutate(root: Any, callbacks: Rewriters) -> Result {
    let after = Rewrite::start(RewriteMode::Mutate(callbacks), &root)?;
    Ok(resolve(after, root.view()))
}

/// A copy of a mutator, as [`super::walk::copy`] of a visitor.
pub(crate) fn copy(source: &Ref<MutatorObj>) -> ObjectRef {
    let region = source.region.kind();
    if !std::ptr::eq(source.table, &TABLE) {
        return Ref::new(MutatorObj::new(&REJECTING, region)).into_object();
    }
    // SAFETY: the table is only ever in a `Rewrite`.
    let rewrite = unsafe { &*source.as_ptr().cast::<Rewrite>() };
    let remap = rewrite.remap().clone();
    Ref::new(Rewrite {
        mutator: MutatorObj::new(&TABLE, region),
        way: rewrite.way.clone(),
        remap: Mutex::new(remap),
        // A copy begins at depth 0: it is a rewrite of its own.
        depth: VisitDepth::default(),
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

/// The error of every function of that table: what the original did is behind its public part, whose size is not known here.
fn rejected() -> Result {
    Err(Error::new(
        ErrorKind::Type,
        "this is the copy of a mutator whose own part is not known here",
    ))
}

/// Fails, as a function over a value.
unsafe extern "C-unwind" fn reject(_: *mut MutatorObj, _: RawAny) -> RawAny {
    answer(rejected)
}

/// Fails, as a function over a variable and a value.
unsafe extern "C-unwind" fn reject_set(_: *mut MutatorObj, _: RawAny, _: RawAny) -> RawAny {
    answer(rejected)
}

/// What strings, bytes and big integers do: nothing.
pub(crate) unsafe extern "C-unwind" fn leaf(_: *mut MutatorObj, _: RawAny) -> RawAny {
    unchanged().into_raw()
}
