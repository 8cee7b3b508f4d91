//! The report as one page: failures first, with an anchor for every case and rule, and without external resources.
//!
//! Ids, texts and answers come from a testee, so everything is escaped. The script creates text nodes, never markup.

use super::{Obligation, evidence, notes, quoted};
use crate::conformance::runner::{CaseOutcome, Report};
use crate::conformance::sanitized_text::{is_unseen, joined_modules, script_json};
use crate::conformance::verdict::Verdict;
use crate::release::Release;
use crate::spec;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The style of all pages of this project, and that of the report. It is inline because the page is one file, which is opened from a
/// disk or as a CI artifact.
const STYLE: &str = concat!(
    include_str!("../../web/style.css"),
    include_str!("report.css")
);

/// The number of failures that are described. With 10,000 of them a page would take longer to open than anyone reads.
const MOST_DESCRIBED: usize = 500;

/// The number of failures that are open at first.
const MOST_OPEN: usize = 10;

/// The functions of the views that the script uses.
const ELEMENTS: &str = include_str!("../../web/page/dom.js");

/// The script, which builds the entries of the lists out of [`data`], and filters them.
const SCRIPT: &str = include_str!("report.js");

/// The fields of the filter, which are invisible without the script.
const FILTER: &str = "<form class=\"filter\" hidden>\
    <input type=\"search\" placeholder=\"filter by case or rule\" aria-label=\"case or rule\">\
    <select aria-label=\"verdict\"><option value=\"\">every verdict</option></select>\
    <select aria-label=\"release\"><option value=\"\">every release</option></select></form>\n<p id=\"count\" role=\"status\" hidden></p>";

/// Renders the report as one page without external resources: failures first, with an anchor for each case and rule.
///
/// Failures are markup, so that they are readable without the script. The other cases, thousands that pass, are data.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut out =
        String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let name = escaped(&short_name(report));
    let _ = writeln!(
        out,
        "<title>{name}: tvmspec</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    );
    let _ = writeln!(out, "<h1>{name}</h1>");
    counts(&mut out, report);
    let _ = writeln!(
        out,
        "<details class=\"run faint\"><summary>implementation and suite</summary><dl><dt>name</dt><dd>{} {}</dd><dt>--impl</dt>\
         <dd><code>{}</code></dd><dt>suite</dt><dd><code>{}</code></dd></dl></details>",
        escaped(&report.identity.name),
        escaped(&report.identity.version),
        escaped(&report.implementation),
        report.suite
    );
    for problem in &report.problems {
        let _ = writeln!(out, "<p class=\"bad\">error: {}</p>", escaped(problem));
    }
    table(&mut out, report);
    out.push_str("<noscript><p>Only failures are listed, because the other lists need JavaScript.</p></noscript>\n");
    let _ = writeln!(out, "{FILTER}");
    failures(&mut out, report);
    out.push_str("<div id=\"found\"></div>\n<div id=\"whole\">\n");
    for (chapter, counts) in report.chapters() {
        let name = escaped(chapter);
        let _ = writeln!(
            out,
            "<details class=\"chapter\" id=\"{name}\"><summary>{name}: {} cases</summary></details>",
            counts.total()
        );
    }
    out.push_str(
        "<details class=\"rules\" id=\"rules\"><summary>rules</summary></details>\n</div>\n",
    );
    let _ = writeln!(
        out,
        "<script>\n\"use strict\";\n{}const DATA = {};\n{SCRIPT}</script>",
        joined_modules(&[ELEMENTS]),
        script_json(&data(report).to_string()),
    );
    out.push_str("</body>\n</html>\n");
    out
}

/// Returns the name and the version of the implementation. Of several libraries, the name is the first one and a number.
fn short_name(report: &Report<'_>) -> String {
    let (name, version) = (&report.identity.name, &report.identity.version);
    match name.split_once(" with ") {
        Some((first, others)) => {
            let count = others.split(" with ").count();
            let noun = if count == 1 { "library" } else { "libraries" };
            format!("{version}: {first} and {count} more {noun}")
        }
        None => format!("{name} {version}"),
    }
}

/// Writes the number of cases of each verdict that occurs, and what was not compared.
fn counts(out: &mut String, report: &Report<'_>) {
    out.push_str("<p class=\"counts\">");
    for (name, count) in report.totals().iter().filter(|(_, count)| *count > 0) {
        let class = match name {
            "pass" => "good",
            "unsupported" | "skipped" => "faint",
            _ => "bad",
        };
        let _ = write!(
            out,
            "<span class=\"{class}\"><strong>{count}</strong> {name}</span> "
        );
    }
    out.push_str("</p>\n");
    let notes = notes(report);
    if !notes.is_empty() {
        let notes = escaped(notes.trim_start_matches("; "));
        let _ = writeln!(out, "<p class=\"faint\">{notes}</p>");
    }
}

/// Writes the failures of all chapters, and after them the known ones, folded.
fn failures(out: &mut String, report: &Report<'_>) {
    let mut explained = HashSet::new();
    let mut left = MOST_DESCRIBED;
    let (known, new): (Vec<_>, Vec<_>) = report
        .results
        .iter()
        .filter(|outcome| outcome.fails)
        .partition(|outcome| outcome.known.is_some());
    for (id, title, list) in [
        ("failures", "failures", new),
        ("known", "known failures", known),
    ] {
        if !list.is_empty() {
            let _ = writeln!(out, "<section><h2 id=\"{id}\">{title}: {}</h2>", list.len());
            if list.len() > left {
                let _ = writeln!(
                    out,
                    "<p class=\"faint\">The first {left} are described here. The others are in the lists below, with the command that repeats each.</p>"
                );
            }
            for (at, outcome) in list.iter().take(left).enumerate() {
                let is_open = at < MOST_OPEN && outcome.known.is_none();
                case(out, report, outcome, is_open, &mut explained);
            }
            out.push_str("</section>\n");
            left = left.saturating_sub(list.len());
        }
    }
}

/// Writes the counts of each chapter by the verdicts that occur, with links to the failures.
fn table(out: &mut String, report: &Report<'_>) {
    out.push_str("<div class=\"scroll\"><table>\n<tr><th>chapter</th><th>cases</th>");
    let totals = report.totals();
    let occurs: Vec<bool> = totals.iter().map(|(_, count)| count > 0).collect();
    for ((name, _), occurs) in totals.iter().zip(&occurs) {
        if *occurs {
            let _ = write!(out, "<th>{name}</th>");
        }
    }
    out.push_str("</tr>\n");
    for (name, counts) in report.chapters() {
        let _ = write!(
            out,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td>",
            escaped(name),
            counts.total()
        );
        for ((verdict, count), _) in counts.iter().zip(&occurs).filter(|(_, occurs)| **occurs) {
            let class = match verdict {
                _ if count == 0 => " class=\"zero\"",
                "pass" | "unsupported" | "skipped" => "",
                _ => " class=\"bad\"",
            };
            let _ = write!(out, "<td{class}>{count}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
    if report.failures().next().is_some() {
        out.push_str("<p><a href=\"#failures\">to the failures</a>, <a href=\"#rules\">to the rules</a></p>\n");
    } else {
        out.push_str("<p><a href=\"#rules\">to the rules</a></p>\n");
    }
}

/// Returns the cases and rules for the script. Equal texts and equal groups of members are stored once.
fn data(report: &Report<'_>) -> Value {
    let releases: Vec<String> = Release::all().map(|release| release.to_string()).collect();
    let place = |release: Release| Release::all().position(|one| one == release);
    let (mut texts, mut groups, mut rules) = (Interned::new(), Interned::new(), Interned::new());
    let cases: Vec<Value> = report
        .results
        .iter()
        .map(|outcome| {
            let case = outcome.case;
            let ids: Vec<usize> = case
                .rules
                .iter()
                .map(|id| rules.intern_value(json!(id)))
                .collect();
            let group = groups.intern_value(json!([
                ids,
                place(case.releases.since),
                place(case.releases.until),
                texts.intern_value(json!(case.why)),
                texts.intern_value(json!(case.origin)),
            ]));
            let verdict = Verdict::NAMES
                .iter()
                .position(|name| *name == outcome.verdict.name());
            if outcome.verdict == Verdict::Pass || outcome.fails {
                json!([case.id, verdict, group])
            } else {
                let reason = texts.intern_value(json!(outcome.verdict.reason()));
                json!([case.id, verdict, group, reason])
            }
        })
        .collect();
    let rules: Vec<Value> = rules
        .values
        .iter()
        .map(|id| {
            let text = id.as_str().and_then(spec::rule);
            let title = text.map_or("", |rule| rule.title.as_str());
            json!([id, title, text.map(|rule| Obligation::of(rule).gist)])
        })
        .collect();
    json!({
        "releases": releases,
        "verdicts": Verdict::NAMES,
        "texts": texts.values,
        "groups": groups.values,
        "rules": rules,
        "cases": cases,
        "again": format!("tvmspec check --impl {}", quoted(&report.implementation)),
    })
}

/// Distinct values, each with its position.
struct Interned {
    values: Vec<Value>,
    places: HashMap<String, usize>,
}

impl Interned {
    fn new() -> Interned {
        Interned {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Returns the position of `value`, which is added if it is new.
    fn intern_value(&mut self, value: Value) -> usize {
        let next = self.values.len();
        let place = *self.places.entry(value.to_string()).or_insert(next);
        if place == next {
            self.values.push(value);
        }
        place
    }
}

/// Writes one failure: its purpose, the answer, and the command to repeat it. The norm of a rule is written where the rule is not in
/// `explained` yet, otherwise its title.
fn case(
    out: &mut String,
    report: &Report<'_>,
    outcome: &CaseOutcome<'_>,
    is_open: bool,
    explained: &mut HashSet<String>,
) {
    let class = if outcome.is_failure() { "bad" } else { "other" };
    let open = if is_open { " open" } else { "" };
    let verdict = outcome.verdict.name();
    let _ = writeln!(
        out,
        "<details{open} class=\"failure\" id=\"{0}\"><summary><span class=\"tag {class}\">{verdict}</span> {0}</summary><dl>",
        escaped(&outcome.case.id)
    );
    let evidence = evidence(report, outcome);
    for Obligation { id, gist, table } in &evidence.rules {
        let text = if explained.insert(id.clone()) {
            format!("{}{}", sentence(gist), rows(table))
        } else {
            sentence(spec::rule(id).map_or("", |rule| &rule.title))
        };
        let _ = writeln!(out, "<dt><a href=\"#{id}\">{id}</a></dt><dd>{text}</dd>");
    }
    entry(out, "why", &outcome.case.why);
    entry(out, "origin", &outcome.case.origin);
    entry(out, "expected", &evidence.expected);
    entry(out, "actual", &evidence.actual);
    entry(out, "input", &evidence.input);
    for (name, text) in [("answer", &evidence.answer), ("stderr", &evidence.stderr)] {
        if let Some(text) = text {
            entry(out, name, text);
        }
    }
    if let Some(known) = &outcome.known {
        entry(out, "known", &known.reason);
    }
    if let Some(note) = &outcome.note {
        entry(out, "note", note);
    }
    out.push_str("</dl>");
    let lines: Vec<&str> = evidence
        .bytes
        .iter()
        .chain([&evidence.again])
        .map(String::as_str)
        .collect();
    let _ = writeln!(out, "<pre>{}</pre></details>", escaped(&lines.join("\n")));
}

/// Returns the rows of a table of the specification: the head, a line below it, and the others.
fn rows(table: &[&str]) -> String {
    let mut out = String::new();
    for (at, row) in table.iter().enumerate().filter(|(at, _)| *at != 1) {
        let tag = if at == 0 { "th" } else { "td" };
        let cells = row.trim().trim_matches('|').split('|');
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", sentence(cell.trim())));
        out.push_str(&format!("<tr>{}</tr>", cells.collect::<String>()));
    }
    match out.as_str() {
        "" => out,
        rows => format!("<div class=\"scroll\"><table class=\"words\">{rows}</table></div>"),
    }
}

/// Writes a name and its text, which is prose or a value.
fn entry(out: &mut String, name: &str, text: &str) {
    let text = match name {
        "why" | "origin" | "known" | "note" => sentence(text),
        _ => format!("<code>{}</code>", escaped(text)),
    };
    let _ = writeln!(out, "<dt>{name}</dt><dd>{text}</dd>");
}

/// Escapes a sentence of this project. As in `web/page/dom.js`, words between backticks become code, and `*words*` are emphasized.
fn sentence(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => emphasized(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

/// Escapes text, in which `*words*` become emphasis. An asterisk that follows a letter or precedes a space is an operator or a pattern.
fn emphasized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('*') {
        let words = after.split_once('*').filter(|(words, after)| {
            !before.ends_with(|letter: char| !letter.is_whitespace() && letter != '(')
                && !words.is_empty()
                && words.trim() == *words
                && !after.starts_with(char::is_alphanumeric)
        });
        out.push_str(&escaped(before));
        if let Some((words, after)) = words {
            let _ = write!(out, "<em>{}</em>", escaped(words));
            rest = after;
        } else {
            out.push('*');
            rest = after;
        }
    }
    out.push_str(&escaped(rest));
    out
}

/// Escapes text so that no browser takes it for markup, and it neither hides nor reverses its surroundings. A testee may write
/// anything.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push(letter),
            _ if is_unseen(letter) => out.extend(letter.escape_default()),
            _ => out.push(letter),
        }
    }
    out
}
