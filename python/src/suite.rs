//! The conformance suite, run against a Python object that has a function for each operation.

use crate::errors;
use crate::json;
use crate::reports::parse;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pyo3::exceptions::{PyException, PyMemoryError, PyNotImplementedError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tvmspec::conformance::adapter::{Identity, InProcess, Oddity, Rejection, Reply, Testee};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::known_failures::KnownFailures;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{self, Run};

/// A test runner for Python functions. Each gets the arguments of the exec protocol as a dictionary, with `data` as bytes, and returns the
/// value.
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

    /// Returns the names of all operations that cases use.
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

    /// Returns the ids of the cases whose operation has a function.
    fn cases(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let cases = suite(py)?.cases.iter();
        let judged = cases.filter(|case| self.functions.contains_key(&case.op));
        Ok(judged.map(|case| case.id.clone()).collect())
    }

    /// Judges the selected cases. `known` is the text of a known-failures file. Returns each case, and the report as JSON.
    #[pyo3(signature = (chapters, cases, release = None, known = None, complete = false))]
    fn run(
        &self,
        py: Python<'_>,
        chapters: Vec<String>,
        cases: Vec<String>,
        release: Option<&str>,
        known: Option<&str>,
        complete: bool,
    ) -> PyResult<(Vec<Judged>, String)> {
        let mut run = Run::default();
        run.selection.chapters = chapters;
        run.selection.cases = cases;
        run.selection.release = parse(release)?;
        if let Some(text) = known {
            let known = KnownFailures::parse(text);
            run.known = known.map_err(|error| errors::error(py, error))?;
        }
        run.complete = complete;
        run.implementation.clone_from(&self.name);
        // An exception costs no restart, so that every case is tried.
        run.crashes = 0;
        let suite = suite(py)?;
        let mut adapter = InProcess(PythonTestee {
            judge: self,
            end: Arc::clone(&run.end),
            stopped: None,
        });
        // Each function runs with the lock.
        let report = py.detach(|| runner::run(suite, &mut adapter, &run));
        if let Some(stopped) = adapter.0.stopped {
            return Err(stopped);
        }
        py.check_signals()?;
        let report = report.map_err(|error| errors::error(py, error))?;
        let judged = report.results.iter().map(|outcome| {
            let case = outcome.case;
            (
                case.id.clone(),
                outcome.verdict.name(),
                outcome.verdict.reason(),
                case.why.clone(),
                case.rules.clone(),
                outcome.is_failure(),
            )
        });
        Ok((judged.collect(), render(ReportFormat::Json, &report)))
    }
}

fn suite(py: Python<'_>) -> PyResult<&'static Suite> {
    Suite::ours().map_err(|error| errors::error(py, error))
}

/// A testee that answers the runner with the functions of a Python object.
struct PythonTestee<'j> {
    judge: &'j Judge,
    /// Ends the run when it is set.
    end: Arc<OnceLock<String>>,
    /// The exception that ended the run, such as KeyboardInterrupt.
    stopped: Option<PyErr>,
}

impl Testee for PythonTestee<'_> {
    fn identity(&self) -> Identity {
        Identity {
            name: self.judge.name.clone(),
            version: self.judge.version.clone(),
            releases: self.judge.releases.clone(),
            ops: self.judge.functions.keys().cloned().collect(),
        }
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let Some(function) = self.judge.functions.get(op) else {
            return Reply::Unsupported(format!("there is no function for `{op}`"));
        };
        Python::attach(|py| {
            let error = match answer(py, function, args) {
                Ok(reply) => return reply,
                Err(error) => error,
            };
            if error.is_instance_of::<PyException>(py) {
                return reply_of(py, error);
            }
            // KeyboardInterrupt, SystemExit, and those of `pytest.skip` and `pytest.exit` are for the caller.
            let name = error.to_string();
            self.stopped = Some(error);
            let _ = self.end.set(name.clone());
            Reply::Crash(name)
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
