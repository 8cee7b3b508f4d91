//! A graph in a few numbers: inputs, outputs, operators, planned storage.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Sums up graph JSON; `None` where `text` is not the graph of a graph executor.
///
/// This is a view for people. It shows what is there and checks nothing.
pub(super) fn summary(text: &[u8]) -> Option<Value> {
    let graph: Value = serde_json::from_slice(text).ok()?;
    let nodes = graph.get("nodes")?.as_array()?;
    let heads = graph.get("heads")?.as_array()?;
    let rows = list(&graph, "node_row_ptr")?;
    let attribute = |name: &str| {
        let values = graph.get("attrs")?.get(name)?.as_array()?.get(1)?;
        values.as_array()
    };
    let (shapes, dtypes) = (attribute("shape")?, attribute("dltype")?);
    let entry = |node: usize, output: usize| -> Value {
        let entry = rows
            .get(node)
            .and_then(Value::as_u64)
            .and_then(|row| usize::try_from(row).ok())
            .and_then(|row| row.checked_add(output));
        let of = |values: &Vec<Value>| {
            entry
                .and_then(|entry| values.get(entry))
                .cloned()
                .unwrap_or(Value::Null)
        };
        json!({
            "name": nodes.get(node).and_then(|node| node.get("name")),
            "dtype": of(dtypes),
            "shape": of(shapes),
        })
    };
    let inputs: Vec<Value> = list(&graph, "arg_nodes")?
        .iter()
        .filter_map(|node| Some(entry(index(node)?, 0)))
        .collect();
    let outputs: Vec<Value> = heads
        .iter()
        .filter_map(|head| Some(entry(index(head.get(0)?)?, index(head.get(1)?)?)))
        .collect();
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let operators = nodes.iter().filter(|node| node["op"] != "null");
    for node in operators.clone() {
        let attrs = node.get("attrs").or_else(|| node.get("attr"));
        let name = attrs.and_then(|attrs| attrs["func_name"].as_str());
        *functions.entry(name.unwrap_or("?")).or_default() += 1;
    }
    Some(json!({
        "nodes": nodes.len(),
        "operators": operators.count(),
        "entries": shapes.len(),
        "inputs": inputs,
        "outputs": outputs,
        "storage": storage(attribute("storage_id"), shapes, dtypes),
        "functions": functions,
    }))
}

/// Blocks of storage, and the bytes of all of them: each as large as its largest entry.
fn storage(ids: Option<&Vec<Value>>, shapes: &[Value], dtypes: &[Value]) -> Value {
    let mut blocks: BTreeMap<i64, u64> = BTreeMap::new();
    for ((id, shape), dtype) in ids.into_iter().flatten().zip(shapes).zip(dtypes) {
        let Some(id) = id.as_i64() else { continue };
        let bytes = entry_bytes(shape, dtype).unwrap_or(0);
        let block = blocks.entry(id).or_default();
        *block = bytes.max(*block);
    }
    let bytes = blocks
        .values()
        .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    json!({ "blocks": blocks.len(), "bytes": bytes })
}

fn entry_bytes(shape: &Value, dtype: &Value) -> Option<u64> {
    let elements = shape.as_array()?.iter().try_fold(1u64, |product, extent| {
        product.checked_mul(extent.as_u64()?)
    })?;
    // `float32`, `uint1`, `float32x4`; `bool` is one bit in a byte, `handle` a pointer.
    let dtype = dtype.as_str()?;
    let digits = dtype.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let (bits, lanes) = digits.split_once('x').unwrap_or((digits, "1"));
    let bits = match dtype {
        "bool" => 1,
        "handle" => 64,
        _ => bits.parse::<u64>().ok()?,
    };
    let bytes = bits.checked_mul(lanes.parse().ok()?)?.div_ceil(8);
    elements.checked_mul(bytes)
}

fn list<'a>(graph: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    graph.get(name)?.as_array()
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|index| usize::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_storage_is_as_large_as_its_largest_entry() {
        let graph = br#"{
            "nodes": [{"op": "null", "name": "x", "inputs": []},
                      {"op": "tvm_op", "name": "y", "attrs": {"func_name": "f"}, "inputs": [[0, 0, 0]]},
                      {"op": "tvm_op", "name": "z", "attrs": {"func_name": "f"}, "inputs": [[1, 0]]}],
            "arg_nodes": [0], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
            "attrs": {"shape": ["list_shape", [[2, 3], [4], [6]]], "storage_id": ["list_int", [0, 1, 0]],
                      "dltype": ["list_str", ["float32", "int8", "uint1"]]}}"#;
        let summary = summary(graph).unwrap();
        assert_eq!(summary["storage"], json!({"blocks": 2, "bytes": 24 + 4}));
        assert_eq!(summary["functions"], json!({"f": 2}));
        assert_eq!(summary["inputs"][0]["shape"], json!([2, 3]));
        assert_eq!(summary["outputs"][0]["name"], "z");
        assert!(super::summary(b"{}").is_none());
    }
}
