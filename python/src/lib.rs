//! The extension module of the wheel. It reads bytes, calls functions and runs cases; everything else is in Python, in `python/tvmspec/`.

mod arguments;
mod array;
mod buffer;
mod errors;
mod file_errors;
mod files;
mod function;
mod json;
mod model;
mod params;
mod reports;
mod results;
mod suite;
mod tensor;

use pyo3::prelude::*;
use std::ffi::OsString;
use tvmspec::release::Release;

/// Runs the command line, and returns its exit code. `program` has the words that start it again.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>, program: Vec<OsString>) -> u8 {
    // SAFETY: a user who names a library to `call` or `run` trusts it, as their help says.
    py.detach(|| unsafe { tvmspec::cli::run(words, Some(program)) })
}

#[pymodule]
fn _tvmspec(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(reports::report, module)?)?;
    module.add_function(wrap_pyfunction!(reports::rules, module)?)?;
    module.add_function(wrap_pyfunction!(reports::minor, module)?)?;
    module.add_function(wrap_pyfunction!(files::unpack, module)?)?;
    module.add_function(wrap_pyfunction!(files::write, module)?)?;
    module.add_function(wrap_pyfunction!(params::read_params, module)?)?;
    module.add_function(wrap_pyfunction!(params::read_cache, module)?)?;
    module.add_function(wrap_pyfunction!(params::params_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(function::load, module)?)?;
    module.add_function(wrap_pyfunction!(model::run, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::tensor, module)?)?;
    module.add("LAST_RELEASE", Release::LAST.to_string())?;
    module.add_class::<function::Module>()?;
    module.add_class::<function::Function>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<suite::Judge>()?;
    Ok(())
}
