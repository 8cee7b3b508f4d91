//! Objects saved as JSON in a few numbers: the root, how many nodes of which types, who wrote them.

use crate::blob::container::Form;
use crate::object::legacy_graph::{LegacyGraph, VERSION};
use crate::object::{graph_check, json, sequence_of};
use crate::rule::Findings;
use crate::value::{Any, cast, str_bytes};
use crate::wire::json::object;
use serde_json::{Map, Value};

/// Sums up the objects of either era; `None` where `text` has none that can be read.
pub(super) fn summary(text: &[u8], form: Form) -> Option<Value> {
    match form {
        Form::ObjectJson => legacy(text),
        Form::FfiJson => ffi(text),
        _ => None,
    }
}

fn legacy(text: &[u8]) -> Option<Value> {
    let graph = LegacyGraph::read(text, &mut Findings::default()).ok()?;
    let version = graph.attrs.get(VERSION);
    let keys = graph.nodes.iter().map(|node| named(&node.type_key));
    let root = graph.nodes.get(graph.root);
    Some(object([
        ("root", root.map(|node| named(&node.type_key)).into()),
        ("nodes", graph.nodes.len().into()),
        ("tensors", graph.tensors.as_ref().map_or(0, Vec::len).into()),
        ("types", counts(keys.collect())),
        (
            "written_by",
            version.map(|text| String::from_utf8_lossy(text)).into(),
        ),
        (
            "releases",
            graph.releases().map(|releases| releases.to_string()).into(),
        ),
    ]))
}

fn ffi(text: &[u8]) -> Option<Value> {
    let graph = json::parse(text).ok()?;
    let nodes = graph_check::member(&graph, "nodes")?;
    let nodes = sequence_of(nodes.view())?;
    let root = graph_check::member(&graph, "root_index")?;
    let root: usize = cast::<i64>(root.view()).ok()?.try_into().ok()?;
    let keys: Vec<String> = nodes.iter().filter_map(|node| said(node, "type")).collect();
    let version = graph_check::member(&graph, "metadata");
    let tensors = keys.iter().filter(|key| *key == "ffi.Tensor").count();
    Some(object([
        (
            "root",
            nodes.get(root).and_then(|root| said(root, "type")).into(),
        ),
        ("nodes", nodes.len().into()),
        ("tensors", tensors.into()),
        ("types", counts(keys.iter().map(|key| named(key)).collect())),
        (
            "written_by",
            version.and_then(|metadata| said(&metadata, VERSION)).into(),
        ),
        ("releases", "0.22..".into()),
    ]))
}

/// The text that is member `name` of a map.
fn said(map: &Any, name: &str) -> Option<String> {
    let text = graph_check::member(map, name)?;
    let text = text.view();
    let text = str_bytes(&text)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Null has no type key.
fn named(key: &str) -> &str {
    if key.is_empty() { "None" } else { key }
}

/// How often each key is there, by key.
fn counts(mut keys: Vec<&str>) -> Value {
    keys.sort_unstable();
    let mut counts = Map::new();
    for same in keys.chunk_by(|one, next| one == next) {
        if let Some(key) = same.first() {
            counts.insert((*key).to_owned(), same.len().into());
        }
    }
    counts.into()
}
