//! The report for CI systems: one test suite per chapter. A known failure is skipped with its reason, because CI systems have no
//! such status.

use super::{Obligation, evidence, headline};
use crate::conformance::runner::{CaseOutcome, Report};
use crate::conformance::verdict::Verdict;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;
use std::time::Duration;

type Xml = Writer<Vec<u8>>;

/// Renders the report as JUnit XML, with one test suite for each chapter.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 4);
    let written = write(report, &mut xml);
    let mut text = match written {
        Ok(()) => String::from_utf8_lossy(&xml.into_inner()).into_owned(),
        // Writing to memory cannot fail.
        Err(error) => format!("<!-- {error} -->"),
    };
    text.push_str(&format!("\n<!-- {} -->\n", headline(report)));
    text
}

/// Writes the whole document. Errors in the list of known failures count as errors, so that a CI system shows the run as failed.
fn write(report: &Report<'_>, xml: &mut Xml) -> io::Result<()> {
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let mut total = ElementCounts::default();
    for outcome in &report.results {
        total.add(element_of(outcome));
    }
    // A wrong list of known failures fails the run, and CI systems look only at counts.
    total.tests += report.problems.len();
    total.errors += report.problems.len();
    let counts = total.attributes();
    xml.create_element("testsuites")
        .with_attribute(("name", "tvmspec"))
        .with_attributes(pairs(&counts))
        .write_inner_content(|xml| {
            for (name, verdicts) in report.chapters() {
                let verdicts = verdicts
                    .iter()
                    .map(|(verdict, count)| (format!("verdict.{verdict}"), count.to_string()));
                chapter(report, name, verdicts.collect(), xml)?;
            }
            problems(report, xml)
        })?;
    Ok(())
}

/// Writes one suite. Each verdict has a property with its count, because JUnit has only four results.
fn chapter(
    report: &Report<'_>,
    name: &str,
    mut properties: Vec<(String, String)>,
    xml: &mut Xml,
) -> io::Result<()> {
    properties.push(("suite".into(), report.suite.to_string()));
    properties.push(("implementation".into(), super::judged(report)));
    let outcomes = || {
        let all = report.results.iter();
        all.filter(|outcome| outcome.case.chapter == name)
    };
    let mut counts = ElementCounts::default();
    outcomes().for_each(|outcome| counts.add(element_of(outcome)));
    let mut attributes = counts.attributes();
    attributes.push((
        "time",
        seconds(outcomes().map(|outcome| outcome.took).sum()),
    ));
    xml.create_element("testsuite")
        .with_attribute(("name", format!("tvmspec.{name}").as_str()))
        .with_attributes(pairs(&attributes))
        .write_inner_content(|xml| {
            xml.create_element("properties")
                .write_inner_content(|xml| {
                    for (name, value) in &properties {
                        xml.create_element("property")
                            .with_attribute(("name", name.as_str()))
                            .with_attribute(("value", remove_invalid_xml(value).as_str()))
                            .write_empty()?;
                    }
                    Ok(())
                })?;
            outcomes().try_for_each(|outcome| case(report, outcome, xml))
        })?;
    Ok(())
}

/// Writes the errors of the list of known failures, as a separate suite.
fn problems(report: &Report<'_>, xml: &mut Xml) -> io::Result<()> {
    if report.problems.is_empty() {
        return Ok(());
    }
    let count = report.problems.len();
    let counts = ElementCounts {
        tests: count,
        errors: count,
        ..ElementCounts::default()
    }
    .attributes();
    xml.create_element("testsuite")
        .with_attribute(("name", "tvmspec.known-failures"))
        .with_attributes(pairs(&counts))
        .write_inner_content(|xml| {
            for problem in &report.problems {
                let problem = remove_invalid_xml(problem);
                xml.create_element("testcase")
                    .with_attribute(("name", problem.as_str()))
                    .write_inner_content(|xml| {
                        xml.create_element("error")
                            .with_attribute(("message", problem.as_str()))
                            .write_empty()?;
                        Ok(())
                    })?;
            }
            Ok(())
        })?;
    Ok(())
}

/// Returns the element of a test case that states why it did not pass.
fn element_of(outcome: &CaseOutcome<'_>) -> Option<&'static str> {
    match (&outcome.verdict, &outcome.known) {
        (Verdict::Pass, _) => None,
        // Known failures, unsupported and skipped cases: JUnit has one element for results that do not count.
        _ if !outcome.is_failure() => Some("skipped"),
        (Verdict::Fail(_) | Verdict::Unsupported(_) | Verdict::Skipped(_), None) => Some("failure"),
        _ => Some("error"),
    }
}

/// Writes one test. The text of a failure can be understood without the suite.
fn case(report: &Report<'_>, outcome: &CaseOutcome<'_>, xml: &mut Xml) -> io::Result<()> {
    let class = format!("tvmspec.{}", outcome.case.chapter);
    let took = seconds(outcome.took);
    let test = xml
        .create_element("testcase")
        .with_attribute(("name", outcome.case.id.as_str()))
        .with_attribute(("classname", class.as_str()))
        .with_attribute(("time", took.as_str()));
    let Some(element) = element_of(outcome) else {
        test.write_empty()?;
        return Ok(());
    };
    let mut attributes = Vec::new();
    if outcome.verdict != Verdict::Pass {
        let name = outcome.verdict.name();
        let message = match &outcome.known {
            Some(known) => format!("known {name}: {}", known.reason),
            None => format!("{name}: {}", outcome.verdict.reason()),
        };
        attributes.push(("message", remove_invalid_xml(&message)));
        attributes.push(("type", name.to_string()));
    }
    test.write_inner_content(|xml| {
        let why = xml
            .create_element(element)
            .with_attributes(pairs(&attributes));
        if outcome.is_failure() {
            why.write_text_content(BytesText::new(&remove_invalid_xml(&description(
                report, outcome,
            ))))?;
        } else {
            why.write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Describes a failure: the rules, the significance of the case, both answers, and the command to repeat it.
fn description(report: &Report<'_>, outcome: &CaseOutcome<'_>) -> String {
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
    lines.join("\n")
}

/// The counts of a suite, and of the whole report.
#[derive(Default)]
struct ElementCounts {
    tests: usize,
    skipped: usize,
    errors: usize,
    failures: usize,
}

impl ElementCounts {
    /// Counts one test by its element; without an element it has passed.
    fn add(&mut self, element: Option<&str>) {
        self.tests += 1;
        match element {
            Some("skipped") => self.skipped += 1,
            Some("error") => self.errors += 1,
            Some(_) => self.failures += 1,
            None => {}
        }
    }

    /// Returns the counts under their JUnit names.
    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("tests", self.tests.to_string()),
            ("skipped", self.skipped.to_string()),
            ("errors", self.errors.to_string()),
            ("failures", self.failures.to_string()),
        ]
    }
}

/// Returns names and values in the form of the writer.
fn pairs<'a>(attributes: &'a [(&'static str, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    attributes
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
}

/// Returns a time in seconds, which CI systems add up.
fn seconds(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64())
}

/// Removes the characters that no XML document may contain, even escaped.
fn remove_invalid_xml(text: &str) -> String {
    text.chars()
        .filter(|letter| match letter {
            '\t' | '\n' | '\r' => true,
            '\u{fffe}' | '\u{ffff}' => false,
            letter => *letter >= ' ',
        })
        .collect()
}
