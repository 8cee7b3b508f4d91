//! Objects saved as JSON in a few numbers: the root, how many nodes of which types, who wrote them.

use crate::blob::container::Form;
use crate::object::legacy_graph::{LegacyGraph, VERSION};
use crate::object::{self, graph_check, sequence_of};
use crate::rule::Findings;
use crate::value::{Any, cast, str_bytes};
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
    let graph = object::json::parse(text).ok()?;
    let nodes = graph_check::member(&graph, "nodes")?;
    let nodes = sequence_of(nodes.view())?;
    let root = graph_check::member(&graph, "root_index")?;
    let root: usize = cast::<i64>(root.view()).ok()?.try_into().ok()?;
    let keys: Vec<String> = nodes.iter().filter_map(|node| said(node, "type")).collect();
    let version = graph_check::member(&graph, "metadata");
    Some(json!({
        "root": nodes.get(root).and_then(|root| said(root, "type")),
        "nodes": nodes.len(),
        "tensors": keys.iter().filter(|key| *key == "ffi.Tensor").count(),
        "types": counts(keys.iter().map(String::as_str)),
        "written_by": version.and_then(|metadata| said(&metadata, VERSION)),
        "releases": "0.22..",
    }))
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

fn counts<'a>(keys: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, u64> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(named(key)).or_default() += 1;
    }
    counts
}
