//! The report for programs. `spec/schema/report.json` is its JSON Schema, and a test compares the two.

use super::evidence;
use crate::conformance::runner::{CaseOutcome, Report, VerdictCounts};
use crate::conformance::sanitized_text::escaped_json;
use crate::conformance::verdict::Verdict;
use serde_json::{Map, Value, json};

/// Renders the report as JSON of the form `spec/schema/report.json`.
pub(super) fn render(report: &Report<'_>) -> String {
    // The report contains the testee's answers in full, and a terminal would obey their control characters. Escaped, it is the same
    // JSON.
    escaped_json(&format!("{:#}\n", value(report)), |_| false)
}

/// Returns the report as a value. A failure includes its request and its expectation, so that a program can repeat it without the
/// case files.
fn value(report: &Report<'_>) -> Value {
    json!({
        "report": 1,
        "tvmspec": env!("CARGO_PKG_VERSION"),
        "suite": report.suite,
        "implementation": {
            "spec": report.implementation,
            "name": report.identity.name,
            "version": report.identity.version,
            "releases": report.identity.releases,
        },
        "selection": {
            "chapters": report.selection.chapters,
            "cases": report.selection.cases,
            "release": report.selection.release.map(|release| release.to_string()),
        },
        "complete": report.complete,
        "good": report.is_good(),
        "totals": counts(&report.totals()),
        "unstated": unstated(report),
        "chapters": report
            .chapters()
            .iter()
            .map(|(name, chapter)| json!({"name": name, "counts": counts(chapter)}))
            .collect::<Vec<_>>(),
        "problems": report.problems,
        "results": report.results.iter().map(|outcome| result(report, outcome)).collect::<Vec<_>>(),
    })
}

/// Returns the number of passes that were judged without each part of an answer.
fn unstated(report: &Report<'_>) -> Value {
    let parts = report.unstated();
    let parts = parts
        .into_iter()
        .map(|(name, count)| (name.replace(' ', "_"), count.into()));
    Value::Object(parts.collect())
}

/// Returns the counts by verdict, and the number of known failures.
fn counts(counts: &VerdictCounts) -> Value {
    let mut object: Map<String, Value> = counts
        .iter()
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    object.insert("known".to_owned(), counts.known.into());
    Value::Object(object)
}

/// Returns one case. Only a failure has evidence, because a run has thousands of cases.
fn result(report: &Report<'_>, outcome: &CaseOutcome<'_>) -> Value {
    let mut object = json!({
        "case": outcome.case.id,
        "chapter": outcome.case.chapter,
        "op": outcome.case.op,
        "rules": outcome.case.rules,
        "verdict": outcome.verdict.name(),
    });
    let mut add = |key: &str, value: Value| object[key] = value;
    if outcome.verdict != Verdict::Pass {
        add("reason", outcome.verdict.reason().into());
    }
    if outcome.fails {
        let evidence = evidence(report, outcome);
        add("why", outcome.case.why.clone().into());
        add("expected", evidence.expected.into());
        add("actual", evidence.actual.into());
        add("again", evidence.again.into());
        add(
            "request",
            json!({"op": outcome.case.op, "args": outcome.case.request()}),
        );
        add("expectation", outcome.case.expectation());
        if let Some(answer) = &outcome.answer {
            add("answer", answer.clone());
        }
        if let Some(stderr) = evidence.stderr {
            add("stderr", stderr.into());
        }
        if let Verdict::Fail(mismatch) = &outcome.verdict
            && let Some(offset) = mismatch.offset
        {
            add("offset", offset.into());
        }
    }
    if let Some(note) = &outcome.note {
        add("note", note.clone().into());
    }
    if let Some(known) = &outcome.known {
        add(
            "known",
            json!({"case": known.case, "reason": known.reason, "url": known.url}),
        );
    }
    object
}
