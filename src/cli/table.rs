//! Text in columns and lines, as wide as the terminal or as `COLUMNS` in the environment states; and sizes in words.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use terminal_size::terminal_size;

/// The least width that is wrapped for: below it a line holds no word.
const LEAST: usize = 20;

/// Rows below a header, indented by two blanks, without rules and without blanks at line ends. A cell that the terminal is
/// too narrow for goes on below; a header is broken at blanks alone:
/// no table is narrower than the words of its header.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        // No rules between cells: rows are copied, searched and cut by other programs.
        .load_style(presets::NOTHING)
        // Without a width every row is one line: what reads a file or a pipe takes them apart by lines.
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied())
        .add_rows(rows);
    if let Some(columns) = columns() {
        let words: Vec<u16> = header.iter().map(|head| longest_word(head)).collect();
        // Each column has a blank on both sides.
        let heads = words.iter().map(|word| word + 2).sum::<u16>();
        // The blank that each line begins with below takes the place of the last one, which is cut off.
        let width = u16::try_from(columns.max(LEAST)).unwrap_or(u16::MAX);
        let least = |word: &u16| ColumnConstraint::LowerBoundary(Width::Fixed(word + 2));
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width.max(heads))
            .set_constraints(words.iter().map(least));
    }
    let lines = table.to_string();
    lines
        .lines()
        // Cells are padded to their column, the last one of a row, too.
        .map(|line| format!(" {}\n", line.trim_end()))
        .collect()
}

/// How many characters the longest word of a header has.
fn longest_word(head: &str) -> u16 {
    let words = head.split_whitespace().map(|word| word.chars().count());
    u16::try_from(words.max().unwrap_or(0)).unwrap_or(u16::MAX / 64)
}

/// How many characters a line may have; `None` for no bound.
///
/// As in git, ls and ps, `COLUMNS` in the environment is what the user wants, of a terminal as of a pipe: POSIX calls it the preferred
/// width, and no shell exports it by itself. Without it a terminal has its own width, and a file or a pipe has no bound: what reads
/// those wants each row on one line.
pub(crate) fn columns() -> Option<usize> {
    use std::io::IsTerminal as _;
    let wanted = std::env::var("COLUMNS").ok();
    if let Some(columns) = wanted.as_deref().and_then(stated) {
        return Some(columns);
    }
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size().map(|(columns, _)| columns.0.into())
}

/// The width that `COLUMNS` states; `None` for a text that is no width, and for 0.
fn stated(columns: &str) -> Option<usize> {
    columns.parse().ok().filter(|columns| *columns > 0)
}

/// Breaks `text` at blanks into lines that fit beside `indent` characters; one line where a line has no bound.
pub(crate) fn wrap(text: &str, indent: usize) -> Vec<String> {
    let width = columns().map_or(usize::MAX, |columns| {
        columns.saturating_sub(indent).max(LEAST)
    });
    lines_of(text, width)
}

/// Breaks `text` into lines of at most `width` characters. A longer word has a line of its own: names and paths are
/// copied from it whole.
pub(crate) fn lines_of(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A size for people, in powers of 1,024 with one digit behind the point: `485 B`, `12.3 KiB`, `1.0 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 || unit == "TiB" {
            return match unit {
                // Bytes are whole, and printed exactly.
                "B" => format!("{bytes} B"),
                _ => format!("{value:.1} {unit}"),
            };
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}
