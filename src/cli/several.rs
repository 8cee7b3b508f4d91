//! Commands about several files: one that cannot be read does not keep the others from being looked at.

use super::{Error, Exit, output};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What is said about one file.
pub(crate) enum Said {
    /// For people.
    Text(String),
    /// For programs.
    Json(Value),
}

/// Prints what `say` says about each file: texts one after the other; JSON as it is for one file, as a list for several. Of the
/// exit codes the largest counts.
///
/// # Errors
///
/// A file cannot be read; each is named where it is met, the last in the error.
pub(crate) fn each(
    files: &[PathBuf],
    mut say: impl FnMut(&Path) -> Result<(Said, Exit), Error>,
) -> Result<Exit, Error> {
    let (mut exit, mut failed, mut list, mut shown) = (Exit::Good, None, Vec::new(), false);
    for file in files {
        match say(file) {
            Ok((Said::Text(text), of_file)) => {
                let between = if shown { "\n" } else { "" };
                output::show(&format!("{between}{text}"))?;
                shown = true;
                exit = exit.or(of_file);
            }
            Ok((Said::Json(value), of_file)) => {
                list.push(value);
                exit = exit.or(of_file);
            }
            Err(Error::ClosedPipe) => return Err(Error::ClosedPipe),
            Err(error @ Error::Message(_)) => {
                if let Some(Error::Message(message)) = failed.replace(error) {
                    output::note(format_args!("error: {message}"));
                }
            }
        }
    }
    match (files, list.as_slice()) {
        ([_], [one]) => output::json(one)?,
        ([_], _) | (_, []) => {}
        (_, list) => output::json(list)?,
    }
    failed.map_or(Ok(exit), Err)
}
