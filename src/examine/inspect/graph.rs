//! A graph in a few numbers: inputs, outputs, operators, planned storage.

use super::room::Room;
use crate::graph::{DataEntry, Graph, NodeEntry};
use crate::rule::Findings;
use crate::tensor::Packing;
use crate::tensor::json::from_dtype;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Sums up graph JSON; `None` where `text` is not the graph of a graph executor.
///
/// It is read by the rules of chapter graph: a general JSON reader takes a hundred bytes for each of the text.
///
/// The value is the member `graph` of `inspect.json`. Types and shapes of inputs and outputs are null where the graph does not state
/// them.
pub(super) fn summary(text: &[u8], room: &Room) -> Option<Value> {
    let graph = Graph::read_bytes(text, &mut Findings::default()).ok()?;
    let entry = |entry: NodeEntry| -> Value {
        let of = graph.entry_id(entry).and_then(|id| graph.entries.get(id));
        json!({
            "name": graph.nodes.get(entry.node).map(|node| &node.name),
            "dtype": of.map(|entry| from_dtype(entry.dtype)),
            "shape": of.map(|entry| room.list(&entry.shape, |extent| json!(extent))),
        })
    };
    let inputs = graph.arg_nodes.iter().map(|node| NodeEntry {
        node: *node,
        // GRF-09: an input has one output, number 0.
        index: 0,
        version: 0,
    });
    let inputs = room.list(inputs, entry);
    let outputs = room.list(graph.heads.iter().copied(), entry);
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let calls = graph.nodes.iter().filter_map(|node| node.call.as_ref());
    for call in calls.clone() {
        // By name in a tree: the members come out sorted, however often a file is inspected.
        let count = functions.entry(&call.func_name).or_default();
        *count = count.saturating_add(1);
    }
    let mut counts = Map::new();
    // The list itself is dropped: `Room` bounds the members of the object by it.
    room.list(functions, |(name, count)| {
        counts.insert(name.to_owned(), count.into());
        json!(name)
    });
    Some(json!({
        "nodes": graph.nodes.len(),
        "operators": calls.count(),
        "entries": graph.entries.len(),
        "inputs": inputs,
        "outputs": outputs,
        "storage": storage(&graph.entries),
        "functions": counts,
    }))
}

/// Blocks of storage, by the numbers of the plan, and the bytes of all of them: each is as large as its largest entry, whose elements
/// take whole bytes.
fn storage(entries: &[DataEntry]) -> Value {
    let mut blocks: BTreeMap<usize, u64> = BTreeMap::new();
    for entry in entries {
        let bytes = Packing::Each.bytes(entry.dtype, &entry.shape);
        let block = blocks.entry(entry.storage_id).or_default();
        // What no number holds no device holds: the graph is rejected where it is run.
        *block = bytes.unwrap_or(u64::MAX).max(*block);
    }
    let bytes = blocks
        .values()
        .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    json!({ "blocks": blocks.len(), "bytes": bytes })
}
