//! Builtins that check arguments.

use super::super::closure::VmClosure;
use super::super::error::VmResult;
use super::arguments::{arg, context, int, tensor};
use crate::function::Function;
use crate::object::{extents_of, item_count};
use crate::rule::{Kind, Rule};
use crate::tensor::Dtype;
use crate::value::types::key_of;
use crate::value::{Any, AnyView, Object, cast, index};
use crate::vm::{VM_40, VM_41, VM_42, VM_43, VM_44, VM_57};
use std::ffi::c_void;

/// Returns None if `kept` is true, otherwise an error under `rule` with the expected value.
///
/// The message begins with the text that the compiler passes last, which names the value's place in the model.
fn check(
    rule: Rule,
    kept: bool,
    args: &[AnyView<'_>],
    wanted: impl FnOnce() -> String,
) -> VmResult {
    rule.demand(Kind::Type, kept, || {
        let (context, found) = (context(args), key_of(arg(args, 0).type_index()));
        format!("{context}expect {} but get {found}", wanted())
    })?;
    Ok(Any::none())
}

/// Checks a tensor (VM-40); arguments: `(value, rank, type, text)` or `(value, rank, text)`. Rank -1 and type None accept any. A
/// borrowed tensor is accepted, as from 0.21 on.
pub(super) fn tensor_info(args: &[AnyView<'_>]) -> VmResult {
    let rank = cast::<i64>(arg(args, 1))?;
    // VM-40: the type may be None or missing. The text is last in both forms, so their lengths differ.
    let dtype = match args {
        [_, _, dtype, _, ..] => cast::<Option<Dtype>>(*dtype)?,
        _ => None,
    };
    let found = tensor(arg(args, 0));
    let kept = found.is_some_and(|dl| {
        let same = |dtype: Dtype| dtype == dl.dtype;
        (rank == -1 || i64::from(dl.ndim) == rank) && dtype.is_none_or(same)
    });
    check(VM_40, kept, args, || {
        let wanted = dtype.map(|dtype| dtype.to_string());
        let found = found.map(|dl| format!(" (of ndim {} and {})", dl.ndim, dl.dtype));
        format!(
            "Tensor with ndim {rank} and dtype {}{}",
            wanted.unwrap_or_else(|| "any".to_owned()),
            found.unwrap_or_default()
        )
    })
}

/// Checks a shape of `rank` extents (VM-41); arguments: `(value, rank, text)`. Rank -1 accepts any.
pub(super) fn shape_info(args: &[AnyView<'_>]) -> VmResult {
    let rank = int(args, 1)?;
    let found = extents_of(arg(args, 0)).map(|extents| extents.len() as i64);
    let kept = found.is_some_and(|count| rank == -1 || rank == count);
    check(VM_41, kept, args, || {
        format!("Shape with ndim {rank} (of {found:?})")
    })
}

/// Checks a tuple of exactly `size` elements (VM-42); arguments: `(value, size, text)`.
pub(super) fn tuple_info(args: &[AnyView<'_>]) -> VmResult {
    let size = int(args, 1)?;
    let found = item_count(arg(args, 0)).map(|count| count as i64);
    // VM-42: the number must be exact. Unlike the ranks of VM-40 and VM-41, -1 does not accept any size.
    check(VM_42, found == Some(size), args, || {
        format!("a Tuple with {size} elements (of {found:?})")
    })
}

/// Checks a value that converts to the type (VM-43); arguments: `(value, type, text)`.
pub(super) fn prim_value_info(args: &[AnyView<'_>]) -> VmResult {
    let value = arg(args, 0);
    let dtype = cast::<Dtype>(arg(args, 1))?;
    let kept = match dtype.code {
        // VM-43: each of these converts to the others. A value does not know its number of bits.
        Dtype::INT | Dtype::UINT | Dtype::BOOL => {
            matches!(value.type_index(), index::INT | index::BOOL)
        }
        // VM-43: integers and bools convert to a float, but a float does not convert to them.
        Dtype::FLOAT => matches!(value.type_index(), index::INT | index::BOOL | index::FLOAT),
        // A handle of no bits is `void`, which no value has.
        Dtype::HANDLE if dtype.bits != 0 => cast::<*mut c_void>(value).is_ok(),
        _ => false,
    };
    check(VM_43, kept, args, || format!("a value of {dtype}"))
}

/// Checks a function or a closure (VM-44); arguments: `(value, text)`.
pub(super) fn func_info(args: &[AnyView<'_>]) -> VmResult {
    let value = arg(args, 0);
    // VM-44: a closure is not an `ffi.Function` of the ABI, so both are tested.
    let closure = |object: &crate::value::ObjectRef| VmClosure::matches(object.type_index());
    let kept = cast::<Function>(value).is_ok() || value.as_object().is_some_and(closure);
    check(VM_44, kept, args, || "a Function".to_owned())
}

/// Checks a string, short or not (VM-57); arguments: `(value, text)`. The 0.27 wheel has this function, and no tag does.
pub(super) fn string_info(args: &[AnyView<'_>]) -> VmResult {
    let kept = cast::<String>(arg(args, 0)).is_ok();
    check(VM_57, kept, args, || "a String".to_owned())
}
