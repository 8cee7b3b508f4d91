//! Reasons for a step of `object.script` to have no result.

use super::records;
use crate::conformance::reply::Reply;
use crate::conformance::runtime::ffi::owned::Raised;
use serde_json::Value;

/// The reason for a step to have no result.
///
/// A failed step is an answer like any other. The following steps still run, so a case sees the state after a failed call.
pub(super) enum NoResult {
    Raised(Raised),
    /// The step answers with JSON that is not a value of the runtime.
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
