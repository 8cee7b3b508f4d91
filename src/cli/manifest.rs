//! The manifest that `pack` reads: its members, and the modules that it lists.

use super::CliError;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use tvmspec::blob::pack::{ExportContent, ExportModule, HostCode, HostFormat};
use tvmspec::blob::{LIBRARY, StoredModule};
use tvmspec::payload::Payload;
use tvmspec::release::Layout;
use tvmspec::wire::Writer;

/// The manifest as a JSON value, and the folder that its file names start from.
///
/// # Errors
///
/// The file cannot be read, is not UTF-8, or is neither TOML nor JSON; or it has a member that no manifest has.
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
    has_known_keys(&value).map_err(|error| CliError::new(format!("{}: {error}", input.line())))?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok((value, folder))
}

/// Whether all members are those of a manifest: a misspelt `library` would otherwise be a library binary without its host code.
///
/// # Errors
///
/// A member that there is not, or no table at all.
fn has_known_keys(manifest: &Value) -> Result<(), String> {
    const KEYS: [&str; 6] = [
        "layout",
        "order",
        "modules",
        "import_tree",
        "library",
        "blob",
    ];
    let manifest = manifest.as_object().ok_or("it is not a table")?;
    match manifest.keys().find(|key| !KEYS.contains(&key.as_str())) {
        Some(unknown) => Err(format!(
            "there is no key `{unknown}`; there are {}",
            KEYS.join(", ")
        )),
        None => Ok(()),
    }
}

/// A module of the manifest, with its payload read.
pub(super) struct ManifestEntry {
    /// `_lib` for the host library.
    pub(super) kind: String,
    /// The bytes as they are stored; `None` for the host library alone.
    pub(super) payload: Option<Vec<u8>>,
    /// Positions in the list of modules, in the order of import, which counts (TREE-21).
    pub(super) imports: Vec<usize>,
    /// The code of a host module, which is then exported with the rest.
    pub(super) code: Option<HostCode>,
}

impl ManifestEntry {
    /// Reads a module of the manifest. A decoded payload is encoded in the form of `layout`; file names start from
    /// `folder`.
    ///
    /// # Errors
    ///
    /// A key that there is not, no kind, not exactly one source of the payload (none for `_lib`), or a source that
    /// cannot be read.
    pub(super) fn read(
        value: &Value,
        layout: Layout,
        folder: &Path,
    ) -> Result<ManifestEntry, String> {
        const KEYS: [&str; 6] = ["kind", "file", "payload", "decoded", "code", "imports"];
        let object = value.as_object().ok_or("it is not a table")?;
        // A misspelt `imports` would otherwise be a module without imports.
        if let Some(unknown) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!(
                "there is no key `{unknown}`; there are {}",
                KEYS.join(", ")
            ));
        }
        let kind = value["kind"].as_str().ok_or("it has no `kind`")?.to_owned();
        let sources: Vec<&str> = ["file", "payload", "decoded", "code"]
            .into_iter()
            .filter(|key| object.contains_key(*key))
            .collect();
        let payload = match (sources.as_slice(), kind == LIBRARY) {
            ([] | ["code"], true) => None,
            (["code"], _) => {
                return Err(format!("`code` is of `{LIBRARY}`, and this is a `{kind}`"));
            }
            // BLOB-17: its code is the library itself.
            (_, true) => return Err("`_lib` has no payload".into()),
            (["file"], _) => Some(load(folder, &value["file"])?),
            (["payload"], _) => {
                let text = value["payload"]
                    .as_str()
                    .ok_or("`payload` is not base64 text")?;
                Some(
                    BASE64_STANDARD
                        .decode(text)
                        .map_err(|error| format!("`payload` is not base64: {error}"))?,
                )
            }
            (["decoded"], _) => Some(encode(&kind, &value["decoded"], layout, folder)?),
            ([], _) => return Err(format!("kind `{kind}` needs one of file, payload, decoded")),
            (several, _) => {
                return Err(format!("it has {}; one is enough", several.join(" and ")));
            }
        };
        let imports = match object.get("imports") {
            None => Vec::new(),
            Some(list) => list
                .as_array()
                .and_then(|list| list.iter().map(position).collect())
                .ok_or("`imports` is not a list of positions")?,
        };
        let code = match object.get("code") {
            Some(name) => Some(host_code(folder, name)?),
            None => None,
        };
        Ok(ManifestEntry {
            kind,
            payload,
            imports,
            code,
        })
    }

    /// The module as it is exported with host code.
    ///
    /// # Errors
    ///
    /// A host module without code, which others have.
    pub(super) fn into_export(self) -> Result<ExportModule, String> {
        let content = match (self.code, self.payload) {
            (Some(code), _) => ExportContent::Host(code),
            (None, Some(payload)) => ExportContent::Stored {
                kind: self.kind,
                payload,
            },
            (None, None) => return Err("it has no `code`, which another `_lib` has".into()),
        };
        Ok(ExportModule {
            content,
            imports: self.imports,
        })
    }

    /// The module as a blob stores it; its offset is 0, since it was never in one.
    pub(super) fn into_module(self) -> StoredModule<'static> {
        StoredModule {
            kind: Cow::Owned(self.kind),
            payload: self.payload.map(Cow::Owned),
            offset: 0,
        }
    }
}

/// The position of a module in the manifest, from 0; `None` for anything but an integer from 0 on.
pub(super) fn position(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|index| usize::try_from(index).ok())
}

/// Reads a file that the manifest names, from its own folder on.
///
/// # Errors
///
/// The name is not a text, or it is not that of a regular file that can be read.
pub(super) fn load(folder: &Path, name: &Value) -> Result<Vec<u8>, String> {
    let name = name.as_str().ok_or("`file` is not a file name")?;
    let path = folder.join(name);
    super::input::read(&path).map_err(|error| match error {
        CliError::Message(message) => message,
        CliError::ClosedPipe => format!("cannot read {}", super::output::file_name(&path)),
    })
}

/// The host code in a file that the manifest names, whose extension says what it is (BLOB-70).
///
/// # Errors
///
/// As [`load`], and an extension that no host code has.
fn host_code(folder: &Path, name: &Value) -> Result<HostCode, String> {
    let code = load(folder, name)?;
    let extension = name.as_str().and_then(|name| name.rsplit_once('.'));
    let format = extension.and_then(|(_, extension)| HostFormat::of_extension(extension));
    let format = format.ok_or_else(|| {
        format!("`code` is a .o, .c, .cc, .cpp, .cu, .ll or .bc, and {name} is none")
    })?;
    Ok(HostCode { format, code })
}

/// Encodes a payload from its decoded form, which is in the manifest or in a file beside it, as `layout` stores it.
///
/// # Errors
///
/// The file cannot be read, the form is not that of a payload of this kind, or the layout has none of it (PAY-01).
fn encode(kind: &str, decoded: &Value, layout: Layout, folder: &Path) -> Result<Vec<u8>, String> {
    let loaded;
    let decoded = match decoded {
        Value::String(_) => {
            let bytes = load(folder, decoded)?;
            loaded =
                serde_json::from_slice(&bytes).map_err(|error| format!("{decoded}: {error}"))?;
            &loaded
        }
        value => value,
    };
    let mut decoded: Value = decoded.clone();
    if let Some(object) = decoded.as_object_mut() {
        // The entry has the kind already, and need not repeat it in the form.
        object.entry("kind").or_insert_with(|| kind.into());
    }
    let payload = Payload::from_json(&decoded).map_err(|error| error.to_string())?;
    // A form of its own kind, written by `extract --json` for another module.
    if payload.kind() != kind {
        return Err(format!("the payload is that of a `{}`", payload.kind()));
    }
    let mut out = Writer::new();
    payload
        .write(layout, &mut out)
        .map_err(|broken| broken.to_string())?;
    Ok(out.into_bytes())
}
