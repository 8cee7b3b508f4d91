//! Text in columns and lines, as wide as the terminal or as stated by `COLUMNS` in the environment; and sizes with units.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use terminal_size::terminal_size;

/// The minimal width for wrapping. A narrower line would hold no word.
const LEAST: usize = 20;

/// Formats rows below a header, indented by two blanks, without rules and without blanks at line ends. A cell that is too wide for the
/// terminal continues on the next line. A header is broken only at blanks, so that no table is narrower than the words of its header.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        // No rules between cells, because other programs copy, search and cut rows.
        .load_style(presets::NOTHING)
        // Without a width every row is one line, because programs that read a file or a pipe split it by lines.
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied())
        .add_rows(rows);
    if let Some(columns) = columns() {
        let words: Vec<u16> = header.iter().map(|head| longest_word(head)).collect();
        // Each column has a blank on both sides.
        let heads = words.iter().map(|word| word + 2).sum::<u16>();
        // The blank that each line begins with below replaces the last blank, which is cut off.
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
        // All cells are padded to the width of their column, including the last one of a row.
        .map(|line| format!(" {}\n", line.trim_end()))
        .collect()
}

/// Returns the number of characters of the longest word of a header.
fn longest_word(head: &str) -> u16 {
    let words = head.split_whitespace().map(|word| word.chars().count());
    u16::try_from(words.max().unwrap_or(0)).unwrap_or(u16::MAX / 64)
}

/// Returns the maximal number of characters in a line; `None` for no limit.
///
/// As in git, ls and ps, `COLUMNS` in the environment is the user's choice for terminals and for pipes. POSIX calls it the preferred
/// width, and no shell exports it by itself. Without it, a terminal has its own width. A file or a pipe has no limit, because programs
/// that read it expect each row on one line.
pub(crate) fn columns() -> Option<usize> {
    use std::io::IsTerminal as _;
    let wanted = std::env::var("COLUMNS").ok();
    if let Some(columns) = wanted.as_deref().and_then(parse_width) {
        return Some(columns);
    }
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size().map(|(columns, _)| columns.0.into())
}

/// Parses the width of `COLUMNS`. Returns `None` for text that is not a width, and for 0.
fn parse_width(columns: &str) -> Option<usize> {
    columns.parse().ok().filter(|columns| *columns > 0)
}

/// Breaks `text` at blanks into lines that fit next to `indent` characters. Returns one line if the width has no limit.
pub(crate) fn wrap(text: &str, indent: usize) -> Vec<String> {
    let width = columns().map_or(usize::MAX, |columns| {
        columns.saturating_sub(indent).max(LEAST)
    });
    lines_of(text, width)
}

/// Breaks a paragraph of a rule into lines, like [`wrap`]. Tables, lists and code keep their lines.
pub(crate) fn paragraph_lines(text: &str, indent: usize) -> Vec<String> {
    let is_set = |line: &str| {
        line.starts_with(['|', ' '])
            || ["* ", "- ", "```"]
                .iter()
                .any(|mark| line.starts_with(mark))
    };
    if text.lines().any(is_set) {
        text.lines().map(str::to_owned).collect()
    } else {
        wrap(text, indent)
    }
}

/// Breaks `text` into lines of at most `width` characters. A longer word has its own line, so that names and paths can be copied whole.
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

/// Formats a size for people, in powers of 1,024 with one decimal: `485 B`, `12.3 KiB`, `1.0 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 || unit == "TiB" {
            return match unit {
                // Bytes are integers, and are printed exactly.
                "B" => format!("{bytes} B"),
                _ => format!("{value:.1} {unit}"),
            };
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}
