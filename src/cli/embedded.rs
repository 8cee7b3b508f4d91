//! The commands that create files, for a program that has the command line in its process, such as the Python module.

use super::embedding::{self, Exchange};
use super::input::Input;
use super::library::{self, PayloadPlaces};
use super::{CliError, output};
use crate::cli::execute;
use std::collections::HashMap;
use std::ffi::OsString;
use tvmspec::examine::Subject;
use tvmspec::examine::unpack as unpacking;
use tvmspec::release::Layout;

/// The result of [`write()`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The bytes that the command wrote to `-`.
    pub bytes: Vec<u8>,
    /// The texts that the command line writes to stderr.
    pub warnings: Vec<String>,
}

/// Runs `convert`, `pack` or `inspect --html`. Among `words`, `-` stands for `input`, and as an output for [`Written::bytes`]. `files` has the
/// files that a manifest in `input` names.
///
/// # Errors
///
/// The error that the command line would print, also for words that it does not accept and for a broken rule.
pub fn write(
    words: Vec<OsString>,
    input: Option<Input>,
    files: HashMap<String, Vec<u8>>,
) -> Result<Written, CliError> {
    let input = input.map(Input::into_shared);
    let (bytes, warnings, _) = embedded(input, files, || execute(words))?;
    Ok(Written { bytes, warnings })
}

/// The result of [`unpack()`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnpackedFiles {
    /// The manifest as JSON text, with its line end.
    pub manifest: String,
    /// The payloads, each with the name of its file.
    pub files: Vec<(String, Vec<u8>)>,
    /// The texts that the command line writes to stderr.
    pub warnings: Vec<String>,
}

/// Returns the files that `unpack` writes for a library binary of the input: the only one, or number `blob`, counted from 0.
///
/// # Errors
///
/// The file has no library binary, or several and no number chooses one, or it breaks a rule.
pub fn unpack(
    input: &Input,
    layout: Option<Layout>,
    blob: Option<usize>,
) -> Result<UnpackedFiles, CliError> {
    let work = || {
        let subject = match Subject::open(&input.name, input.bytes(), layout) {
            Ok(subject) => subject,
            Err(broken) => return Err(CliError::broken(&input.name, &broken, &broken)),
        };
        let units = subject.units();
        let unit = library::pick(&subject, &units, blob)?;
        let Some(partial) = unit.library() else {
            return Err(CliError::line(subject.not_examinable()));
        };
        if let Some(broken) = partial.broken {
            return Err(CliError::broken(&unit.name, &broken, &broken));
        }
        let kept = PayloadPlaces::from_modules(&partial.blob.modules);
        library::warn_of_left_out(unit, &partial.findings, &kept);
        let parts = unpacking::unpack(partial.blob);
        let parts = parts.map_err(|broken| CliError::broken(&unit.name, &broken, &broken))?;
        let files = parts.files();
        let files = files.map(|(name, payload)| (name.to_owned(), payload.to_vec()));
        let files: Vec<_> = files.collect();
        input.check_length()?;
        Ok((output::json_text(&parts)?, files))
    };
    let (_, warnings, (manifest, files)) = embedded(None, HashMap::new(), work)?;
    Ok(UnpackedFiles {
        manifest,
        files,
        warnings,
    })
}

/// Runs `work` as an embedded command. Returns its output, its warnings and its result.
fn embedded<T>(
    input: Option<(String, embedding::SharedBytes)>,
    files: HashMap<String, Vec<u8>>,
    work: impl FnOnce() -> Result<T, CliError>,
) -> Result<(Vec<u8>, Vec<String>, T), CliError> {
    let exchange = Exchange {
        input,
        files,
        ..Exchange::default()
    };
    let (done, exchange) = embedding::embed(exchange, work);
    if let Some(name) = exchange.shortened {
        return Err(super::input::became_shorter(&name));
    }
    Ok((exchange.output, exchange.warnings, done?))
}
