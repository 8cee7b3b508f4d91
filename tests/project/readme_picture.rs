//! Tests the picture in the README: what `explain` prints on a terminal of 100 columns. `BLESS=1 cargo test --test project picture`
//! writes it.
#![cfg(feature = "cli")]

use std::fmt::Write;
use std::fs;
use std::process::Command;

const ARGUMENTS: [&str; 3] = ["explain", "--elsewhere", "tree3-0.8.so"];

/// Width of a column and height of a line, in pixels.
const COLUMN: f32 = 8.0;
const LINE: f32 = 19.0;

#[test]
fn the_picture_of_explain_is_true() {
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(ARGUMENTS)
        .args(["--color", "always"])
        .current_dir(format!("{root}/golden/blob/containers"))
        .env("COLUMNS", "100")
        .output()
        .expect("tvmspec runs");
    let text = String::from_utf8(output.stdout).expect("text");
    // Only the table is compared, because the sections of the modules repeat it.
    let table = text
        .lines()
        .take_while(|line| !line.contains("module 1 metal"));
    let command = format!("$ tvmspec {}", ARGUMENTS.join(" "));
    let mut lines = vec![format!("\u{1b}[1m{command}\u{1b}[0m")];
    lines.extend(table.map(str::to_owned));
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    let expected = picture(&lines);
    let path = format!("{root}/examples/explain.svg");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    let drawn = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        drawn == expected,
        "examples/explain.svg differs; BLESS=1 cargo test --test project picture writes it"
    );
}

/// Draws the lines of a terminal. Each run of letters states its width, so that any font keeps the columns.
fn picture(lines: &[String]) -> String {
    let width = 101.0 * COLUMN + 24.0;
    let height = lines.len() as f32 * LINE + 28.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-size=\"13\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#14181f\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = number as f32 * LINE + 28.0;
        for (column, style, run) in runs(line) {
            let x = column as f32 * COLUMN + 16.0;
            let length = run.chars().count() as f32 * COLUMN;
            let letters = run
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace(' ', "\u{a0}");
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" {style}>{letters}</text>"
            )
            .expect("strings grow");
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Splits a line at its escape sequences into runs: column, attributes, letters. Blanks at both ends of a run are left out.
fn runs(line: &str) -> Vec<(usize, String, &str)> {
    let mut runs = Vec::new();
    let (mut column, mut colour, mut weight) = (0, "#d5dae3", "");
    for (index, part) in line.split("\u{1b}[").enumerate() {
        let mut letters = part;
        if index > 0 {
            let (code, rest) = part.split_once('m').expect("the end of a sequence");
            letters = rest;
            match code {
                "0" => (colour, weight) = ("#d5dae3", ""),
                "1" => weight = " font-weight=\"bold\"",
                "31" => colour = "#ff7b72",
                "32" => colour = "#7ee787",
                "33" => colour = "#e3b341",
                "2" => colour = "#8b949e",
                other => panic!("a style without a colour in the picture: {other}"),
            }
        }
        let shown = letters.trim();
        if !shown.is_empty() {
            let blanks = letters.chars().take_while(|letter| *letter == ' ').count();
            runs.push((column + blanks, format!("fill=\"{colour}\"{weight}"), shown));
        }
        column += letters.chars().count();
    }
    runs
}
