//! The failures of a report as HTML, which is readable without the script and on paper.
//!
//! A page with every detail of 10,000 failures would be too large to open. So up to [`MOST_DESCRIBED`] failures are described, spread
//! over the chapters. Of the others the page states the reason, once for all cases of a chapter that fail with it.

use super::text::{attribute, escaped, escaped_beginning, sentence, table_of_rule};
use crate::conformance::report::{FailureEvidence, Obligation, evidence};
use crate::conformance::runner::{CaseOutcome, Report};
use crate::conformance::sanitized_text::sanitize_line;
use crate::spec;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The maximum number of described failures.
const MOST_DESCRIBED: usize = 500;

/// The failures are open at first if there are at most this many.
const MOST_OPEN: usize = 10;

/// The maximum lengths of a reason in bytes of HTML. The longest one that leaves room for descriptions is used.
const REASON_LENGTHS: [usize; 6] = [400, 250, 150, 100, 60, 30];

/// The maximum length of a reason in the line of a described failure, in bytes of HTML.
const LONGEST_LINE: usize = 160;

/// The maximum length of an answer or of stderr in a description, in bytes of HTML.
const LONGEST_VALUE: usize = 4_000;

/// Returns the sections of the new and of the known failures, in about `room` bytes.
pub(super) fn sections(report: &Report<'_>, room: usize) -> String {
    let failures = report.results.iter().filter(|outcome| outcome.fails);
    let (new, known): (Vec<_>, Vec<_>) = failures.partition(|outcome| outcome.is_failure());
    let all: Vec<_> = new.iter().chain(&known).copied().collect();
    let mut listed = 0;
    let mut longest = 0;
    for length in REASON_LENGTHS {
        longest = length;
        listed = grouped_by_reason(&all, length).len();
        if listed <= room / 3 * 2 {
            break;
        }
    }
    let page = Page {
        report,
        described: choose(report, [&new, &known], room.saturating_sub(listed), longest),
        longest,
    };
    let mut explained = HashSet::new();
    let mut out = String::new();
    for (id, title, list) in [
        ("failures", "Failures", &new),
        ("known", "Known failures", &known),
    ] {
        if !list.is_empty() {
            page.section(&mut out, id, title, list, &mut explained);
        }
    }
    out
}

/// Returns the ids of the failures to describe: the first of each chapter, then the second of each, and so on, as many as fit into
/// `room` bytes. Known failures follow the new ones.
fn choose<'a>(
    report: &Report<'a>,
    lists: [&[&CaseOutcome<'a>]; 2],
    room: usize,
    longest: usize,
) -> HashSet<&'a str> {
    let mut chosen = HashSet::new();
    let mut explained = HashSet::new();
    let mut described = String::new();
    for outcome in lists.into_iter().flat_map(alternate_chapters) {
        describe(
            &mut described,
            report,
            outcome,
            false,
            longest,
            &mut explained,
        );
        if described.len() > room || chosen.len() == MOST_DESCRIBED {
            break;
        }
        chosen.insert(outcome.case.id.as_str());
    }
    chosen
}

/// Returns the outcomes in the order first of each chapter, second of each chapter, and so on.
fn alternate_chapters<'r, 'a>(list: &[&'r CaseOutcome<'a>]) -> Vec<&'r CaseOutcome<'a>> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut rounds: Vec<_> = list
        .iter()
        .map(|outcome| {
            let count = counts.entry(&outcome.case.chapter).or_default();
            *count += 1;
            (*count, *outcome)
        })
        .collect();
    // Stable, so that the chapters of a round keep their order.
    rounds.sort_by_key(|(round, _)| *round);
    rounds.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The choices that all sections share.
struct Page<'r, 'a> {
    report: &'r Report<'a>,
    /// The ids of the described failures.
    described: HashSet<&'a str>,
    /// The maximum length of a reason in bytes of HTML.
    longest: usize,
}

impl Page<'_, '_> {
    /// Writes the failures of a section by chapter, each with its anchor. The rules in `explained` are known to the reader.
    fn section(
        &self,
        out: &mut String,
        id: &str,
        title: &str,
        list: &[&CaseOutcome<'_>],
        explained: &mut HashSet<String>,
    ) {
        let is_open = id == "failures" && list.len() <= MOST_OPEN;
        let count = list.len();
        let _ = writeln!(
            out,
            "<section><h2 id=\"{id}\">{title}: <span>{count}</span></h2>"
        );
        for chapter in list.chunk_by(|one, next| one.case.chapter == next.case.chapter) {
            let name = chapter.first().map_or("", |first| &first.case.chapter);
            let _ = writeln!(
                out,
                "<section><h3 id=\"{id}-{}\">{}: <span>{}</span></h3>",
                attribute(name),
                escaped(name),
                chapter.len()
            );
            let (described, others): (Vec<&CaseOutcome<'_>>, Vec<_>) = chapter
                .iter()
                .partition(|outcome| self.described.contains(outcome.case.id.as_str()));
            for outcome in &described {
                describe(out, self.report, outcome, is_open, self.longest, explained);
            }
            if !others.is_empty() {
                let noun = match (described.len(), others.len()) {
                    (0, 1) => "failure",
                    (0, _) => "failures",
                    (_, 1) => "more failure",
                    (..) => "more failures",
                };
                let _ = writeln!(
                    out,
                    "<details class=\"more\"><summary>{} {noun}, by reason</summary>{}</details>",
                    others.len(),
                    grouped_by_reason(&others, self.longest)
                );
            }
            out.push_str("</section>\n");
        }
        out.push_str("</section>\n");
    }
}

/// Returns each distinct verdict and reason, with the list of its cases.
fn grouped_by_reason(list: &[&CaseOutcome<'_>], longest: usize) -> String {
    let mut groups: Vec<(String, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for outcome in list {
        let line = verdict_and_reason(outcome, longest);
        let place = *places.entry(line.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((line, String::new()));
        }
        if let Some((_, cases)) = groups.get_mut(place) {
            let _ = write!(cases, "<li>{}", escaped(&outcome.case.id));
        }
    }
    let groups = groups.iter();
    groups
        .map(|(line, cases)| format!("<p>{line}</p><ul>{cases}</ul>\n"))
        .collect()
}

/// Returns the verdict as a tag and the reason as one line.
fn verdict_and_reason(outcome: &CaseOutcome<'_>, longest: usize) -> String {
    format!("{}<span>{}</span>", tag(outcome), reason(outcome, longest))
}

fn tag(outcome: &CaseOutcome<'_>) -> String {
    let class = if outcome.is_failure() { "bad" } else { "other" };
    let verdict = outcome.verdict.name();
    format!("<b class=\"{class}\">{verdict}</b> ")
}

fn reason(outcome: &CaseOutcome<'_>, longest: usize) -> String {
    let reason = sanitize_line(&outcome.verdict.reason());
    escaped_beginning(&reason, longest)
}

/// Writes one failure: its purpose, the answer, and the command to repeat it. The norm of a rule is written if the rule is not in
/// `explained` yet, otherwise its title.
fn describe(
    out: &mut String,
    report: &Report<'_>,
    outcome: &CaseOutcome<'_>,
    is_open: bool,
    longest: usize,
    explained: &mut HashSet<String>,
) {
    let open = if is_open { " open" } else { "" };
    let id = escaped(&outcome.case.id);
    let _ = writeln!(
        out,
        "<details{open} class=\"failure\" id=\"{}\"><summary>{}{id} <span class=\"reason\">{}</span></summary><dl>",
        attribute(&outcome.case.id),
        tag(outcome),
        reason(outcome, longest.min(LONGEST_LINE)),
    );
    let evidence = evidence(report, outcome);
    for Obligation { id, gist, table } in &evidence.rules {
        let is_first = explained.insert(id.clone());
        let (anchor, text) = if is_first {
            let text = format!("{}{}", sentence(gist), table_of_rule(table));
            // Until the script lists the rules, an address with the rule leads here.
            (format!(" id=\"{id}\""), text)
        } else {
            let title = spec::rule(id).map_or("", |rule| &rule.title);
            (String::new(), sentence(title))
        };
        let _ = writeln!(
            out,
            "<dt{anchor}><a href=\"#{id}\">{id}</a></dt><dd>{text}</dd>"
        );
    }
    members(out, outcome, &evidence);
    out.push_str("</dl>");
    if !evidence.bytes.is_empty() {
        let _ = write!(out, "<pre>{}</pre>", escaped(&evidence.bytes.join("\n")));
    }
    let again = escaped(&evidence.again);
    let _ = writeln!(out, "<pre>{again}</pre></details>");
}

/// Writes the members of a failure that have a name and a text.
fn members(out: &mut String, outcome: &CaseOutcome<'_>, evidence: &FailureEvidence) {
    let mut prose = |name: &str, text: &str| {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", sentence(text));
    };
    prose("why", &outcome.case.why);
    prose("origin", &outcome.case.origin);
    if let Some(known) = &outcome.known {
        prose("known", &known.reason);
    }
    if let Some(note) = &outcome.note {
        prose("note", note);
    }
    let mut value = |name: &str, text: &str| {
        let text = escaped_beginning(text, LONGEST_VALUE);
        let _ = writeln!(out, "<dt>{name}</dt><dd><code>{text}</code></dd>");
    };
    value("expected", &evidence.expected);
    value("actual", &evidence.actual);
    value("input", &evidence.input);
    if let Some(answer) = &evidence.answer {
        value("answer", answer);
    }
    if let Some(stderr) = &evidence.stderr {
        value("stderr", stderr);
    }
}
