//! Modules and functions of compiled libraries.

use crate::arguments::with_arguments;
use crate::errors;
use crate::results;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::path::PathBuf;
use tvmspec::module;
use tvmspec::value::AnyView;

/// A loaded module: `module["name"]` is a function of it or of its imports.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Module(pub(crate) module::Module);

/// A function. Arguments are numbers, texts, bytes, arrays, lists, dictionaries, functions and None. Other threads run during a call.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Function(
    pub(crate) tvmspec::function::Function,
    /// `true` for compiled code, which keeps none of its arguments.
    pub(crate) bool,
);

/// Opens a compiled library of any release. Its code runs with the rights of this process: load only files that you trust.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Module> {
    if let Err(failure) = std::fs::File::open(&path) {
        return Err(errors::file(&path, failure));
    }
    // SAFETY: the contract of `load` is documented: its caller trusts the file.
    let loaded = py.detach(|| unsafe { module::load(&path) });
    loaded
        .map(Module)
        .map_err(|error| errors::raised(py, &error))
}

#[pymethods]
impl Module {
    /// The kind: `library`, `relax.VMExecutable`, ...
    #[getter]
    fn kind(&self) -> String {
        self.0.kind()
    }

    /// The modules that it imports.
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
        let fail = |error: tvmspec::function::Error| errors::raised(py, &error);
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
            .map_err(|error| errors::raised(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("<Module {}>", self.0.kind())
    }
}

/// Arguments that another thread may use while this one is not attached to the interpreter.
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
        let called = with_arguments(args, self.1, |views| {
            let call = Detached(&self.0, views);
            py.detach(move || call.call())
        })?;
        match called.0 {
            Ok(result) => results::to_python(py, result),
            Err(error) => Err(errors::raised(py, &error)),
        }
    }
}
