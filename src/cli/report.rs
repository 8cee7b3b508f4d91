//! The JSON that `inspect`, `verify`, `explain` and `dump` print with `--json`, for a program that has the command line in its process,
//! such as the Python module.

use super::input::{Input, examined, payload};
use super::{CliError, explain, library, output, rule};
use serde_core::Serialize;
use tvmspec::blob::Blob;
use tvmspec::examine::Subject;
use tvmspec::examine::inspect::InspectOptions;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::Violation;

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
    match kind {
        ReportKind::Inspect => {
            let wanted = InspectOptions {
                code: options.code,
                ..InspectOptions::default()
            };
            let subject = open(options.kind.as_deref())?;
            let inspection = subject.inspect_with(wanted).map_err(CliError::line)?;
            output::json_text(&inspection.into_json())
        }
        ReportKind::Verify => {
            let subject = open(options.kind.as_deref())?;
            let found = subject.verify().map_err(CliError::line)?;
            output::json_text(&found.to_json())
        }
        ReportKind::Explain => {
            // `explain` has no option `kind`.
            let subject = open(None)?;
            let (mut accounts, form, foreign) = explain::accounts(&subject, options.release)?;
            if !options.elsewhere {
                explain::judge_here(&mut accounts, form, foreign, input, None);
            }
            output::json_text(&explain::json(&accounts))
        }
        ReportKind::Dump => {
            let subject = match &options.kind {
                Some(kind) => payload(input, kind, options.layout)?,
                None => Subject::of_any(&input.name, input.bytes(), options.layout),
            };
            output::json_text(&subject.dump_from(options.from).map_err(CliError::line)?)
        }
    }
}

/// Formats JSON as every command prints it: indented, with a line end, and without characters that a terminal obeys.
///
/// # Errors
///
/// The error of the value, if it cannot be serialized.
pub fn json_text<T: Serialize + ?Sized>(value: &T) -> Result<String, CliError> {
    output::json_text(value)
}

/// Runs `work` on a library binary of the input, as `unpack` and `convert` do: the only one, or number `number`, counted from 0. Returns the
/// broken rule if it is not valid.
///
/// # Errors
///
/// The file has no library binary, or several and no number chooses one.
pub fn with_library<R>(
    input: &Input,
    layout: Option<Layout>,
    number: Option<usize>,
    work: impl FnOnce(Blob<'_>) -> R,
) -> Result<Result<R, Violation>, CliError> {
    let subject = match Subject::open(&input.name, input.bytes(), layout) {
        Ok(subject) => subject,
        Err(broken) => return Ok(Err(broken)),
    };
    let units = subject.units();
    let unit = library::pick(&subject, &units, number)?;
    let Some(partial) = unit.library() else {
        return Err(CliError::line(subject.not_examinable()));
    };
    Ok(match partial.broken {
        Some(broken) => Err(broken),
        None => Ok(work(partial.blob)),
    })
}

/// Returns the JSON that `tvmspec rule --json` prints for these ids, in which `*` stands for any text.
///
/// # Errors
///
/// No rule has one of the ids.
pub fn rules(ids: &[String]) -> Result<String, CliError> {
    output::json_text(&rule::values(&rule::matching(ids)?))
}
