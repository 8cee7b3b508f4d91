//! Exceptions of the functions for files: `OSError` with number and name, `Violation` with the file, and `Error`.

use crate::errors;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::io::{self, ErrorKind};
use std::path::Path;
use tvmspec::cli::CliError;
use tvmspec::rule::Violation;

/// Returns the exception for a command that could not do its work.
pub(crate) fn command_error(py: Python<'_>, failure: CliError) -> PyErr {
    match failure {
        CliError::File { path, error, .. } => os_error(&path, &error),
        CliError::Broken {
            file, violation, ..
        } => violation_error(py, &violation, &file),
        other => errors::error(py, other),
    }
}

/// Returns the exception for a rule that `file` breaks.
pub(crate) fn violation_error(py: Python<'_>, violation: &Violation, file: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "tvmspec._errors", "Violation");
    let exception = class.and_then(|class| {
        class.call1((
            violation.message(),
            violation.rule().id(),
            violation.kind().name(),
            violation.offset(),
            violation.field(),
            Some(file).filter(|file| !file.is_empty()),
        ))
    });
    exception.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the subclass of `OSError` for the number of the error, with the name of the file.
pub(crate) fn os_error(path: &Path, error: &io::Error) -> PyErr {
    if error.kind() == ErrorKind::InvalidInput && error.raw_os_error().is_none() {
        // The path contains NUL, which `open` of Python rejects in the same way.
        return PyValueError::new_err(error.to_string());
    }
    let number = error.raw_os_error().unwrap_or_else(|| number(error.kind()));
    let text = error.to_string();
    // The system's text ends with the number, and that of a temporary file with its name.
    let text = text.split(" (os error").next().unwrap_or_default();
    let text = text.split(" at path ").next().unwrap_or_default();
    PyOSError::new_err((number, text.to_owned(), path.as_os_str().to_owned()))
}

/// Returns the number of an error that lost it on its way. The numbers are those of Linux and macOS.
fn number(kind: ErrorKind) -> i32 {
    const EIO: i32 = 5;
    match kind {
        ErrorKind::NotFound => 2,
        ErrorKind::PermissionDenied => 13,
        ErrorKind::AlreadyExists => 17,
        ErrorKind::NotADirectory => 20,
        ErrorKind::IsADirectory => 21,
        ErrorKind::StorageFull => 28,
        ErrorKind::ReadOnlyFilesystem => 30,
        _ => EIO,
    }
}
