//! What a line of code is made of, in the readable forms of both VMs: names that fit into a line, and a text that ends.

use std::fmt::{self, Write};

/// The name of a function inside a line of code. It may be in every line of a file, and once for each operand of eight
/// bytes.
const LONGEST_NAME: usize = 200;

/// A name where it is used: the characters that lie in its first [`LONGEST_NAME`] bytes, escaped, so that none ends the line.
pub(crate) fn short(name: &str) -> std::str::EscapeDebug<'_> {
    head(name, LONGEST_NAME).escape_debug()
}

/// The characters that lie in the first `most` bytes.
fn head(text: &str, most: usize) -> &str {
    // A character has at most four bytes, so that this goes back by three at most.
    let mut ends = (0..=most.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

/// `items` with commas between them.
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

/// What `line` is as text, up to `most` bytes, and whether that is all of it. What is behind them is not made.
#[cfg(any(feature = "inspect", feature = "vm"))]
pub(crate) fn bounded(line: &impl fmt::Display, most: usize) -> (String, bool) {
    let mut text = Bounded {
        text: String::new(),
        most,
    };
    // The only error is that of `Bounded`, and it ends the writing: a line may be as long as the file.
    let whole = write!(text, "{line}").is_ok();
    (text.text, whole)
}

/// A text that takes what fits and rejects what follows.
#[cfg(any(feature = "inspect", feature = "vm"))]
struct Bounded {
    /// What fits, so far.
    text: String,
    /// The most bytes that it may have.
    most: usize,
}

#[cfg(any(feature = "inspect", feature = "vm"))]
impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.most.saturating_sub(self.text.len());
        // Between characters: half of one would be no text.
        let fits = head(part, room);
        self.text.push_str(fits);
        if fits.len() == part.len() {
            Ok(())
        } else {
            // Nothing shorter comes behind what found no room.
            self.most = 0;
            Err(fmt::Error)
        }
    }
}
