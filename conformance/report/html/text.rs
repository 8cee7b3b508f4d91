//! Texts as HTML. They come from a testee or from the specification, so everything is escaped.

use crate::conformance::sanitized_text::is_unseen;
use std::fmt::Write as _;

/// Escapes a sentence of this project. As in `web/page/dom.js`, words between backticks become code, and `*words*` are emphasized.
pub(super) fn sentence(text: &str) -> String {
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

/// Escapes the content of an element so that no browser takes it for markup, and it neither hides nor reverses its surroundings. A
/// testee may write anything.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars()
        .for_each(|letter| escape_letter(&mut out, letter));
    out
}

/// Escapes the beginning of a text like [`escaped`], in at most `longest` bytes. An ellipsis marks the cut.
pub(super) fn escaped_beginning(text: &str, longest: usize) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        let before = out.len();
        escape_letter(&mut out, letter);
        if out.len() > longest {
            out.truncate(before);
            out.push('…');
            break;
        }
    }
    out
}

fn escape_letter(out: &mut String, letter: char) {
    match letter {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '\n' => out.push(letter),
        _ if is_unseen(letter) => out.extend(letter.escape_default()),
        _ => out.push(letter),
    }
}

/// Returns the rows of a table of the specification: the head, a line below it, and the others.
pub(super) fn table_of_rule(table: &[&str]) -> String {
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

/// Escapes the value of an attribute.
pub(super) fn attribute(text: &str) -> String {
    escaped(text).replace('"', "&quot;")
}
