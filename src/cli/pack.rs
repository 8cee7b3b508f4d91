//! `tvmspec pack MANIFEST -o OUT`: a library binary from a list of modules.
//!
//! The way: [`read`] the manifest, a [`ManifestEntry`] for each module, then a [`Blob`] with the tree of the manifest
//! ([`as_listed`]) or with that of a release ([`ordered`]), which [`Packaging`] writes.

use super::package::Packaging;
use super::{CliError, Exit};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use tvmspec::blob::pack::{ExportContent, ExportModule, HostCode, HostFormat};
use tvmspec::blob::{Blob, LIBRARY, StoredModule};
use tvmspec::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, TREE_25, order};
use tvmspec::payload::Payload;
use tvmspec::release::Layout;
use tvmspec::rule::{Findings, Violation};
use tvmspec::wire::Writer;

/// Behind the options in `--help`: the manifest by example.
const HELP: &str = "\
The manifest is TOML or JSON:

  layout = \"0.22\"             # unless --layout does
  order = \"0.8\"               # 0.7, 0.8 or topological; unless --order does

  [[modules]]                 # the first module is the root
  kind = \"_lib\"               # the host library; several are merged, as the release does
  imports = [1]               # positions in this list

  [[modules]]
  kind = \"opencl\"
  file = \"opencl.payload\"     # the payload as it is stored, beside the manifest, or
  # payload = \"<base64>\"      # the same here, or
  # decoded = \"opencl.json\"   # its decoded JSON form: a file, or the value itself;
                              # `tvmspec extract --json` writes one

Host code goes into a .so, .o, .tar or .c with the rest: each `_lib` names its file,
an object, C or C++ source, or LLVM's text or bitcode (.ll, .bc):

  [[modules]]
  kind = \"_lib\"
  code = \"host.c\"
  imports = [1]

Modules are put into the order in which that release stores them. With an explicit tree
they stay where they are, and `imports` is left out:

  [import_tree]
  indptr = [0, 1, 1]
  indices = [1]

With `library = \"model.so\"` the library binary goes into that file, in the place of its own,
and the host code stays byte for byte; `tvmspec unpack --whole` writes such a manifest.

The JSON form of a library binary (chapter blob) is such a manifest.";

#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct PackArgs {
    /// The list of modules, in TOML or JSON; --help shows one
    manifest: PathBuf,
    /// The layout to write
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// The order of modules: that of 0.7, of 0.8 and later, or parents before children, which stores every graph
    #[arg(long, value_name = "0.7|0.8|topological")]
    order: Option<Algorithm>,
    #[command(flatten)]
    packaging: Packaging,
}

/// Packs the manifest. Options go before what the manifest states.
///
/// # Errors
///
/// The manifest cannot be read or is not of its form, a payload cannot be read or encoded, the modules have no order
/// (TREE-24, TREE-25), the layout cannot hold them (BLOB-17), or the output cannot be written. Messages about the
/// manifest begin with its name.
pub(crate) fn run(args: PackArgs) -> Result<Exit, CliError> {
    let (manifest, folder) = read(&args.manifest)?;
    let named = |error: String| CliError::new(format!("{}: {error}", args.manifest.display()));
    let modules = manifest.get("modules").and_then(Value::as_array);
    let modules = modules
        .filter(|modules| !modules.is_empty())
        .ok_or_else(|| named("it has no modules; `tvmspec pack --help` shows a manifest".into()))?;
    let layout = match (args.layout, manifest.get("layout")) {
        (Some(layout), _) => layout,
        (None, Some(Value::String(name))) => name.parse().map_err(named)?,
        (None, _) => {
            return Err(named(
                "no layout; give --layout, or `layout = \"0.22\"` in it".into(),
            ));
        }
    };
    let algorithm = match (args.order, manifest.get("order")) {
        (Some(algorithm), _) => algorithm,
        (None, Some(Value::String(name))) => name.parse().map_err(named)?,
        (None, _) => Algorithm::default(),
    };
    // BLOB-14: layout 0.2 is the one-level content of a later layout, whose payloads have the same forms.
    let first = match layout {
        Layout::V0_2 => Layout::V0_7,
        layout => layout,
    };
    let read: Result<Vec<ManifestEntry>, String> = modules
        .iter()
        .enumerate()
        .map(|(index, value)| {
            ManifestEntry::read(value, first, &folder)
                .map_err(|error| format!("module {index}: {error}"))
        })
        .collect();
    // BLOB-14: it is packed in layout 0.7 and converted at the end, which rejects a tree that layout 0.2 cannot hold
    // (BLOB-17).
    let entries = read.map_err(named)?;
    if entries.iter().any(|entry| entry.code.is_some()) {
        // BLOB-70: the files of host code have the order of a walk along the imports.
        if manifest
            .get("import_tree")
            .is_some_and(|tree| !tree.is_null())
        {
            return Err(named(
                "host code is ordered by `imports`; leave `import_tree` out".into(),
            ));
        }
        let modules: Result<Vec<ExportModule>, String> = entries
            .into_iter()
            .enumerate()
            .map(|(index, entry)| {
                entry
                    .into_export()
                    .map_err(|error| format!("module {index}: {error}"))
            })
            .collect();
        return args
            .packaging
            .export(&modules.map_err(named)?, algorithm, layout);
    }
    // The JSON form of a library binary without a tree has null there.
    let blob = match manifest.get("import_tree").filter(|tree| !tree.is_null()) {
        // An explicit tree numbers the modules as they are listed: they must not move.
        Some(tree) => as_listed(entries, tree, first).map_err(named)?,
        None => ordered(entries, algorithm, first).map_err(|broken| {
            let hint = match broken.rule() {
                // TREE-25: the graph has no cycle, only the order of the release rejects it.
                TREE_25 => "; `--order topological` stores it so that every loader accepts it",
                _ => "",
            };
            named(format!("{broken}{hint}"))
        })?,
    };
    let blob = match layout == first {
        true => blob,
        false => blob
            .convert(layout)
            .map_err(|broken| named(broken.message().to_owned()))?,
    };
    // `unpack --whole` names the file that the library binary is from.
    if let Some(library) = manifest.get("library") {
        let library = load(&folder, library).map_err(named)?;
        let index = match manifest.get("blob") {
            None => 0,
            Some(wanted) => position(wanted)
                .ok_or_else(|| named("`blob` is not the number of a library binary".into()))?,
        };
        return args.packaging.replace_in_library(&blob, &library, index);
    }
    args.packaging.write(&blob)
}

/// The manifest as a JSON value, and the folder that its file names start from.
///
/// # Errors
///
/// The file cannot be read, is not UTF-8, or is neither TOML nor JSON.
fn read(path: &Path) -> Result<(Value, PathBuf), CliError> {
    let input = super::input::Input::open(path)?;
    let text = std::str::from_utf8(input.bytes()).map_err(|_| {
        CliError::new(format!(
            "{} is not text; a manifest is TOML or JSON",
            input.name
        ))
    })?;
    // By the text and not by the name, which stdin has not. No TOML begins with a brace.
    let value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    };
    let value =
        value.map_err(|error| CliError::new(format!("{}: {}", input.name, error.trim_end())))?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok((value, folder))
}

/// A module of the manifest, with its payload read.
struct ManifestEntry {
    /// `_lib` for the host library.
    kind: String,
    /// The bytes as they are stored; `None` for the host library alone.
    payload: Option<Vec<u8>>,
    /// Positions in the list of modules, in the order of import, which counts (TREE-21).
    imports: Vec<usize>,
    /// The code of a host module, which is then exported with the rest.
    code: Option<HostCode>,
}

impl ManifestEntry {
    /// Reads a module of the manifest. A decoded payload is encoded in the form of `layout`; file names start from
    /// `folder`.
    ///
    /// # Errors
    ///
    /// A key that there is not, no kind, not exactly one source of the payload (none for `_lib`), or a source that
    /// cannot be read.
    fn read(value: &Value, layout: Layout, folder: &Path) -> Result<ManifestEntry, String> {
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
    fn into_export(self) -> Result<ExportModule, String> {
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
    fn into_module(self) -> StoredModule<'static> {
        StoredModule {
            kind: Cow::Owned(self.kind),
            payload: self.payload.map(Cow::Owned),
            offset: 0,
        }
    }
}

/// The position of a module in the manifest, from 0; `None` for anything but an integer from 0 on.
fn position(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|index| usize::try_from(index).ok())
}

/// Reads a file that the manifest names, from its own folder on.
///
/// # Errors
///
/// The name is not a text, or it is not that of a regular file that can be read.
fn load(folder: &Path, name: &Value) -> Result<Vec<u8>, String> {
    let name = name.as_str().ok_or("`file` is not a file name")?;
    let path = folder.join(name);
    super::input::read(&path).map_err(|error| match error {
        CliError::Message(message) => message,
        CliError::ClosedPipe => format!("cannot read {}", path.display()),
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

/// The modules in the order of the manifest, with its tree. Nothing is merged.
///
/// # Errors
///
/// A module has `imports` as well, or the tree breaks a rule of its own (TREE-01 to TREE-09).
fn as_listed(
    entries: Vec<ManifestEntry>,
    tree: &Value,
    layout: Layout,
) -> Result<Blob<'static>, String> {
    if entries.iter().any(|entry| !entry.imports.is_empty()) {
        return Err("`imports` and `import_tree` say the same thing; leave one out".into());
    }
    // What is odd in the tree is what the user wants to be packed, and is not noted here.
    let mut findings = Findings::default();
    let tree = tvmspec::import_tree::json::to_tree(tree, &mut findings)?;
    let tree = tree.map_err(|broken| broken.to_string())?;
    Ok(Blob {
        layout,
        modules: entries
            .into_iter()
            .map(ManifestEntry::into_module)
            .collect(),
        tree: Some(tree),
    })
}

/// The modules in the order in which a release stores them, and their tree: those of the host code are one entry
/// (TREE-20).
///
/// # Errors
///
/// TREE-24 and TREE-25 for a graph that cannot be stored in this order, TREE-09 for a cycle in the tree, and what else
/// `order` rejects.
fn ordered(
    entries: Vec<ManifestEntry>,
    algorithm: Algorithm,
    layout: Layout,
) -> Result<Blob<'static>, Violation> {
    let lone = matches!(entries.as_slice(), [root] if root.kind == LIBRARY);
    if lone && matches!(layout, Layout::V0_7 | Layout::V0_21) {
        // BLOB-03, BLOB-16: what those layouts have for a library without imports: a count of 0, no entry and no tree.
        return Ok(Blob {
            layout,
            modules: Vec::new(),
            tree: None,
        });
    }
    let nodes = entries.iter().map(|entry| ModuleNode {
        kind: entry.kind.clone(),
        dso: entry.kind == LIBRARY,
        imports: entry.imports.clone(),
    });
    let stored = order(
        &ModuleGraph {
            modules: nodes.collect(),
        },
        algorithm,
    )?;
    let tree = ImportTree::new(&stored.indptr, &stored.indices, &mut Findings::default())?;
    let mut entries: Vec<Option<ManifestEntry>> = entries.into_iter().map(Some).collect();
    // TREE-20, BLOB-12: a group of several is the merged host library, one entry for all of them.
    let modules = stored
        .groups
        .iter()
        .filter_map(|group| entries.get_mut(*group.first()?)?.take())
        .map(ManifestEntry::into_module)
        .collect();
    Ok(Blob {
        layout,
        modules,
        tree: Some(tree),
    })
}
