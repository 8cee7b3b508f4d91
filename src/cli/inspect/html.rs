//! The report as a single self-contained page, without script, font or other files. It can be sent by mail and opened offline.

use crate::cli::output::{is_unseen, line_of, plain};
use serde_json::Value;
use std::fmt::Write as _;

/// The style of the page: light or dark like the reader's system, with separate scrolling for long lines.
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;\
color:#1b1f24;background:#fff}h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin-top:2rem}\
pre{background:#f4f5f7;padding:1rem;overflow-x:auto;border-radius:6px;font:13px/1.45 ui-monospace,monospace}\
.bad{border-left:4px solid #c62828}details{margin-top:2rem}\
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#15181c}pre{background:#22262c}}";

/// Creates the page: the same lines as on a terminal, and the JSON below them, collapsed. `broken` has the diagnostics, or is empty.
pub(super) fn page(report: &Value, broken: &str) -> String {
    let file = report["file"].as_str().unwrap_or_default();
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>",
        escape(&line_of(file))
    );
    let mut text = String::new();
    super::text::render(&mut text, report);
    // Texts of the report are single lines (`line_of`), so that an empty line can only be the end of a section.
    let mut sections = text.split("\n\n");
    let head = sections.next().unwrap_or_default();
    let (title, rest) = head.split_once('\n').unwrap_or((head, ""));
    let _ = writeln!(out, "<h1>{}</h1>", escape(title));
    if !rest.trim().is_empty() {
        let _ = writeln!(out, "<pre>{}</pre>", escape(rest.trim_end()));
    }
    for section in sections {
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        let _ = writeln!(out, "<h2>{}</h2>", escape(title));
        if !body.trim().is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape(body.trim_end()));
        }
    }
    if !broken.is_empty() {
        let _ = writeln!(
            out,
            "<h2>Broken rules</h2>\n<pre class=\"bad\">{}</pre>",
            escape(broken.trim())
        );
    }
    let _ = writeln!(
        out,
        "<details><summary>JSON</summary><pre>{}</pre></details>\n</html>",
        escape(&unseen_as_json(&format!("{report:#}")))
    );
    out
}

/// Replaces invisible characters in JSON text by JSON escapes, which does not change its meaning.
fn unseen_as_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '\n' || !is_unseen(letter) {
            out.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Escapes text for HTML content and quoted attributes. A name in a file must not become markup, and must not hide or reverse the text
/// next to it.
fn escape(text: &str) -> String {
    // The ampersand is replaced first. Otherwise it would escape the output of the other replacements.
    plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
