//! The report for the summary page of a forge.

use super::{Obligation, Tally, evidence, headline, judged};
use crate::conformance::runner::{CaseOutcome, Report};
use crate::conformance::sanitized_text::is_unseen;
use crate::conformance::verdict::Verdict;
use std::fmt::Write as _;

/// The number of failures that are listed, because forges cut long summaries. The table counts all.
const FAILURES: usize = 50;

/// Renders the report as Markdown, for the summary page of a forge.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut out = format!("## tvmspec: {}\n\n", escaped(&judged(report)));
    let _ = writeln!(
        out,
        "**{}**, suite `{}`\n",
        headline(report),
        &report.suite[..12]
    );
    let _ = writeln!(out, "| chapter | cases | {} |", Verdict::NAMES.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(Verdict::NAMES.len() + 1));
    for (name, counts) in report.chapters() {
        let numbers: Vec<String> = counts.iter().map(|(_, count)| count.to_string()).collect();
        let _ = writeln!(
            out,
            "| {name} | {} | {} |",
            counts.total(),
            numbers.join(" | ")
        );
    }
    for problem in &report.problems {
        let _ = writeln!(out, "\n* error: {}", escaped(problem));
    }
    let failures: Vec<&CaseOutcome<'_>> = report.failures().collect();
    for outcome in failures.iter().take(FAILURES) {
        let evidence = evidence(report, outcome);
        let _ = writeln!(
            out,
            "\n### {}: `{}`\n",
            outcome.verdict.name(),
            outcome.case.id
        );
        for Obligation { id, gist, table } in &evidence.rules {
            let _ = writeln!(out, "* **{id}** {}", escaped(gist));
            if !table.is_empty() {
                let rows = table.join("\n  ");
                let _ = writeln!(out, "\n  {rows}\n");
            }
        }
        let _ = writeln!(out, "* why: {}", escaped(&outcome.case.why));
        let _ = writeln!(out, "* expected: {}", escaped(&evidence.expected));
        let _ = writeln!(out, "* actual: {}", escaped(&evidence.actual));
        let _ = writeln!(out, "\n```text");
        for line in evidence.bytes.iter().chain([&evidence.again]) {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "```");
    }
    if failures.len() > FAILURES {
        let _ = writeln!(out, "\nand {} more failures.", failures.len() - FAILURES);
    }
    write_known_failures(&mut out, report);
    write_omissions(&mut out, report);
    out
}

/// Writes the known failures, each with its reason.
fn write_known_failures(out: &mut String, report: &Report<'_>) {
    let known = report.results.iter().filter_map(|outcome| {
        let entry = outcome.known.as_ref()?;
        Some((outcome, entry))
    });
    let rows: Vec<String> = known
        .map(|(outcome, entry)| {
            format!(
                "| `{}` | {} | {} | {} |",
                outcome.case.id,
                outcome.case.rules.join(" "),
                outcome.verdict.name(),
                escaped(&entry.reason)
            )
        })
        .collect();
    if !rows.is_empty() {
        let head = "| case | rules | verdict | why |\n|---|---|---|---|";
        let _ = writeln!(out, "\n### Known failures\n\n{head}\n{}", rows.join("\n"));
    }
}

/// Writes the reasons for partial comparisons and for cases that were not run, so that passes are not overestimated.
fn write_omissions(out: &mut String, report: &Report<'_>) {
    let mut reasons = Tally::default();
    let mut count = |reason: String| reasons.add(reason);
    for outcome in &report.results {
        match (&outcome.verdict, &outcome.note) {
            (Verdict::Pass, Some(note)) => count(format!("pass: {note}")),
            (Verdict::Unsupported(why), _) => count(format!("unsupported: {why}")),
            // One row for all, because most reasons name the releases of a case, so nearly every range would have its own row.
            (Verdict::Skipped(_), _) => {
                count("skipped: other releases, or not possible here".into())
            }
            _ => {}
        }
    }
    let reasons = reasons.into_rows();
    if !reasons.is_empty() {
        let _ = writeln!(out, "\n### What the numbers do not show\n");
        for (reason, count) in reasons {
            let _ = writeln!(out, "* {count} {}", escaped(&reason));
        }
    }
}

/// Escapes text so that Markdown shows it unchanged, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '~' | '$' => {
                out.push('\\');
                out.push(letter);
            }
            // On one line, because the beginning of a line may be a heading or a list item.
            '\n' | '\r' => out.push(' '),
            _ if is_unseen(letter) => out.extend(letter.escape_default()),
            _ => out.push(letter),
        }
    }
    out
}
