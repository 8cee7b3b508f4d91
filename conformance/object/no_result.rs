//! Why a step of `object.script` has no result.

use super::records;
use crate::conformance::reply::Reply;
use crate::conformance::runtime::ffi::owned::Raised;
use serde_json::Value;

/// Why a step has no result.
///
/// A step that fails is an answer like any other: the steps behind it are played, so that a case sees what a failed call leaves.
pub(super) enum NoResult {
    Raised(Raised),
    /// This is what it is about.
    Shown(Value),
    Reply(Reply),
}

impl From<Raised> for NoResult {
    fn from(raised: Raised) -> NoResult {
        NoResult::Raised(raised)
    }
}

impl From<records::DefineError> for NoResult {
    fn from(error: records::DefineError) -> NoResult {
        match error {
            records::DefineError::Raised(raised) => NoResult::Raised(raised),
            records::DefineError::Reply(reply) => NoResult::Reply(reply),
        }
    }
}

impl From<Reply> for NoResult {
    fn from(reply: Reply) -> NoResult {
        NoResult::Reply(reply)
    }
}
