//! The whole numbers that a case states.

use crate::conformance::op::OpError;
use crate::conformance::reply::Reply;
use serde_json::Value;

/// A case states something else where a number must be.
pub(in crate::conformance) struct NoNumber(String);

impl NoNumber {
    /// The complaint about this form.
    pub(in crate::conformance) fn at(form: &Value) -> NoNumber {
        NoNumber(format!("case states no number \"{form}\""))
    }
}

// A fault of the case: the testee is charged with nothing, and the report shows it.
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

/// The number that a form is, where it fits into a `T`.
pub(in crate::conformance) fn number_of<'a, T: TryFrom<i128>>(
    form: impl Into<Option<&'a Value>>,
) -> Result<T, NoNumber> {
    let form = form.into().unwrap_or(&Value::Null);
    // Wide enough for both: a size may be above 2^63, an offset below 0.
    let signed = form.as_i64().map(i128::from);
    let number = signed.or_else(|| form.as_u64().map(i128::from));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| NoNumber::at(form))
}

/// The number `name` of a form, or `absent` where the case leaves it out.
pub(in crate::conformance) fn number_or<T: TryFrom<i128>>(
    form: &Value,
    name: &str,
    absent: T,
) -> Result<T, NoNumber> {
    form.get(name).map_or(Ok(absent), number_of)
}

/// The numbers of the list that a form is.
pub(in crate::conformance) fn numbers_in(form: &Value) -> Result<Vec<i64>, NoNumber> {
    numbers_of(form.as_array().ok_or_else(|| NoNumber::at(form))?)
}

/// The numbers of a list.
pub(in crate::conformance) fn numbers_of(list: &[Value]) -> Result<Vec<i64>, NoNumber> {
    list.iter().map(number_of).collect()
}
