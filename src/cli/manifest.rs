//! The file of the manifest that `pack` reads, and the files that it names.

use super::CliError;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tvmspec::blob::pack::{ExportContent, ExportModule, HostCode, HostFormat};
use tvmspec::examine::manifest::ManifestModule;

/// The manifest as a JSON value, and the folder that its file names start from.
pub(super) fn read(path: &Path) -> Result<(Value, PathBuf), CliError> {
    let input = super::input::Input::open(path)?;
    let text = std::str::from_utf8(input.bytes()).map_err(|_| {
        CliError::new(format!(
            "{} is not text; a manifest is TOML or JSON",
            input.line()
        ))
    })?;
    // By the text and not by the name, which stdin has not. No TOML begins with a brace.
    let value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    };
    let value =
        value.map_err(|error| CliError::new(format!("{}: {}", input.line(), error.trim_end())))?;
    // Of stdin, which is `-`, the current folder.
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok((value, folder))
}

/// The module as it is exported with host code; file names start from `folder`.
pub(super) fn into_export(module: ManifestModule, folder: &Path) -> Result<ExportModule, String> {
    let content = match (module.code, module.payload) {
        (Some(name), _) => ExportContent::Host(host_code(folder, &name)?),
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

/// Reads a file that the manifest names, from its own folder on.
pub(super) fn load(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = folder.join(name);
    super::input::read(&path).map_err(|error| match error {
        CliError::Message(message) => message,
        CliError::ClosedPipe => format!("cannot read {}", super::output::file_name(&path)),
    })
}

/// The host code in a file that the manifest names, whose extension says what it is (BLOB-70).
fn host_code(folder: &Path, name: &str) -> Result<HostCode, String> {
    let code = load(folder, name)?;
    let extension = name.rsplit_once('.');
    let format = extension.and_then(|(_, extension)| HostFormat::of_extension(extension));
    let format = format.ok_or_else(|| {
        format!("`code` is a .o, .c, .cc, .cpp, .cu, .ll or .bc, and {name:?} is none")
    })?;
    Ok(HostCode { format, code })
}
