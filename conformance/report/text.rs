//! The report for a terminal.

use super::{Emphasis, FailureEvidence, Obligation, Tally, evidence, headline, judged};
use crate::conformance::runner::{CaseOutcome, Report};
use crate::conformance::sanitized_text::sanitize_line;
use crate::conformance::verdict::Verdict;
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use std::fmt;

/// The number of failures that are shown in full; the others get one line each.
const IN_FULL: usize = 20;

/// Writes the report as text for a terminal.
pub(super) fn render(out: &mut dyn Emphasis, report: &Report<'_>) -> fmt::Result {
    writeln!(out, "suite {}, {}\n", &report.suite[..12], judged(report))?;
    let failures: Vec<&CaseOutcome<'_>> = report.failures().collect();
    for outcome in failures.iter().take(IN_FULL) {
        failure(out, outcome, &evidence(report, outcome))?;
    }
    for outcome in failures.iter().skip(IN_FULL) {
        writeln!(out, "{:<14} {}", outcome.verdict.name(), outcome.case.id)?;
    }
    if failures.len() > IN_FULL {
        out.write_char('\n')?;
    }
    reasons(out, report)?;
    writeln!(out, "{}\n", table(report))?;
    for problem in &report.problems {
        out.emphasize("error:", true)?;
        writeln!(out, " {problem}")?;
    }
    writeln!(out, "{} cases: {}", report.results.len(), headline(report))?;
    if report.complete && !report.is_good() {
        out.write_str("every case needs an answer (--complete)\n")?;
    }
    if !report.was_judged() {
        out.write_str("nothing was judged: every case is unsupported or skipped\n")?;
    }
    Ok(())
}

/// Writes one failure in full. The command that repeats it comes last, where it is easily copied.
fn failure(
    out: &mut dyn Emphasis,
    outcome: &CaseOutcome<'_>,
    evidence: &FailureEvidence,
) -> fmt::Result {
    // With `--complete` a case without a verdict is also listed, and is not an error of the testee.
    let is_bad = !matches!(
        outcome.verdict,
        Verdict::Unsupported(_) | Verdict::Skipped(_)
    );
    out.emphasize(&outcome.verdict.name().to_uppercase(), is_bad)?;
    writeln!(out, " {}", outcome.case.id)?;
    for Obligation { id, gist, table } in &evidence.rules {
        line(out, "rule", &format!("{id} {gist}"))?;
        table.iter().try_for_each(|row| line(out, "", row))?;
    }
    line(out, "why", &outcome.case.why)?;
    line(out, "expected", &evidence.expected)?;
    line(out, "actual", &evidence.actual)?;
    line(out, "input", &evidence.input)?;
    if let Some(answer) = &evidence.answer {
        line(out, "answer", answer)?;
    }
    if let Some(stderr) = &evidence.stderr {
        line(out, "stderr", stderr)?;
    }
    if let Some(note) = &outcome.note {
        line(out, "note", note)?;
    }
    for (index, bytes) in evidence.bytes.iter().enumerate() {
        line(out, if index == 0 { "bytes" } else { "" }, bytes)?;
    }
    line(out, "again", &evidence.again)?;
    out.write_char('\n')
}

/// Writes a name and its text; further lines are indented below the first.
fn line(out: &mut dyn Emphasis, name: &str, text: &str) -> fmt::Result {
    for (index, text) in text.lines().enumerate() {
        writeln!(out, "  {:<9} {text}", if index == 0 { name } else { "" })?;
    }
    Ok(())
}

/// Writes the reasons why cases were not judged, each once with its count, and the known failures.
fn reasons(out: &mut dyn Emphasis, report: &Report<'_>) -> fmt::Result {
    let mut reasons = Tally::default();
    for outcome in &report.results {
        reasons.add(match (&outcome.verdict, &outcome.known) {
            (verdict, Some(known)) => {
                let name = verdict.name();
                format!("known {name} ({}): {}", known.case, known.reason)
            }
            // On one line, because a reason may contain text of a testee, whose further lines would look like other reasons.
            (Verdict::Skipped(why), _) => format!("skipped, because {}", sanitize_line(why)),
            (Verdict::Unsupported(why), _) => format!("unsupported: {}", sanitize_line(why)),
            _ => continue,
        });
    }
    let reasons = reasons.into_rows();
    for (reason, count) in &reasons {
        writeln!(out, "{count:>5} {reason}")?;
    }
    if !reasons.is_empty() {
        out.write_char('\n')?;
    }
    Ok(())
}

/// Returns the counts by chapter and verdict.
fn table(report: &Report<'_>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["chapter", "cases"].into_iter().chain(Verdict::NAMES));
    for (name, counts) in report.chapters() {
        let numbers = counts.iter().map(|(_, count)| count);
        let cells = std::iter::once(counts.total())
            .chain(numbers)
            .map(|count| count.to_string());
        table.add_row(std::iter::once(name.to_owned()).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
