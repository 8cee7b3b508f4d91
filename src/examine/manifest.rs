//! The manifest that a library binary is packed from (`spec/schema/manifest.json`): layout, order, modules.

use crate::blob::{Blob, LIBRARY, LibraryModule, StoredModule};
use crate::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, json, order};
use crate::payload::Payload;
use crate::release::{Layout, ParseError};
use crate::rule::{Findings, Violation};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value};
use std::fmt;

/// A manifest, with the payloads of all modules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Manifest {
    /// The layout to write.
    pub layout: Layout,
    /// The release whose order of modules is used if `tree` is `None`.
    pub order: Algorithm,
    /// The modules; the first is the root.
    pub modules: Vec<ManifestModule>,
    /// The import tree. If it is present, the modules keep their order.
    pub tree: Option<ImportTree<'static>>,
    /// The name of the file whose library binary is replaced. Its host code stays.
    pub library: Option<String>,
    /// The number of that library binary, if the file has several.
    pub blob: Option<usize>,
}

/// A module of a [`Manifest`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManifestModule {
    /// `_lib` for the host library.
    pub kind: String,
    /// The payload as it is stored. Only the host library has `None`.
    pub payload: Option<Vec<u8>>,
    /// Positions in the list of modules, in the order of import, which is significant (TREE-21).
    pub imports: Vec<usize>,
    /// The name of the file with the code of a host module, to be exported together with the library binary. It is not read here.
    pub code: Option<String>,
}

/// The reason why a value is not a manifest, or why no library binary can be made from the manifest.
///
/// Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPackable {
    /// The line.
    message: String,
    /// The broken rule, if there is one.
    broken: Option<Violation>,
}

impl NotPackable {
    /// Returns the broken rule, if the value has the form of a manifest.
    pub fn broken(&self) -> Option<&Violation> {
        self.broken.as_ref()
    }
}

impl fmt::Display for NotPackable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NotPackable {}

impl From<ParseError> for NotPackable {
    fn from(error: ParseError) -> NotPackable {
        error.to_string().into()
    }
}

impl From<String> for NotPackable {
    fn from(message: String) -> NotPackable {
        NotPackable {
            message,
            broken: None,
        }
    }
}

impl From<&str> for NotPackable {
    fn from(message: &str) -> NotPackable {
        message.to_owned().into()
    }
}

impl From<Violation> for NotPackable {
    fn from(broken: Violation) -> NotPackable {
        NotPackable {
            message: broken.to_string(),
            broken: Some(broken),
        }
    }
}

impl Manifest {
    /// Reads the manifest in `value`. `layout` and `order` override the values in the manifest. `file` returns the bytes of a file that
    /// the manifest names. It is called for payloads and decoded forms, but not for host code or a whole library.
    ///
    /// # Errors
    ///
    /// Fails for an unknown member, a member of the wrong form, or a missing layout. Also fails for a module without a kind, or without
    /// exactly one source of its payload. Other errors come from `file`, from a payload that the layout cannot store (chapter payload),
    /// and from a tree that breaks TREE-01 to TREE-09.
    pub fn read<D: fmt::Display>(
        value: &Value,
        layout: Option<Layout>,
        order: Option<Algorithm>,
        mut file: impl FnMut(&str) -> Result<Vec<u8>, D>,
    ) -> Result<Manifest, NotPackable> {
        const KEYS: &[&str] = &[
            "layout",
            "order",
            "modules",
            "import_tree",
            "library",
            "blob",
        ];
        // Unknown keys are rejected. Otherwise a misspelt `library` would silently create a result without its host code.
        let manifest = table(value, KEYS)?;
        let modules = manifest.get("modules").and_then(Value::as_array);
        let modules = modules.filter(|modules| !modules.is_empty());
        let modules = modules.ok_or("it has no modules; `tvmspec pack --help` shows a manifest")?;
        let unknown = |error: ParseError| error.to_string();
        let layout = match (layout, manifest.get("layout")) {
            (Some(layout), _) => layout,
            (None, Some(Value::String(name))) => name.parse().map_err(unknown)?,
            (None, _) => return Err("it has no `layout`, such as \"0.22\"".into()),
        };
        let order = match (order, manifest.get("order")) {
            (Some(order), _) => order,
            (None, Some(Value::String(name))) => name.parse().map_err(unknown)?,
            (None, _) => Algorithm::default(),
        };
        let mut load = |name: &str| file(name).map_err(|error| error.to_string());
        let modules = modules.iter().enumerate().map(|(index, value)| {
            ManifestModule::read(value, listed(layout), &mut load)
                .map_err(|error| format!("module {index}: {error}"))
        });
        let modules: Vec<ManifestModule> = modules.collect::<Result<_, _>>()?;
        // The JSON form of a library binary without a tree has null here.
        let tree = match manifest.get("import_tree").filter(|tree| !tree.is_null()) {
            Some(tree) => {
                table(tree, &["indptr", "indices"])?;
                // The user may want to pack an odd tree, so its oddities are not reported.
                Some(json::to_tree(tree, &mut Findings::default())??)
            }
            None => None,
        };
        if tree.is_some() && modules.iter().any(|module| !module.imports.is_empty()) {
            return Err("`imports` and `import_tree` say the same thing; leave one out".into());
        }
        let library = manifest.get("library").map(|name| {
            let name = name.as_str().map(str::to_owned);
            name.ok_or("`library` is not a file name")
        });
        let blob = manifest
            .get("blob")
            .map(|number| position(number).ok_or("`blob` is not the number of a library binary"));
        if blob.is_some() && library.is_none() {
            let message = "`blob` is the number of a library binary in `library`, which is missing";
            return Err(message.into());
        }
        Ok(Manifest {
            layout,
            order,
            modules,
            tree,
            library: library.transpose()?,
            blob: blob.transpose()?,
        })
    }

    /// Converts the manifest into a library binary. The modules keep their order if there is a tree; otherwise they stand in the order
    /// in which the release stores them. Code of host modules is not included.
    ///
    /// # Errors
    ///
    /// Returns TREE-24 or TREE-25 for imports that cannot be stored in this order, and TREE-09 for a cycle. Returns BLOB-17 if the
    /// layout cannot hold the modules. Other errors are those of [`order`](crate::import_tree::order).
    pub fn into_blob(self) -> Result<Blob<'static>, NotPackable> {
        let (layout, first) = (self.layout, listed(self.layout));
        let blob = match self.tree {
            // TREE-01: an explicit tree refers to modules by position, so that nothing is reordered or merged.
            Some(tree) => Blob {
                layout: first,
                modules: stored(self.modules, first),
                tree: Some(tree),
            },
            None => ordered(self.modules, self.order, first)?,
        };
        if layout == first {
            return Ok(blob);
        }
        // BLOB-14: the conversion is the last step. It rejects a tree that layout 0.2 cannot hold (BLOB-17).
        Ok(blob.convert(layout)?)
    }
}

impl ManifestModule {
    /// Reads one module. A decoded payload has the form of `layout`.
    fn read(
        value: &Value,
        layout: Layout,
        load: &mut impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<ManifestModule, String> {
        const KEYS: &[&str] = &["kind", "file", "payload", "decoded", "code", "imports"];
        // Unknown keys are rejected. Otherwise a misspelt `imports` would silently create a module without imports.
        let object = table(value, KEYS)?;
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let kind = text("kind").ok_or("it has no `kind`")?.to_owned();
        let sources: Vec<&str> = ["file", "payload", "decoded", "code"]
            .into_iter()
            .filter(|key| object.contains_key(*key))
            .collect();
        let payload = match (sources.as_slice(), kind == LIBRARY) {
            ([] | ["code"], true) => None,
            (["code"], _) => {
                return Err(format!("`code` is of `{LIBRARY}`, and this is a `{kind}`"));
            }
            // BLOB-17: the code of `_lib` is the library itself.
            (_, true) => return Err("`_lib` has no payload".into()),
            (["file"], _) => Some(load(text("file").ok_or("`file` is not a file name")?)?),
            (["payload"], _) => {
                let text = text("payload").ok_or("`payload` is not base64 text")?;
                let bytes = BASE64_STANDARD.decode(text);
                Some(bytes.map_err(|error| format!("`payload` is not base64: {error}"))?)
            }
            (["decoded"], _) => {
                let decoded = object.get("decoded").unwrap_or(&Value::Null);
                Some(encode(&kind, decoded, layout, load)?)
            }
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
            Some(name) => Some(name.as_str().ok_or("`code` is not a file name")?.to_owned()),
            None => None,
        };
        Ok(ManifestModule {
            kind,
            payload,
            imports,
            code,
        })
    }
}

/// Returns the layout in which a manifest of `layout` lists its payloads and its tree.
fn listed(layout: Layout) -> Layout {
    match layout {
        // BLOB-14: layout 0.2 stores one level of a later layout, and its payloads have the same forms.
        Layout::V0_2 => Layout::V0_7,
        layout => layout,
    }
}

/// Returns the members of the object `value`, and rejects members that are not among `keys`.
fn table<'v>(value: &'v Value, keys: &[&str]) -> Result<&'v Map<String, Value>, String> {
    let object = value.as_object().ok_or("it is not a table")?;
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(unknown) => Err(format!(
            "unknown key `{unknown}`: expected {}",
            keys.join(", ")
        )),
        None => Ok(object),
    }
}

/// Returns the position of a module in the manifest, from 0; `None` for anything but an integer from 0 on.
fn position(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|index| usize::try_from(index).ok())
}

/// Encodes a payload from its decoded form, as `layout` stores it. The decoded form is in the manifest or in a file that it names.
///
/// The form must be that of a payload of this kind, in a layout that has it (PAY-01).
fn encode(
    kind: &str,
    decoded: &Value,
    layout: Layout,
    load: &mut impl FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let mut decoded: Value = match decoded {
        Value::String(name) => {
            serde_json::from_slice(&load(name)?).map_err(|error| format!("{decoded}: {error}"))?
        }
        value => value.clone(),
    };
    if let Some(object) = decoded.as_object_mut() {
        // The manifest already states the kind of the module, so the decoded form may omit it.
        object.entry("kind").or_insert_with(|| kind.into());
    }
    let payload = Payload::from_json(&decoded).map_err(|error| error.to_string())?;
    // `extract --json` writes the kind into the decoded form. Here that form belongs to a module of another kind.
    if payload.kind() != kind {
        return Err(format!("the payload is that of a `{}`", payload.kind()));
    }
    payload
        .to_bytes(layout)
        .map_err(|broken| broken.to_string())
}

/// Converts the modules into their form in a library binary of `layout`.
fn stored(
    modules: impl IntoIterator<Item = ManifestModule>,
    layout: Layout,
) -> Vec<LibraryModule<'static>> {
    let stored = |module: ManifestModule| match module.payload {
        None => LibraryModule::Host,
        Some(payload) => StoredModule::new(module.kind, payload, layout).into(),
    };
    modules.into_iter().map(stored).collect()
}

/// Puts the modules into the order in which a release stores them, and builds their tree. All modules of host code become one entry
/// (TREE-20).
fn ordered(
    modules: Vec<ManifestModule>,
    algorithm: Algorithm,
    layout: Layout,
) -> Result<Blob<'static>, Violation> {
    let lone = matches!(modules.as_slice(), [root] if root.kind == LIBRARY);
    if lone && matches!(layout, Layout::V0_7 | Layout::V0_21) {
        // BLOB-03, BLOB-16: in these layouts, a library without imports has a count of 0, no entry and no tree.
        return Ok(Blob {
            layout,
            modules: Vec::new(),
            tree: None,
        });
    }
    let nodes = modules.iter().map(|module| ModuleNode {
        kind: module.kind.clone(),
        dso: module.kind == LIBRARY,
        imports: module.imports.clone(),
    });
    let graph = ModuleGraph {
        modules: nodes.collect(),
    };
    let found = order(&graph, algorithm)?;
    let tree = ImportTree::new(&found.indptr, &found.indices, &mut Findings::default())?;
    let mut modules: Vec<Option<ManifestModule>> = modules.into_iter().map(Some).collect();
    // TREE-20, BLOB-12: a group of several modules is the merged host library, which has one entry.
    let modules = found
        .groups
        .iter()
        .filter_map(|group| modules.get_mut(*group.first()?)?.take());
    Ok(Blob {
        layout,
        modules: stored(modules, layout),
        tree: Some(tree),
    })
}
