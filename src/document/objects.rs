//! Objects saved as JSON in a few numbers: the root, how many nodes of which types, who wrote them.

use crate::blob::container::Form;
use crate::object::legacy_graph::{LegacyGraph, VERSION};
use crate::rule::Findings;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Sums up the objects of either era; `None` where `text` has none that can be read.
pub fn summary(text: &[u8], form: Form) -> Option<Value> {
    match form {
        Form::ObjectJson => legacy(text),
        Form::FfiJson => ffi(text),
        _ => None,
    }
}

fn legacy(text: &[u8]) -> Option<Value> {
    let graph = LegacyGraph::read(text, &mut Findings::default()).ok()?;
    let version = graph.attrs.get(VERSION);
    let keys = graph.nodes.iter().map(|node| node.type_key.as_str());
    Some(json!({
        "root": graph.nodes.get(graph.root).map(|node| named(&node.type_key)),
        "nodes": graph.nodes.len(),
        "tensors": graph.tensors.as_ref().map_or(0, Vec::len),
        "types": counts(keys),
        "written_by": version.map(|text| String::from_utf8_lossy(text)),
        "releases": graph.releases().map(|releases| releases.to_string()),
    }))
}

fn ffi(text: &[u8]) -> Option<Value> {
    let graph: Value = serde_json::from_slice(text).ok()?;
    let nodes = graph.get("nodes")?.as_array()?;
    let key = |node: &Value| Some(node.get("type")?.as_str()?.to_owned());
    let root = graph.get("root_index")?.as_u64()?;
    let root = usize::try_from(root).ok().and_then(|root| nodes.get(root));
    let keys: Vec<String> = nodes.iter().filter_map(key).collect();
    Some(json!({
        "root": root.and_then(key),
        "nodes": nodes.len(),
        "tensors": keys.iter().filter(|key| *key == "ffi.Tensor").count(),
        "types": counts(keys.iter().map(String::as_str)),
        "written_by": graph.get("metadata").and_then(|metadata| metadata.get(VERSION)),
        "releases": "0.22..",
    }))
}

/// Null has no type key.
fn named(key: &str) -> &str {
    if key.is_empty() { "None" } else { key }
}

fn counts<'a>(keys: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, u64> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(named(key)).or_default() += 1;
    }
    counts
}
