//! Exceptions: classes of `tvmspec._errors`, the built-in ones, and those that callbacks raise.

use crate::file_errors::{self, os_error};
use pyo3::exceptions::{PyException, PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use tvmspec::rule::Violation;

/// Returns the exception for a rule that no file breaks, but an argument or a result.
pub(crate) fn violation_error(py: Python<'_>, violation: &Violation) -> PyErr {
    file_errors::violation_error(py, violation, "")
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

/// Returns the exception for an error of a function: the one that a callback raised, the broken rule, or a built-in exception of its kind.
pub(crate) fn call_error(py: Python<'_>, error: &tvmspec::function::Error) -> PyErr {
    if let Some(exception) = take_exception(error) {
        return exception;
    }
    let kind = error.kind().as_str();
    if let (Some(violation), "RuntimeError") = (error.violation(), kind) {
        return violation_error(py, violation);
    }
    match builtin_exception(py, kind) {
        Some(class) => PyErr::from_type(class, (error.message().to_owned(),)),
        None => PyRuntimeError::new_err(format!("{kind}: {}", error.message())),
    }
}

/// Returns the built-in exception of this name, if one message is enough to create it. A kind may be any text, such as the name of a
/// built-in function.
fn builtin_exception<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyType>> {
    let class = py.import("builtins").ok()?.getattr(name).ok()?;
    let class = class.cast_into::<PyType>().ok()?;
    let is_exception = class.is_subclass_of::<PyException>().unwrap_or(false);
    (is_exception && class.call1(("",)).is_ok()).then_some(class)
}

/// An exception that a callback has raised, and the texts of the error that stands for it in compiled code.
struct CallbackException {
    kind: String,
    message: String,
    exception: PyErr,
}

thread_local! {
    /// The last exception of a callback in the current call on this thread.
    static EXCEPTION: Cell<Option<Box<CallbackException>>> = const { Cell::new(None) };
}

/// Creates the error for the exception of a callback, and keeps the exception until the call returns the error.
pub(crate) fn error_of_callback(py: Python<'_>, exception: PyErr) -> tvmspec::function::Error {
    let value = exception.value(py);
    let kind = exception.get_type(py).name();
    let kind = kind.map_or_else(|_| "RuntimeError".to_owned(), |name| name.to_string());
    // `str` of a KeyError is the `repr` of its key.
    let key = || value.getattr("args").ok()?.get_item(0).ok();
    let key = key().filter(|_| exception.is_instance_of::<PyKeyError>(py));
    let message = match key.as_ref().and_then(|key| key.cast::<PyString>().ok()) {
        Some(key) => key.to_string_lossy().into_owned(),
        None => value.to_string(),
    };
    let error = tvmspec::function::Error::new(&*kind, &message);
    EXCEPTION.set(Some(Box::new(CallbackException {
        kind,
        message,
        exception,
    })));
    error
}

/// Takes the exception of the last callback, if `error` is the error that stands for it.
fn take_exception(error: &tvmspec::function::Error) -> Option<PyErr> {
    let last = EXCEPTION.take()?;
    // Errors of releases up to 0.20 cross as texts, which end at a NUL and lose leading blanks and a
    // kind. Others may get text around the message.
    let message = last.message.split('\0').next().unwrap_or_default().trim();
    let prefix = format!("{}: ", last.kind);
    let message = message.strip_prefix(&prefix).unwrap_or(message);
    let is_same = match message {
        "" => error.kind() == *last.kind,
        _ => error.message().contains(message),
    };
    is_same.then_some(last.exception)
}

/// A call, during which exceptions of its callbacks are kept. The end of an inner call restores the exception of the outer one.
pub(crate) struct CallbackScope(Option<Box<CallbackException>>);

impl CallbackScope {
    #[inline]
    pub(crate) fn enter() -> CallbackScope {
        CallbackScope(EXCEPTION.take())
    }
}

impl Drop for CallbackScope {
    #[inline]
    fn drop(&mut self) {
        EXCEPTION.set(self.0.take());
    }
}

/// A failure of work that runs without the interpreter's lock.
pub(crate) enum Failure {
    Error(tvmspec::function::Error),
    Violation(Violation),
    File(PathBuf, io::Error),
    /// A wrong argument, as a ValueError.
    Argument(String),
}

impl Failure {
    /// Returns the exception.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Error(error) => call_error(py, &error),
            Failure::Violation(violation) => violation_error(py, &violation),
            Failure::File(path, failure) => os_error(&path, &failure),
            Failure::Argument(message) => PyValueError::new_err(message),
        }
    }
}

impl From<tvmspec::function::Error> for Failure {
    fn from(error: tvmspec::function::Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Failure {
        Failure::Violation(violation)
    }
}
