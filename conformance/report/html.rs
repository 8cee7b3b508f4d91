//! The report as one page: failures first, with an anchor for every case and rule, and without external resources.
//!
//! Ids, texts and answers come from a testee, so everything is escaped. The script only reads the text of the page.

use super::{Obligation, evidence, headline, judged};
use crate::conformance::plain_text::is_unseen;
use crate::conformance::runner::{CaseOutcome, Report};
use crate::conformance::verdict::Verdict;
use crate::spec;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The style, inline because the page is one file, which is opened from a disk or as a CI artifact.
const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, .words th, .words td { text-align: left; overflow-wrap: normal; vertical-align: top; } td.zero { opacity: .35; }
pre { overflow-x: auto; padding: .6rem; background: #8881; }
dt { font-weight: 600; float: left; width: 6rem; } dd { margin-left: 6.5rem; }
details { border-bottom: 1px solid #8884; padding: .25rem 0; } summary { cursor: pointer; }
.tag { display: inline-block; min-width: 7.5rem; font-weight: 600; }
.scroll { overflow-x: auto; } code, dd, h1 { overflow-wrap: anywhere; } input { font: inherit; width: 100%; box-sizing: border-box; padding: .4rem; }
summary { overflow-wrap: anywhere; } a { color: inherit; } dl { margin: .5rem 0; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 .6rem; } dt { float: none; } dd { margin-left: .8rem; } th, td { padding: .2rem .4rem; font-size: .8rem; }
  h1 { font-size: 1.3rem; } pre { font-size: .75rem; }
}
.pass { color: #2a8a3e; } .bad { color: #c62828; } .other { color: #8a6d1a; }
";

/// The filter field, which hides the entries that do not contain a text. It is invisible without the script.
const FILTER: &str = "<p><input id=\"filter\" type=\"search\" placeholder=\"filter by id, verdict or rule\" aria-label=\"filter\" hidden></p>";

/// The script, which filters while the user types, and opens the entry in the address. The page is complete without it.
const SCRIPT: &str = r#"<script>
const box = document.getElementById("filter"), all = [...document.querySelectorAll("details.case, details.rule")];
const texts = all.map(one => one.querySelector("summary").textContent.toLowerCase() + " " + [...one.querySelectorAll("dt")].map(t => t.textContent).join(" ").toLowerCase());
box.hidden = false;
box.addEventListener("input", () => { const text = box.value.trim().toLowerCase(); all.forEach((one, at) => one.hidden = !texts[at].includes(text)); });
const open = () => { const one = document.getElementById(decodeURIComponent(location.hash.slice(1))); if (one && one.tagName == "DETAILS") { one.hidden = false; one.open = true; one.scrollIntoView(); } };
addEventListener("hashchange", open); open();
</script>"#;

/// Renders the report as one page without external resources: failures first, with an anchor for each case and rule.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut out =
        String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let name = escaped(&judged(report));
    let _ = writeln!(
        out,
        "<title>tvmspec: {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    );
    let _ = writeln!(out, "<h1>tvmspec: {name}</h1>");
    let _ = writeln!(
        out,
        "<p><strong>{}</strong></p>",
        escaped(&headline(report))
    );
    let _ = writeln!(out, "<p>suite <code>{}</code></p>", report.suite);
    for problem in &report.problems {
        let _ = writeln!(out, "<p class=\"bad\">error: {}</p>", escaped(problem));
    }
    table(&mut out, report);
    let _ = writeln!(out, "{FILTER}");
    let failures: Vec<&CaseOutcome<'_>> = report.failures().collect();
    if !failures.is_empty() {
        let _ = writeln!(out, "<h2 id=\"failures\">failures: {}</h2>", failures.len());
        failures
            .iter()
            .for_each(|outcome| case(&mut out, report, outcome));
    }
    for (chapter, _) in report.chapters() {
        let name = escaped(chapter);
        let _ = writeln!(out, "<h2 id=\"{name}\">{name}</h2>");
        let results = report.results.iter();
        for outcome in results.filter(|outcome| outcome.case.chapter == chapter) {
            // Failures are listed above, and only once, because an anchor has one place.
            if !outcome.is_failure() {
                case(&mut out, report, outcome);
            }
        }
    }
    rules(&mut out, report);
    let _ = writeln!(out, "{SCRIPT}");
    out.push_str("</body>\n</html>\n");
    out
}

/// Writes the counts of each chapter by verdict, with links to the failures.
fn table(out: &mut String, report: &Report<'_>) {
    out.push_str("<div class=\"scroll\"><table>\n<tr><th>chapter</th><th>cases</th>");
    for verdict in Verdict::NAMES {
        let _ = write!(out, "<th>{verdict}</th>");
    }
    out.push_str("</tr>\n");
    for (name, counts) in report.chapters() {
        let _ = write!(
            out,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td>",
            escaped(name),
            counts.total()
        );
        for (_, count) in counts.iter() {
            let class = if count == 0 { " class=\"zero\"" } else { "" };
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

/// Writes each selected rule with its cases, the failed ones first.
fn rules(out: &mut String, report: &Report<'_>) {
    let mut by_rule: BTreeMap<&str, Vec<&CaseOutcome<'_>>> = BTreeMap::new();
    for outcome in &report.results {
        for rule in &outcome.case.rules {
            by_rule.entry(rule).or_default().push(outcome);
        }
    }
    out.push_str("<h2 id=\"rules\">rules</h2>\n");
    for (id, mut outcomes) in by_rule {
        outcomes.sort_by_key(|outcome| !outcome.is_failure());
        let failed = outcomes.iter().filter(|one| one.is_failure()).count();
        let title = spec::rule(id).map_or("", |rule| rule.title.as_str());
        let (class, count) = match failed {
            0 => ("pass", format!("{} cases", outcomes.len())),
            _ => ("bad", format!("{failed} of {} fail", outcomes.len())),
        };
        let links: Vec<String> = outcomes
            .iter()
            .map(|one| format!("<a href=\"#{0}\">{0}</a>", escaped(&one.case.id)))
            .collect();
        let _ = writeln!(
            out,
            "<details class=\"rule\" id=\"{id}\"><summary><span class=\"tag {class}\">{count}</span> {id} {}</summary><p>{}</p></details>",
            escaped(title),
            links.join(", ")
        );
    }
}

/// Writes one case, opened if it failed: its purpose, the answer, and the command to repeat it.
fn case(out: &mut String, report: &Report<'_>, outcome: &CaseOutcome<'_>) {
    let class = match &outcome.verdict {
        Verdict::Pass => "pass",
        _ if outcome.is_failure() => "bad",
        _ => "other",
    };
    let open = if outcome.is_failure() { " open" } else { "" };
    let verdict = outcome.verdict.name();
    let _ = writeln!(
        out,
        "<details{open} class=\"case\" id=\"{0}\"><summary><span class=\"tag {class}\">{verdict}</span> {0}</summary><dl>",
        escaped(&outcome.case.id)
    );
    let evidence = evidence(report, outcome);
    for Obligation { id, gist, table } in &evidence.rules {
        let _ = writeln!(
            out,
            "<dt><a href=\"#{id}\">{id}</a></dt><dd>{}{}</dd>",
            escaped(gist),
            rows(table)
        );
    }
    entry(out, "why", &outcome.case.why);
    entry(out, "origin", &outcome.case.origin);
    if outcome.verdict != Verdict::Pass {
        entry(out, "expected", &evidence.expected);
        entry(out, "actual", &evidence.actual);
        entry(out, "input", &evidence.input);
    }
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
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell.trim())));
        out.push_str(&format!("<tr>{}</tr>", cells.collect::<String>()));
    }
    match out.as_str() {
        "" => out,
        rows => format!("<div class=\"scroll\"><table class=\"words\">{rows}</table></div>"),
    }
}

/// Writes a name and its text.
fn entry(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text));
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
