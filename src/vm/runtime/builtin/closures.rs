//! Closures, and calls with the extents of a shape (VM-28, VM-29, VM-54).

use super::super::closure::{VmClosure, invoke};
use super::super::error::VmResult;
use super::super::machine_interface::CallingMachine;
use super::arguments::{shape_arg, wrong_type, wrong_value};
use crate::function::Function;
use crate::value::{AnyView, cast};
use crate::vm::{VM_28, VM_29, VM_54};

/// Creates a closure that appends these values to the arguments of the function (VM-28); arguments: `(function, values...)`. It
/// keeps the function's name, for messages.
pub(super) fn make_closure(args: &[AnyView<'_>]) -> VmResult {
    let Some((closure, rest)) = args.split_first() else {
        return wrong_type(VM_28, "make_closure takes a function and arguments".into());
    };
    // VM-28: a function of the table is a closure without bound values, so one case covers both.
    let Some(inner) = closure
        .as_object()
        .and_then(|object| object.get::<VmClosure>())
    else {
        return wrong_value(
            VM_28,
            "a closure is made of a function of the executable, not of",
            *closure,
        );
    };
    // The closure outlives this call, whose arguments are borrowed, so it owns its bound values.
    let last = rest.iter().map(|value| value.to_any()).collect();
    // VM-65: it returns its result. Only `save_function` creates closures that drop it.
    Ok(inner.bind(&inner.name, last, true).into())
}

/// Calls a closure on the machine, or a plain function with the arguments only (VM-29); arguments: `(machine, callee,
/// arguments...)`.
pub(super) fn invoke_closure(machine: &dyn CallingMachine, args: &[AnyView<'_>]) -> VmResult {
    // VM-29: the first argument is the handle that led to `machine`. It is not passed to the callee.
    let [_, closure, rest @ ..] = args else {
        return wrong_type(
            VM_29,
            "invoke_closure takes the machine, a closure, its arguments".into(),
        );
    };
    invoke(machine, *closure, rest)
}

/// Calls a function with the arguments, and with each extent as an integer (VM-54); arguments: `(function, arguments..., shape)`.
/// Kernels with unknown shapes take their extents in this way.
pub(super) fn call_tir_dyn(args: &[AnyView<'_>]) -> VmResult {
    let [function, middle @ .., last] = args else {
        return wrong_type(
            VM_54,
            "call_tir_dyn takes a function, its tensors, a shape".into(),
        );
    };
    let extents = shape_arg(
        VM_54,
        "the last argument of call_tir_dyn is a shape, not",
        *last,
    )?;
    // VM-54: the callee is a kernel. A closure would need the machine (VM-29), which is not an argument here.
    let function = cast::<Function>(*function)?;
    // VM-54: one integer for each extent, in any number, because the kernel was compiled for it.
    let mut all: Vec<AnyView<'_>> = middle.to_vec();
    all.extend(extents.iter().map(|extent| AnyView::from(*extent)));
    function.call_packed(&all)
}
