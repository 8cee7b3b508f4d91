//! Exceptions: classes of `tvmspec._errors`, and the built-in ones.

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::io;
use std::path::Path;
use tvmspec::cli::CliError;
use tvmspec::rule::Violation;

/// Returns the exception for a broken rule.
pub(crate) fn broken(py: Python<'_>, violation: &Violation) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = CLASS
        .import(py, "tvmspec._errors", "Violation")
        .and_then(|class| {
            class.call1((
                violation.message(),
                violation.rule().id(),
                violation.kind().name(),
                violation.offset(),
                violation.field(),
            ))
        });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns whether `exception` is a `tvmspec.Violation`.
pub(crate) fn is_violation(exception: &Bound<'_, PyAny>) -> bool {
    let class = exception.py().import("tvmspec._errors");
    let class = class.and_then(|module| module.getattr("Violation"));
    class.is_ok_and(|class| exception.is_instance(&class).unwrap_or(false))
}

/// Returns `tvmspec.Error`, for a request that cannot be served.
pub(crate) fn error(py: Python<'_>, message: impl ToString) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "tvmspec._errors", "Error") {
        Ok(class) => PyErr::from_type(class.clone(), message.to_string()),
        Err(error) => error,
    }
}

/// Returns the exception for a command that could not do its work.
pub(crate) fn failed(py: Python<'_>, failure: &CliError) -> PyErr {
    error(py, failure)
}

/// Returns the subclass of `OSError` for the number of the error, with the name of the file.
pub(crate) fn file(path: &Path, failure: io::Error) -> PyErr {
    match failure.raw_os_error() {
        Some(number) => {
            let text = failure.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            PyOSError::new_err((number, text.to_owned(), path.display().to_string()))
        }
        None => failure.into(),
    }
}

/// Returns the exception for an error of a function: the built-in exception of its kind, or the broken rule.
pub(crate) fn raised(py: Python<'_>, error: &tvmspec::function::Error) -> PyErr {
    let kind = error.kind().as_str();
    if let (Some(violation), "RuntimeError") = (error.violation(), kind) {
        return broken(py, violation);
    }
    let class = py
        .import("builtins")
        .and_then(|builtins| builtins.getattr(kind));
    let exception = class.and_then(|class| class.call1((error.message(),)));
    match exception {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(format!("{kind}: {}", error.message())),
    }
}
