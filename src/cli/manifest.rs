//! The manifest file that `pack` reads, and the files that it names.

use super::input::{self, Input};
use super::output;
use super::{CliError, embedding};
use serde_json::Value;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use tvmspec::blob::pack::{ExportContent, ExportModule, HostCode, HostFormat};
use tvmspec::examine::manifest::ManifestModule;
use tvmspec::wire::json::with_repeated_names;

/// The length of the longest manifest, in bytes. Its values take up to eighty times its text. Payloads belong into files.
const LONGEST: usize = 1 << 20;

/// The number of bytes that the files of a manifest may have in addition to [`REPEATS`] times the bytes of the distinct files.
const SPARE: u64 = 4 << 20;

/// The number of times that each byte of a file may be packed. A library binary in C text takes five times its bytes.
const REPEATS: u64 = 4;

/// Reads the manifest as a JSON value, and prepares access to the files that it names. Also returns its name in messages.
pub(super) fn read(path: &Path) -> Result<(Value, NamedFiles, String), CliError> {
    let input = Input::open(path)?;
    let length = input.bytes().len();
    // Checked before any byte is read, because a sparse file may have any length.
    // A manifest in memory is already there, and may contain payloads.
    let is_in_memory = embedding::is_embedded() && input::is_stdin(path);
    if length > LONGEST && !is_in_memory {
        return Err(CliError::new(format!(
            "{} has {length} bytes, and a manifest has at most {LONGEST}: put payloads into files, with `file`",
            input.line()
        )));
    }
    let text = std::str::from_utf8(input.bytes()).map_err(|_| {
        CliError::new(format!(
            "{} is not text; a manifest is TOML or JSON",
            input.line()
        ))
    })?;
    // Distinguished by the text, because stdin has no name. No TOML begins with a brace.
    let value = if text.trim_start().starts_with('{') {
        with_repeated_names(text.as_bytes())
            .map_err(|error| error.to_string())
            .and_then(|(value, repeated)| match repeated.first() {
                // TOML rejects this too.
                Some(name) => Err(format!("a table has `{}` twice", output::escape_line(name))),
                None => Ok(value),
            })
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    };
    let value =
        value.map_err(|error| CliError::new(format!("{}: {}", input.line(), error.trim_end())))?;
    // For stdin, which is `-`, the current folder.
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let files = NamedFiles {
        folder: (!is_in_memory).then_some(folder),
        known: HashSet::new(),
        bytes: 0,
        read: 0,
        failed: None,
    };
    Ok((value, files, input.line()))
}

/// Converts the module for an export together with host code. The code is read from `files`.
pub(super) fn into_export(
    module: ManifestModule,
    files: &mut NamedFiles,
) -> Result<ExportModule, String> {
    let content = match (module.code, module.payload) {
        (Some(name), _) => ExportContent::Host(host_code(files, &name)?),
        (None, Some(payload)) => ExportContent::Stored {
            kind: module.kind,
            payload,
        },
        (None, None) => return Err("it has no `code`, which another `_lib` has".into()),
    };
    Ok(ExportModule {
        content,
        imports: module.imports,
    })
}

/// The files that a manifest names. A small manifest may name one large file many times, so that the bytes read are limited by the size
/// of the distinct files.
pub(super) struct NamedFiles {
    /// The folder to which their names are relative. `None` if they are in the memory of the program in which the command is embedded.
    folder: Option<PathBuf>,
    /// The canonical paths of the files that were read.
    known: HashSet<PathBuf>,
    /// The total bytes of these files.
    bytes: u64,
    /// The bytes that were read, with repetitions.
    read: u64,
    /// The file that could not be read.
    failed: Option<(PathBuf, io::Error)>,
}

impl NamedFiles {
    /// Creates the error of the manifest for this message, which may be about a file that could not be read.
    pub(super) fn error(&mut self, message: String) -> CliError {
        match self.failed.take() {
            Some((path, error)) => CliError::File {
                path,
                error,
                message,
            },
            None => CliError::new(message),
        }
    }

    /// Reads the file `name`.
    pub(super) fn load(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let Some(folder) = &self.folder else {
            let file = embedding::with_exchange(|exchange| exchange.files.get(name).cloned());
            return file
                .flatten()
                .ok_or_else(|| format!("there is no file `{}`", output::escape_line(name)));
        };
        let path = folder.join(name);
        let mut message = |error: CliError| {
            let message = error.to_string();
            if let CliError::File { path, error, .. } = error {
                self.failed = Some((path, error));
            }
            message
        };
        let (_, length) = input::open_regular_file(&path).map_err(&mut message)?;
        // `read` reports a name that does not exist.
        if self.known.insert(path.canonicalize().unwrap_or_default()) {
            self.bytes = self.bytes.saturating_add(length);
        }
        self.read = self.read.saturating_add(length);
        let most = self.bytes.saturating_mul(REPEATS).saturating_add(SPARE);
        if self.read > most {
            return Err(format!(
                "the manifest repeats files: {} bytes are named up to {}, and files of {} bytes may make {most}",
                self.read,
                output::file_name(&path),
                self.bytes
            ));
        }
        input::read(&path).map_err(message)
    }
}

/// Reads host code from a file that the manifest names. The extension selects its format (BLOB-70).
fn host_code(files: &mut NamedFiles, name: &str) -> Result<HostCode, String> {
    let code = files.load(name)?;
    let extension = name.rsplit_once('.');
    let format = extension.and_then(|(_, extension)| HostFormat::of_extension(extension));
    let format = format.ok_or_else(|| {
        format!("`code`: expected a .o, .c, .cc, .cpp, .cu, .ll or .bc file, found {name:?}")
    })?;
    Ok(HostCode { format, code })
}
