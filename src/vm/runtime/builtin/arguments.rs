//! Conversion of the arguments of builtins, with its errors.

use super::super::error::VmResult;
use crate::object::extents_of;
use crate::rule::{Kind, Rule};
use crate::value::types::key_of;
use crate::value::{AnyView, Argument, DLTensor, cast};

/// Returns argument `at`, or None if there are fewer. A function that requires it rejects None.
pub(super) fn arg<'a>(args: &[AnyView<'a>], at: usize) -> AnyView<'a> {
    args.get(at).copied().unwrap_or(AnyView::none())
}

/// Returns argument `at` as an integer.
pub(super) fn int(args: &[AnyView<'_>], at: usize) -> VmResult<i64> {
    Ok(cast::<i64>(arg(args, at))?)
}

/// Returns the text that a compiler passes last, for messages, or an empty text.
pub(super) fn context(args: &[AnyView<'_>]) -> String {
    let last = args.last().copied().unwrap_or(AnyView::none());
    cast::<String>(last).map_or_else(|_| String::new(), |text| text.trim_end().to_owned() + " ")
}

/// Returns the description of a tensor argument.
pub(super) fn tensor<'a>(view: AnyView<'a>) -> Option<&'a DLTensor> {
    let pointer = <*mut DLTensor>::try_from_view(view)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    unsafe { pointer.as_ref() }
}

/// Returns the extents of a description from [`tensor`] or of a tensor object.
pub(super) fn extents(dl: &DLTensor) -> &[i64] {
    // SAFETY: the description of an argument has readable extents; only `unsafe` code makes others.
    unsafe { dl.shape() }
}

/// Returns whether the elements of a description from [`tensor`] or of a tensor object are contiguous.
pub(super) fn is_compact(dl: &DLTensor) -> bool {
    // SAFETY: as for `extents`, and so are its strides.
    unsafe { dl.is_contiguous() }
}

/// Returns the error for a value of the wrong type, under `rule`.
#[cold]
pub(super) fn wrong_type<T>(rule: Rule, message: String) -> VmResult<T> {
    Err(rule.rejected(Kind::Type, message).into())
}

/// Returns the error for `value`, which has the wrong type. The message is `expected`, such as "expected a shape, not", and the type found.
#[cold]
pub(super) fn wrong_value<T>(rule: Rule, expected: &str, value: AnyView<'_>) -> VmResult<T> {
    wrong_type(rule, format!("{expected} `{}`", key_of(value.type_index())))
}

/// Returns the extents of an argument that must be a shape.
pub(super) fn shape_arg<'a>(rule: Rule, expected: &str, value: AnyView<'a>) -> VmResult<&'a [i64]> {
    extents_of(value).map_or_else(|| wrong_value(rule, expected, value), Ok)
}
