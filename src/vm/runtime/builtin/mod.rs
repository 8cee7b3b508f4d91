//! The functions `vm.builtin.*` that compiled pipelines call.
//!
//! They are in the global registry, for all callers; a machine calls them without that detour, unless the registry or the
//! library has another function of the name.

mod arguments;
mod checks;
mod closures;
mod shapes;
mod tensors;
mod tuples;

pub(super) use tuples::reset_item_held_alone;

use super::calling::CallingMachine;
use super::fault::VmResult;
use crate::function::{Error, ErrorKind, Function, registry};
use crate::value::{AnyView, cast};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A builtin that works on its arguments alone.
type PlainBuiltin = fn(&[AnyView<'_>]) -> VmResult;
/// A builtin that takes `%vm`: the machine, and all arguments, the handle among them.
type MachineBuiltin = fn(&dyn CallingMachine, &[AnyView<'_>]) -> VmResult;

/// A function of this chapter.
#[derive(Clone, Copy)]
pub(super) enum Builtin {
    /// Needs its arguments alone.
    Plain(PlainBuiltin),
    /// Its first argument is the machine.
    OfMachine(MachineBuiltin),
    /// Reads or writes the memory of an argument where it is.
    InPlace {
        /// For code whose loader vouches that no other thread uses that memory meanwhile (`module::load`).
        trusted: PlainBuiltin,
        /// The same, in order with all that safe code does to the memory of tensors.
        ordered: PlainBuiltin,
    },
}

/// The builtin that changes what others may hold (VM-58).
pub(super) const RESET: &str = "vm.builtin.tuple_reset_item";

/// Every builtin that this crate has, sorted by name; `spec/vm.md` has a table of those that it lacks, and why.
const ALL: &[(&str, Builtin)] = &[
    (
        // VM-48: on a device of the machine, as storage is (VM-31).
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
    // VM-56: despite the name nothing is copied.
    ("vm.builtin.copy", Builtin::Plain(tensors::same)),
    (
        "vm.builtin.ensure_zero_offset",
        Builtin::Plain(tensors::ensure_zero_offset),
    ),
    (
        // VM-29: a closure is an index into a table, so that the machine must come along.
        "vm.builtin.invoke_closure",
        Builtin::OfMachine(closures::invoke_closure),
    ),
    (
        "vm.builtin.make_closure",
        Builtin::Plain(closures::make_closure),
    ),
    (
        // VM-47: reads a cell of the heap, which safe code may hold as a tensor.
        "vm.builtin.make_prim_value",
        Builtin::InPlace {
            trusted: shapes::make_prim_value,
            ordered: |args| alone(shapes::make_prim_value, args),
        },
    ),
    (
        // VM-46: reads cells, as `make_prim_value` does.
        "vm.builtin.make_shape",
        Builtin::InPlace {
            trusted: shapes::make_shape,
            ordered: |args| alone(shapes::make_shape, args),
        },
    ),
    ("vm.builtin.make_tuple", Builtin::Plain(tuples::make_tuple)),
    (
        // VM-47: reads or writes a cell.
        "vm.builtin.match_prim_value",
        Builtin::InPlace {
            trusted: shapes::match_prim_value,
            ordered: |args| alone(shapes::match_prim_value, args),
        },
    ),
    (
        // VM-45: writes cells, which safe code may read meanwhile.
        "vm.builtin.match_shape",
        Builtin::InPlace {
            trusted: shapes::match_shape,
            ordered: |args| alone(shapes::match_shape, args),
        },
    ),
    (
        "vm.builtin.memory_manager.clear",
        Builtin::Plain(tensors::clear),
    ),
    ("vm.builtin.null_value", Builtin::Plain(tensors::null_value)),
    (
        // VM-53: a flag on the host is read where it is, without a copy.
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
    // VM-58: writes into the tuple itself. `link` takes another function where the tuple may be shared.
    (RESET, Builtin::Plain(tuples::tuple_reset_item)),
];

/// Calls `body` while no other safe code reads the memory of tensors or writes to it.
///
/// A machine of trusted code calls the body without this: the contract of `module::load` is that no other thread uses that memory.
fn alone(body: PlainBuiltin, args: &[AnyView<'_>]) -> VmResult {
    let _alone = crate::object::container::tensor::copying();
    body(args)
}

/// Names of the builtins of this crate, sorted.
///
/// They have `vm.builtin.` in front, as in the registry.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// The builtins as functions, which [`Builtin::of`] knows by their addresses.
static INSTALLED: OnceLock<Vec<(Function, Builtin)>> = OnceLock::new();

/// Puts the builtins into the registry, where none has the name yet; once.
pub(super) fn provide() {
    // Once for the process: `Builtin::of` knows them by the addresses of these very functions.
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
                // A function that another library registered first stays: VM-11 finds that one, and `Builtin::of` does not know it.
                registry::provide(name, function.clone());
                (function, *builtin)
            })
            .collect()
    });
}

impl Builtin {
    /// The builtin that `function` is, if it is one of ours.
    pub(super) fn of(function: &Function) -> Option<Builtin> {
        // By address and not by name: the registry or a library may have another function of the name (VM-11).
        let address = function.as_object().as_ptr();
        let all = INSTALLED.get()?;
        let found = all
            .iter()
            .find(|(own, _)| own.as_object().as_ptr() == address);
        found.map(|(_, builtin)| *builtin)
    }
}

/// The machines that are alive, by address: what a handle from outside is held against.
///
/// Compiled code passes `%vm` as an opaque address. A call through the registry may pass any, and upstream follows it.
static ALIVE: Mutex<BTreeMap<usize, Weak<dyn CallingMachine>>> = Mutex::new(BTreeMap::new());

/// [`ALIVE`], locked. A panic of another thread leaves no entry half written.
fn alive() -> MutexGuard<'static, BTreeMap<usize, Weak<dyn CallingMachine>>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `machine` known by its address.
/// The list holds it weakly: it keeps no machine alive.
pub(super) fn announce(machine: &Arc<dyn CallingMachine>) {
    alive().insert(Arc::as_ptr(machine).addr(), Arc::downgrade(machine));
}

/// Forgets the machine at `address`, which ends.
pub(super) fn forget(address: usize) {
    alive().remove(&address);
}

/// Calls `body` with the machine whose handle comes first, from outside of any machine.
fn with_machine(args: &[AnyView<'_>], body: MachineBuiltin) -> crate::function::Result {
    let handle = cast::<*mut c_void>(args.first().copied().unwrap_or(AnyView::none()))?;
    // The lock ends with this line: what is called may make and drop machines, which take it.
    let known = alive().get(&handle.addr()).and_then(Weak::upgrade);
    let machine = known.ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            "the first argument is not a machine of this runtime",
        )
    })?;
    body(&*machine, args)
}
