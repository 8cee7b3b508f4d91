//! The report for the summary page of a forge.

use super::{evidence, headline, judged};
use crate::conformance::runner::{Outcome, Report};
use crate::conformance::verdict::Verdict;
use std::fmt::Write as _;

/// Forges cut long summaries; beyond this many failures only the table counts.
const FAILURES: usize = 50;

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
    let failures: Vec<&Outcome<'_>> = report.failures().collect();
    for outcome in failures.iter().take(FAILURES) {
        let evidence = evidence(report, outcome);
        let _ = writeln!(
            out,
            "\n### {}: `{}`\n",
            outcome.verdict.name(),
            outcome.case.id
        );
        for (id, gist) in &evidence.rules {
            let _ = writeln!(out, "* **{id}** {}", escaped(gist));
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
    out
}

/// Text that Markdown shows as it is, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}
