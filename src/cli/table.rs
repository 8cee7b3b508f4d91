//! Text in columns and lines.

use comfy_table::{ContentArrangement, Table, presets};

/// Rows below a header, indented by two blanks, without rules and without blanks at line ends.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied())
        .add_rows(rows);
    let lines = table.to_string();
    lines
        .lines()
        .map(|line| format!(" {}\n", line.trim_end()))
        .collect()
}

/// `text` in lines of at most `width` characters, broken at blanks.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
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

/// A size for people: `485 B`, `12.3 KiB`, `1.0 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 || unit == "TiB" {
            return match unit {
                "B" => format!("{bytes} B"),
                _ => format!("{value:.1} {unit}"),
            };
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}
