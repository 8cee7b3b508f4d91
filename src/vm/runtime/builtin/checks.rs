//! Checks of arguments.

use super::super::closure::VmClosure;
use super::super::fault::VmResult;
use super::arguments::{arg, context, int, tensor};
use crate::function::Function;
use crate::object::{extents_of, item_count};
use crate::rule::{Kind, Rule};
use crate::tensor::Dtype;
use crate::value::types::key_of;
use crate::value::{Any, AnyView, DLDataType, Object, cast, index};
use crate::vm::{VM_40, VM_41, VM_42, VM_43, VM_44, VM_57};
use std::ffi::c_void;

/// Nothing where the first argument is `kept`, under a rule of this chapter; else an error that says what was expected.
///
/// In front of the message is the text that the compiler passes last, which says where in the model the value comes from.
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

/// `(value, rank, type, text)` or `(value, rank, text)`: a tensor, rank -1 and type None being any (VM-40). A borrowed tensor is one,
/// as from 0.21 on.
pub(super) fn tensor_info(args: &[AnyView<'_>]) -> VmResult {
    let rank = cast::<i64>(arg(args, 1))?;
    // VM-40: the type is None or left out altogether. The text is last in both forms, so that their length tells them apart.
    let dtype = match args {
        [_, _, dtype, _, ..] => cast::<Option<DLDataType>>(*dtype)?.map(Dtype::from),
        _ => None,
    };
    let found = tensor(arg(args, 0));
    let kept = found.is_some_and(|dl| {
        let same = |dtype: Dtype| dtype == Dtype::from(dl.dtype);
        (rank == -1 || i64::from(dl.ndim) == rank) && dtype.is_none_or(same)
    });
    check(VM_40, kept, args, || {
        let wanted = dtype.map(|dtype| dtype.to_string());
        let found = found.map(|dl| format!(" (of ndim {} and {})", dl.ndim, Dtype::from(dl.dtype)));
        format!(
            "Tensor with ndim {rank} and dtype {}{}",
            wanted.unwrap_or_else(|| "any".to_owned()),
            found.unwrap_or_default()
        )
    })
}

/// `(value, rank, text)`: a shape of that many extents, -1 being any (VM-41).
pub(super) fn shape_info(args: &[AnyView<'_>]) -> VmResult {
    let rank = int(args, 1)?;
    let found = extents_of(arg(args, 0)).map(|extents| extents.len() as i64);
    let kept = found.is_some_and(|count| rank == -1 || rank == count);
    check(VM_41, kept, args, || {
        format!("Shape with ndim {rank} (of {found:?})")
    })
}

/// `(value, size, text)`: a tuple of exactly that many elements (VM-42).
pub(super) fn tuple_info(args: &[AnyView<'_>]) -> VmResult {
    let size = int(args, 1)?;
    let found = item_count(arg(args, 0)).map(|count| count as i64);
    // VM-42: exactly that many. No number means any size, as -1 does for the ranks of VM-40 and VM-41.
    check(VM_42, found == Some(size), args, || {
        format!("a Tuple with {size} elements (of {found:?})")
    })
}

/// `(value, type, text)`: a value that converts to the type (VM-43).
pub(super) fn prim_value_info(args: &[AnyView<'_>]) -> VmResult {
    let value = arg(args, 0);
    let dtype = Dtype::from(cast::<DLDataType>(arg(args, 1))?);
    let kept = match dtype.code {
        // VM-43: each converts from the others. Of the number of bits no value knows anything.
        Dtype::INT | Dtype::UINT | Dtype::BOOL => {
            matches!(value.type_index(), index::INT | index::BOOL)
        }
        // VM-43: integers and bools are floats as well, and no float is one of them.
        Dtype::FLOAT => matches!(value.type_index(), index::INT | index::BOOL | index::FLOAT),
        // A handle of no bits is `void`, which no value is.
        Dtype::HANDLE if dtype.bits != 0 => cast::<*mut c_void>(value).is_ok(),
        _ => false,
    };
    check(VM_43, kept, args, || format!("a value of {dtype}"))
}

/// `(value, text)`: a function or a closure (VM-44).
pub(super) fn func_info(args: &[AnyView<'_>]) -> VmResult {
    let value = arg(args, 0);
    // VM-44: a closure is no `ffi.Function` of the ABI, so that both are looked for.
    let closure = |object: &crate::value::ObjectRef| VmClosure::matches(object.type_index());
    let kept = cast::<Function>(value).is_ok() || value.as_object().is_some_and(closure);
    check(VM_44, kept, args, || "a Function".to_owned())
}

/// `(value, text)`: a string, short or not (VM-57). The 0.27 wheel has it, and no tag.
pub(super) fn string_info(args: &[AnyView<'_>]) -> VmResult {
    let kept = cast::<String>(arg(args, 0)).is_ok();
    check(VM_57, kept, args, || "a String".to_owned())
}
