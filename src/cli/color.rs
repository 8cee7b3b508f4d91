//! Colour: what a reader looks for first in the texts of `inspect`, `verify`, `explain`, `dump` and `check`, and in messages.
//!
//! Texts are written without it. What goes to a terminal is painted a line at a time, by the words that our texts begin a line
//! with, after control characters were escaped: a file can look like such a line and be painted, and can do nothing else.

use clap::{ColorChoice, ValueEnum as _};
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use tvmspec::blob::container::FileForm;

/// Whether stdout is painted. Set once, before a command runs; read for each text.
static PAINTS: AtomicBool = AtomicBool::new(false);

/// Whether stderr is.
static PAINTS_NOTES: AtomicBool = AtomicBool::new(false);

/// What `--color` asks for among `args`, which need not be a command line that can be parsed; auto where it is not there.
pub(crate) fn asked(args: impl Iterator<Item = OsString>) -> ColorChoice {
    let mut choice = ColorChoice::Auto;
    let mut is_next = false;
    for arg in args.skip(1).take_while(|arg| arg != "--") {
        let text = arg.to_string_lossy();
        let value = match text.strip_prefix("--color=") {
            Some(value) => Some(value),
            None => std::mem::take(&mut is_next).then_some(&*text),
        };
        if let Some(wanted) = value.and_then(|value| ColorChoice::from_str(value, false).ok()) {
            choice = wanted;
        }
        is_next = text == "--color";
    }
    choice
}

/// Settles whether stdout and stderr are painted. By itself each is where it is a terminal that obeys colours, and `NO_COLOR` is
/// empty or not set.
pub(crate) fn choose(choice: ColorChoice) {
    let paints = |is_terminal: bool| match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            // https://no-color.org: a value of any text but the empty one.
            let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
            // A dumb terminal prints escapes as text.
            let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_set("NO_COLOR") && !dumb
        }
    };
    // Relaxed: they guard no other memory, and no thread has started.
    PAINTS.store(paints(io::stdout().is_terminal()), Ordering::Relaxed);
    PAINTS_NOTES.store(paints(io::stderr().is_terminal()), Ordering::Relaxed);
}

/// Whether stderr is painted; false until [`choose`] has run.
pub(crate) fn paints_notes() -> bool {
    PAINTS_NOTES.load(Ordering::Relaxed)
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
    /// The head of a section, or the name of a file.
    Head,
    /// What only labels what is beside or below it.
    Label,
}

/// Turns any style off.
const END: &str = "\x1b[0m";

impl Style {
    /// What turns it on: bold red, yellow, green, bold, dim.
    const fn start(self) -> &'static str {
        match self {
            Style::Bad => "\x1b[1;31m",
            Style::Odd => "\x1b[33m",
            Style::Good => "\x1b[32m",
            Style::Head => "\x1b[1m",
            Style::Label => "\x1b[2m",
        }
    }
}

/// Words that begin a line.
// The first two are those of `diagnostic`; words in capitals are verdicts of `explain` and `check`.
const FIRST: [(&str, Style); 12] = [
    ("error", Style::Bad),
    ("finding", Style::Odd),
    ("warning", Style::Odd),
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

/// What heads of sections begin with, in `inspect`, `explain` and `dump`.
const HEADS: [&str; 10] = [
    "# ",
    "graph: ",
    "import tree",
    "library binary, layout ",
    "member ",
    "module ",
    "no import tree",
    "objects: ",
    "parameters: ",
    "tensor: ",
];

/// Labels of `inspect`, in a column of ten characters behind two blanks.
const LABELS: [&str; 10] = [
    "calls",
    "context",
    "entry",
    "era",
    "functions",
    "links",
    "machine",
    "needs",
    "prefix",
    "slots",
];

/// The first cells of the tables of `inspect`, by which their headers are known.
const HEADERS: [[&str; 3]; 4] = [
    ["#", "kind", "format"],
    ["function", "kind", "parameters"],
    ["constant", "type", "value"],
    ["name", "dtype", "shape"],
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
    if let Some(mark) = mark(line) {
        return Some(mark);
    }
    let Some((word, style)) = FIRST.iter().find(|(word, _)| is_first(line, word)) else {
        return head(line).or_else(|| label(line));
    };
    // Up to the colon, with the id of the rule; messages without one as clap paints its own.
    let end = match (*word, line.find(':')) {
        ("error" | "finding" | "warning", Some(colon)) if colon == word.len() => colon + 1,
        ("error" | "finding", Some(colon)) => colon,
        _ => word.len(),
    };
    Some((0..end, *style))
}

/// The head of a section up to its colon, or the name of the file in the first line of `inspect`, `x.so: ELF shared object, 2 B`.
fn head(line: &str) -> Option<(Range<usize>, Style)> {
    let whole = line.trim_end();
    if let Some(head) = HEADS.iter().find(|head| whole.starts_with(**head)) {
        let end = match (*head, whole.find(':')) {
            // A member or a module without more is no head.
            ("member " | "module ", None) => return None,
            // What it names may have a colon.
            ("# ", _) | (_, None) => whole.len(),
            (_, Some(colon)) => colon,
        };
        return Some((0..end, Style::Head));
    }
    let (before, size) = whole.rsplit_once(", ")?;
    let (name, form) = before.rsplit_once(": ")?;
    let is_size = size.ends_with('B') && size.starts_with(|first: char| first.is_ascii_digit());
    let is_form = FileForm::ALL.into_iter().any(|known| known.title() == form);
    (is_size && is_form).then_some((0..name.len(), Style::Head))
}

/// The label of a line of `inspect`, or the whole header of a table.
fn label(line: &str) -> Option<(Range<usize>, Style)> {
    let rest = line.strip_prefix("  ")?;
    let cells = || rest.split_whitespace();
    if HEADERS
        .iter()
        .any(|header| cells().take(3).eq(header.iter().copied()))
    {
        return Some((2..line.trim_end().len(), Style::Label));
    }
    let label = rest.get(..10)?.trim_end();
    (LABELS.contains(&label) && rest[10..].starts_with(' '))
        .then_some((2..2 + label.len(), Style::Label))
}

/// A remark of `dump`: `<- TREE-03 broken: ...`, `<- BLOB-15 finding: ...`, up to its colon.
fn mark(line: &str) -> Option<(Range<usize>, Style)> {
    line.match_indices("<- ").find_map(|(at, arrow)| {
        let rest = &line[at + arrow.len()..];
        let (id, what) = rest.split_once(' ')?;
        let (prefix, number) = id.split_once('-')?;
        let is_id = prefix.chars().all(|letter| letter.is_ascii_uppercase())
            && number.chars().all(|digit| digit.is_ascii_digit());
        let (word, style) = [("broken:", Style::Bad), ("finding:", Style::Odd)]
            .into_iter()
            .find(|(word, _)| is_id && what.starts_with(word))?;
        let end = at + arrow.len() + id.len() + 1 + word.len();
        Some((at..end, style))
    })
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
    if let Some(totals) = totals(line.get(start..)?) {
        return Some((start..line.len(), totals));
    }
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

/// The totals of `verify`, behind their colon: `2 broken, 5 with findings, 1 not read`.
fn totals(text: &str) -> Option<Style> {
    let mut counts = text.split(", ");
    let mut count = |what: &str| -> Option<u64> {
        let (count, rest) = counts.next()?.split_once(' ')?;
        (rest == what).then(|| count.parse().ok()).flatten()
    };
    let counts = [
        count("broken")?,
        count("with findings")?,
        count("not read")?,
    ];
    Some(match counts {
        [0, 0, 0] => Style::Good,
        [0, _, 0] => Style::Odd,
        _ => Style::Bad,
    })
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
            (
                "error: there is no file x\n",
                "\x1b[1;31merror:\x1b[0m there is no file x\n",
            ),
            (
                "3 files: 0 broken, 1 with findings, 0 not read\n",
                "3 files: \x1b[33m0 broken, 1 with findings, 0 not read\x1b[0m\n",
            ),
            (
                "a: b.so: ELF shared object, 12.3 KiB\n",
                "\x1b[1ma: b.so\x1b[0m: ELF shared object, 12.3 KiB\n",
            ),
            (
                "module 1 opencl: fields\n",
                "\x1b[1mmodule 1 opencl\x1b[0m: fields\n",
            ),
            (
                "  era        tvm 0.2 to 0.6\n",
                "  \x1b[2mera\x1b[0m        tvm 0.2 to 0.6\n",
            ),
            (
                "  #  kind    format\n",
                "  \x1b[2m#  kind    format\x1b[0m\n",
            ),
            (
                "0000  01   count = 1  <- BLOB-12 broken: a second\n",
                "0000  01   count = 1  \x1b[1;31m<- BLOB-12 broken:\x1b[0m a second\n",
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
            "a module of its own\n",
            "x.so: some form, 2 B\n",
            "  eras       tvm\n",
            "0044  04   module[1].kind : 4 bytes     <-\n",
            "0044  04   name = <- x broken:\n",
        ] {
            assert_eq!(painted(line), line);
        }
    }
}
