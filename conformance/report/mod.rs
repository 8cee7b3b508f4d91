//! Reports: the same run in five formats.

mod html;
mod json;
mod junit;
mod markdown;
mod text;

use super::case::{Case, Expect};
use super::op;
use super::runner::{CaseOutcome, Report};
use super::sanitized_text::sanitize;
use super::verdict::{self, Verdict};
use crate::release::ParseError;
use crate::spec::{self, RuleText};
use crate::wire::{Span, show};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// A form of report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportFormat {
    /// For a terminal.
    #[default]
    Text,
    /// For programs; `spec/schema/report.json` is its JSON Schema.
    Json,
    /// For CI systems.
    Junit,
    /// For a summary page of a forge.
    Markdown,
    /// One page with everything in it.
    Html,
}

impl ReportFormat {
    /// Every form by its name on the command line.
    pub const ALL: [(&str, ReportFormat); 5] = [
        ("text", ReportFormat::Text),
        ("json", ReportFormat::Json),
        ("junit", ReportFormat::Junit),
        ("md", ReportFormat::Markdown),
        ("html", ReportFormat::Html),
    ];
}

impl FromStr for ReportFormat {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<ReportFormat, ParseError> {
        let known = ReportFormat::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, form)| *form).ok_or_else(|| {
            ParseError::new(format!(
                "`{name}` is not a report: there are text, json, junit, md, html"
            ))
        })
    }
}

/// Renders the report as text in this form, with a line break at its end.
pub fn render(form: ReportFormat, report: &Report<'_>) -> String {
    match form {
        ReportFormat::Text => {
            let mut out = String::new();
            // Writing to a `String` cannot fail.
            let _ = render_text(&mut out, report);
            out
        }
        ReportFormat::Json => json::render(report),
        ReportFormat::Junit => junit::render(report),
        ReportFormat::Markdown => markdown::render(report),
        ReportFormat::Html => html::render(report),
    }
}

/// A destination of the text report, which may emphasize verdicts and errors.
pub trait Emphasis: fmt::Write {
    /// Writes `word`, which is bad or, without `is_bad`, only worth a look.
    ///
    /// # Errors
    ///
    /// The destination fails.
    fn emphasize(&mut self, word: &str, is_bad: bool) -> fmt::Result;
}

/// Writes without emphasis.
impl Emphasis for String {
    fn emphasize(&mut self, word: &str, _: bool) -> fmt::Result {
        self.push_str(word);
        Ok(())
    }
}

/// Writes the text report, with a line break at its end.
///
/// # Errors
///
/// `out` fails.
pub fn render_text(out: &mut dyn Emphasis, report: &Report<'_>) -> fmt::Result {
    text::render(out, report)
}

/// The obligation of a rule, in short.
struct Obligation {
    id: String,
    gist: String,
    /// The table of the rule in the specification, one row per line.
    table: Vec<&'static str>,
}

impl Obligation {
    /// Returns the title and first paragraph of the rule as one line, and its table.
    fn of(rule: &'static RuleText) -> Obligation {
        let (gist, table) = rule.title_and_first_paragraph();
        Obligation {
            id: rule.id.clone(),
            gist,
            table,
        }
    }
}

/// The content of a report about one failure, the same for all formats.
struct FailureEvidence {
    /// The rules of the case.
    rules: Vec<Obligation>,
    expected: String,
    actual: String,
    /// The annotated bytes around the offset; empty if there is no offset.
    bytes: Vec<String>,
    /// The first bytes of the input in hex, or its JSON.
    input: String,
    /// The whole answer, shortened, if there is one.
    answer: Option<String>,
    /// The testee's output on stderr.
    stderr: Option<String>,
    /// The command that repeats this case.
    again: String,
}

/// Collects the evidence of a failure, for all formats.
fn evidence(report: &Report<'_>, outcome: &CaseOutcome<'_>) -> FailureEvidence {
    let case = outcome.case;
    let (expected, actual, offset) = match &outcome.verdict {
        Verdict::Fail(mismatch) => (
            mismatch.expected.clone(),
            mismatch.actual.clone(),
            mismatch.offset,
        ),
        other => (
            verdict::expected(case),
            format!("{}: {}", other.name(), other.reason()),
            None,
        ),
    };
    // If the testee missed the fault, the case knows its offset.
    let offset = offset.or(match &case.expect {
        Expect::Reject(breach) => breach.offset,
        _ => None,
    });
    let rules = case.rules.iter().filter_map(|id| spec::rule(id));
    FailureEvidence {
        rules: rules.map(Obligation::of).collect(),
        expected,
        actual,
        input: input(case),
        answer: outcome
            .answer
            .as_ref()
            .map(|answer| sanitize(&verdict::short(answer))),
        stderr: outcome.stderr.clone(),
        bytes: offset.map_or(Vec::new(), |offset| bytes_around(case, offset)),
        again: format!(
            "tvmspec check --impl {} --case {}",
            quoted(&report.implementation),
            quoted(&case.id)
        ),
    }
}

/// Returns the first bytes of a case's input in hex, or its arguments as JSON, shortened.
pub fn input(case: &Case) -> String {
    const HEAD: u64 = 32;
    match case.bytes() {
        Some(bytes) => {
            let size = bytes.len() as u64;
            let more = if size > HEAD { " .." } else { "" };
            format!("{}{more} ({size} bytes)", hex(bytes, 0, size.min(HEAD)))
        }
        None => verdict::short(&case.request()),
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the bytes near `offset`, with their fields if the chapter can name them.
fn bytes_around(case: &Case, offset: u64) -> Vec<String> {
    const NEAR: u64 = 24;
    // The output of a writer is judged, so the expected bytes are shown; its input is a value.
    let written = match &case.expect {
        Expect::Accept(value) if case.op.ends_with(".encode") => {
            op::data(&serde_json::json!({ "data": value })).ok()
        }
        _ => None,
    };
    let Some(bytes) = written.as_deref().or_else(|| case.bytes()) else {
        return Vec::new();
    };
    let chapter = case.op.split('.').next().unwrap_or_default();
    let trace = crate::conformance::chapter(chapter).and_then(|chapter| chapter.trace);
    // The written bytes are read back as a decode would.
    let decode = case.op.replace(".encode", ".decode");
    let args = serde_json::Value::Object(case.args.clone());
    let spans = trace.map_or(Vec::new(), |trace| trace(&decode, bytes, &args));
    let (from, to) = (offset.saturating_sub(NEAR), offset.saturating_add(NEAR));
    let mut lines = Vec::new();
    let mut covered = from - from % 8;
    for span in spans
        .iter()
        .filter(|span| span.end > from && span.start <= to)
    {
        plain_lines(&mut lines, bytes, covered.max(from), span.start, offset);
        lines.push(span_line(bytes, span, offset));
        covered = span.end;
    }
    plain_lines(
        &mut lines,
        bytes,
        covered,
        to.min(bytes.len() as u64),
        offset,
    );
    // Truncated input is at fault at its end, which no field covers.
    if offset >= bytes.len() as u64 {
        lines.push(format!(
            "{offset:04x}  {:<25} <- the input has {} bytes",
            "",
            bytes.len()
        ));
    }
    lines
}

/// Formats one field: its offset, its first eight bytes, its name and value, its rule, and a mark at the failure.
fn span_line(bytes: &[u8], span: &Span, offset: u64) -> String {
    let hex = hex(
        bytes,
        span.start,
        span.end.min(span.start.saturating_add(8)),
    );
    let more = if span.end - span.start > 8 { ".." } else { "" };
    let mark = if (span.start..span.end).contains(&offset) {
        "   <-"
    } else {
        ""
    };
    let value = match span.value.parse::<u64>() {
        // A magic number is known in hex.
        Ok(magic) if span.field.ends_with("magic") => format!("{magic:#x}"),
        _ => span.value.clone(),
    };
    let equals = if value.starts_with(':') { " " } else { " = " };
    format!(
        "{:04x}  {:<25} {}{equals}{}   {}{mark}",
        span.start,
        format!("{hex}{more}"),
        span.field,
        value,
        span.rule
    )
}

/// Formats bytes that no field covers, eight per line.
fn plain_lines(lines: &mut Vec<String>, bytes: &[u8], from: u64, to: u64, offset: u64) {
    let mut start = from;
    while start < to.min(bytes.len() as u64) {
        let end = to.min(start + 8).min(bytes.len() as u64);
        let mark = if (start..end).contains(&offset) {
            "   <-"
        } else {
            ""
        };
        let text = slice(bytes, start, end);
        lines.push(format!(
            "{start:04x}  {:<25} {}{mark}",
            hex(bytes, start, end),
            show(text)
        ));
        start = end;
    }
}

/// Returns the part of the range that exists.
fn slice(bytes: &[u8], from: u64, to: u64) -> &[u8] {
    let place = |offset: u64| {
        usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len())
    };
    bytes.get(place(from)..place(to)).unwrap_or_default()
}

/// Returns bytes as two-digit hex words.
fn hex(bytes: &[u8], from: u64, to: u64) -> String {
    let words: Vec<String> = slice(bytes, from, to)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    words.join(" ")
}

/// The texts in the order in which they were first counted, each with its count.
#[derive(Default)]
struct Tally {
    rows: Vec<(String, usize)>,
    places: HashMap<String, usize>,
}

impl Tally {
    /// Counts a text once more.
    fn add(&mut self, text: String) {
        let place = *self.places.entry(text.clone()).or_insert(self.rows.len());
        match self.rows.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => self.rows.push((text, 1)),
        }
    }

    /// Returns each text with its count.
    fn into_rows(self) -> Vec<(String, usize)> {
        self.rows
    }
}

/// Returns `412 pass, 0 fail, ...`: every verdict, including skips.
fn headline(report: &Report<'_>) -> String {
    let totals = report.totals();
    let counts: Vec<String> = totals
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    counts.join(", ") + &notes(report)
}

/// Describes the known failures, and the parts that were not compared in passes because the implementation does not state them. Each note
/// begins with a semicolon.
fn notes(report: &Report<'_>) -> String {
    let unstated = report.unstated();
    let list = |of_findings: bool| -> Vec<String> {
        let named = unstated
            .iter()
            .filter(|(name, _)| name.starts_with("finding") == of_findings);
        named
            .map(|(name, count)| format!("{name}: {count}"))
            .collect()
    };
    let mut line = match report.totals().known {
        0 => String::new(),
        known => format!("; {known} of the failures are known"),
    };
    for (what, list) in [("rejections", list(false)), ("acceptances", list(true))] {
        if !list.is_empty() {
            line.push_str(&format!("; {what} judged without {}", list.join(", ")));
        }
    }
    line
}

/// Describes the implementation.
fn judged(report: &Report<'_>) -> String {
    format!(
        "{} {} ({})",
        report.identity.name, report.identity.version, report.implementation
    )
}
