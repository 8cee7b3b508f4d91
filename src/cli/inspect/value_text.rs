//! Text for the values of a report, shared by [`super::text`] and [`super::models`].
//!
//! The report is JSON from [`tvmspec::examine::inspect`]. An absent member reads as an empty one, because the report leaves out content
//! that a file does not have.

use crate::cli::color::{HEAD, LABEL, StyledWrite};
use crate::cli::table::{table, wrap};
use serde_json::Value;

/// Writes the heading of a section and, after a colon, its description.
pub(super) fn section(out: &mut dyn StyledWrite, head: &str, about: impl std::fmt::Display) {
    let _ = out.write_char('\n');
    let _ = out.styled(HEAD, head);
    let _ = writeln!(out, ": {about}");
}

/// Writes a line with a label and a text: `  era        tvm 0.2 to 0.6`.
pub(super) fn labelled(out: &mut dyn StyledWrite, label: &str, text: impl std::fmt::Display) {
    let blanks = 10_usize.saturating_sub(label.len());
    let _ = out.write_str("  ");
    let _ = out.styled(LABEL, label);
    let _ = writeln!(out, "{:blanks$} {text}", "");
}

/// Writes a table of the first 1,000 rows, and the count of the others, because nobody reads more.
pub(super) fn rows(
    out: &mut dyn StyledWrite,
    header: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) {
    const MOST: usize = 1_000;
    let mut rows = rows.peekable();
    let shown = table(header, rows.by_ref().take(MOST).collect());
    let (header, shown) = shown.split_once('\n').unwrap_or((&shown, ""));
    let header = header.strip_prefix("  ").unwrap_or(header);
    let _ = out.write_str("  ");
    let _ = out.styled(LABEL, header);
    let _ = write!(out, "\n{shown}");
    // Counted without formatting them.
    let more = rows.count();
    if more > 0 {
        let _ = writeln!(out, "  and {more} more (--json has all)");
    }
}

/// Writes a list of names after a word, `  slots      a, b, c`, in lines as wide as the terminal. Lists the first 24 names and the
/// count of the others. Writes nothing for an empty list.
pub(super) fn names(out: &mut dyn StyledWrite, what: &str, names: &Value) {
    const MOST: usize = 24;
    let names: Vec<&str> = list(names).iter().map(text).collect();
    if names.is_empty() {
        return;
    }
    let mut shown = names[..names.len().min(MOST)].join(", ");
    if names.len() > MOST {
        shown += &format!(" and {} more (--json has all)", names.len() - MOST);
    }
    // The word is only on the first line. Every line reserves 13 characters for it.
    for (index, line) in wrap(&shown, 13).iter().enumerate() {
        labelled(out, if index == 0 { what } else { "" }, line);
    }
}

/// Describes a range of releases, `0.7..0.20`, in words. An open end is the first or the last known release.
pub(super) fn releases_of(range: &str) -> String {
    match range.split_once("..") {
        Some(("", "")) => "0.2 to 0.27".into(),
        Some((since, "")) => format!("{since} and later"),
        Some(("", until)) => format!("0.2 to {until}"),
        Some((since, until)) if since == until => since.into(),
        Some((since, until)) => format!("{since} to {until}"),
        None => range.into(),
    }
}

/// Formats a count with its noun: `1 node`, `2 nodes`. The plural ends in `s`.
pub(super) fn count(count: &Value, what: &str) -> String {
    match number(count) {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Formats a shape as Python writes a list: `[2, 3]`.
pub(super) fn shape(shape: &Value) -> String {
    let extents: Vec<String> = list(shape).iter().map(ToString::to_string).collect();
    format!("[{}]", extents.join(", "))
}

/// Formats the value of a cell: texts without quotes, nothing for null, anything else as JSON.
pub(super) fn format_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the text; empty for any other value.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the number; 0 for any other value.
pub(super) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Returns the elements; none for any other value.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
