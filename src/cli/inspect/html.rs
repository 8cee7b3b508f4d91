//! The report as a single self-contained page, with the views of the page in `web/`. It makes no request, so that it can be sent by mail
//! and opened offline. Without JavaScript it shows the lines of the terminal.

use crate::cli::full::html::{LAYOUT, STYLE, VIEW_STYLE, escape, views};
use crate::cli::output::escape_line;
use crate::conformance::sanitized_text::script_json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tvmspec::examine::Subject;
use tvmspec::examine::dump::Dump;
use tvmspec::examine::explain::Account;
use tvmspec::release::Release;
use tvmspec::spec;

/// The policy that forbids every request of the page, even if a name in the file contains markup.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">";

/// The largest file or unit whose bytes are in the page.
const MOST_BYTES: usize = 1 << 20;

/// The largest unit whose fields are in the page: a field takes more room than its bytes.
const MOST_FIELD_BYTES: usize = 4 << 20;

/// Creates the page. `broken` has the diagnostics, or is empty.
pub(super) fn page(report: &Value, data: &Value, broken: &str) -> String {
    let file = report["file"].as_str().unwrap_or_default();
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{POLICY}\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>{STYLE}{VIEW_STYLE}</style>\n<main>",
        escape(&escape_line(file))
    );
    sections(&mut out, report, broken);
    let _ = writeln!(
        out,
        "</main>\n<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n<script>{}</script>\n</html>",
        script_json(&data.to_string()),
        without_map(LAYOUT),
        views(),
    );
    out
}

/// Leaves out the last line, the address of a file that the page does not have, and escapes the control characters in its texts.
fn without_map(script: &str) -> String {
    let script = script
        .split_once("\n//# sourceMappingURL=")
        .map_or(script, |(script, _)| script);
    let mut out = String::with_capacity(script.len());
    for letter in script.chars() {
        if letter.is_control() && letter != '\n' {
            let _ = write!(out, "\\x{:02x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out
}

/// Writes the lines of the terminal, for a reader without JavaScript.
fn sections(out: &mut String, report: &Value, broken: &str) {
    let mut text = String::new();
    super::text::render(&mut text, report);
    // Texts of the report are single lines (`line_of`), so that an empty line can only be the end of a section.
    for (index, section) in text.split("\n\n").enumerate() {
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        let level = if index == 0 { "h1" } else { "h2" };
        let _ = writeln!(out, "<{level}>{}</{level}>", escape(title));
        if !body.trim().is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape(body.trim_end()));
        }
    }
    if !broken.is_empty() {
        let _ = writeln!(
            out,
            "<h2>Broken rules</h2>\n<pre class=\"note bad\">{}</pre>",
            escape(broken.trim())
        );
    }
}

/// Collects the answers that the views show: the model of `web/page/model.js`.
pub(super) fn data(report: &Value, subject: &Subject<'_>) -> Value {
    let verified = subject.verify().ok();
    // A file without a library has no account.
    let accounts = subject.explain().unwrap_or_default();
    let accounts: Vec<Value> = accounts.iter().map(Account::to_json).collect();
    let verified = verified.map_or(Value::Null, |verified| verified.to_json());
    let (name, bytes) = (subject.name, subject.bytes);
    let units = units(subject);
    let rules = rules_of(&units, &verified);
    let releases: Vec<String> = Release::all().map(|release| release.to_string()).collect();
    json!({
        "name": name, "size": bytes.len(), "refused": null, "inspect": report, "verify": verified, "explain": accounts,
        "units": units, "rules": rules, "releases": releases, "content": content(bytes),
    })
}

/// Returns the units with their fields, and the bytes of units that the file does not contain unchanged. Large units have neither:
/// their `left_out_from` is 0.
fn units(subject: &Subject<'_>) -> Vec<Value> {
    let units = subject.units();
    let described = units.into_iter().map(|unit| {
        let mut members = Map::new();
        if unit.bytes.len() <= MOST_FIELD_BYTES {
            let fields = Dump::of_unit(unit.clone());
            if let Ok(Value::Array(mut fields)) = serde_json::to_value(&fields)
                && let Some(Value::Object(fields)) = fields.pop()
            {
                members = fields;
            }
        } else {
            let broken = unit.judge().broken.map(|broken| {
                json!({
                    "rule": broken.rule().id(), "kind": broken.kind().name(), "offset": broken.offset(), "field": broken.field(),
                    "message": broken.message(),
                })
            });
            members.insert("broken".into(), broken.into());
            members.insert("left_out_from".into(), 0.into());
        }
        members.insert("name".into(), unit.name.as_str().into());
        members.insert("format".into(), unit.title().into());
        members.insert("offset".into(), json!(unit.offset));
        members.insert("bytes".into(), unit.bytes.len().into());
        for list in ["fields", "findings"] {
            members.entry(list).or_insert_with(|| json!([]));
        }
        members.entry("broken").or_insert(Value::Null);
        // A unit at an offset is a part of the content of the file.
        let is_in_file = unit.offset.is_some() && subject.bytes.len() <= MOST_BYTES;
        let own = if is_in_file { Value::Null } else { content(&unit.bytes) };
        members.insert("content".into(), own);
        Value::Object(members)
    });
    described.collect()
}

/// Returns the bytes in base64, or null if they are too many for a page.
fn content(bytes: &[u8]) -> Value {
    if bytes.len() > MOST_BYTES {
        return Value::Null;
    }
    STANDARD.encode(bytes).into()
}

/// Returns the texts of the rules that the fields and the verdict name: `{"BLOB-07": {"title", "level", "text"}}`.
fn rules_of(units: &[Value], verified: &Value) -> Map<String, Value> {
    let fields = units.iter().map(|unit| &unit["fields"]);
    let lists = fields.chain([&verified["violations"], &verified["findings"]]);
    let named: BTreeSet<&str> = lists
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|each| each["rule"].as_str())
        .collect();
    let known = named.into_iter().filter_map(spec::rule);
    let described = known.map(|rule| {
        let text = json!({ "title": rule.title, "level": rule.level.name(), "text": rule.text });
        (rule.id.clone(), text)
    });
    described.collect()
}
