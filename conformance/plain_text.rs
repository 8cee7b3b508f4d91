//! Text of a testee in the form that a report may show. The text may have any length. It may try to control the report: to move the
//! cursor of a terminal, to begin a new line, or to reverse the direction of the text.

/// The maximum length of a testee's text, in characters.
const LONGEST: usize = 4000;

/// Returns `text` shortened, with all invisible characters escaped except line breaks.
pub(super) fn plain(text: &str) -> String {
    escaped(text, |letter| letter == '\n')
}

/// Returns [`plain`] text on one line.
pub(super) fn line_of(text: &str) -> String {
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

/// Returns whether a character is a control character, ends a line, reverses the direction, or has no width.
pub(super) fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
