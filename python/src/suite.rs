//! The conformance suite, run against a Python object that has a function for each operation.

use crate::errors;
use crate::json;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;
use std::collections::BTreeMap;
use tvmspec::conformance::adapter::{Identity, InProcess, Oddity, Rejection, Reply, Testee};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{self, Run};
use tvmspec::conformance::verdict::Verdict;

/// The judge of Python functions. Each gets the arguments of the exec protocol as a dictionary, with `data` as bytes, and returns the value.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Judge {
    name: String,
    version: String,
    releases: Vec<String>,
    functions: BTreeMap<String, Py<PyAny>>,
}

/// A judged case: its id, verdict, reason, consequence for users, rules, and whether it fails.
type Judged = (String, &'static str, String, String, Vec<String>, bool);

#[pymethods]
impl Judge {
    #[new]
    fn new(
        name: String,
        version: String,
        releases: Vec<String>,
        functions: BTreeMap<String, Py<PyAny>>,
    ) -> Judge {
        Judge {
            name,
            version,
            releases,
            functions,
        }
    }

    /// The names of all operations that cases use.
    #[staticmethod]
    fn operations(py: Python<'_>) -> PyResult<Vec<String>> {
        let mut names: Vec<String> = suite(py)?
            .cases
            .iter()
            .map(|case| case.op.clone())
            .collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The ids of the cases whose operation has a function.
    fn cases(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let cases = suite(py)?.cases.iter();
        let known = cases.filter(|case| self.functions.contains_key(&case.op));
        Ok(known.map(|case| case.id.clone()).collect())
    }

    /// Judges the selected cases. Returns each, and the report as JSON.
    fn run(
        &self,
        py: Python<'_>,
        chapters: Vec<String>,
        cases: Vec<String>,
    ) -> PyResult<(Vec<Judged>, String)> {
        let mut run = Run::default();
        run.selection.chapters = chapters;
        run.selection.cases = cases;
        run.implementation.clone_from(&self.name);
        // An exception costs no restart, so that every case is tried.
        run.crashes = 0;
        let mut adapter = InProcess(PythonTestee(self));
        let report = runner::run(suite(py)?, &mut adapter, &run);
        let report = report.map_err(|error| errors::error(py, error))?;
        let judged = report.results.iter().map(|outcome| {
            let case = outcome.case;
            let fails = outcome.is_failure();
            let reason = outcome.verdict.reason();
            let rules = case.rules.clone();
            (
                case.id.clone(),
                name_of(&outcome.verdict),
                reason,
                case.why.clone(),
                rules,
                fails,
            )
        });
        Ok((judged.collect(), render(ReportFormat::Json, &report)))
    }
}

fn name_of(verdict: &Verdict) -> &'static str {
    verdict.name()
}

fn suite(py: Python<'_>) -> PyResult<&'static Suite> {
    Suite::ours().map_err(|error| errors::error(py, error))
}

/// A testee that answers the runner with the functions of a Python object.
struct PythonTestee<'j>(&'j Judge);

impl Testee for PythonTestee<'_> {
    fn identity(&self) -> Identity {
        Identity {
            name: self.0.name.clone(),
            version: self.0.version.clone(),
            releases: self.0.releases.clone(),
            ops: self.0.functions.keys().cloned().collect(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let Some(function) = self.0.functions.get(op) else {
            return Reply::Unsupported(format!("there is no function for `{op}`"));
        };
        Python::attach(|py| match answer(py, function, args) {
            Ok(reply) => reply,
            Err(error) => reply_of(py, error),
        })
    }
}

/// Calls the function of an operation.
fn answer(py: Python<'_>, function: &Py<PyAny>, args: &Value) -> PyResult<Reply> {
    let dict = json::to_python(py, args)?.cast_into::<PyDict>()?;
    if let Some(data) = args.get("data").and_then(Value::as_str)
        && let Ok(bytes) = BASE64_STANDARD.decode(data)
    {
        dict.set_item("data", PyBytes::new(py, &bytes))?;
    }
    let result = function.bind(py).call1((dict,))?;
    // `tvmspec.Answer` states findings, too.
    let Ok(stated) = result.getattr("findings") else {
        return Ok(Reply::Ok {
            value: json::from_python(&result)?,
            findings: None,
        });
    };
    let findings: PyResult<Vec<Oddity>> = stated
        .try_iter()?
        .map(|finding| {
            let (rule, kind, offset) = finding?.extract()?;
            Ok(Oddity { rule, kind, offset })
        })
        .collect();
    Ok(Reply::Ok {
        value: json::from_python(&result.getattr("value")?)?,
        findings: Some(findings?),
    })
}

/// Returns the answer that an exception stands for.
fn reply_of(py: Python<'_>, error: PyErr) -> Reply {
    if error.is_instance_of::<PyNotImplementedError>(py) {
        return Reply::Unsupported(error.value(py).to_string());
    }
    if error.is_instance_of::<PyMemoryError>(py) {
        return Reply::OutOfMemory(error.to_string());
    }
    let value = error.value(py);
    if errors::is_violation(value) {
        let text = |name: &str| value.getattr(name).ok()?.extract::<Option<String>>().ok()?;
        let offset = || {
            value
                .getattr("offset")
                .ok()?
                .extract::<Option<u64>>()
                .ok()?
        };
        return Reply::Reject(Rejection {
            kind: text("kind"),
            message: text("message").unwrap_or_default(),
            offset: offset(),
            rule: text("rule"),
            field: text("field").filter(|field| !field.is_empty()),
        });
    }
    let trace = error.traceback(py).and_then(|trace| trace.format().ok());
    Reply::Crash(
        format!("{error}\n{}", trace.unwrap_or_default())
            .trim_end()
            .to_owned(),
    )
}
