//! Text of a testee in the form that a report may show. The text may have any length. It may try to control the report: to move the
//! cursor of a terminal, to begin a new line, or to reverse the direction of the text.

use std::fmt::Write as _;

/// The maximum length of a testee's text, in characters.
const LONGEST: usize = 4000;

/// Returns `text` shortened, with all invisible characters escaped except line breaks.
pub(super) fn sanitize(text: &str) -> String {
    escaped(text, |letter| letter == '\n')
}

/// Returns [`sanitize`] text on one line.
pub(super) fn sanitize_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Returns at most [`LONGEST`] characters, with invisible ones escaped unless `stands` accepts them.
fn escaped(text: &str, stands: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    // By characters, because a slice inside a character would panic.
    for (count, letter) in text.chars().enumerate() {
        if count == LONGEST {
            out.push_str(&format!("... ({} bytes)", text.len()));
            break;
        }
        if is_unseen(letter) && !stands(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

/// Returns whether the character is invisible: control characters, line ends, changes of direction, characters without width. With one
/// of them, a name could look like another name.
pub(crate) fn is_unseen(letter: char) -> bool {
    // C0, DEL and C1; then soft hyphens, direction marks, line separators, joiners, the byte order mark and tags.
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns JSON in which invisible characters except line breaks, and those that `also` selects, are ASCII escapes. It is the same JSON.
pub(super) fn escaped_json(text: &str, also: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '\n' || !is_unseen(letter) && !also(letter) {
            out.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Joins modules of `web/page` into one script. Their names are unique, so that imports and the word `export` can be left out.
pub(crate) fn joined_modules(modules: &[&str]) -> String {
    let mut script = String::new();
    for line in modules.iter().flat_map(|module| module.lines()) {
        if !line.starts_with("import ") && !line.trim_start().starts_with("//") {
            let _ = writeln!(script, "{}", line.strip_prefix("export ").unwrap_or(line));
        }
    }
    script
}

/// Escapes JSON for the content of a `script` element: no text ends the element or a comment, or hides or reverses its surroundings.
pub(crate) fn script_json(text: &str) -> String {
    escaped_json(text, |letter| matches!(letter, '<' | '>'))
}
