//! The JSON form of a blob.
//!
//! ```json
//! {"layout": "0.22",
//!  "modules": [{"kind": "_lib"}, {"kind": "cuda", "payload": "<base64>"}],
//!  "import_tree": {"indptr": [0, 1, 1], "indices": [1]}}
//! ```

use super::{BLOB_17, Blob, LIBRARY, LibraryModule, StoredModule};
use crate::import_tree::ImportTree;
use crate::import_tree::json::from_tree;
use crate::release::{Layout, ParseError};
use crate::rule::{Findings, Kind, Violation};
use crate::wire::json::object;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value};

impl Blob<'_> {
    /// Returns the JSON form. `import_tree` is null for a blob without a tree.
    pub fn to_json(&self) -> Value {
        let modules: Vec<Value> = self.modules.iter().map(LibraryModule::to_json).collect();
        object([
            ("layout", self.layout.name().into()),
            ("modules", modules.into()),
            (
                "import_tree",
                self.tree.as_ref().map_or(Value::Null, from_tree),
            ),
        ])
    }
}

impl Blob<'static> {
    /// Creates the blob that `value` describes, and checks its tree against the rules of the import tree.
    ///
    /// # Errors
    ///
    /// Returns BLOB-17, kind `type`, if `value` is not of this form or has an unknown member. A manifest has such a member, `file`, and
    /// is read by module `examine::unpack` instead. Returns a TREE rule if the tree breaks one.
    pub fn from_json(value: &Value) -> Result<Blob<'static>, Violation> {
        known_members(value, &["layout", "modules", "import_tree"])?;
        let layout = value
            .get("layout")
            .and_then(Value::as_str)
            .ok_or_else(|| wrong("`layout` must be text"))?;
        // Only the name of a layout is accepted: a release between two layouts is not a layout, although it writes one.
        let layout: Layout = layout
            .parse()
            .map_err(|error: ParseError| wrong(&error.to_string()))?;
        let modules = value
            .get("modules")
            .and_then(Value::as_array)
            .ok_or_else(|| wrong("`modules` must be a list"))?;
        let modules = modules
            .iter()
            .map(|module| LibraryModule::from_json(module, layout))
            .collect::<Result<_, _>>()?;
        let tree = match value.get("import_tree") {
            None | Some(Value::Null) => None,
            Some(tree) => {
                known_members(tree, &["indptr", "indices"])?;
                let words = |field: &str| {
                    let list = tree.get(field).and_then(Value::as_array)?;
                    list.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()
                };
                let indptr =
                    words("indptr").ok_or_else(|| wrong("`indptr` must be a list of integers"))?;
                let indices = words("indices")
                    .ok_or_else(|| wrong("`indices` must be a list of integers"))?;
                // Findings are dropped, because there is no file that a report could refer to.
                Some(ImportTree::new(
                    &indptr,
                    &indices,
                    &mut Findings::default(),
                )?)
            }
        };
        Ok(Blob {
            layout,
            modules,
            tree,
        })
    }
}

impl LibraryModule<'_> {
    /// Returns an object with `kind`, and with the payload as base64 if there is one.
    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("kind".into(), self.kind().into());
        if let Some(payload) = self.payload() {
            // BLOB-11: `_lib` has no payload, which differs from an empty payload (BLOB-15).
            object.insert("payload".into(), BASE64_STANDARD.encode(payload).into());
        }
        Value::Object(object)
    }
}

impl LibraryModule<'static> {
    /// Creates the module from an object with `kind` and an optional `payload`.
    fn from_json(value: &Value, layout: Layout) -> Result<LibraryModule<'static>, Violation> {
        known_members(value, &["kind", "payload"])?;
        let kind = value
            .get("kind")
            .and_then(Value::as_str)
            .ok_or_else(|| wrong("a module's `kind` must be text"))?;
        let payload = match value.get("payload") {
            None | Some(Value::Null) if kind == LIBRARY => return Ok(LibraryModule::Host),
            None | Some(Value::Null) => {
                let message = format!("module `{kind}` has no payload");
                return Err(BLOB_17.rejected(Kind::Missing, message));
            }
            Some(Value::String(text)) => BASE64_STANDARD
                .decode(text)
                .map_err(|_| wrong("`payload` is not base64"))?,
            _ => return Err(wrong("a module's `payload` must be base64")),
        };
        Ok(StoredModule::new(kind.to_owned(), payload, layout).into())
    }
}

/// Checks that an object has no members other than `known`.
fn known_members(value: &Value, known: &[&str]) -> Result<(), Violation> {
    let mut members = value.as_object().into_iter().flat_map(Map::keys);
    match members.find(|member| !known.contains(&member.as_str())) {
        Some(unknown) => {
            let unknown = unknown.escape_debug();
            let known = known.join(", ");
            Err(wrong(&format!(
                "unknown member `{unknown}`: expected {known}"
            )))
        }
        None => Ok(()),
    }
}

/// Creates the error for a description that is not of this form: BLOB-17, kind type.
fn wrong(message: &str) -> Violation {
    BLOB_17.rejected(Kind::Type, format!("not a blob in JSON form: {message}"))
}
