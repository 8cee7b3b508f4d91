//! `tvmspec inspect FILE...`: shows the content of files, without executing any of it.
//!
//! [`text`] and [`html`] show the report of [`tvmspec::examine::inspect`] and use nothing else, so that all views have the same
//! content.

mod html;
mod models;
mod text;
mod tree;
mod value_text;

use super::color::{StyledWrite, TerminalText};
use super::diagnostic::DiagnosedBytes;
use super::input::{Input, examined};
use super::multiple_files::{self, FileAnswer};
use super::output::{self, Content};
use super::{CliError, Exit};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use tvmspec::blob::is_unknown_kind;
use tvmspec::examine::Subject;
use tvmspec::examine::inspect::InspectOptions;
use tvmspec::release::Layout;
use tvmspec::rule::Violation;

#[derive(clap::Args)]
pub(crate) struct InspectArgs {
    /// Shared libraries, object files, archives, tar files, library binaries, parameter files, executables, graphs, saved objects; - for
    /// stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show the code of Relax and Relay VM executables, one instruction per line
    #[arg(long)]
    code: bool,
    /// Print JSON, as spec/schema/inspect.json describes it; a list for several files
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Write a self-contained HTML page: a map of the bytes, releases, rules, modules, graph, code and tensors
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Read library binaries in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Read modules of KIND, which no release has, by the grammar of the known kind KNOWN; a JSON runtime is recognised without it
    #[arg(long, value_name = "KIND=KNOWN")]
    grammar: Vec<String>,
    /// Read the files as payloads of a module of this kind, in the layout of --layout [default layout: 0.22]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
}

/// Prints or writes the report on each file.
pub(crate) fn run(args: InspectArgs) -> Result<Exit, CliError> {
    if let ([_, _, ..], Some(path)) = (args.files.as_slice(), &args.html) {
        let message = format!("{} is a page about one file", output::file_name(path));
        return Err(CliError::new(message));
    }
    multiple_files::print_answers(&args.files, args.json, |path| inspect(path, &args))
}

/// Creates the report on one file, in the form that the options select. With `--html` it writes the page and returns no text.
fn inspect(path: &Path, args: &InspectArgs) -> Result<(FileAnswer, Exit), CliError> {
    let input = Input::open(path)?;
    let options = InspectOptions {
        // A page has a view of the code.
        code: args.code || args.html.is_some(),
        // A page contains two texts of the report.
        copies: if args.html.is_some() { 2 } else { 0 },
    };
    let subject = examined(&input, args.kind.as_deref(), args.layout, &args.grammar)?;
    let mut inspection = subject.inspect_with(options).map_err(CliError::line)?;
    let broken_rules = std::mem::take(&mut inspection.broken);
    let diagnostics = |out: &mut dyn StyledWrite| match subject.broken() {
        None => broken(out, &subject, &broken_rules),
        Some(wrong) => diagnosed_file(&input.name, input.bytes()).violation(out, wrong),
    };
    let is_unknown = |broken: &(Option<usize>, Violation)| is_unknown_kind(&broken.1);
    let exit = match subject.broken() {
        None if broken_rules.is_empty() => Exit::Good,
        // BLOB-06: no fault is known, but a part was not read.
        None if broken_rules.iter().all(is_unknown) => Exit::Failed,
        _ => Exit::Bad,
    };
    let report = inspection.into_json();
    if args.code && !has_code(&report) {
        // PAY-56: the grammar of the StackVM does not state where operands are, so that its code is not shown.
        output::note(format_args!(
            "note: {} has no code that --code shows: that is of Relax and Relay VM executables",
            input.line()
        ));
    }
    let answer = if let Some(path) = &args.html {
        let mut broken = String::new();
        diagnostics(&mut broken).map_err(CliError::new)?;
        let page = html::page(&report, &html::data(&report, &subject), &broken);
        output::write(path, page.as_bytes(), Content::Text)?;
        // Nothing is printed, because the page has everything.
        FileAnswer::Text(TerminalText::new())
    } else if args.json {
        FileAnswer::Json(report)
    } else {
        let mut shown = TerminalText::new();
        text::render(&mut shown, &report);
        diagnostics(&mut shown).map_err(CliError::new)?;
        FileAnswer::Text(shown)
    };
    Ok((answer, exit))
}

/// Returns whether any module of the report has the code of an executable.
fn has_code(report: &Value) -> bool {
    let own = std::iter::once(&report["module"]);
    let libraries = value_text::list(&report["parts"])
        .iter()
        .flat_map(|part| value_text::list(&part["libraries"]));
    let stored = libraries.flat_map(|library| value_text::list(&library["modules"]));
    own.chain(stored)
        .any(|module| module["vm"]["code"].is_array())
}

/// Returns the place of a rule that the file as a whole breaks. No fields of its container are recorded.
fn diagnosed_file<'a>(name: &'a str, bytes: &'a [u8]) -> DiagnosedBytes<'a> {
    DiagnosedBytes {
        name,
        bytes,
        spans: &[],
    }
}

/// Writes the diagnostics of the broken rules, each with the fields before the place; nothing if no rule is broken.
fn broken(
    out: &mut dyn StyledWrite,
    subject: &Subject<'_>,
    broken: &[(Option<usize>, Violation)],
) -> fmt::Result {
    if broken.is_empty() {
        return Ok(());
    }
    // Reads the units again, only in this case. The report has only their numbers, and their bytes may have been unpacked from an
    // archive.
    let units = subject.units();
    for (unit, broken) in broken {
        out.write_char('\n')?;
        match unit.and_then(|index| units.get(index)) {
            Some(unit) => DiagnosedBytes {
                name: &unit.name,
                bytes: &unit.bytes,
                spans: &unit.trace().spans,
            }
            .violation_or_unknown(out, broken)?,
            None => diagnosed_file(subject.name, subject.bytes).violation(out, broken)?,
        }
    }
    Ok(())
}
