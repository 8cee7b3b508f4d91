//! Arguments and answers of the operations on devices.

use crate::conformance::op::{Answer, OpError};
use crate::release::Release;
use serde_json::Value;

/// An answer without findings.
pub(super) fn value(value: Value) -> Answer {
    Answer {
        value,
        findings: Vec::new(),
    }
}

/// An answer, the rule that was broken, or a failure that is neither.
pub(super) fn rejected_or<T: Into<Value>>(
    result: crate::device::Result<T>,
) -> Result<Answer, OpError> {
    match result {
        Ok(answer) => Ok(value(answer.into())),
        Err(error) => Err(error.into()),
    }
}

/// The release of the request, the newest without one.
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

/// The integers of a list; unsupported where a member is none.
pub(super) fn integers(list: Option<&Value>) -> Result<Vec<i64>, OpError> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice);
    let list = list.ok_or_else(|| OpError::Unsupported("a list of integers is missing".into()))?;
    list.iter().map(|item| integer(Some(item))).collect()
}
