//! The report as one page: failures first, with an anchor for every case and rule, and without external resources.
//!
//! Ids, texts and answers come from a testee, so everything is escaped. The script creates text nodes, never markup.

mod data;
mod failures;
mod text;

use super::{Tally, notes};
use crate::conformance::runner::Report;
use crate::conformance::sanitized_text::joined_modules;
use std::fmt::Write as _;
use text::{attribute, escaped, escaped_beginning};

/// The style of all pages of this project, and that of the report. It is inline because the page is one file, which is opened from a
/// disk or as a CI artifact.
const STYLE: &str = concat!(
    include_str!("../../web/style.css"),
    include_str!("report.css")
);

/// The size that the page does not exceed, in bytes, because a larger page opens slowly.
const MOST_BYTES: usize = 1_950_000;

/// The maximum number of shown problems. There may be one for each case.
const MOST_PROBLEMS: usize = 50;

/// The maximum length of the title in bytes of HTML.
const LONGEST_TITLE: usize = 100;

/// Applies the stored choice between light and dark before anything is visible.
const STORED_THEME: &str = "try { const stored = localStorage.getItem(\"theme\"); \
    if (stored) document.documentElement.dataset.theme = stored; } catch { /* A page from disk may have no storage. */ }";

/// The functions of the views that the script uses, and the switch between light and dark.
const MODULES: [&str; 2] = [
    include_str!("../../web/page/dom.js"),
    include_str!("../../web/page/theme.js"),
];

/// The script, which builds the lists out of [`data`], and filters them.
const SCRIPT: &str = include_str!("report.js");

/// The fields of the filter, which are invisible without the script.
const FILTER: &str = "<form class=\"filter\" role=\"search\" aria-label=\"filter\" autocomplete=\"off\" hidden>\
    <input type=\"search\" name=\"words\" placeholder=\"filter by case, rule or title\" aria-label=\"words of a case, a rule or its title\">\
    <select name=\"verdict\" aria-label=\"verdict\"><option value=\"\">every verdict</option></select>\
    <select name=\"release\" aria-label=\"release\"><option value=\"\">every release</option></select>\
    <button type=\"reset\">clear</button></form>\n<p id=\"count\" role=\"status\"></p>\n";

/// The content of a list that the script has not built.
const NO_SCRIPT: &str = "<p class=\"unbuilt\">This list needs JavaScript.</p>";

/// Renders the report as one page without external resources: failures first, with an anchor for each case and rule.
///
/// Failures are markup, so that they are readable without the script. The other cases, thousands that pass, are data.
pub(super) fn render(report: &Report<'_>) -> String {
    let (mut head, mut rest) = (String::new(), String::new());
    beginning(&mut head, report);
    chapters(&mut rest, report);
    let _ = writeln!(
        rest,
        "<script type=\"module\">\nconst DATA = \"{}\";\n{}{SCRIPT}</script>\n</body>\n</html>",
        data::packed(report),
        joined_modules(&MODULES),
    );
    let room = MOST_BYTES.saturating_sub(head.len() + rest.len());
    format!("{head}{}{rest}", failures::sections(report, room))
}

/// Writes everything that precedes the failures: the result, the implementation, and the counts by chapter.
fn beginning(out: &mut String, report: &Report<'_>) {
    let name = escaped_beginning(&short_name(report), LONGEST_TITLE);
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{name}: {}</title>\n<script>{STORED_THEME}</script>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{name}</h1><button type=\"button\" id=\"theme\" aria-label=\"light or dark\" hidden>◐</button></header>",
        result(report),
    );
    counts(out, report);
    let _ = writeln!(
        out,
        "<details class=\"run faint\"><summary>implementation and suite</summary><dl><dt>name</dt><dd>{} {}</dd><dt>--impl</dt>\
         <dd><code>{}</code></dd><dt>suite</dt><dd><code>{}</code></dd></dl></details>",
        escaped(&report.identity.name),
        escaped(&report.identity.version),
        escaped(&report.implementation),
        escaped(report.suite)
    );
    for problem in report.problems.iter().take(MOST_PROBLEMS) {
        let _ = writeln!(out, "<p class=\"bad\">error: {}</p>", escaped(problem));
    }
    if let Some(more @ 1..) = report.problems.len().checked_sub(MOST_PROBLEMS) {
        let _ = writeln!(
            out,
            "<p class=\"bad\">{more} more errors, which <code>--report text</code> lists</p>"
        );
    }
    table(out, report);
    out.push_str(FILTER);
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

/// Returns the result as a few words, for the title.
fn result(report: &Report<'_>) -> String {
    match report.failures().count() {
        0 if report.was_judged() => "no failures".to_owned(),
        0 => "nothing was judged".to_owned(),
        1 => "1 failure".to_owned(),
        count => format!("{count} failures"),
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
    if !report.was_judged() {
        out.push_str(
            "<p class=\"bad\">Nothing was judged: every case is unsupported or skipped.</p>\n",
        );
    }
    if report.complete && !report.is_good() {
        out.push_str(
            "<p class=\"faint\">Every case needs an answer (<code>--complete</code>).</p>\n",
        );
    }
    let notes = notes(report);
    if !notes.is_empty() {
        let notes = escaped(notes.trim_start_matches("; "));
        let _ = writeln!(out, "<p class=\"faint\">{notes}</p>");
    }
}

/// Returns the number of failures of `chapter` and their anchor, or `None` if none of its cases fails. New ones precede known ones.
fn failures_of(report: &Report<'_>, chapter: &str) -> Option<(usize, String)> {
    let results = report.results.iter();
    let failing = results.filter(|outcome| outcome.fails && outcome.case.chapter == chapter);
    let (new, known): (Vec<_>, Vec<_>) = failing.partition(|outcome| outcome.is_failure());
    let section = if new.is_empty() { "known" } else { "failures" };
    let count = new.len() + known.len();
    (count > 0).then(|| (count, format!("{section}-{chapter}")))
}

/// Writes the counts of each chapter by the verdicts that occur, with links to the failures.
fn table(out: &mut String, report: &Report<'_>) {
    out.push_str("<div class=\"scroll\"><table class=\"chapters\">\n<tr><th scope=\"col\">chapter</th><th scope=\"col\">cases</th>");
    let totals = report.totals();
    let occurs: Vec<bool> = totals.iter().map(|(_, count)| count > 0).collect();
    for ((name, _), _) in totals.iter().zip(&occurs).filter(|(_, occurs)| **occurs) {
        let _ = write!(out, "<th scope=\"col\">{name}</th>");
    }
    out.push_str("</tr>\n");
    for (name, counts) in report.chapters() {
        let failures = failures_of(report, name);
        let _ = write!(
            out,
            "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td>{}</td>",
            attribute(name),
            escaped(name),
            counts.total()
        );
        for ((verdict, count), _) in counts.iter().zip(&occurs).filter(|(_, occurs)| **occurs) {
            let _ = match (verdict, &failures) {
                _ if count == 0 => write!(out, "<td class=\"zero\">0</td>"),
                ("pass", _) | (_, None) => write!(out, "<td>{count}</td>"),
                ("unsupported" | "skipped", _) if !report.complete => {
                    write!(out, "<td>{count}</td>")
                }
                (_, Some((_, anchor))) => write!(
                    out,
                    "<td><a class=\"bad\" href=\"#{}\" aria-label=\"{count} {verdict}, chapter {}\">{count}</a></td>",
                    attribute(anchor),
                    attribute(name)
                ),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n<p>");
    if report.failures().next().is_some() {
        out.push_str("<a href=\"#failures\">to the failures</a>, ");
    }
    if totals.known > 0 {
        out.push_str("<a href=\"#known\">to the known failures</a>, ");
    }
    out.push_str(
        "<a href=\"#others\">to the cases that do not fail</a>, <a href=\"#rules\">to the rules</a></p>\n",
    );
}

/// Writes a folded list for the cases of each chapter that do not fail, and one for the rules. The script builds their content.
fn chapters(out: &mut String, report: &Report<'_>) {
    out.push_str("<div id=\"found\"></div>\n<section id=\"whole\">\n<h2 id=\"others\">Cases that do not fail</h2>\n");
    for (chapter, _) in report.chapters() {
        let results = report.results.iter();
        let others = results.filter(|outcome| outcome.case.chapter == chapter && !outcome.fails);
        let mut tally = Tally::default();
        others.for_each(|outcome| tally.add(outcome.verdict.name().to_owned()));
        let counts = tally.into_rows().into_iter();
        let counts: Vec<String> = counts
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let _ = write!(
            out,
            "<details class=\"chapter\" id=\"{}\"><summary>{} <span>{}</span></summary>",
            attribute(chapter),
            escaped(chapter),
            counts.join(", ")
        );
        if let Some((count, anchor)) = failures_of(report, chapter) {
            let noun = if count == 1 { "failure" } else { "failures" };
            let anchor = attribute(&anchor);
            let _ = write!(out, "<p><a href=\"#{anchor}\">{count} {noun}</a></p>");
        }
        let _ = writeln!(out, "{NO_SCRIPT}</details>");
    }
    let _ = writeln!(
        out,
        "<h2>Rules</h2>\n<details class=\"rules\" id=\"rules\"><summary>every rule <span>with its cases</span></summary>{NO_SCRIPT}</details>\n</section>"
    );
}
