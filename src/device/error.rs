//! How a call of a device fails: by the error of every call, in the words of this chapter.

use crate::function::{Error, ErrorKind};
use crate::rule::{Kind, Rule};

/// A rejection by `rule`, for callers that got something wrong. Always an error, of any result type.
#[cold]
pub(crate) fn reject<T>(rule: Rule, kind: Kind, message: impl Into<String>) -> Result<T, Error> {
    Err(rule.rejected(kind, message).into())
}

/// A MemoryError (DEV-07): there is no memory for `nbytes` bytes; `by` is the call of the driver that failed, or why.
#[cold]
pub(crate) fn out_of_memory(nbytes: usize, by: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Memory,
        format!("no memory for {nbytes} bytes ({by})"),
    )
}

/// A RuntimeError (DEV-07): the driver or its library failed in `call`, with its own number, and its text for it where it has one.
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

/// A RuntimeError (DEV-07): a driver, its library or its hardware is not here. No rule is broken by that.
#[cold]
pub(crate) fn absent(why: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::Runtime, why.as_ref())
}

/// As [`absent`]: the driver `name` itself is not here, so that no number of a device would be right.
#[cfg(any(
    feature = "cuda",
    feature = "hip",
    feature = "opencl",
    feature = "vulkan"
))]
#[cold]
pub(crate) fn no_driver(name: &str, why: impl std::fmt::Display) -> Error {
    absent(format!("no {name} here: {why}"))
}

/// Whether an error is [`no_driver`] of this name.
#[cfg(any(
    feature = "cuda",
    feature = "hip",
    feature = "opencl",
    feature = "vulkan"
))]
pub(crate) fn is_no_driver(error: &Error, name: &str) -> bool {
    error.message().starts_with(&format!("no {name} here: "))
}

/// What a caller gets that has a text alone: the message, behind the rule where one is broken.
#[cold]
pub(crate) fn text(error: &Error) -> String {
    match error.violation() {
        Some(broken) => broken.to_string(),
        None => error.message().to_owned(),
    }
}
