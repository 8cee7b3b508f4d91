//! The functions `vm.builtin.*` that compiled pipelines call.
//!
//! They are in the global registry, for all callers; a machine calls them without that detour, unless the registry or the
//! library has another function of the name.

mod checks;
mod shapes;
mod tensors;

use super::closure::Closure;
use super::machine::Machine;
use super::{Fault, VM_28, VM_29, VM_49, VM_54};
use crate::function::{Error, Function, registry};
use crate::object::{Array, element_cell, extents_of, item_count, sequence_of};
use crate::rule::{Kind, Rule};
use crate::value::types::key_of;
use crate::value::{Any, AnyView, Argument, DLTensor, ObjectRef, cast};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

type Outcome<T = Any> = Result<T, Fault>;
type Plain = fn(&[AnyView<'_>]) -> Outcome;
type OfMachine = fn(&Machine, &[AnyView<'_>]) -> Outcome;

/// A function of this chapter.
#[derive(Clone, Copy)]
pub(super) enum Builtin {
    /// Needs its arguments alone.
    Plain(Plain),
    /// Its first argument is the machine.
    OfMachine(OfMachine),
}

/// The builtin that changes what others may hold (VM-58).
pub(super) const RESET: &str = "vm.builtin.tuple_reset_item";

/// Every builtin that we have.
const ALL: &[(&str, Builtin)] = &[
    (
        "vm.builtin.alloc_shape_heap",
        Builtin::OfMachine(shapes::alloc_shape_heap),
    ),
    (
        "vm.builtin.alloc_storage",
        Builtin::OfMachine(tensors::alloc_storage),
    ),
    (
        "vm.builtin.alloc_tensor",
        Builtin::Plain(tensors::alloc_tensor),
    ),
    ("vm.builtin.call_tir_dyn", Builtin::Plain(call_tir_dyn)),
    (
        "vm.builtin.check_func_info",
        Builtin::Plain(checks::func_info),
    ),
    (
        "vm.builtin.check_prim_value_info",
        Builtin::Plain(checks::prim_value_info),
    ),
    (
        "vm.builtin.check_shape_info",
        Builtin::Plain(checks::shape_info),
    ),
    (
        "vm.builtin.check_string_info",
        Builtin::Plain(checks::string_info),
    ),
    (
        "vm.builtin.check_tensor_info",
        Builtin::Plain(checks::tensor_info),
    ),
    (
        "vm.builtin.check_tuple_info",
        Builtin::Plain(checks::tuple_info),
    ),
    ("vm.builtin.copy", Builtin::Plain(tensors::same)),
    (
        "vm.builtin.ensure_zero_offset",
        Builtin::Plain(tensors::ensure_zero_offset),
    ),
    (
        "vm.builtin.invoke_closure",
        Builtin::OfMachine(invoke_closure),
    ),
    ("vm.builtin.make_closure", Builtin::Plain(make_closure)),
    (
        "vm.builtin.make_prim_value",
        Builtin::Plain(shapes::make_prim_value),
    ),
    ("vm.builtin.make_shape", Builtin::Plain(shapes::make_shape)),
    ("vm.builtin.make_tuple", Builtin::Plain(make_tuple)),
    (
        "vm.builtin.match_prim_value",
        Builtin::Plain(shapes::match_prim_value),
    ),
    (
        "vm.builtin.match_shape",
        Builtin::Plain(shapes::match_shape),
    ),
    (
        "vm.builtin.memory_manager.clear",
        Builtin::Plain(tensors::clear),
    ),
    ("vm.builtin.null_value", Builtin::Plain(tensors::null_value)),
    (
        "vm.builtin.read_if_cond",
        Builtin::Plain(tensors::read_if_cond),
    ),
    ("vm.builtin.reshape", Builtin::Plain(tensors::reshape)),
    ("vm.builtin.shape_of", Builtin::Plain(tensors::shape_of)),
    (
        "vm.builtin.tensor_to_shape",
        Builtin::Plain(tensors::tensor_to_shape),
    ),
    ("vm.builtin.to_device", Builtin::Plain(tensors::to_device)),
    ("vm.builtin.tuple_getitem", Builtin::Plain(tuple_getitem)),
    (RESET, Builtin::Plain(tuple_reset_item)),
];

/// Names of the builtins of this crate, sorted.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

static INSTALLED: OnceLock<Vec<(Function, Builtin)>> = OnceLock::new();

/// Puts the builtins into the registry, where none has the name yet; once.
pub(super) fn provide() {
    INSTALLED.get_or_init(|| {
        ALL.iter()
            .map(|(name, builtin)| {
                let function = match *builtin {
                    Builtin::Plain(body) => Function::from_packed(move |args| Ok(body(args)?)),
                    Builtin::OfMachine(body) => {
                        Function::from_packed(move |args| with_machine(args, body))
                    }
                };
                registry::provide(name, function.clone());
                (function, *builtin)
            })
            .collect()
    });
}

impl Builtin {
    /// The builtin that `function` is, if it is one of ours.
    pub(super) fn of(function: &Function) -> Option<Builtin> {
        let address = function.as_object().as_ptr();
        let all = INSTALLED.get()?;
        let found = all
            .iter()
            .find(|(own, _)| own.as_object().as_ptr() == address);
        found.map(|(_, builtin)| *builtin)
    }
}

/// The machines that are alive, by address: what a handle from outside is held against.
static ALIVE: Mutex<BTreeMap<usize, Weak<Machine>>> = Mutex::new(BTreeMap::new());

fn alive() -> MutexGuard<'static, BTreeMap<usize, Weak<Machine>>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `machine` known by its address.
pub(super) fn announce(machine: &Arc<Machine>) {
    alive().insert(Arc::as_ptr(machine).addr(), Arc::downgrade(machine));
}

/// Forgets a machine that ends.
pub(super) fn forget(machine: &Machine) {
    alive().remove(&std::ptr::from_ref(machine).addr());
}

fn with_machine(args: &[AnyView<'_>], body: OfMachine) -> crate::function::Result {
    let handle = cast::<*mut c_void>(args.first().copied().unwrap_or(AnyView::none()))?;
    let known = alive().get(&handle.addr()).and_then(Weak::upgrade);
    let machine = known.ok_or_else(|| {
        Error::new(
            "RuntimeError",
            "the first argument is not a machine of this runtime",
        )
    })?;
    Ok(body(&machine, args)?)
}

// Arguments.

fn arg<'a>(args: &[AnyView<'a>], at: usize) -> AnyView<'a> {
    args.get(at).copied().unwrap_or(AnyView::none())
}

fn int(args: &[AnyView<'_>], at: usize) -> Outcome<i64> {
    Ok(cast::<i64>(arg(args, at))?)
}

/// The text that a compiler puts behind the arguments for messages; empty when there is none.
fn context(args: &[AnyView<'_>]) -> String {
    let last = args.last().copied().unwrap_or(AnyView::none());
    cast::<String>(last).map_or_else(|_| String::new(), |text| text.trim_end().to_owned() + " ")
}

/// The description behind a tensor argument.
fn tensor<'a>(view: AnyView<'a>) -> Option<&'a DLTensor> {
    let pointer = <*mut DLTensor>::try_from_view(view)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    unsafe { pointer.as_ref() }
}

/// The extents of a description that [`tensor`] or a tensor object gave.
fn extents(dl: &DLTensor) -> &[i64] {
    // SAFETY: the description of an argument has readable extents; only `unsafe` code makes others.
    unsafe { dl.shape() }
}

/// Whether the elements of a description that [`tensor`] or a tensor object gave lie in one piece.
fn is_compact(dl: &DLTensor) -> bool {
    // SAFETY: as for `extents`, and so are its strides.
    unsafe { dl.is_contiguous() }
}

#[cold]
fn refuse<T>(rule: Rule, message: String) -> Outcome<T> {
    Err(rule.refused(Kind::Type, message).into())
}

// Closures and calls.

fn make_closure(args: &[AnyView<'_>]) -> Outcome {
    let Some((closure, rest)) = args.split_first() else {
        return refuse(VM_28, "make_closure takes a function and arguments".into());
    };
    let Some(inner) = closure
        .as_object()
        .and_then(|object| object.get::<Closure>())
    else {
        return refuse(
            VM_28,
            format!(
                "a closure is made of a function of the executable, not of `{}`",
                key_of(closure.type_index())
            ),
        );
    };
    let last = rest.iter().map(|value| value.to_any()).collect();
    Ok(inner.bind(&inner.name, last, true).into())
}

fn invoke_closure(machine: &Machine, args: &[AnyView<'_>]) -> Outcome {
    let [_, closure, rest @ ..] = args else {
        return refuse(
            VM_29,
            "invoke_closure takes the machine, a closure, its arguments".into(),
        );
    };
    machine.invoke(*closure, rest)
}

fn call_tir_dyn(args: &[AnyView<'_>]) -> Outcome {
    let [function, middle @ .., last] = args else {
        return refuse(
            VM_54,
            "call_tir_dyn takes a function, its tensors, a shape".into(),
        );
    };
    let Some(extents) = extents_of(*last) else {
        return refuse(
            VM_54,
            format!(
                "the last argument of call_tir_dyn is a shape, not `{}`",
                key_of(last.type_index())
            ),
        );
    };
    let function = cast::<Function>(*function)?;
    let mut all: Vec<AnyView<'_>> = middle.to_vec();
    all.extend(extents.iter().map(|extent| AnyView::from(*extent)));
    Ok(function.call(&all)?)
}

// Tuples.

fn make_tuple(args: &[AnyView<'_>]) -> Outcome {
    Ok(Array::new(args.iter().map(|value| value.to_any())).into())
}

fn tuple_getitem(args: &[AnyView<'_>]) -> Outcome {
    let at = int(args, 1)?;
    let items = sequence_of(arg(args, 0));
    let found = items
        .as_deref()
        .and_then(|items| items.get(usize::try_from(at).ok()?));
    match found {
        Some(value) => Ok(value.clone()),
        _ => Err(no_element(at, items.as_deref().map_or(0, <[Any]>::len))),
    }
}

fn no_element(at: i64, count: usize) -> Fault {
    let message = format!("there is no element {at} in a tuple of {count}");
    VM_49.refused(Kind::Missing, message).into()
}

/// [`tuple_reset_item`] that leaves a tuple alone which has another holder, who may be looking at the element. Its
/// memory is free once that holder lets the tuple go.
pub(super) fn reset_item_held_alone(args: &[AnyView<'_>]) -> Outcome {
    // The argument's holder, and the reference counted here.
    let shared = |object: &ObjectRef| object.header().strong_count() > 2;
    if arg(args, 0).to_any().as_object().is_some_and(shared) {
        return tuple_getitem(args).map(|_| Any::none());
    }
    tuple_reset_item(args)
}

/// Drops an element of a tuple in place, so that its memory can be used again: every holder of the tuple sees it go.
fn tuple_reset_item(args: &[AnyView<'_>]) -> Outcome {
    let at = int(args, 1)?;
    let tuple = arg(args, 0);
    let found = usize::try_from(at).ok();
    let Some(found) = found.and_then(|at| element_cell(tuple, at)) else {
        return Err(no_element(at, item_count(tuple).unwrap_or(0)));
    };
    // SAFETY: the cell is an owned value of the tuple. The caller promises that the element is not borrowed
    // (`registry::lookup_raw`); the compiler does so where it has a machine call it.
    drop(unsafe { found.replace(Any::none()) });
    Ok(Any::none())
}
