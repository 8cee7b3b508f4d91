//! Parts of a line of code in the readable forms of both VMs: names that fit into a line, and text of limited length.

use std::fmt::{self, Write};

/// Maximum number of bytes of a function name in a line of code. The name may occur in every line, and once for each operand of eight
/// bytes.
const LONGEST_NAME: usize = 200;

/// Returns the characters in the first [`LONGEST_NAME`] bytes of a name, escaped so that none of them ends the line.
pub(crate) fn short(name: &str) -> std::str::EscapeDebug<'_> {
    head(name, LONGEST_NAME).escape_debug()
}

/// Returns the characters that are complete within the first `most` bytes.
fn head(text: &str, most: usize) -> &str {
    // A character has at most four bytes, so the search goes back by at most three.
    let mut ends = (0..=most.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

/// Writes `items` with commas between them.
pub(crate) fn joined<T: fmt::Display>(
    out: &mut impl Write,
    items: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.write_str(", ")?;
        }
        write!(out, "{item}")?;
    }
    Ok(())
}

/// Returns the text of `line` up to `most` bytes, and `true` if that is the whole text. The rest is not formatted.
#[cfg(any(feature = "inspect", feature = "vm"))]
pub(crate) fn bounded(line: &impl fmt::Display, most: usize) -> (String, bool) {
    let mut text = Bounded {
        text: String::new(),
        most,
    };
    // The error of `Bounded` stops the formatting, because a line may be as long as the file.
    let whole = write!(text, "{line}").is_ok();
    (text.text, whole)
}

/// A text that accepts parts up to its limit, and then rejects all others.
#[cfg(any(feature = "inspect", feature = "vm"))]
struct Bounded {
    /// The text so far.
    text: String,
    /// The largest number of bytes.
    most: usize,
}

#[cfg(any(feature = "inspect", feature = "vm"))]
impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.most.saturating_sub(self.text.len());
        // Only whole characters are added.
        let fits = head(part, room);
        self.text.push_str(fits);
        if fits.len() == part.len() {
            Ok(())
        } else {
            // A shorter part must not follow a part that was cut.
            self.most = 0;
            Err(fmt::Error)
        }
    }
}
