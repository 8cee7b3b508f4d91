//! What a testee says, as a report may show it. It may be of any length, and may try to write into the report: to move the
//! cursor of a terminal, to begin a line of its own, to turn the direction of the text.

/// The longest text of a testee that is kept, in letters.
const LONGEST: usize = 4000;

/// `text` shortened, with escapes for what does not stand for itself, but for ends of lines.
pub(super) fn plain(text: &str) -> String {
    escaped(text, |letter| letter == '\n')
}

/// [`plain`] on one line.
pub(super) fn line_of(text: &str) -> String {
    escaped(text, |_| false)
}

/// At most [`LONGEST`] letters, what is unseen as escapes, but for letters that may stand.
fn escaped(text: &str, stands: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    // By letters: a slice at a byte may end inside of one, which is a panic of this program over the text of a testee.
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

/// Control characters; what ends a line or turns its direction; what has no width.
pub(super) fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
