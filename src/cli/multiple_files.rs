//! Commands on several files, `inspect` and `verify`. A file that cannot be read does not stop the others.

use super::color::TerminalText;
use super::input::{is_stdin, name_of};
use super::{CliError, Exit, output};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The answer for one file.
pub(crate) enum FileAnswer {
    /// A text for people.
    Text(TerminalText),
    /// JSON for programs.
    Json(Value),
}

/// Prints the answer for each file before it examines the next one. Texts follow each other. JSON is printed as it is for one file, and
/// as a list for several; in the list, an unreadable file is `{"file", "error"}`. Returns the largest exit code.
pub(crate) fn print_answers(
    files: &[PathBuf],
    is_json: bool,
    mut answer: impl FnMut(&Path) -> Result<(FileAnswer, Exit), CliError>,
) -> Result<Exit, CliError> {
    if let [file] = files {
        let (of_file, exit) = answer(file)?;
        match of_file {
            FileAnswer::Text(text) => text.print()?,
            FileAnswer::Json(value) => output::json(&value)?,
        }
        return Ok(exit);
    }
    // The second `-` would be empty, because the first one reads all of stdin.
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(CliError::new("`-` is there twice: stdin is read once"));
    }
    let mut exit = Exit::Good;
    // The list is written piece by piece, because the report on one file may take megabytes.
    let mut between = if is_json { "[\n  " } else { "" };
    for file in files {
        let (of_file, of_exit) = match answer(file) {
            Ok((of_file, exit)) => (Some(of_file), exit),
            // Nobody reads the output for the other files.
            Err(CliError::ClosedPipe) => return Err(CliError::ClosedPipe),
            Err(error) => {
                let message = error.to_string();
                output::error(&message);
                let file = name_of(file);
                let listed =
                    is_json.then(|| FileAnswer::Json(json!({"file": file, "error": message})));
                (listed, Exit::Failed)
            }
        };
        exit = exit.worse_of(of_exit);
        match of_file {
            Some(FileAnswer::Text(text)) => {
                output::print(between)?;
                text.print()?;
            }
            // No JSON string contains a line end, so that every line end can be indented.
            Some(FileAnswer::Json(value)) => {
                let text = output::json_text(&value)?;
                let text = text.trim_end().replace('\n', "\n  ");
                // `print` and not `show`, because the text is already escaped for JSON, and Rust's escapes are not valid JSON.
                output::print(&format!("{between}{text}"))?;
            }
            None => continue,
        }
        between = if is_json { ",\n  " } else { "\n" };
    }
    if is_json {
        output::show("\n]\n")?;
    }
    Ok(exit)
}
