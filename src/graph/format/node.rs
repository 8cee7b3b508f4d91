//! Nodes: inputs, parameters and calls.

use super::entry::{NodeEntry, entries_json, read_entry_list, read_indices};
use super::json_text::JsonText;
use crate::graph::{GRF_04, GRF_05, GRF_06, GRF_07, GRF_20};
use crate::rule::{Findings, Kind, Violation};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A node: a call, or an input or parameter (GRF-04).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, by which inputs are set (GRF-32). Names of calls may repeat.
    pub name: String,
    /// The entries that the node reads, all of earlier nodes (GRF-10).
    pub inputs: Vec<NodeEntry>,
    /// The called function; `None` for an input or parameter (`op` is `null`, GRF-06), which has one output.
    pub call: Option<TvmOpParam>,
}

/// The function call of a `tvm_op` node.
#[derive(Clone, Debug, PartialEq)]
pub struct TvmOpParam {
    /// The function's name. `__nop` does nothing, and `__copy` copies its input to its output.
    pub func_name: String,
    /// The number of inputs that the compiler counted. No executor compares it with `inputs` (GRF-38).
    pub num_inputs: usize,
    /// The number of entries that the node writes.
    pub num_outputs: usize,
    /// True if every argument is passed with one flat dimension (GRF-39). In JSON, any number except 0 means true. It is written as 0
    /// or 1.
    pub flatten_data: bool,
    /// The other attributes, such as `hash` and `weight_layout`. Releases up to 0.7 drop them.
    pub attrs: BTreeMap<String, String>,
}

/// The attributes that define a call.
const TVM_OP: [&str; 4] = ["func_name", "num_inputs", "num_outputs", "flatten_data"];

impl Node {
    /// Returns the node in normal form: `op`, `name`, `attrs` of a call, and `inputs` as three numbers each (GRF-08).
    pub(super) fn to_json(&self) -> Value {
        let inputs = entries_json(&self.inputs);
        let Some(call) = &self.call else {
            return json!({ "op": "null", "name": self.name, "inputs": inputs });
        };
        json!({ "op": "tvm_op", "name": self.name, "attrs": call.attrs_json(), "inputs": inputs })
    }
}

impl TvmOpParam {
    /// Returns the node attributes, all as strings, in the order of upstream's writers.
    pub(in crate::graph) fn attrs_json(&self) -> Map<String, Value> {
        let mut attrs = Map::new();
        // GRF-07: numbers are stored as strings, because every release reads them so.
        attrs.insert("num_outputs".into(), self.num_outputs.to_string().into());
        attrs.insert("num_inputs".into(), self.num_inputs.to_string().into());
        attrs.insert(
            "flatten_data".into(),
            u8::from(self.flatten_data).to_string().into(),
        );
        attrs.insert("func_name".into(), self.func_name.clone().into());
        attrs.extend(
            self.attrs
                .iter()
                .map(|(key, value)| (key.clone(), value.clone().into())),
        );
        attrs
    }
}

/// Reads the list of nodes. The field of a violation names its node.
pub(super) fn read_nodes(
    list: JsonText<'_>,
    findings: &mut Findings,
) -> Result<Vec<Node>, Violation> {
    let mut nodes = Vec::new();
    for (index, item) in list.elements(GRF_04, "nodes")?.into_iter().enumerate() {
        let node = read_node(&item, findings).map_err(|broken| {
            let field = match broken.field() {
                "" => format!("nodes[{index}]"),
                field => format!("nodes[{index}].{field}"),
            };
            broken.in_field(field)
        })?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Reads one node (GRF-04 to GRF-06).
fn read_node(item: &JsonText<'_>, findings: &mut Findings) -> Result<Node, Violation> {
    let (mut op, mut name, mut inputs, mut attrs) = (None, None, None, None);
    let members = item.members(GRF_04, "")?;
    // GRF-20: releases treat `attr` and `attrs` as the same member, so a node with both repeats a member.
    check_duplicates(&members, findings, |key| match key {
        "attr" => "attrs",
        key => key,
    })?;
    for (key, value) in members {
        match key.as_ref() {
            "op" => op = Some(value.string(GRF_04, "op")?),
            "name" => name = Some(value.string(GRF_04, "name")?),
            "inputs" => inputs = Some(read_entry_list(value, "inputs")?),
            "attr" | "attrs" => attrs = Some(value),
            // GRF-04: every release reads this member and none uses it. Reading fails if it is not a list of indices.
            "control_deps" => drop(read_indices(value, GRF_04, "control_deps")?),
            // GRF-05: every release fails here (`do not support key`).
            _ => GRF_05.require_as(Kind::Unsupported, false, value.offset(), || {
                format!("unknown member `{key}` in a node")
            })?,
        }
    }
    let missing = |what: &str| {
        GRF_04.broken(
            Kind::Missing,
            item.offset(),
            format!("the node lacks the required member `{what}`"),
        )
    };
    // GRF-04: checked after all members are read, because they come in any order.
    let op = op.ok_or_else(|| missing("op"))?;
    let name = name.ok_or_else(|| missing("name"))?;
    let inputs = inputs.ok_or_else(|| missing("inputs"))?;
    let call = match (op.as_str(), attrs) {
        // GRF-06: an input calls no function, so its attributes are ignored.
        ("null", _) => None,
        ("tvm_op", Some(attrs)) => Some(read_call(&attrs, findings)?),
        ("tvm_op", None) => {
            return Err(GRF_07.broken(
                Kind::Missing,
                item.offset(),
                format!("node `{name}` is a `tvm_op` but has no `attrs`, which name its function"),
            ));
        }
        _ => {
            // GRF-06: 0.8 takes the number of outputs from uninitialized memory here, and crashes.
            GRF_06.require_as(Kind::Unsupported, false, item.offset(), || {
                format!("unknown op `{op}`: expected `null` or `tvm_op`")
            })?;
            None
        }
    };
    Ok(Node { name, inputs, call })
}

/// Reports the second of two members with the same meaning (GRF-20).
pub(super) fn check_duplicates(
    members: &[(Cow<'_, str>, JsonText<'_>)],
    findings: &mut Findings,
    meant: fn(&str) -> &str,
) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    for (key, value) in members {
        findings.expect(
            GRF_20,
            Kind::Duplicate,
            seen.insert(meant(key)),
            value.offset(),
            || format!("a second `{}`; the last one counts", key.escape_debug()),
        )?;
    }
    Ok(())
}

/// Reads the call of a `tvm_op` (GRF-07). All attributes are strings, including numbers.
fn read_call(attrs: &JsonText<'_>, findings: &mut Findings) -> Result<TvmOpParam, Violation> {
    let mut all = Vec::new();
    let members = attrs.members(GRF_07, "attrs")?;
    check_duplicates(&members, findings, |key| key)?;
    for (key, value) in members {
        let text = value.string(GRF_07, &format!("attrs.{key}"))?;
        all.push((key, text, value.offset()));
    }
    // GRF-20: the last of several is used, as in releases, which read all of them into the same variable.
    let find = |name: &str| {
        let found = all.iter().rev().find(|(key, ..)| key == name);
        let found = found.map(|(_, text, offset)| (text.as_str(), *offset));
        found.ok_or_else(|| {
            let message = format!("the `attrs` of the node lack the required member `{name}`");
            GRF_07.broken(Kind::Missing, attrs.offset(), message)
        })
    };
    let number = |name: &str| {
        let (text, offset) = find(name)?;
        // GRF-07: upstream's `strtoul` reads only the leading digits, so that `2x` is 2 and `x` is 0. Both are rejected here. Rust's
        // `parse` also accepts a plus sign, so the digits are checked separately.
        let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
        let parsed = text.parse::<usize>().ok().filter(|_| is_number);
        parsed.ok_or_else(|| {
            let message = format!("`{name}` is `{text}`, a number from 0 on is expected");
            GRF_07
                .broken(Kind::Malformed, offset, message)
                .in_field(format!("attrs.{name}"))
        })
    };
    let [func_name, num_inputs, num_outputs, flatten_data] = TVM_OP;
    let mut call = TvmOpParam {
        func_name: find(func_name)?.0.to_owned(),
        num_inputs: number(num_inputs)?,
        num_outputs: number(num_outputs)?,
        // GRF-07: any number except 0 is true.
        flatten_data: number(flatten_data)? != 0,
        attrs: BTreeMap::new(),
    };
    for (key, text, _) in all {
        if !TVM_OP.contains(&&*key) {
            // GRF-07: other attributes are kept, as from 0.8 on. Releases up to 0.7 drop them.
            call.attrs.insert(key.into_owned(), text);
        }
    }
    Ok(call)
}
