//! Arguments of the builtins, and what is wrong with them.

use super::super::fault::VmResult;
use crate::rule::{Kind, Rule};
use crate::value::{AnyView, Argument, DLTensor, cast};

/// Argument `at`, or None where there are fewer: a function says what it takes by rejecting None.
pub(super) fn arg<'a>(args: &[AnyView<'a>], at: usize) -> AnyView<'a> {
    args.get(at).copied().unwrap_or(AnyView::none())
}

/// Argument `at` as an integer.
pub(super) fn int(args: &[AnyView<'_>], at: usize) -> VmResult<i64> {
    Ok(cast::<i64>(arg(args, at))?)
}

/// The text that a compiler puts behind the arguments for messages; empty when there is none.
pub(super) fn context(args: &[AnyView<'_>]) -> String {
    let last = args.last().copied().unwrap_or(AnyView::none());
    cast::<String>(last).map_or_else(|_| String::new(), |text| text.trim_end().to_owned() + " ")
}

/// The description behind a tensor argument.
pub(super) fn tensor<'a>(view: AnyView<'a>) -> Option<&'a DLTensor> {
    let pointer = <*mut DLTensor>::try_from_view(view)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    unsafe { pointer.as_ref() }
}

/// The extents of a description that [`tensor`] returned or a tensor object has.
pub(super) fn extents(dl: &DLTensor) -> &[i64] {
    // SAFETY: the description of an argument has readable extents; only `unsafe` code makes others.
    unsafe { dl.shape() }
}

/// Whether the elements of a description that [`tensor`] returned or a tensor object has lie in one piece.
pub(super) fn is_compact(dl: &DLTensor) -> bool {
    // SAFETY: as for `extents`, and so are its strides.
    unsafe { dl.is_contiguous() }
}

/// A value of the wrong type, under `rule`.
#[cold]
pub(super) fn wrong_type<T>(rule: Rule, message: String) -> VmResult<T> {
    Err(rule.rejected(Kind::Type, message).into())
}
