//! The functions `vm.builtin.*`, which compiled pipelines call.
//!
//! The global registry has them for all callers. A machine calls them directly, unless the registry or the library has another
//! function of the name.

mod arguments;
mod checks;
mod closures;
mod shapes;
mod tensors;
mod tuples;

pub(super) use tuples::reset_item_held_alone;

use super::error::VmResult;
use super::machine_interface::CallingMachine;
use crate::function::{Error, ErrorKind, Function, registry};
use crate::value::{AnyView, cast};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A builtin that needs only its arguments.
type PlainBuiltin = fn(&[AnyView<'_>]) -> VmResult;
/// A builtin that takes `%vm`. It receives the machine, and all arguments including the handle.
type MachineBuiltin = fn(&dyn CallingMachine, &[AnyView<'_>]) -> VmResult;

/// A function of this chapter.
#[derive(Clone, Copy)]
pub(super) enum Builtin {
    /// A function that needs only its arguments.
    Plain(PlainBuiltin),
    /// A function whose first argument is the machine.
    OfMachine(MachineBuiltin),
    /// A function that reads or writes the memory of an argument in place.
    InPlace {
        /// The function for trusted code, whose loader guarantees that no other thread uses that memory (`module::load`).
        trusted: PlainBuiltin,
        /// The function that is synchronized with all safe code that accesses the memory of tensors.
        ordered: PlainBuiltin,
    },
}

/// The builtin that changes a tuple to which others may refer (VM-58).
pub(super) const RESET: &str = "vm.builtin.tuple_reset_item";

/// Every builtin of this crate, sorted by name. `spec/vm.md` has a table of the missing ones, with reasons.
const ALL: &[(&str, Builtin)] = &[
    (
        // VM-48: on a device of the machine, like storage (VM-31).
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
    (
        "vm.builtin.call_tir_dyn",
        Builtin::Plain(closures::call_tir_dyn),
    ),
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
        // VM-57: in the wheel of 0.27 and in no tag; models of other releases never call it.
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
    // VM-56: it copies nothing, despite its name.
    ("vm.builtin.copy", Builtin::Plain(tensors::copy)),
    (
        "vm.builtin.ensure_zero_offset",
        Builtin::Plain(tensors::ensure_zero_offset),
    ),
    (
        // VM-29: a closure is an index into a table, so the machine is also needed.
        "vm.builtin.invoke_closure",
        Builtin::OfMachine(closures::invoke_closure),
    ),
    (
        "vm.builtin.make_closure",
        Builtin::Plain(closures::make_closure),
    ),
    (
        // VM-47: reads a cell of the heap, which safe code may also access as a tensor.
        "vm.builtin.make_prim_value",
        Builtin::InPlace {
            trusted: shapes::make_prim_value,
            ordered: |args| call_exclusively(shapes::make_prim_value, args),
        },
    ),
    (
        // VM-46: reads cells, as `make_prim_value` does.
        "vm.builtin.make_shape",
        Builtin::InPlace {
            trusted: shapes::make_shape,
            ordered: |args| call_exclusively(shapes::make_shape, args),
        },
    ),
    ("vm.builtin.make_tuple", Builtin::Plain(tuples::make_tuple)),
    (
        // VM-47: reads or writes a cell.
        "vm.builtin.match_prim_value",
        Builtin::InPlace {
            trusted: shapes::match_prim_value,
            ordered: |args| call_exclusively(shapes::match_prim_value, args),
        },
    ),
    (
        // VM-45: writes cells, which safe code may read at the same time.
        "vm.builtin.match_shape",
        Builtin::InPlace {
            trusted: shapes::match_shape,
            ordered: |args| call_exclusively(shapes::match_shape, args),
        },
    ),
    (
        "vm.builtin.memory_manager.clear",
        Builtin::Plain(tensors::clear),
    ),
    ("vm.builtin.null_value", Builtin::Plain(tensors::null_value)),
    (
        // VM-53: a flag on the host is read in place, without a copy.
        "vm.builtin.read_if_cond",
        Builtin::InPlace {
            trusted: tensors::read_if_cond,
            ordered: tensors::read_if_cond_in_order,
        },
    ),
    ("vm.builtin.reshape", Builtin::Plain(tensors::reshape)),
    ("vm.builtin.shape_of", Builtin::Plain(tensors::shape_of)),
    (
        "vm.builtin.tensor_to_shape",
        Builtin::Plain(tensors::tensor_to_shape),
    ),
    ("vm.builtin.to_device", Builtin::Plain(tensors::to_device)),
    (
        "vm.builtin.tuple_getitem",
        Builtin::Plain(tuples::tuple_getitem),
    ),
    // VM-58: writes into the tuple itself. `link` uses another function if the tuple may be shared.
    (RESET, Builtin::Plain(tuples::tuple_reset_item)),
];

/// Calls `body` while no other safe code accesses the memory of tensors.
///
/// A machine of trusted code calls the body without this: the contract of `module::load` is that no other thread uses that memory.
fn call_exclusively(body: PlainBuiltin, args: &[AnyView<'_>]) -> VmResult {
    let _alone = crate::object::container::tensor::copying();
    body(args)
}

/// Returns the names of the builtins of this crate, sorted.
///
/// They have the prefix `vm.builtin.`, as in the registry.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// The builtins as functions. [`Builtin::from_function`] recognizes them by their addresses.
static INSTALLED: OnceLock<Vec<(Function, Builtin)>> = OnceLock::new();

/// Puts the builtins into the registry, once, under names that it does not have yet.
pub(super) fn provide() {
    // Once for the process, because `Builtin::from_function` recognizes these functions by their addresses.
    INSTALLED.get_or_init(|| {
        ALL.iter()
            .map(|(name, builtin)| {
                let function = match *builtin {
                    Builtin::Plain(body) | Builtin::InPlace { ordered: body, .. } => {
                        Function::from_packed(body)
                    }
                    Builtin::OfMachine(body) => {
                        Function::from_packed(move |args| with_machine(args, body))
                    }
                };
                // VM-11: a function that another library registered first remains. VM-11 finds it, and `Builtin::from_function` does not
                // recognize it.
                registry::provide(name, function.clone());
                (function, *builtin)
            })
            .collect()
    });
}

impl Builtin {
    /// Returns the builtin of `function`, if it is one of this crate.
    pub(super) fn from_function(function: &Function) -> Option<Builtin> {
        // VM-11: compared by address, because the registry or a library may have another function of the same name.
        let address = function.as_object().as_ptr();
        let all = INSTALLED.get()?;
        let found = all
            .iter()
            .find(|(own, _)| own.as_object().as_ptr() == address);
        found.map(|(_, builtin)| *builtin)
    }
}

/// The live machines, by address. A handle from outside is checked against this map.
///
/// Compiled code passes `%vm` as an opaque address. A call through the registry may pass any address, which upstream dereferences.
static ALIVE: Mutex<BTreeMap<usize, Weak<dyn CallingMachine>>> = Mutex::new(BTreeMap::new());

/// Locks [`ALIVE`]. A poisoned lock is accepted, because no panic can leave an entry incomplete.
fn alive() -> MutexGuard<'static, BTreeMap<usize, Weak<dyn CallingMachine>>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds `machine` by its address. The map has a weak reference and keeps no machine alive.
pub(super) fn announce(machine: &Arc<dyn CallingMachine>) {
    alive().insert(Arc::as_ptr(machine).addr(), Arc::downgrade(machine));
}

/// Removes the machine at `address`, which is being dropped.
pub(super) fn forget(address: usize) {
    alive().remove(&address);
}

/// Calls `body` with the machine of the handle in the first argument, for calls from outside of a machine.
fn with_machine(args: &[AnyView<'_>], body: MachineBuiltin) -> crate::function::Result {
    let handle = cast::<*mut c_void>(args.first().copied().unwrap_or(AnyView::none()))?;
    // The lock ends with this line, because the callee may create and drop machines, which lock the map.
    let known = alive().get(&handle.addr()).and_then(Weak::upgrade);
    let machine = known.ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            "the first argument is not a machine of this runtime",
        )
    })?;
    body(&*machine, args)
}
