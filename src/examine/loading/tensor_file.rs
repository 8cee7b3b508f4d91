//! The verdict of each release on parameter files and on files that are one tensor.

use super::tensor_types::{self, TypedTensor};
use super::{Load, Stop, tensor};
use crate::release::Release;
use crate::rule::Violation;

/// Returns the verdict of `release` on a parameter file. `types` are the types of its tensors, and `broken` is the first rule that the
/// file breaks.
pub(crate) fn params(
    release: Release,
    bytes: &[u8],
    types: &[TypedTensor],
    broken: Option<&Violation>,
) -> Load {
    let how = "by `load_param_dict` or an executor's `load_params`";
    judge(release, tensor::params(release, bytes), how, types, broken)
}

/// Returns the verdict of `release` on a file that is one tensor.
pub(crate) fn judge_tensor(
    release: Release,
    bytes: &[u8],
    types: &[TypedTensor],
    broken: Option<&Violation>,
) -> Load {
    judge(
        release,
        tensor::walk_tensor_file(release, bytes),
        "as a file",
        types,
        broken,
    )
}

/// Returns the first verdict that applies, in this order:
///
/// 1. the loader stops
/// 2. data are missing
/// 3. the file breaks a rule that the loader does not check
/// 4. a type has another meaning
/// 5. the file loads
fn judge(
    release: Release,
    walked: Result<Option<String>, Stop>,
    how: &str,
    types: &[TypedTensor],
    broken: Option<&Violation>,
) -> Load {
    match (walked, broken) {
        (Err(stop), _) => stop.into(),
        (Ok(Some(lost)), _) => Load::silent(format!("it loads it, and {lost}")),
        (Ok(None), Some(broken)) => Load::unseen(broken),
        (Ok(None), None) => match tensor_types::misread(release, types) {
            Some(how) => Load::silent(how),
            None => Load::loads(how),
        },
    }
}
