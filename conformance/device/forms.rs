//! Arguments and answers of the operations on devices.

use crate::conformance::op::{Answer, OpError};
use crate::release::Release;
use serde_json::Value;

/// Returns an answer without findings.
pub(super) fn value(value: Value) -> Answer {
    Answer {
        value,
        findings: Vec::new(),
    }
}

/// Converts a result to an answer, to the broken rule, or to a failure of another kind.
pub(super) fn rejected_or<T: Into<Value>>(
    result: crate::device::Result<T>,
) -> Result<Answer, OpError> {
    match result {
        Ok(answer) => Ok(value(answer.into())),
        Err(error) => Err(error.into()),
    }
}

/// Returns the release of the request, or the newest one if it states none.
pub(super) fn release(args: &Value) -> Result<Release, OpError> {
    match args.get("release").and_then(Value::as_str) {
        None => Ok(Release::LAST),
        Some(text) => text.parse().map_err(OpError::from),
    }
}

pub(super) fn integer(value: Option<&Value>) -> Result<i64, OpError> {
    value
        .and_then(Value::as_i64)
        .ok_or_else(|| OpError::Unsupported("an integer is missing".into()))
}

/// Returns the integers of a list; unsupported if a member is not an integer.
pub(super) fn integers(list: Option<&Value>) -> Result<Vec<i64>, OpError> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice);
    let list = list.ok_or_else(|| OpError::Unsupported("a list of integers is missing".into()))?;
    list.iter().map(|item| integer(Some(item))).collect()
}
