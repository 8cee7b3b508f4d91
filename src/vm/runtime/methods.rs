//! The functions of a machine under the names that frontends call.

use super::closure::invoke;
use super::error::VmResult;
use super::machine::VirtualMachine;
use crate::function::{Function, registry};
use crate::module::Module;
use crate::object::item_count;
use crate::rule::Kind;
use crate::value::{Any, AnyView, cast, index};
use crate::vm::{VM_60, VM_62, VM_63};
use std::ops::RangeInclusive;

/// A function of a machine with devices, under the name that frontends use.
pub(super) struct VmMethod {
    pub(super) name: &'static str,
    /// The permitted numbers of arguments.
    counts: RangeInclusive<usize>,
    /// The expected arguments, for the message of VM-60.
    takes: &'static str,
    body: fn(&VirtualMachine, &[AnyView<'_>]) -> VmResult,
}

impl VmMethod {
    /// Calls the function, after a check of the number of arguments (VM-60).
    pub(super) fn call(&self, machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
        VM_60.demand(Kind::Type, self.counts.contains(&args.len()), || {
            format!("`{}` takes {}", self.name, self.takes)
        })?;
        (self.body)(machine, args)
    }
}

/// The functions of a machine's module in addition to those of its executable. They have precedence.
///
/// A function of the executable with one of these names can be called only by other functions of the executable.
pub(super) const METHODS: [VmMethod; 10] = [
    VmMethod {
        name: "set_input",
        counts: 1..=usize::MAX,
        takes: "the name of a function and its arguments",
        body: set_input,
    },
    VmMethod {
        name: "set_input_with_param_module",
        counts: 2..=usize::MAX,
        takes: "the name of a function, its first arguments, and a module with the last",
        body: set_input_with_param_module,
    },
    VmMethod {
        name: "invoke_stateful",
        counts: 1..=1,
        takes: "the name of a function",
        body: |machine, args| {
            machine.0.invoke_stateful(&cast::<String>(args[0])?)?;
            Ok(Any::none())
        },
    },
    VmMethod {
        name: "get_output",
        counts: 1..=usize::MAX,
        takes: "the name of a function, and indices",
        body: output,
    },
    VmMethod {
        name: "get_output_arity",
        counts: 1..=usize::MAX,
        takes: "the name of a function, and indices",
        body: output_arity,
    },
    VmMethod {
        name: "get_function_arity",
        counts: 1..=1,
        takes: "the name of a function",
        body: |machine, args| {
            // VM-04: the number of names, as in upstream. It is 0 if the executable has no names, even if the function has
            // parameters.
            let names = machine.parameters(&cast::<String>(args[0])?)?.len();
            Ok((names as i64).into())
        },
    },
    VmMethod {
        name: "get_function_param_name",
        counts: 2..=2,
        takes: "the name of a function and an index",
        body: parameter_name,
    },
    VmMethod {
        name: "save_function",
        counts: 3..=usize::MAX,
        takes: "the name of a function, a new name, whether to return, and arguments",
        body: save_function,
    },
    VmMethod {
        name: "invoke_closure",
        counts: 1..=usize::MAX,
        takes: "a closure and its arguments",
        // VM-29: the machine is the one of the module, because the caller has no handle to pass.
        body: |machine, args| invoke(&*machine.0, args[0], &args[1..]),
    },
    VmMethod {
        name: "set_instrument",
        counts: 1..=usize::MAX,
        takes: "a function, the name of one that makes it, or None",
        body: set_instrument,
    },
];

/// Keeps arguments for `invoke_stateful` (VM-62); arguments: `(function, arguments...)`.
fn set_input(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    machine.0.set_input(&cast::<String>(args[0])?, &args[1..])?;
    Ok(Any::none())
}

/// Sets the inputs, with the result of the module's `get_params` as the last argument (VM-62); arguments: `(function, arguments...,
/// module)`.
fn set_input_with_param_module(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    let mut args = args.to_vec();
    // VM-60: `least` is 2, so the last argument is never the name.
    let module = args.pop().unwrap_or(AnyView::none());
    let params = cast::<Module>(module)?
        .require("get_params")?
        .call_packed(&[])?;
    args.push(params.view());
    set_input(machine, &args)
}

/// Returns the kept result, or an element of it (VM-63); arguments: `(function, index...)`. It rejects a tuple, which RPC cannot
/// send.
fn output(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    let value = machine.0.output(&cast::<String>(args[0])?, &args[1..])?;
    // VM-63: RPC cannot send a tuple, so a local call does not return one either.
    VM_63.demand(Kind::Type, value.type_index() != index::ARRAY, || {
        "`get_output` cannot return a tuple for RPC compatibility. Please specify another index argument.".into()
    })?;
    Ok(value)
}

/// Returns the number of elements that the kept result has there (VM-63); arguments: `(function, index...)`.
fn output_arity(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    let value = machine.0.output(&cast::<String>(args[0])?, &args[1..])?;
    // VM-63: -1 means that the value is not a tuple.
    let count = item_count(value.view()).map_or(-1, |count| count as i64);
    Ok(count.into())
}

/// Returns the name of argument n (VM-62), for frontends that take arguments by name; arguments: `(function, n)`. An executable may
/// have no names (VM-04).
fn parameter_name(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    let (name, at) = (cast::<String>(args[0])?, cast::<i64>(args[1])?);
    let names = machine.parameters(&name)?;
    let found = usize::try_from(at).ok().and_then(|at| names.get(at));
    found.map(|name| (*name).into()).ok_or_else(|| {
        let message = format!("Invalid index for {name} ({at} out of {})", names.len());
        VM_62.rejected(Kind::Missing, message).into()
    })
}

/// Binds the last arguments and keeps the result under the name (VM-65); arguments: `(function, name, with result, arguments...)`.
fn save_function(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    let (name, save_as) = (cast::<String>(args[0])?, cast::<String>(args[1])?);
    // VM-65: a remote caller that measures a function does not need the result.
    let returns = cast::<bool>(args[2])?;
    machine.0.save(&name, &save_as, returns, &args[3..])?;
    Ok(Any::none())
}

/// Sets the instrument, a function that is called around every call. A name selects the function that creates it. None removes it.
fn set_instrument(machine: &VirtualMachine, args: &[AnyView<'_>]) -> VmResult {
    // VM-66: None, which removes the instrument, is an extension of this crate. A text names a global function, which creates the
    // instrument from the arguments after it.
    let instrument = match String::try_from(args[0]) {
        Ok(name) => cast(registry::require(&name)?.call_packed(&args[1..])?.view())?,
        Err(_) => cast::<Option<Function>>(args[0])?,
    };
    // VM-66: a function that started without a watcher runs to its end without one.
    machine.0.set_instrument(instrument);
    Ok(Any::none())
}
