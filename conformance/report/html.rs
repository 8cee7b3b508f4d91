//! The report as one page: no script, no font, no image from elsewhere.

use super::{evidence, headline, judged};
use crate::conformance::runner::{Outcome, Report};
use crate::conformance::verdict::Verdict;
use std::fmt::Write as _;

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; } td.zero { opacity: .35; }
pre { overflow-x: auto; padding: .6rem; background: #8881; }
dt { font-weight: 600; float: left; width: 6rem; } dd { margin-left: 6.5rem; }
details { border-bottom: 1px solid #8884; padding: .25rem 0; } summary { cursor: pointer; }
.tag { display: inline-block; min-width: 7.5rem; font-weight: 600; }
.pass { color: #2a8a3e; } .bad { color: #c62828; } .other { color: #8a6d1a; }
";

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
    for (chapter, _) in report.chapters() {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(chapter));
        for outcome in report
            .results
            .iter()
            .filter(|outcome| outcome.case.chapter == chapter)
        {
            case(&mut out, report, outcome);
        }
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn table(out: &mut String, report: &Report<'_>) {
    out.push_str("<table>\n<tr><th>chapter</th><th>cases</th>");
    for verdict in Verdict::NAMES {
        let _ = write!(out, "<th>{verdict}</th>");
    }
    out.push_str("</tr>\n");
    for (name, counts) in report.chapters() {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td>",
            escaped(name),
            counts.total()
        );
        for (_, count) in counts.iter() {
            let class = if count == 0 { " class=\"zero\"" } else { "" };
            let _ = write!(out, "<td{class}>{count}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn case(out: &mut String, report: &Report<'_>, outcome: &Outcome<'_>) {
    let class = match &outcome.verdict {
        Verdict::Pass => "pass",
        _ if outcome.is_failure() => "bad",
        _ => "other",
    };
    let open = if outcome.is_failure() { " open" } else { "" };
    let verdict = outcome.verdict.name();
    let _ = writeln!(
        out,
        "<details{open}><summary><span class=\"tag {class}\">{verdict}</span> {}</summary><dl>",
        escaped(&outcome.case.id)
    );
    let evidence = evidence(report, outcome);
    for (id, gist) in &evidence.rules {
        entry(out, id, gist);
    }
    entry(out, "why", &outcome.case.why);
    entry(out, "origin", &outcome.case.origin);
    if outcome.verdict != Verdict::Pass {
        entry(out, "expected", &evidence.expected);
        entry(out, "actual", &evidence.actual);
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

fn entry(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
