//! The integers that a case states.

use crate::conformance::op::OpError;
use crate::conformance::reply::Reply;
use serde_json::Value;

/// The error for a case without a number where one is required.
pub(in crate::conformance) struct NoNumber(String);

impl NoNumber {
    /// Creates the error for this form.
    pub(in crate::conformance) fn for_form(form: &Value) -> NoNumber {
        NoNumber(format!("case states no number \"{form}\""))
    }
}

// A fault of the case: it is not charged to the testee, and the report shows it.
impl From<NoNumber> for Reply {
    fn from(none: NoNumber) -> Reply {
        Reply::ProtocolError(none.0)
    }
}

impl From<NoNumber> for OpError {
    fn from(none: NoNumber) -> OpError {
        OpError::Unsupported(none.0)
    }
}

/// Returns the number of a form, if it fits into a `T`.
pub(in crate::conformance) fn number_of<'a, T: TryFrom<i128>>(
    form: impl Into<Option<&'a Value>>,
) -> Result<T, NoNumber> {
    let form = form.into().unwrap_or(&Value::Null);
    // Wide enough for both: a size may exceed 2^63, and an offset may be negative.
    let signed = form.as_i64().map(i128::from);
    let number = signed.or_else(|| form.as_u64().map(i128::from));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| NoNumber::for_form(form))
}

/// Returns the number `name` of a form, or `absent` if the case omits it.
pub(in crate::conformance) fn number_or<T: TryFrom<i128>>(
    form: &Value,
    name: &str,
    absent: T,
) -> Result<T, NoNumber> {
    form.get(name).map_or(Ok(absent), number_of)
}

/// Returns the numbers of a form that is a list.
pub(in crate::conformance) fn numbers_in(form: &Value) -> Result<Vec<i64>, NoNumber> {
    numbers_of(form.as_array().ok_or_else(|| NoNumber::for_form(form))?)
}

/// Returns the numbers of a list.
pub(in crate::conformance) fn numbers_of(list: &[Value]) -> Result<Vec<i64>, NoNumber> {
    list.iter().map(number_of).collect()
}
