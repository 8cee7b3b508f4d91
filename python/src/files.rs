//! `unpack`, and the commands that write files: `pack`, `convert` and `inspect --html`.

use crate::file_errors::command_error;
use crate::reports::{Source, parse};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;
use std::ffi::OsString;
use tvmspec::cli;

/// Returns the manifest as JSON text, the payloads by the names of their files, and the warnings.
#[pyfunction]
pub(crate) fn unpack<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    name: Option<String>,
    layout: Option<&str>,
    blob: Option<usize>,
) -> PyResult<(String, Bound<'py, PyDict>, Vec<String>)> {
    let layout = parse(layout)?;
    let source = Source::open(source, name)?;
    let unpacked = source.read(py, |input| cli::unpack(input, layout, blob));
    let unpacked = unpacked.map_err(|failure| command_error(py, failure))?;
    let files = PyDict::new(py);
    for (name, payload) in &unpacked.files {
        files.set_item(name, PyBytes::new(py, payload))?;
    }
    Ok((unpacked.manifest, files, unpacked.warnings))
}

/// Runs a command that writes a file. Among `words`, `-` stands for `source`, and as an output for the returned bytes. Also returns the
/// warnings.
#[pyfunction]
#[pyo3(signature = (words, source = None, name = None, files = HashMap::new()))]
pub(crate) fn write<'py>(
    py: Python<'py>,
    words: Vec<OsString>,
    source: Option<&Bound<'py, PyAny>>,
    name: Option<String>,
    files: HashMap<String, Vec<u8>>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let source = source
        .map(|source| Source::open(source, name))
        .transpose()?;
    let input = source.map(Source::into_constant);
    let written = py.detach(|| cli::write(words, input, files));
    // Ctrl-C also ends a compiler, whose error is not the reason.
    py.check_signals()?;
    let written = written.map_err(|failure| command_error(py, failure))?;
    Ok((PyBytes::new(py, &written.bytes), written.warnings))
}
