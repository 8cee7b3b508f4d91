//! A summary of objects that are saved as JSON: the root, the count of nodes by type, the writer.

use crate::blob::container::FileForm;
use crate::object::json_graph::ffi;
use crate::object::json_graph::legacy::{LegacyGraph, VERSION};
use crate::rule::Findings;
use crate::wire::json::object;
use serde_json::{Map, Value};

/// Summarizes saved objects, in the form of either era. Returns `None` if `text` has no readable objects.
///
/// The value is the member `objects` of `inspect.json`, with the same members for both eras: `root`, `nodes`, `tensors`, `types`,
/// `written_by`, `releases`.
pub(super) fn summary(text: &[u8], form: FileForm) -> Option<Value> {
    match form {
        FileForm::ObjectJson => legacy(text),
        FileForm::FfiJson => self::ffi(text),
        _ => None,
    }
}

/// Summarizes objects as releases up to 0.21 save them (OBJ-21 to OBJ-33).
fn legacy(text: &[u8]) -> Option<Value> {
    // The findings are dropped here, because `Subject::json` reports them.
    let graph = LegacyGraph::read(text, &mut Findings::default()).ok()?;
    let version = graph.attrs.get(VERSION);
    let keys = graph
        .nodes
        .iter()
        .map(|node| displayed_type_key(&node.type_key));
    let root = graph.nodes.get(graph.root);
    Some(object([
        (
            "root",
            root.map(|node| displayed_type_key(&node.type_key)).into(),
        ),
        ("nodes", graph.nodes.len().into()),
        ("tensors", graph.tensors.as_ref().map_or(0, Vec::len).into()),
        ("types", counts(keys.collect())),
        (
            "written_by",
            // OBJ-21: a string may hold any bytes and need not be UTF-8.
            version.map(|text| String::from_utf8_lossy(text)).into(),
        ),
        (
            "releases",
            graph.releases().map(|releases| releases.to_string()).into(),
        ),
    ]))
}

/// Summarizes objects as tvm-ffi saves them, from 0.22 on (OBJ-18 to OBJ-20).
fn ffi(text: &[u8]) -> Option<Value> {
    let graph = ffi::summary(text, VERSION)?;
    // OBJ-18: tensors are nodes here. OBJ-26, of the older form, lists them separately.
    let tensors = graph.keys.iter().filter(|key| *key == "ffi.Tensor").count();
    let keys = graph
        .keys
        .iter()
        .map(|key| displayed_type_key(key))
        .collect();
    Some(object([
        ("root", graph.root.into()),
        ("nodes", graph.nodes.into()),
        ("tensors", tensors.into()),
        ("types", counts(keys)),
        ("written_by", graph.written_by.into()),
        ("releases", "0.22..".into()),
    ]))
}

/// Returns the name of a type key. The key of null is empty up to 0.21 (OBJ-30) and `None` in tvm-ffi (OBJ-18). `None` is used for both
/// eras.
fn displayed_type_key(key: &str) -> &str {
    if key.is_empty() { "None" } else { key }
}

/// Counts how often each key occurs.
fn counts(mut keys: Vec<&str>) -> Value {
    // Sorting brings equal keys together and orders the members by name.
    keys.sort_unstable();
    let mut counts = Map::new();
    for same in keys.chunk_by(|one, next| one == next) {
        if let Some(key) = same.first() {
            counts.insert((*key).to_owned(), same.len().into());
        }
    }
    counts.into()
}
