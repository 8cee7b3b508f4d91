//! The report for CI systems: a test suite per chapter. A known failure is skipped with its reason, as CI systems have
//! no word for it.

use super::{Obligation, evidence, headline};
use crate::conformance::runner::{Outcome, Report};
use crate::conformance::verdict::Verdict;
use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

pub(super) fn render(report: &Report<'_>) -> String {
    let mut xml = quick_junit::Report::new("tvmspec");
    for (name, counts) in report.chapters() {
        let mut suite = TestSuite::new(format!("tvmspec.{name}"));
        let results = report
            .results
            .iter()
            .filter(|outcome| outcome.case.chapter == name);
        let results: Vec<&Outcome<'_>> = results.collect();
        for (verdict, count) in counts.iter() {
            suite.add_property(Property::new(
                format!("verdict.{verdict}"),
                count.to_string(),
            ));
        }
        suite.add_property(Property::new("suite", report.suite));
        suite.add_property(Property::new("implementation", super::judged(report)));
        suite.set_time(results.iter().map(|outcome| outcome.took).sum::<Duration>());
        suite.add_test_cases(results.into_iter().map(|outcome| case(report, outcome)));
        xml.add_test_suite(suite);
    }
    if !report.problems.is_empty() {
        let mut suite = TestSuite::new("tvmspec.known-failures");
        for problem in &report.problems {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(problem.as_str());
            suite.add_test_case(TestCase::new(problem.as_str(), status));
        }
        xml.add_test_suite(suite);
    }
    // The only failure is a text that XML cannot carry, and quick-junit drops such letters on the way in.
    let mut text = xml
        .to_string()
        .unwrap_or_else(|error| format!("<!-- {error} -->"));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("<!-- {} -->\n", headline(report)));
    text
}

fn case(report: &Report<'_>, outcome: &Outcome<'_>) -> TestCase {
    let mut status = match (&outcome.verdict, &outcome.known) {
        (Verdict::Pass, _) => TestCaseStatus::success(),
        _ if !outcome.is_failure() => TestCaseStatus::skipped(),
        (Verdict::Fail(_) | Verdict::Unsupported(_) | Verdict::Skipped(_), None) => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
        _ => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    if outcome.verdict != Verdict::Pass {
        status.set_type(outcome.verdict.name());
        status.set_message(match &outcome.known {
            Some(known) => format!("known {}: {}", outcome.verdict.name(), known.reason),
            None => format!("{}: {}", outcome.verdict.name(), outcome.verdict.reason()),
        });
    }
    if outcome.is_failure() {
        let evidence = evidence(report, outcome);
        let mut lines: Vec<String> = evidence
            .rules
            .iter()
            .map(|Obligation { id, gist, table }| {
                let rows: Vec<String> = table.iter().map(|row| format!("\n{row}")).collect();
                format!("{id} {gist}{}", rows.concat())
            })
            .collect();
        lines.push(format!("why: {}", outcome.case.why));
        lines.push(format!("expected: {}", evidence.expected));
        lines.push(format!("actual: {}", evidence.actual));
        lines.extend(evidence.bytes);
        lines.push(evidence.again);
        status.set_description(lines.join("\n"));
    }
    let mut case = TestCase::new(outcome.case.id.as_str(), status);
    case.set_classname(format!("tvmspec.{}", outcome.case.chapter));
    case.set_time(outcome.took);
    case
}
