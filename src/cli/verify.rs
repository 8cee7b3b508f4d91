//! `tvmspec verify FILE...`: prints every violation and finding.

use super::color::{BAD, GOOD, ODD, StyledWrite as _, TerminalText};
use super::diagnostic::{DiagnosedBytes, count};
use super::input::{Input, examined};
use super::multiple_files::{self, FileAnswer};
use super::output::{self, TerminalWriter, escape_line};
use super::{CliError, Exit, embedding};
use anstyle::Style;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use tvmspec::examine::Subject;
use tvmspec::examine::verify::{CheckedRun, Verification};
use tvmspec::release::Layout;
use tvmspec::rule::Findings;

/// The number of findings that are printed for people.
const MOST: usize = 50;

#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    /// The files; - for stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fail if there is any finding, even if no rule is broken
    #[arg(long)]
    strict: bool,
    /// Read library binaries in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Read the files as payloads of a module of this kind, in the layout of --layout [default layout: 0.22]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Read modules of KIND, which no release has, by the grammar of the known kind KNOWN; a JSON runtime is recognised without it
    #[arg(long, value_name = "KIND=KNOWN")]
    grammar: Vec<String>,
    /// Print JSON, as spec/schema/verify.json describes it; a list for several files
    #[arg(long)]
    json: bool,
}

/// Verifies each file and prints the result, and the totals of several files.
pub(crate) fn run(args: VerifyArgs) -> Result<Exit, CliError> {
    let mut totals = Totals::default();
    let exit = multiple_files::print_answers(&args.files, args.json, |path| {
        verify(path, &args, &mut totals)
    })?;
    if args.files.len() > 1 && !args.json {
        output::stream(|out| {
            write!(out, "\n{} files: ", args.files.len())?;
            totals.write(out, args.files.len())
        })?;
    }
    Ok(exit)
}

/// Counts of files that were read, by result.
#[derive(Default)]
struct Totals {
    /// All files that were read.
    read: usize,
    /// Files in which a rule is broken.
    broken: usize,
    /// The other files that have findings.
    odd: usize,
}

impl Totals {
    /// Counts one more file.
    fn add(&mut self, found: &Verification) {
        self.read += 1;
        match (found.violations.len(), found.found()) {
            (0, 0) => {}
            (0, _) => self.odd += 1,
            _ => self.broken += 1,
        }
    }

    /// Writes the counts of `files` files: `2 broken, 5 with findings, 1 not read`.
    fn write(&self, out: &mut TerminalWriter, files: usize) -> fmt::Result {
        let unread = files.saturating_sub(self.read);
        let (broken, odd) = (self.broken, self.odd);
        let counts = format!("{broken} broken, {odd} with findings, {unread} not read");
        out.styled(style(broken + unread, odd), &counts)?;
        out.write_char('\n')
    }
}

/// Verifies one file. The text ends with a line of counts, which starts with the file name if there are several files.
fn verify(
    path: &Path,
    args: &VerifyArgs,
    totals: &mut Totals,
) -> Result<(FileAnswer, Exit), CliError> {
    let input = Input::open(path)?;
    let mut text = TerminalText::new();
    // The limit applies to all units of the file together.
    let mut left = MOST;
    let mut shown = Ok(());
    let each = |judged: &CheckedRun<'_>| {
        shown = shown.and_then(|()| show(&mut text, &mut left, judged));
    };
    let subject = examined(&input, args.kind.as_deref(), args.layout, &args.grammar)?;
    // A container that breaks a rule has no parts, and its violation is reported like any other.
    let found = subject.verify_each(each).map_err(CliError::line)?;
    totals.add(&found);
    // A finding is a tolerated oddity: the file is readable, and a finding alone is no failure.
    let bad = !found.violations.is_empty() || args.strict && found.found() > 0;
    let exit = match bad {
        true => Exit::Bad,
        // BLOB-06: no fault is known, but a part was not read or was guessed.
        false if found.guessed || !found.unread.is_empty() => Exit::Failed,
        false => Exit::Good,
    };
    if args.json {
        return Ok((FileAnswer::Json(found.to_json()), exit));
    }
    shown.map_err(CliError::new)?;
    let whole = summary(text, &found, args, &input).map_err(CliError::new)?;
    Ok((FileAnswer::Text(whole), exit))
}

/// Writes the violations and findings of `subject` to stderr. An embedded command fails at the first violation, and writes nothing.
pub(super) fn diagnostics(subject: &Subject<'_>) -> Result<Verification, CliError> {
    let mut text = TerminalText::for_stderr();
    let mut left = MOST;
    let mut shown = Ok(());
    let found = subject.verify_each(|judged| {
        shown = shown.and_then(|()| show(&mut text, &mut left, judged));
    });
    let found = found.map_err(CliError::line)?;
    shown.map_err(CliError::new)?;
    if embedding::is_embedded() {
        let first = found.violations.first();
        let broken = first.map(|found| CliError::broken(&found.place, &found.what, &found.what));
        return broken.map_or(Ok(found), Err);
    }
    output::note_of(|out| {
        out.append(&text);
        Ok(())
    });
    Ok(found)
}

/// Inserts `text`, the diagnostics of a file, between the summary of the file and the line of counts.
fn summary(
    text: TerminalText,
    found: &Verification,
    args: &VerifyArgs,
    input: &Input,
) -> Result<TerminalText, fmt::Error> {
    let mut whole = TerminalText::new();
    if found.host_only {
        writeln!(whole, "{}", host_only(&input.name))?;
    }
    whole.append(&text);
    if found.found() > MOST {
        let more = found.found() - MOST;
        // Readers store that many findings and count the rest.
        let listed = if found.found() > Findings::MOST {
            format!("--json lists the first {}", Findings::MOST)
        } else {
            "--json lists all".to_owned()
        };
        writeln!(whole, "{more} more findings; {listed}")?;
    }
    if args.files.len() > 1 {
        write!(whole, "{}: ", input.line())?;
    }
    let (violations, findings) = (found.violations.len(), found.found());
    whole.styled(style(violations, findings), &count(violations, findings))?;
    whole.write_char('\n')?;
    Ok(whole)
}

/// Returns the style for the counts of violations and findings.
fn style(bad: usize, odd: usize) -> Style {
    match (bad, odd) {
        (0, 0) => GOOD,
        (0, _) => ODD,
        _ => BAD,
    }
}

/// Appends the diagnostics of one unit: at most `left` findings, and every violation. Subtracts the printed findings from `left`.
///
/// Thousands of findings of the same kind tell a person no more than the first ones.
fn show(text: &mut TerminalText, left: &mut usize, judged: &CheckedRun<'_>) -> fmt::Result {
    let place = DiagnosedBytes {
        name: judged.place,
        bytes: judged.bytes,
        spans: judged.spans,
    };
    for finding in judged.findings.iter().take(*left) {
        place.finding(text, finding)?;
    }
    for unknown in judged.unread {
        place.unknown(text, unknown)?;
    }
    *left = left.saturating_sub(judged.findings.len());
    // Violations are never limited by `left`, because they decide the exit code.
    for broken in judged.violations {
        place.violation(text, broken)?;
    }
    Ok(())
}

/// Returns the note about compiled code without a library binary. `dump` prints it too.
pub(super) fn host_only(name: &str) -> String {
    let name = escape_line(name);
    format!(
        "{name} has no library binary: it imports no module, and its host code has no fields to read"
    )
}
