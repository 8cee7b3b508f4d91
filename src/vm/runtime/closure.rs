//! Closures: a function of an executable, and arguments that come behind those of the call.

use super::calling::CallingMachine;
use super::fault::VmResult;
use super::loaded::LoadedExecutable;
use crate::function::{Error, Function};
use crate::rule::Kind;
use crate::value::header::{Header, Ref, dynamic_object};
use crate::value::types::key_of;
use crate::value::{Any, AnyView, index};
use crate::vm::{VM_28, VM_29};
use std::sync::Arc;

/// A closure (`relax.vm.Closure`): a function of an executable, and values that come behind its arguments (VM-28).
///
/// It keeps the executable and no machine: a machine keeps the closures of its table, and a circle would never be freed. The caller
/// brings the machine, which is one of the same executable.
#[repr(C)]
pub(super) struct VmClosure {
    header: Header,
    /// For messages: that of the function, or the name under which `save_function` keeps it.
    pub(super) name: String,
    /// Index into the function table of `of`.
    function: usize,
    /// The executable whose function it is; its machines alone can call it.
    of: Arc<LoadedExecutable>,
    /// The last arguments.
    last: Vec<Any>,
    /// Whether the result is handed on.
    returns: bool,
}

dynamic_object!(VmClosure, "relax.vm.Closure");

impl VmClosure {
    /// Function `function` of the table as a value, with nothing bound.
    pub(super) fn of_function(
        loaded: &Arc<LoadedExecutable>,
        function: usize,
        name: &str,
    ) -> Ref<VmClosure> {
        VmClosure::make(loaded, function, name, Vec::new(), true)
    }

    /// A closure with `last` behind the arguments of a call.
    fn make(
        loaded: &Arc<LoadedExecutable>,
        function: usize,
        name: &str,
        last: Vec<Any>,
        returns: bool,
    ) -> Ref<VmClosure> {
        unsafe extern "C-unwind" fn nothing(_: *mut Header, _: i32) {}
        Ref::new(VmClosure {
            header: Header::new(index::OBJECT, nothing),
            name: name.to_owned(),
            function,
            of: Arc::clone(loaded),
            last,
            returns,
        })
    }

    /// The same function with `more` behind the arguments of a call and before what is bound already (VM-28).
    pub(super) fn bind(&self, name: &str, more: Vec<Any>, returns: bool) -> Ref<VmClosure> {
        // VM-28: what was bound first comes last of all.
        let mut last = more;
        last.extend(self.last.iter().cloned());
        // VM-65: what drops its result keeps dropping it where it is saved under another name.
        VmClosure::make(&self.of, self.function, name, last, returns && self.returns)
    }

    /// Calls it on `machine`, which must run the same executable.
    pub(super) fn call(
        &self,
        machine: &dyn CallingMachine,
        args: &[AnyView<'_>],
    ) -> Result<Any, Error> {
        // VM-28: the index has a meaning in one table alone.
        if Arc::as_ptr(&self.of) != Arc::as_ptr(machine.loaded()) {
            let message = format!("closure `{}` belongs to another executable", self.name);
            return Err(VM_28.rejected(Kind::Type, message).into());
        }
        // Functions of the table have nothing bound. They are most of all calls, and need no list of their own.
        let result = if self.last.is_empty() {
            machine.run(self.function, args)?
        } else {
            // VM-28: what the caller passes comes first, and what was bound fills the parameters behind.
            let all: Vec<AnyView<'_>> = args
                .iter()
                .copied()
                .chain(self.last.iter().map(Any::view))
                .collect();
            machine.run(self.function, &all)?
        };
        // VM-65: a function that was saved without its result runs all the same.
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
        // VM-29: a plain function is called with the arguments alone: it knows no machine.
        return function.call(args);
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
