//! Modules and functions of compiled libraries.

use crate::arguments::with_arguments;
use crate::errors::{self, CallbackScope, Failure};
use crate::results;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::fs;
use std::path::{Path, PathBuf};
use tvmspec::module;
use tvmspec::value::AnyView;

/// A loaded module: `module["name"]` is a function of it or of its imports.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Module(pub(crate) module::Module);

/// A function. Arguments are numbers, texts, bytes, arrays, lists, dictionaries, functions and None. Other threads run during a call.
///
/// Compiled code does not know which arrays are read-only, and may write to any argument. An array that is not compact or not aligned is
/// copied before the call, and its changes are copied back. `tensor` creates arrays with the alignment that compiled code expects.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Function(
    pub(crate) tvmspec::function::Function,
    /// `true` for compiled code, which keeps none of its arguments.
    pub(crate) bool,
);

/// Opens a compiled library of any release. Its code runs with the rights of this process: load only files that you trust.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Module> {
    let opened = py.detach(|| open(&path));
    opened
        .map(Module)
        .map_err(|failure| failure.into_exception(py))
}

/// Opens a library, without the interpreter's lock.
pub(crate) fn open(path: &Path) -> Result<module::Module, Failure> {
    // Opened first for its error, which has a number. Another kind of file, such as a pipe, could block.
    let is_file = fs::metadata(path).map(|found| found.is_file());
    let readable = is_file.and_then(|is_file| match is_file {
        true => fs::File::open(path).map(drop),
        false => Ok(()),
    });
    readable.map_err(|failure| Failure::File(path.to_owned(), failure))?;
    // SAFETY: the contract of `load` is documented: its caller trusts the file.
    Ok(unsafe { module::load(path) }?)
}

#[pymethods]
impl Module {
    /// The kind: `library`, `relax.VMExecutable`, ...
    #[getter]
    fn kind(&self) -> String {
        self.0.kind()
    }

    /// The modules that this module imports.
    #[getter]
    fn imports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let imports: PyResult<Vec<Bound<'py, Module>>> = self
            .0
            .imports()
            .into_iter()
            .map(|import| Bound::new(py, Module(import)))
            .collect();
        PyTuple::new(py, imports?)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Function> {
        let fail = |error: tvmspec::function::Error| errors::call_error(py, &error);
        // Only functions of the host library are known to keep none of their arguments.
        let own = self.0.function(name, false).map_err(fail)?;
        if let Some(function) = own {
            return Ok(Function(function, self.0.kind() == "library"));
        }
        let found = self.0.function(name, true).map_err(fail)?;
        match found {
            Some(function) => Ok(Function(function, false)),
            None => Err(PyKeyError::new_err(format!(
                "neither the module nor its imports have a function `{name}`"
            ))),
        }
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let found = self.0.function(name, true);
        found
            .map(|found| found.is_some())
            .map_err(|error| errors::call_error(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("<Module {}>", self.0.kind())
    }
}

/// A call that runs while this thread is not attached to the interpreter.
struct Detached<'a>(&'a tvmspec::function::Function, &'a [AnyView<'a>]);

// SAFETY: the call runs in the same thread, only without the interpreter's lock. The caller keeps the objects that the values refer to.
unsafe impl Send for Detached<'_> {}

impl Detached<'_> {
    fn call(self) -> Called {
        Called(self.0.call_packed(self.1))
    }
}

/// The result of a [`Detached`] call, which stays in the same thread.
struct Called(tvmspec::function::Result);

// SAFETY: as for `Detached`.
unsafe impl Send for Called {}

#[pymethods]
impl Function {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let _scope = CallbackScope::enter();
        let called = with_arguments(args, self.1, |views| {
            let call = Detached(&self.0, views);
            py.detach(move || call.call())
        })?;
        match called.0 {
            Ok(result) => results::to_python(py, result),
            Err(error) => Err(errors::call_error(py, &error)),
        }
    }
}
