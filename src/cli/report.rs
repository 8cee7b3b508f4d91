//! The JSON that `inspect`, `verify`, `explain`, `dump` and `rule` print with `--json`, for a program that has the command line in its
//! process, such as the Python module.

use super::input::{Input, examined, payload};
use super::{CliError, explain, output, rule};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tvmspec::conformance::adapter::program_command;
use tvmspec::examine::inspect::InspectOptions;
use tvmspec::examine::{NotExaminable, Subject};
use tvmspec::release::{Layout, Release};

/// A report that a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportKind {
    /// `inspect`: the content of the file.
    Inspect,
    /// `verify`: every broken rule and every oddity.
    Verify,
    /// `explain`: how each release treats the file.
    Explain,
    /// `dump`: every byte with its field and its rule.
    Dump,
}

/// The options of a report. Each has the name of its option on the command line, and no effect on a command without that option.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReportOptions {
    /// The layout of library binaries and payloads. It overrides symbols and bytes.
    pub layout: Option<Layout>,
    /// The module kind whose payload the file is.
    pub kind: Option<String>,
    /// The grammars of kinds that no release has, each `KIND=KNOWN`.
    pub grammar: Vec<String>,
    /// `true` to show the code of executables.
    pub code: bool,
    /// The only release to explain.
    pub release: Option<Release>,
    /// `true` to ignore the libraries and devices of this machine.
    pub elsewhere: bool,
    /// The library with which a graph is run.
    pub lib: Option<PathBuf>,
    /// The libraries of a runtime, with commas between them. They are loaded in a separate process.
    pub runtime: Option<String>,
    /// The words that start the command line in that process, before the subcommand; empty for the file of this process.
    pub program: Vec<OsString>,
    /// The offset in bytes from which fields are dumped.
    pub from: u64,
}

/// Returns the JSON that the command prints for `input`, with its line end.
///
/// # Errors
///
/// The command ends with exit code 2, for example because no rule is about the file, and prints this message.
pub fn report(
    kind: ReportKind,
    input: &Input,
    options: &ReportOptions,
) -> Result<String, CliError> {
    let open = |kind: Option<&str>| examined(input, kind, options.layout, &options.grammar);
    let text = match kind {
        ReportKind::Inspect => {
            let wanted = InspectOptions {
                code: options.code,
                ..InspectOptions::default()
            };
            let subject = open(options.kind.as_deref())?;
            let inspection = subject.inspect_with(wanted);
            let inspection = inspection.map_err(|why| not_examinable(&subject, &why))?;
            output::json_text(&inspection.into_json())
        }
        ReportKind::Verify => {
            let subject = open(options.kind.as_deref())?;
            let found = subject.verify();
            let found = found.map_err(|why| not_examinable(&subject, &why))?;
            output::json_text(&found.to_json())
        }
        ReportKind::Explain => {
            if !options.program.is_empty() {
                program_command::set(options.program.clone());
            }
            let asked = explain::ExplainOptions {
                layout: options.layout,
                grammar: &options.grammar,
                release: options.release,
                elsewhere: options.elsewhere,
                lib: options.lib.as_deref(),
                runtime: options.runtime.as_deref(),
                timeout: Duration::from_secs(30),
            };
            output::json_text(&explain::explain(input, &asked)?)
        }
        ReportKind::Dump => {
            let subject = match &options.kind {
                Some(kind) => payload(input, kind, options.layout)?,
                None => Subject::of_any(&input.name, input.bytes(), options.layout),
            };
            let dump = subject.dump_from(options.from);
            output::json_text(&dump.map_err(|why| not_examinable(&subject, &why))?)
        }
    }?;
    input.check_length()?;
    Ok(text)
}

/// Creates the error for a file without anything to report, which is a violation if its container is broken.
fn not_examinable(subject: &Subject<'_>, why: &NotExaminable) -> CliError {
    match subject.broken() {
        Some(broken) => CliError::broken(subject.name, broken, why),
        None => CliError::line(why),
    }
}

/// Returns the JSON that `tvmspec rule --json` prints for these ids, in which `*` stands for any text.
///
/// # Errors
///
/// No rule has one of the ids.
pub fn rules(ids: &[String]) -> Result<String, CliError> {
    output::json_text(&rule::values(&rule::matching(ids)?))
}
