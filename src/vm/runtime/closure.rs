//! Closures: a function of an executable, and values that follow the arguments of a call.

use super::error::VmResult;
use super::loaded_executable::LoadedExecutable;
use super::machine_interface::CallingMachine;
use crate::function::{Error, Function};
use crate::rule::Kind;
use crate::value::header::{HeaderSlot, Ref, dynamic_object};
use crate::value::types::key_of;
use crate::value::{Any, AnyView};
use crate::vm::{VM_28, VM_29};
use std::sync::Arc;

/// A closure (`relax.vm.Closure`): a function of an executable, and values that follow its arguments (VM-28).
///
/// It keeps the executable alive but no machine. A machine keeps the closures of its table, so a reference back would be a cycle
/// that is never freed. The caller passes the machine, which must run the same executable.
#[repr(C)]
pub(super) struct VmClosure {
    header: HeaderSlot,
    /// The name for messages: the name of the function, or the name under which `save_function` saved it.
    pub(super) name: String,
    /// The index into the function table of `of`.
    function: usize,
    /// The executable of the function. Only its machines can call it.
    of: Arc<LoadedExecutable>,
    /// The bound values, which are the last arguments.
    last: Vec<Any>,
    /// True if the result is returned.
    returns: bool,
}

dynamic_object!(VmClosure, "relax.vm.Closure");

impl VmClosure {
    /// Returns function `function` of the table as a value, without bound values.
    pub(super) fn of_function(
        loaded: &Arc<LoadedExecutable>,
        function: usize,
        name: &str,
    ) -> Ref<VmClosure> {
        VmClosure::make(loaded, function, name, Vec::new(), true)
    }

    /// Creates a closure with `last` as the last arguments of a call.
    fn make(
        loaded: &Arc<LoadedExecutable>,
        function: usize,
        name: &str,
        last: Vec<Any>,
        returns: bool,
    ) -> Ref<VmClosure> {
        Ref::new(VmClosure {
            header: HeaderSlot::default(),
            name: name.to_owned(),
            function,
            of: Arc::clone(loaded),
            last,
            returns,
        })
    }

    /// Returns the same function with `more` after the arguments of a call and before the values that are already bound (VM-28).
    pub(super) fn bind(&self, name: &str, more: Vec<Any>, returns: bool) -> Ref<VmClosure> {
        // VM-28: the values that were bound first come last.
        let mut last = more;
        last.extend(self.last.iter().cloned());
        // VM-65: a closure that drops its result still drops it when it is saved under another name.
        VmClosure::make(&self.of, self.function, name, last, returns && self.returns)
    }

    /// Calls the closure on `machine`, which must run the same executable.
    pub(super) fn call(
        &self,
        machine: &dyn CallingMachine,
        args: &[AnyView<'_>],
    ) -> Result<Any, Error> {
        // VM-28: the index is valid in one table only.
        if Arc::as_ptr(&self.of) != Arc::as_ptr(machine.loaded()) {
            let message = format!("closure `{}` belongs to another executable", self.name);
            return Err(VM_28.rejected(Kind::Type, message).into());
        }
        // Functions of the table have no bound values. Most calls are to such functions, and need no list of arguments.
        let result = if self.last.is_empty() {
            machine.run(self.function, args)?
        } else {
            // VM-28: the caller's arguments come first, and the bound values fill the parameters after them.
            let all: Vec<AnyView<'_>> = args
                .iter()
                .copied()
                .chain(self.last.iter().map(Any::view))
                .collect();
            machine.run(self.function, &all)?
        };
        // VM-65: a function that was saved without its result still runs.
        Ok(if self.returns { result } else { Any::none() })
    }
}

/// Calls a closure or a plain function on `machine` (VM-29).
pub(super) fn invoke(
    machine: &dyn CallingMachine,
    closure: AnyView<'_>,
    args: &[AnyView<'_>],
) -> VmResult {
    let object = closure.as_object().cloned();
    if let Some(function) = object
        .clone()
        .and_then(|object| Function::from_object(object).ok())
    {
        // VM-29: a plain function gets only the arguments, because it knows no machine.
        return function.call_packed(args);
    }
    match object.map(|object| object.downcast::<VmClosure>()) {
        Some(Ok(closure)) => closure.call(machine, args),
        _ => {
            let key = key_of(closure.type_index());
            let message = format!("a closure or a function is called, not `{key}`");
            Err(VM_29.rejected(Kind::Type, message).into())
        }
    }
}
