//! Closures, and calls with the extents of a shape (VM-28, VM-29, VM-54).

use super::super::calling::CallingMachine;
use super::super::closure::{VmClosure, invoke};
use super::super::fault::VmResult;
use super::arguments::wrong_type;
use crate::function::Function;
use crate::object::extents_of;
use crate::value::types::key_of;
use crate::value::{AnyView, cast};
use crate::vm::{VM_28, VM_29, VM_54};

/// `(function, values...)`: the function with these values behind its arguments (VM-28). It keeps its name, for messages.
pub(super) fn make_closure(args: &[AnyView<'_>]) -> VmResult {
    let Some((closure, rest)) = args.split_first() else {
        return wrong_type(VM_28, "make_closure takes a function and arguments".into());
    };
    // VM-28: a function of the table is a closure with nothing bound, so that one case covers both.
    let Some(inner) = closure
        .as_object()
        .and_then(|object| object.get::<VmClosure>())
    else {
        return wrong_type(
            VM_28,
            format!(
                "a closure is made of a function of the executable, not of `{}`",
                key_of(closure.type_index())
            ),
        );
    };
    // The closure outlives this call, whose arguments are borrowed: what it binds is its own.
    let last = rest.iter().map(|value| value.to_any()).collect();
    // It returns its result: only `save_function` makes closures that drop theirs (VM-65).
    Ok(inner.bind(&inner.name, last, true).into())
}

/// `(machine, callee, arguments...)`: calls a closure on the machine, or a plain function with the arguments alone (VM-29).
pub(super) fn invoke_closure(machine: &dyn CallingMachine, args: &[AnyView<'_>]) -> VmResult {
    // VM-29: the first argument is the handle by which `machine` was found; the callee does not take it.
    let [_, closure, rest @ ..] = args else {
        return wrong_type(
            VM_29,
            "invoke_closure takes the machine, a closure, its arguments".into(),
        );
    };
    invoke(machine, *closure, rest)
}

/// `(function, arguments..., shape)`: calls the function with the arguments and each extent as an integer (VM-54). Kernels of unknown
/// shapes take their extents so.
pub(super) fn call_tir_dyn(args: &[AnyView<'_>]) -> VmResult {
    let [function, middle @ .., last] = args else {
        return wrong_type(
            VM_54,
            "call_tir_dyn takes a function, its tensors, a shape".into(),
        );
    };
    let Some(extents) = extents_of(*last) else {
        return wrong_type(
            VM_54,
            format!(
                "the last argument of call_tir_dyn is a shape, not `{}`",
                key_of(last.type_index())
            ),
        );
    };
    // VM-54: a kernel; a closure would need the machine (VM-29), which is no argument here.
    let function = cast::<Function>(*function)?;
    // VM-54: one integer for each extent, whatever their number: the kernel was compiled for it.
    let mut all: Vec<AnyView<'_>> = middle.to_vec();
    all.extend(extents.iter().map(|extent| AnyView::from(*extent)));
    function.call(&all)
}
