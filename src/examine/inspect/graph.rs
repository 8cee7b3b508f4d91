//! A summary of a graph: inputs, outputs, operators, planned storage.

use super::memory_limit::MemoryBudget;
use crate::graph::{DataEntry, Graph, NodeEntry, dtype_text};
use crate::rule::Findings;
use crate::tensor::Packing;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Summarizes graph JSON. Returns `None` if `text` is not the graph of a graph executor.
///
/// The text is read by the rules of chapter graph, because a general JSON reader takes a hundred bytes for each byte of text.
///
/// The value is the member `graph` of `inspect.json`. Types and shapes of inputs and outputs are null if the graph does not state them.
pub(super) fn summary(text: &[u8], room: &MemoryBudget) -> Option<Value> {
    let graph = Graph::read_bytes(text, &mut Findings::default()).ok()?;
    let entry = |entry: NodeEntry| -> Value {
        let of = graph.entry_id(entry).and_then(|id| graph.entries.get(id));
        json!({
            "name": graph.nodes.get(entry.node).map(|node| &node.name),
            // GRF-17: type names are those of the last release that has graphs.
            "dtype": of.map(|entry| dtype_text(entry.dtype)),
            "shape": of.map(|entry| room.list(&entry.shape, |extent| json!(extent))),
        })
    };
    let inputs = graph.arg_nodes.iter().map(|node| NodeEntry {
        node: *node,
        // GRF-09: the only output of an input has number 0.
        index: 0,
        version: 0,
    });
    let inputs = room.list(inputs, entry);
    let outputs = room.list(graph.heads.iter().copied(), entry);
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let calls = graph.nodes.iter().filter_map(|node| node.call.as_ref());
    for call in calls.clone() {
        // The members are sorted by name, so that every inspection of a file prints the same text.
        let count = functions.entry(&call.func_name).or_default();
        *count = count.saturating_add(1);
    }
    let mut counts = Map::new();
    // The list is dropped. It is built so that `MemoryBudget` limits the members of the object.
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

/// Returns the number of storage blocks in the plan, and their total size in bytes. A block is as large as its largest entry. Elements
/// take whole bytes.
fn storage(entries: &[DataEntry]) -> Value {
    let mut blocks: BTreeMap<usize, u64> = BTreeMap::new();
    for entry in entries {
        let bytes = Packing::Each.bytes(entry.dtype, &entry.shape);
        let block = blocks.entry(entry.storage_id).or_default();
        // No device has that much memory: such a graph is rejected when it is run.
        *block = bytes.unwrap_or(u64::MAX).max(*block);
    }
    let bytes = blocks
        .values()
        .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    json!({ "blocks": blocks.len(), "bytes": bytes })
}
