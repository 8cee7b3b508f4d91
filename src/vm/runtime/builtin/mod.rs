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

/// Creates the rows of [`ALL`]. A line is a name without `vm.builtin.`, the variant of [`Builtin`] and the function. An `in_place` function
/// is ordered by [`call_exclusively`], unless the line has a second function for that.
macro_rules! builtins {
    ($($name:literal $kind:ident $body:path $(, $ordered:path)?;)*) => {
        &[$((concat!("vm.builtin.", $name), builtins!(@ $kind $body $(, $ordered)?))),*]
    };
    (@ plain $body:path) => { Builtin::Plain($body) };
    (@ of_machine $body:path) => { Builtin::OfMachine($body) };
    (@ in_place $body:path) => {
        Builtin::InPlace { trusted: $body, ordered: |args| call_exclusively($body, args) }
    };
    (@ in_place $body:path, $ordered:path) => {
        Builtin::InPlace { trusted: $body, ordered: $ordered }
    };
}

/// Every builtin of this crate, sorted by name. `spec/vm.md` has a table of the missing ones, with reasons.
const ALL: &[(&str, Builtin)] = builtins! {
    // VM-48: on a device of the machine, like storage (VM-31).
    "alloc_shape_heap" of_machine shapes::alloc_shape_heap;
    "alloc_storage" of_machine tensors::alloc_storage;
    "alloc_tensor" plain tensors::alloc_tensor;
    "call_tir_dyn" plain closures::call_tir_dyn;
    "check_func_info" plain checks::func_info;
    "check_prim_value_info" plain checks::prim_value_info;
    "check_shape_info" plain checks::shape_info;
    // VM-57: in the wheel of 0.27 and in no tag; models of other releases never call it.
    "check_string_info" plain checks::string_info;
    "check_tensor_info" plain checks::tensor_info;
    "check_tuple_info" plain checks::tuple_info;
    // VM-56: it copies nothing, despite its name.
    "copy" plain tensors::copy;
    "ensure_zero_offset" plain tensors::ensure_zero_offset;
    // VM-29: a closure is an index into a table, so the machine is also needed.
    "invoke_closure" of_machine closures::invoke_closure;
    "make_closure" plain closures::make_closure;
    // VM-47: reads a cell of the heap, which safe code may also access as a tensor.
    "make_prim_value" in_place shapes::make_prim_value;
    // VM-46: reads cells, as `make_prim_value` does.
    "make_shape" in_place shapes::make_shape;
    "make_tuple" plain tuples::make_tuple;
    // VM-47: reads or writes a cell.
    "match_prim_value" in_place shapes::match_prim_value;
    // VM-45: writes cells, which safe code may read at the same time.
    "match_shape" in_place shapes::match_shape;
    "memory_manager.clear" plain tensors::clear;
    "null_value" plain tensors::null_value;
    // VM-53: a flag on the host is read in place, without a copy.
    "read_if_cond" in_place tensors::read_if_cond, tensors::read_if_cond_in_order;
    "reshape" plain tensors::reshape;
    "shape_of" plain tensors::shape_of;
    "tensor_to_shape" plain tensors::tensor_to_shape;
    "to_device" plain tensors::to_device;
    "tuple_getitem" plain tuples::tuple_getitem;
    // VM-58, `RESET`: writes into the tuple itself. `link` uses another function if the tuple may be shared.
    "tuple_reset_item" plain tuples::tuple_reset_item;
};

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
pub(super) fn remove_machine(address: usize) {
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
