//! Nodes: inputs, parameters and calls.

use super::entry::{NodeEntry, entries_json, read_entry_list, read_indices};
use super::json_text::JsonText;
use crate::graph::{GRF_04, GRF_05, GRF_06, GRF_07, GRF_20};
use crate::rule::{Findings, Kind, Violation};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A call, or an input or parameter (GRF-04).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name; inputs are set by it (GRF-32). Names of calls may repeat.
    pub name: String,
    /// The entries that it reads, all of earlier nodes (GRF-10).
    pub inputs: Vec<NodeEntry>,
    /// What it calls; `None` for an input or parameter (`op` is `null`, GRF-06), which has one output.
    pub call: Option<TvmOpParam>,
}

/// The function that a `tvm_op` node calls.
#[derive(Clone, Debug, PartialEq)]
pub struct TvmOpParam {
    /// The function's name; `__nop` does nothing, `__copy` copies its input to its output.
    pub func_name: String,
    /// How many inputs the compiler counted. No executor compares it with `inputs` (GRF-38).
    pub num_inputs: usize,
    /// How many entries the node writes.
    pub num_outputs: usize,
    /// Whether every argument is passed as one flat dimension (GRF-39). Any number but 0 in JSON; written as 0 or 1.
    pub flatten_data: bool,
    /// Other attributes, such as `hash` and `weight_layout`. Releases drop them up to 0.7.
    pub attrs: BTreeMap<String, String>,
}

/// The attributes that say what a call is.
const TVM_OP: [&str; 4] = ["func_name", "num_inputs", "num_outputs", "flatten_data"];

impl Node {
    /// The node in normal form: `op`, `name`, `attrs` of a call, and `inputs` as three numbers each (GRF-08).
    pub(super) fn to_json(&self) -> Value {
        let inputs = entries_json(&self.inputs);
        let Some(call) = &self.call else {
            return json!({ "op": "null", "name": self.name, "inputs": inputs });
        };
        json!({ "op": "tvm_op", "name": self.name, "attrs": call.attrs_json(), "inputs": inputs })
    }
}

impl TvmOpParam {
    /// The node attributes, all of them strings, in the order of the released writers.
    pub(in crate::graph) fn attrs_json(&self) -> Map<String, Value> {
        let mut attrs = Map::new();
        // GRF-07: numbers are strings, as every release reads them.
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

/// The list of nodes. A violation names the node that it is in as its field.
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

/// One node (GRF-04 to GRF-06).
fn read_node(item: &JsonText<'_>, findings: &mut Findings) -> Result<Node, Violation> {
    let (mut op, mut name, mut inputs, mut attrs) = (None, None, None, None);
    let members = item.members(GRF_04, "")?;
    // GRF-20: `attr` and `attrs` are one member to releases, so that one of each is a repetition.
    once(&members, findings, |key| match key {
        "attr" => "attrs",
        key => key,
    })?;
    for (key, value) in members {
        match key.as_ref() {
            "op" => op = Some(value.string(GRF_04, "op")?),
            "name" => name = Some(value.string(GRF_04, "name")?),
            "inputs" => inputs = Some(read_entry_list(value, "inputs")?),
            "attr" | "attrs" => attrs = Some(value),
            // GRF-04: read by every release, used by none; what is no list of indices ends the reading all the same.
            "control_deps" => drop(read_indices(value, GRF_04, "control_deps")?),
            // GRF-05: every release fails here (`do not support key`).
            _ => GRF_05.require_as(Kind::Unsupported, false, value.offset(), || {
                format!("a node has no member `{key}`")
            })?,
        }
    }
    let missing = |what: &str| {
        GRF_04.broken(
            Kind::Missing,
            item.offset(),
            format!("the node has no `{what}`"),
        )
    };
    // GRF-04: when all members are read, because they come in any order.
    let op = op.ok_or_else(|| missing("op"))?;
    let name = name.ok_or_else(|| missing("name"))?;
    let inputs = inputs.ok_or_else(|| missing("inputs"))?;
    let call = match (op.as_str(), attrs) {
        // GRF-06: an input calls nothing, so that what attributes it has means nothing.
        ("null", _) => None,
        ("tvm_op", Some(attrs)) => Some(read_call(&attrs, findings)?),
        ("tvm_op", None) => {
            return Err(GRF_07.broken(
                Kind::Missing,
                item.offset(),
                format!("`{name}` calls a function and has no `attrs`"),
            ));
        }
        _ => {
            // GRF-06: 0.8 takes the number of outputs from unset memory here, and crashes.
            GRF_06.require_as(Kind::Unsupported, false, item.offset(), || {
                format!("`{op}` is not an op: there are `null` and `tvm_op`")
            })?;
            None
        }
    };
    Ok(Node { name, inputs, call })
}

/// GRF-20: the second of two members that mean the same is odd.
pub(super) fn once(
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

/// What a `tvm_op` calls (GRF-07): all attributes are strings, numbers too.
fn read_call(attrs: &JsonText<'_>, findings: &mut Findings) -> Result<TvmOpParam, Violation> {
    let mut all = Vec::new();
    let members = attrs.members(GRF_07, "attrs")?;
    once(&members, findings, |key| key)?;
    for (key, value) in members {
        let text = value.string(GRF_07, &format!("attrs.{key}"))?;
        all.push((key, text, value.offset()));
    }
    // GRF-20: the last of several counts, as in releases, which read each into the same place.
    let find = |name: &str| {
        let found = all.iter().rev().find(|(key, ..)| key == name);
        let found = found.map(|(_, text, offset)| (text.as_str(), *offset));
        found.ok_or_else(|| {
            let message = format!("the node's attrs have no `{name}`");
            GRF_07.broken(Kind::Missing, attrs.offset(), message)
        })
    };
    let number = |name: &str| {
        let (text, offset) = find(name)?;
        // GRF-07: upstream's `strtoul` takes the digits in front, so that `2x` is 2 and `x` is 0. Here neither is a number.
        // GRF-07: digits alone: Rust reads a plus sign as well.
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
        // GRF-07: any number but 0 is true.
        flatten_data: number(flatten_data)? != 0,
        attrs: BTreeMap::new(),
    };
    for (key, text, _) in all {
        if !TVM_OP.contains(&&*key) {
            // GRF-07: kept, as from 0.8 on. Up to 0.7 releases drop them.
            call.attrs.insert(key.into_owned(), text);
        }
    }
    Ok(call)
}
