//! `tvmspec verify FILE...`: every violation and finding, rule by rule.

use super::diagnostic::{DiagnosedBytes, count};
use super::input::{Input, subject};
use super::several::{self, FileAnswer};
use super::{CliError, Exit};
use std::path::{Path, PathBuf};
use tvmspec::examine::verify::{self, CheckedRun};
use tvmspec::release::Layout;
use tvmspec::rule::Findings;

/// How many findings are written out for people.
const MOST: usize = 50;

/// Exit code 0: no rule is broken. 1: one is, or, with --strict, something is odd. 2: the file cannot be read, or nothing in it has
/// rules: it is no file of TVM, or a runtime and no compiled code. Of several files the largest counts, and all are looked at.
#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    /// The files; - is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let findings fail, too
    #[arg(long)]
    strict: bool,
    /// Read library binaries in this layout, whatever symbol and bytes indicate
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Print JSON, of the form in spec/schema/verify.json; of several files a list
    #[arg(long)]
    json: bool,
}

/// Verifies each file and prints what was found.
///
/// # Errors
///
/// The only file cannot be read or has nothing that rules are about. Of several, each of those is printed and counts
/// as exit code 2.
pub(crate) fn run(args: VerifyArgs) -> Result<Exit, CliError> {
    several::each(&args.files, args.json, |path| verify(path, &args))
}

/// Verifies one file. The text ends with the line of counts, behind the name of the file where there are several.
///
/// # Errors
///
/// The file cannot be read, or nothing in it has rules.
fn verify(path: &Path, args: &VerifyArgs) -> Result<(FileAnswer, Exit), CliError> {
    let input = Input::open(path)?;
    let (name, bytes) = (input.name.as_str(), input.bytes());
    let mut text = String::new();
    // Across all units of the file: a person counts findings by file.
    let mut left = MOST;
    let each = |judged: &CheckedRun<'_>| show(&mut text, &mut left, judged);
    let found = match subject(&input, path, args.layout) {
        Ok(subject) => verify::verify(&subject, each).map_err(CliError::new)?,
        // A container that breaks a rule has no parts, and is a violation like any other.
        Err(broken) => verify::broken(name, bytes, broken, each),
    };
    // A finding is a tolerated oddity: the file is readable, and does not fail for it alone.
    let bad = !found.violations.is_empty() || args.strict && found.found() > 0;
    let exit = if bad { Exit::Bad } else { Exit::Good };
    if args.json {
        return Ok((FileAnswer::Json(found.to_json()), exit));
    }
    if found.host_only {
        text = format!("{}\n{text}", host_only(name));
    }
    if found.found() > MOST {
        let more = found.found() - MOST;
        // Readers keep that many findings and count the rest.
        let listed = match found.found() > Findings::MOST {
            true => format!("--json lists the first {}", Findings::MOST),
            false => "--json lists all".to_owned(),
        };
        text.push_str(&format!("{more} more findings; {listed}\n"));
    }
    let of = match args.files.as_slice() {
        [_] => String::new(),
        _ => format!("{name}: "),
    };
    let counts = count(found.violations.len(), found.found());
    Ok((FileAnswer::Text(format!("{text}{of}{counts}\n")), exit))
}

/// Appends the diagnostics of one unit: its first `left` findings, which is lowered by their count, and every
/// violation.
///
/// Thousands of findings of the same kind show a person nothing more than the first.
fn show(text: &mut String, left: &mut usize, judged: &CheckedRun<'_>) {
    let place = DiagnosedBytes {
        name: judged.place,
        bytes: judged.bytes,
        spans: judged.spans,
    };
    for finding in judged.findings.iter().take(*left) {
        text.push_str(&place.finding(finding));
    }
    *left = left.saturating_sub(judged.findings.len());
    // All of them, whatever `left` is: they decide the exit code.
    for broken in judged.violations {
        text.push_str(&place.violation(broken));
    }
}

/// The note about compiled code that has nothing else. `dump` prints it, too.
pub(super) fn host_only(name: &str) -> String {
    format!(
        "{name} has no library binary: it imports no module, and its host code has no fields to read"
    )
}
