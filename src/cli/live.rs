//! A log on stderr, and on a terminal a table below it that is drawn anew in its place.

use super::output;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines, and below them the table.
pub(super) struct LiveLog {
    /// `None` where stderr is no terminal that obeys what moves the cursor: there are lines alone.
    table: Option<Mutex<DrawnTable>>,
}

/// The table that is on the terminal.
#[derive(Default)]
struct DrawnTable {
    /// As the caller has them, without an end; the terminal may show the beginnings alone.
    lines: Vec<String>,
    /// How many letters each line on the terminal has.
    shown: Vec<usize>,
    is_over: bool,
}

impl LiveLog {
    /// With a table where stderr is a terminal.
    pub(super) fn new() -> LiveLog {
        // Other systems' terminals obey no escapes unless they are asked to. A dumb one prints them as text.
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let is_live = cfg!(unix) && io::stderr().is_terminal() && !is_dumb;
        LiveLog {
            table: is_live.then(Mutex::default),
        }
    }

    /// Whether there is a table.
    pub(super) fn is_live(&self) -> bool {
        self.table.is_some()
    }

    /// Writes a line above the table.
    pub(super) fn note(&self, text: impl Display) {
        match self.lock() {
            None => output::note(text),
            Some(mut table) => {
                let text = text.to_string();
                let text = output::plain(&text);
                table.redraw(&format!("{text}\n"));
            }
        }
    }

    /// Draws the table in the place of the last one.
    pub(super) fn draw(&self, lines: Vec<String>) {
        // A thread may draw once more behind the end, and the terminal is the shell's by then.
        if let Some(mut table) = self.lock()
            && !table.is_over
            && table.lines != lines
        {
            table.lines = lines;
            table.redraw("");
        }
    }

    /// Takes the table off the terminal. From then on there are lines alone.
    pub(super) fn end(&self) {
        if let Some(mut table) = self.lock() {
            table.is_over = true;
            table.lines.clear();
            table.redraw("");
        }
    }

    /// The table, locked; a panic has left it whole.
    fn lock(&self) -> Option<MutexGuard<'_, DrawnTable>> {
        let table = self.table.as_ref()?;
        Some(table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DrawnTable {
    /// Replaces what is on the terminal by `above` and the table below it.
    fn redraw(&mut self, above: &str) {
        let (columns, rows) = size();
        let fitting = fitting(&self.lines, columns, rows);
        let mut text = replacement(&self.shown, columns);
        text.push_str(above);
        for line in &fitting {
            text.push_str(line);
            text.push('\n');
        }
        self.shown = fitting.iter().map(|line| line.chars().count()).collect();
        // In one piece: what another program writes meanwhile is above or below. A terminal that is gone shows nothing.
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes());
        let _ = err.flush();
    }
}

/// What takes lines of these lengths off a terminal that has `columns` now: a narrower one has broken them.
///
/// The cursor is on the line behind them, where Ctrl-C leaves its `^C`, which goes too.
fn replacement(shown: &[usize], columns: usize) -> String {
    let height: usize = shown
        .iter()
        // An empty line takes a row, too.
        .map(|length| length.div_ceil(columns).max(1))
        .sum();
    match height {
        0 => "\r\x1b[J".to_owned(),
        height => format!("\r\x1b[{height}A\x1b[J"),
    }
}

/// The lines that a terminal has room for, and one for the cursor below them.
fn fitting(lines: &[String], columns: usize, rows: usize) -> Vec<String> {
    let room = rows.saturating_sub(1).max(1);
    let mut fitting: Vec<String> = lines.iter().take(room).cloned().collect();
    let left = lines.len() - fitting.len();
    if left > 0
        && let Some(last) = fitting.last_mut()
    {
        // The last line makes room for the count, and is one of those that are left out.
        *last = format!("and {} more", left + 1);
    }
    for line in &mut fitting {
        if let Some((end, _)) = line.char_indices().nth(columns) {
            line.truncate(end);
        }
    }
    fitting
}

/// Columns and rows of the terminal; those of old ones where it has not stated them.
fn size() -> (usize, usize) {
    #[cfg(unix)]
    let size = terminal_size::terminal_size_of(io::stderr());
    #[cfg(not(unix))]
    let size = terminal_size::terminal_size();
    let size = size.map(|(columns, rows)| (usize::from(columns.0), usize::from(rows.0)));
    size.filter(|(columns, rows)| *columns > 0 && *rows > 0)
        .unwrap_or((80, 24))
}

/// Rows below a header, each cell as wide as the widest of its column. Numbers are to the right, which `is_number` names.
///
/// What names a peer chose has but ASCII: how wide other letters are is the terminal's choice, and a line that is wider than it looks
/// would move the table.
pub(super) fn columns<const N: usize>(
    header: [&str; N],
    is_number: [bool; N],
    rows: &[[String; N]],
) -> Vec<String> {
    let header = header.map(str::to_owned);
    let all = || std::iter::once(&header).chain(rows);
    let width = |at: usize| all().map(|row| row[at].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    all()
        .map(|row| {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = widths[at];
                let cell = match is_number[at] {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                };
                line.push_str(if at == 0 { "" } else { "  " });
                line.push_str(&cell);
            }
            line.trim_end().to_owned()
        })
        .collect()
}

/// A name of a peer for [`columns`].
pub(super) fn cell(name: &str) -> String {
    let mut name: String = name.escape_default().collect();
    // Escapes are ASCII.
    if name.len() > 32 {
        name.truncate(29);
        name.push_str("...");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal() {
        let lines = ["abcdef", "b", "c", "d"].map(str::to_owned);
        assert_eq!(fitting(&lines, 4, 9), ["abcd", "b", "c", "d"]);
        assert_eq!(fitting(&lines, 10, 4), ["abcdef", "b", "and 2 more"]);
        assert_eq!(fitting(&lines, 1, 1), ["a"]);
        assert_eq!(fitting(&[], 4, 9), [""; 0]);
    }

    #[test]
    fn a_narrower_terminal_has_broken_the_lines() {
        assert_eq!(replacement(&[], 80), "\r\x1b[J");
        assert_eq!(replacement(&[40, 0, 80], 80), "\r\x1b[3A\x1b[J");
        assert_eq!(replacement(&[40, 0, 80], 40), "\r\x1b[4A\x1b[J");
    }

    #[test]
    fn cells_are_aligned_and_ascii() {
        let rows = [[cell("a\u{1b}\u{e9}"), "5".to_owned()]];
        let text = columns(["key", "count"], [false, true], &rows);
        assert_eq!(text, ["key            count", "a\\u{1b}\\u{e9}      5"]);
        assert_eq!(cell(&"x".repeat(40)).len(), 32);
    }
}
