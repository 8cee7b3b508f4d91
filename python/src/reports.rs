//! `report` (inspect, verify, explain and dump) and `rules`. The results are JSON text, from which Python creates its types.

use crate::buffer::Buffer;
use crate::file_errors::command_error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ffi::OsString;
use std::path::PathBuf;
use tvmspec::cli::{self, Input, ReportKind, ReportOptions};
use tvmspec::release::Release;

/// An open file or buffer.
pub(crate) struct Source {
    pub(crate) input: Input,
    /// `true` if the bytes cannot change, so that they may be read without the interpreter's lock.
    is_constant: bool,
}

impl Source {
    /// Opens a path, or borrows the bytes of a buffer. `name` stands for the file of a buffer.
    pub(crate) fn open(source: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<Source> {
        let py = source.py();
        if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
            let mut path: PathBuf = source.extract()?;
            // Only the command line has `-` for stdin.
            if path.as_os_str() == "-" {
                path = "./-".into();
            }
            let input = py.detach(|| Input::open(&path));
            return Ok(Source {
                input: input.map_err(|failure| command_error(py, failure))?,
                is_constant: true,
            });
        }
        let buffer = Buffer::from_object(source)?;
        let name = name.unwrap_or_else(|| "<buffer>".to_owned());
        Ok(Source {
            input: Input::lent(name, Box::new(buffer)),
            is_constant: Buffer::is_constant(source)?,
        })
    }

    /// Runs `work` on the input, without the interpreter's lock if the bytes cannot change.
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&Input) -> R + Send) -> R {
        if self.is_constant {
            py.detach(|| work(&self.input))
        } else {
            work(&self.input)
        }
    }

    /// Returns the input, whose bytes are copied if they can change.
    pub(crate) fn into_constant(self) -> Input {
        if self.is_constant {
            return self.input;
        }
        let bytes = self.input.bytes().to_vec();
        Input::lent(self.input.name().to_owned(), Box::new(bytes))
    }
}

/// Parses an option that has a text form, such as a layout or a release.
pub(crate) fn parse<T: std::str::FromStr>(text: Option<&str>) -> PyResult<Option<T>>
where
    T::Err: std::fmt::Display,
{
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: T::Err| PyValueError::new_err(error.to_string()))
}

/// Returns the JSON that the command prints with `--json`.
#[pyfunction]
#[pyo3(signature = (kind, source, name, layout, *, payload = None, grammar = Vec::new(), code = false, release = None, elsewhere = false, lib = None, runtime = None, start = 0))]
#[allow(clippy::too_many_arguments, reason = "the options of four commands")]
pub(crate) fn report(
    py: Python<'_>,
    kind: &str,
    source: &Bound<'_, PyAny>,
    name: Option<String>,
    layout: Option<&str>,
    payload: Option<String>,
    grammar: Vec<String>,
    code: bool,
    release: Option<&str>,
    elsewhere: bool,
    lib: Option<PathBuf>,
    runtime: Option<String>,
    start: u64,
) -> PyResult<String> {
    let kind = match kind {
        "inspect" => ReportKind::Inspect,
        "verify" => ReportKind::Verify,
        "explain" => ReportKind::Explain,
        _ => ReportKind::Dump,
    };
    let mut options = ReportOptions::default();
    options.layout = parse(layout)?;
    options.kind = payload;
    options.grammar = grammar;
    options.code = code;
    options.release = parse(release)?;
    options.elsewhere = elsewhere;
    options.lib = lib;
    options.runtime = runtime;
    options.program = program(py)?;
    options.from = start;
    let source = Source::open(source, name)?;
    let report = source.read(py, |input| cli::report(kind, input, &options));
    report.map_err(|failure| command_error(py, failure))
}

/// Returns the words that start the command line in another process.
fn program(py: Python<'_>) -> PyResult<Vec<OsString>> {
    let python: OsString = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(vec![python, "-m".into(), "tvmspec".into()])
}

/// Returns the JSON that `tvmspec rule --json` prints for the rules whose id matches.
#[pyfunction]
pub(crate) fn rules(py: Python<'_>, ids: Vec<String>) -> PyResult<String> {
    let text = py.detach(|| cli::rules(&ids));
    text.map_err(|failure| command_error(py, failure))
}

/// Returns the second number of a release, such as 27 for `0.27`.
#[pyfunction]
pub(crate) fn minor(release: &str) -> PyResult<u8> {
    let release: Option<Release> = parse(Some(release))?;
    Ok(release.map_or(0, Release::minor))
}
