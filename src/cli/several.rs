//! Commands about several files: one that cannot be read does not keep the others from being looked at. `inspect` and
//! `verify` are those.

use super::color::TerminalText;
use super::input::{is_stdin, name_of};
use super::{CliError, Exit, output};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The answer about one file.
pub(crate) enum FileAnswer {
    /// For people.
    Text(TerminalText),
    /// For programs.
    Json(Value),
}

/// Prints the answer about each file: texts one after the other; JSON as it is for one file, as a list for several, in which a file
/// that cannot be read is `{"file", "error"}`. Each is printed before the next is looked at. Of the exit codes the largest counts.
pub(crate) fn each(
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
    // The second would be empty: the first takes all of it.
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(CliError::new("`-` is there twice: stdin is read once"));
    }
    let mut exit = Exit::Good;
    // The list is written piece by piece: the report of one file may take megabytes.
    let mut between = if is_json { "[\n  " } else { "" };
    for file in files {
        let (of_file, of_exit) = match answer(file) {
            Ok((of_file, exit)) => (Some(of_file), exit),
            // No reader is left for the other files.
            Err(CliError::ClosedPipe) => return Err(CliError::ClosedPipe),
            Err(CliError::Message(message)) => {
                output::error(&message);
                let file = name_of(file);
                let listed =
                    is_json.then(|| FileAnswer::Json(json!({"file": file, "error": message})));
                (listed, Exit::Failed)
            }
        };
        exit = exit.or(of_exit);
        match of_file {
            Some(FileAnswer::Text(text)) => {
                output::print(between)?;
                text.print()?;
            }
            // No text of JSON holds an end of line.
            Some(FileAnswer::Json(value)) => {
                let text = output::json_text(&value)?;
                let text = text.trim_end().replace('\n', "\n  ");
                // Escaped already, as JSON does it: an escape of Rust is no JSON.
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
