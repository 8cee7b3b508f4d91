//! Colour: what a reader looks for first in the texts of `inspect`, `verify`, `explain` and `check`.
//!
//! Texts are written without it. What goes to a terminal is painted a line at a time, by the words that our texts begin a line
//! with, after control characters were escaped: a file can look like such a line and be painted, and can do nothing else.

use clap::ColorChoice;
use std::env;
use std::io::{self, IsTerminal as _};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, before a command runs; read for each text.
static PAINTS: AtomicBool = AtomicBool::new(false);

/// Settles whether stdout is painted. By itself it is where it is a terminal that obeys colours, and `NO_COLOR` is empty or not set.
pub(crate) fn choose(choice: ColorChoice) {
    let paints = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            // https://no-color.org: a value of any text but the empty one.
            let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
            // A dumb terminal prints escapes as text.
            let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
            io::stdout().is_terminal() && !is_set("NO_COLOR") && !dumb
        }
    };
    // Relaxed: it guards no other memory, and no thread has started.
    PAINTS.store(paints, Ordering::Relaxed);
}

/// Whether stdout is painted; false until [`choose`] has run.
pub(crate) fn paints() -> bool {
    PAINTS.load(Ordering::Relaxed)
}

/// Appends `line` to `out`, painted.
pub(crate) fn paint(line: &str, out: &mut String) {
    let painted = style(line).and_then(|(range, style)| {
        let (before, rest) = line.split_at_checked(range.start)?;
        let (inside, behind) = rest.split_at_checked(range.len())?;
        Some([before, style.start(), inside, END, behind])
    });
    match painted {
        Some(pieces) => out.extend(pieces),
        None => out.push_str(line),
    }
}

/// How serious a painted word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// A broken rule, a failure: what a reader must not miss.
    Bad,
    /// Tolerated, or not known.
    Odd,
    /// Everything is in order.
    Good,
}

/// Turns any style off.
const END: &str = "\x1b[0m";

impl Style {
    /// What turns it on: bold red, yellow, green.
    const fn start(self) -> &'static str {
        match self {
            Style::Bad => "\x1b[1;31m",
            Style::Odd => "\x1b[33m",
            Style::Good => "\x1b[32m",
        }
    }
}

/// Words that begin a line.
// The first two are those of `diagnostic`; words in capitals are verdicts of `explain` and `check`.
const FIRST: [(&str, Style); 11] = [
    ("error", Style::Bad),
    ("finding", Style::Odd),
    ("NOT LOADABLE AS IT IS", Style::Bad),
    ("NOT ON THIS MACHINE", Style::Bad),
    ("FAIL", Style::Bad),
    ("CRASH", Style::Bad),
    ("HANG", Style::Bad),
    ("OUT-OF-MEMORY", Style::Bad),
    ("PROTOCOL-ERROR", Style::Bad),
    ("UNSUPPORTED", Style::Odd),
    ("SKIPPED", Style::Odd),
];

/// What `explain` prints behind a range of releases.
const LOADS: [(&str, Style); 4] = [
    ("loads it", Style::Good),
    ("SILENT TRAP", Style::Bad),
    ("fails", Style::Bad),
    ("unknown", Style::Odd),
];

/// The byte at which `explain` begins to print it: two blanks, the column of 16 characters for releases, and one
/// blank.
const BEHIND_RELEASES: usize = 19;

/// Which part of a line is painted, and how.
///
/// Returns a range of bytes, which may lie inside a character of a hostile line; `None` where nothing is painted.
fn style(line: &str) -> Option<(Range<usize>, Style)> {
    if line.starts_with("  tvm ") {
        // A range of releases that is longer than its column ends behind that byte; none is.
        let load = line.get(BEHIND_RELEASES..)?;
        let (word, style) = LOADS.iter().find(|(word, _)| is_first(load, word))?;
        return Some((BEHIND_RELEASES..BEHIND_RELEASES + word.len(), *style));
    }
    if let Some(counts) = counts(line) {
        return Some(counts);
    }
    let (word, style) = FIRST.iter().find(|(word, _)| is_first(line, word))?;
    // Up to the colon, with the id of the rule.
    let end = match *word {
        "error" | "finding" => line.find(':').unwrap_or(word.len()),
        _ => word.len(),
    };
    Some((0..end, *style))
}

/// Whether `text` begins with these words, and not with a longer one.
fn is_first(text: &str, words: &str) -> bool {
    text.strip_prefix(words)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-'))
}

/// The line of counts at the end of a report of `verify`: `1 violation, 2 findings`, behind the name of the file where
/// there are several. Returns the bytes of the counts, without the name.
fn counts(line: &str) -> Option<(Range<usize>, Style)> {
    let line = line.trim_end();
    // The last colon: the name of a file may have others.
    let start = line.rfind(": ").map_or(0, |at| at + 2);
    let (violations, findings) = line.get(start..)?.split_once(", ")?;
    let count = |text: &str, one: &str| -> Option<u64> {
        let (count, what) = text.split_once(' ')?;
        let known = what.strip_suffix('s').unwrap_or(what) == one;
        known.then(|| count.parse().ok()).flatten()
    };
    let style = match (count(violations, "violation")?, count(findings, "finding")?) {
        (0, 0) => Style::Good,
        (0, _) => Style::Odd,
        _ => Style::Bad,
    };
    Some((start..line.len(), style))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `paint` makes of the line.
    fn painted(line: &str) -> String {
        let mut out = String::new();
        paint(line, &mut out);
        out
    }

    #[test]
    fn a_line_is_painted_by_the_words_that_it_begins_with() {
        for (line, expected) in [
            (
                "error TREE-03: row\n",
                "\x1b[1;31merror TREE-03\x1b[0m: row\n",
            ),
            (
                "finding BLOB-15: x\n",
                "\x1b[33mfinding BLOB-15\x1b[0m: x\n",
            ),
            (
                "  tvm 0.21         SILENT TRAP: it\n",
                "  tvm 0.21         \x1b[1;31mSILENT TRAP\x1b[0m: it\n",
            ),
            (
                "  tvm 0.7 to 0.12  loads it, if\n",
                "  tvm 0.7 to 0.12  \x1b[32mloads it\x1b[0m, if\n",
            ),
            (
                "0 violations, 0 findings\n",
                "\x1b[32m0 violations, 0 findings\x1b[0m\n",
            ),
            (
                "a: b.so: 1 violation, 2 findings\n",
                "a: b.so: \x1b[1;31m1 violation, 2 findings\x1b[0m\n",
            ),
            (
                "0 violations, 1 finding\n",
                "\x1b[33m0 violations, 1 finding\x1b[0m\n",
            ),
            (
                "FAIL blob/opencl-root\n",
                "\x1b[1;31mFAIL\x1b[0m blob/opencl-root\n",
            ),
            (
                "NOT ON THIS MACHINE: it\n",
                "\x1b[1;31mNOT ON THIS MACHINE\x1b[0m: it\n",
            ),
        ] {
            assert_eq!(painted(line), expected);
        }
    }

    #[test]
    fn any_other_line_is_as_it_was() {
        for line in [
            "",
            "\n",
            "errors: 1\n",
            // A longer word of another alphabet.
            "finding\u{e9}\n",
            // Byte 19 lies inside a character.
            "  tvm \u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\n",
            // Shorter than the column of releases.
            "  tvm 0.2\n",
            "  tvm 0.2 to 0.6   module.loadbinary_metal\n",
            "FAILED\n",
            "FAIL-fast\n",
            ", \n",
            "x violations, 1 finding\n",
            "1 case, 2 findings\n",
            "  tvm 0.7 to 0.12  failsafe\n",
        ] {
            assert_eq!(painted(line), line);
        }
    }
}
