//! Constructors for the errors of device calls.

use crate::function::{Error, ErrorKind};
use crate::rule::{Kind, Rule};

/// Returns an error of `rule` for a wrong call, as a result of any type.
#[cold]
pub(crate) fn reject<T>(rule: Rule, kind: Kind, message: impl Into<String>) -> Result<T, Error> {
    Err(rule.rejected(kind, message).into())
}

/// Creates a MemoryError (DEV-07): there is no memory for `nbytes` bytes. `by` is the driver's failed call, or the reason.
#[cold]
pub(crate) fn out_of_memory(nbytes: usize, by: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Memory,
        format!("no memory for {nbytes} bytes ({by})"),
    )
}

/// Creates a RuntimeError (DEV-07): the driver or its library failed in `call`. The error contains the driver's number, and its
/// text if it has one.
#[cold]
pub(crate) fn driver_error(
    backend: &str,
    call: impl std::fmt::Display,
    code: i64,
    meaning: impl AsRef<str>,
) -> Error {
    let meaning = match meaning.as_ref() {
        "" => String::new(),
        meaning => format!(" ({meaning})"),
    };
    let message = format!("{backend}: {call} failed with {code}{meaning}");
    Error::new(ErrorKind::Runtime, message)
}

/// Creates a RuntimeError (DEV-07): a driver, its library or its hardware is missing. This breaks no rule.
#[cold]
pub(crate) fn missing_driver(why: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::Runtime, why.as_ref())
}

/// Creates the error of [`missing_driver`] for a missing driver `name`. Without the driver, no device number can be right.
#[cfg(any(
    feature = "cuda",
    feature = "hip",
    feature = "opencl",
    feature = "vulkan"
))]
#[cold]
pub(crate) fn no_driver(name: &str, why: impl std::fmt::Display) -> Error {
    missing_driver(format!("no {name} here: {why}"))
}

/// Returns whether an error is [`no_driver`] with this name.
#[cfg(any(
    feature = "cuda",
    feature = "hip",
    feature = "opencl",
    feature = "vulkan"
))]
pub(crate) fn is_no_driver(error: &Error, name: &str) -> bool {
    error.message().starts_with(&format!("no {name} here: "))
}

/// Returns the error as one text: the message, and the id of the broken rule at its end if there is one.
#[cold]
pub(crate) fn text(error: &Error) -> String {
    match error.violation() {
        Some(broken) => broken.to_string(),
        None => error.message().to_owned(),
    }
}
