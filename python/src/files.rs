//! `unpack`, `pack`, `convert`: library binaries in memory, and as files.

use crate::errors;
use crate::json;
use crate::reports::{Source, parse};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::ffi::OsString;
use tvmspec::cli;
use tvmspec::examine::manifest::Manifest;
use tvmspec::examine::unpack as unpacking;
use tvmspec::release::Layout;

/// Runs `work` on a library binary of the source.
fn with_library<R>(
    py: Python<'_>,
    source: &Source,
    layout: Option<Layout>,
    number: Option<usize>,
    work: impl FnOnce(tvmspec::blob::Blob<'_>) -> PyResult<R>,
) -> PyResult<R> {
    let worked = cli::with_library(&source.input, layout, number, work);
    let worked = worked.map_err(|failure| errors::failed(py, &failure))?;
    worked.map_err(|broken| errors::broken(py, &broken))?
}

/// Returns the manifest as JSON text, and the payloads by the names of their files.
#[pyfunction]
pub(crate) fn unpack<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    name: Option<String>,
    layout: Option<&str>,
    blob: Option<usize>,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let layout = parse(layout)?;
    let source = Source::open(source, name)?;
    with_library(py, &source, layout, blob, |blob| {
        let parts = unpacking::unpack(blob).map_err(|broken| errors::broken(py, &broken))?;
        let files = PyDict::new(py);
        for (name, payload) in parts.files() {
            files.set_item(name, PyBytes::new(py, payload))?;
        }
        let text = cli::json_text(&parts).map_err(|failure| errors::failed(py, &failure))?;
        Ok((text, files))
    })
}

/// Returns the library binary for a manifest, whose files are in `files`.
#[pyfunction]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    manifest: &Bound<'py, PyAny>,
    files: &Bound<'py, PyDict>,
    layout: Option<&str>,
    order: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let value = json::from_python(manifest)?;
    let file = |name: &str| -> Result<Vec<u8>, String> {
        let found = files.get_item(name).map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| format!("there is no file `{name}`"))?;
        found.extract().map_err(|error: PyErr| error.to_string())
    };
    let manifest = Manifest::read(&value, parse(layout)?, parse(order)?, file);
    let blob = manifest.and_then(Manifest::into_blob);
    let blob = blob.map_err(|error| match error.broken() {
        Some(broken) => errors::broken(py, broken),
        None => errors::error(py, error),
    })?;
    let bytes = blob.write().map_err(|broken| errors::broken(py, &broken))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Returns the library binary of the source in a layout.
#[pyfunction]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    layout: Option<&str>,
    from: Option<&str>,
    blob: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (layout, from) = (parse(layout)?, parse(from)?);
    let source = Source::open(source, None)?;
    with_library(py, &source, from, blob, |blob| {
        let converted = blob.convert(layout.unwrap_or(blob.layout));
        let bytes = converted.and_then(|blob| blob.write());
        let bytes = bytes.map_err(|broken| errors::broken(py, &broken))?;
        Ok(PyBytes::new(py, &bytes))
    })
}

/// Runs a command that writes files. Returns whether no rule is broken.
#[pyfunction]
pub(crate) fn write(py: Python<'_>, words: Vec<OsString>) -> PyResult<bool> {
    let written = py.detach(|| cli::write(words));
    written.map_err(|failure| errors::failed(py, &failure))
}
