//! Reports of `examine::inspect` on small inputs.
#![cfg(feature = "inspect")]

use serde_json::{Value, json};
use tvmspec::examine::Subject;
use tvmspec::payload::relax_vm::{RelaxConstant, RelaxExecutable};
use tvmspec::release::Layout;
use tvmspec::wire::Writer;

/// Finds the first member of this name in `value`, at any depth.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => {
            let inside = || members.values().find_map(|value| member(value, name));
            members.get(name).or_else(inside)
        }
        Value::Array(items) => items.iter().find_map(|item| member(item, name)),
        _ => None,
    }
}

#[test]
fn a_block_of_storage_is_as_large_as_its_largest_entry() {
    let graph = br#"{
        "nodes": [{"op": "null", "name": "x", "inputs": []},
                  {"op": "tvm_op", "name": "y", "attrs": {"func_name": "f", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}, "inputs": [[0, 0, 0]]},
                  {"op": "tvm_op", "name": "z", "attrs": {"func_name": "f", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}, "inputs": [[1, 0]]}],
        "arg_nodes": [0], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
        "attrs": {"shape": ["list_shape", [[2, 3], [4], [6]]], "storage_id": ["list_int", [0, 1, 0]],
                  "dltype": ["list_str", ["float32", "int8", "uint1"]]}}"#;
    let inspection = Subject::of_any("graph.json", graph, None)
        .inspect()
        .unwrap();
    let report = inspection.into_json();
    let summary = member(&report, "graph").expect("a graph");
    let at = |pointer: &str| summary.pointer(pointer).expect(pointer);
    assert_eq!(at("/storage"), &json!({"blocks": 2, "bytes": 24 + 4}));
    assert_eq!(at("/functions"), &json!({"f": 2}));
    assert_eq!(at("/inputs/0/shape"), &json!([2, 3]));
    assert_eq!(at("/outputs/0/name"), "z");
}

#[test]
fn every_float_has_a_value() {
    let executable = RelaxExecutable {
        constants: [1.5, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
            .map(RelaxConstant::Float)
            .into(),
        ..RelaxExecutable::default()
    };
    let mut out = Writer::new();
    executable.write(Layout::V0_22, &mut out).unwrap();
    let bytes = out.into_bytes();
    let subject = Subject::of_payload("code", &bytes, "relax.VMExecutable", Layout::V0_22);
    let inspection = subject.unwrap().inspect().unwrap();
    let report = inspection.into_json();
    let constants = member(&report, "constants").expect("constants");
    let values = [
        json!(1.5),
        json!("-0"),
        json!("nan"),
        json!("inf"),
        json!("-inf"),
    ];
    let expected: Vec<Value> = values
        .iter()
        .map(|value| json!({"type": "float", "value": value}))
        .collect();
    assert_eq!(constants, &Value::from(expected));
}
