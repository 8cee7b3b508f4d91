//! The verdict of the executor of each release on the text of a graph. Executors do not check some rules at all, and check only the
//! types for others.

use super::Load;
use super::graph_reader::ReadGraph;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::tensor::Dtype;
use serde_json::Value;

/// The text of a graph, and its faults.
pub(crate) struct GraphText {
    /// The graph as the executors read it, or the reason why they reject it.
    read: Result<ReadGraph, String>,
    /// The first rule that the text breaks.
    broken: Option<Violation>,
    /// The first rule that the graph breaks after the executors have read it.
    fault: Option<Violation>,
}

impl GraphText {
    /// Reads `text`; `broken` is the first rule that it breaks.
    pub(crate) fn read(text: &[u8], broken: Option<Violation>) -> GraphText {
        let read = ReadGraph::read(text);
        // A text that is not JSON breaks GRF-01. The executors may still read a graph from it, which is checked separately.
        let is_json = broken
            .as_ref()
            .is_none_or(|broken| broken.rule().id() != "GRF-01");
        let fault = match (&read, is_json) {
            (Ok(read), false) => read.fault(),
            _ => broken.clone(),
        };
        GraphText {
            read,
            broken,
            fault,
        }
    }

    /// Returns the verdict of `release` on the text when an executor is created.
    pub(crate) fn judge(&self, release: Release) -> Load {
        if release >= Release::of(20) {
            return Load::fails("there is no graph executor");
        }
        let read = match &self.read {
            Ok(read) => read,
            Err(why) => return Load::fails(why.clone()),
        };
        if let Some(why) = newer_member(release, read) {
            return Load::fails(why);
        }
        if let Some(load) = unnamed_type(release, &read.graph) {
            return load;
        }
        let Some(broken) = &self.broken else {
            return Load::loads("with the library that it was built with");
        };
        let unseen = || {
            Load::silent(format!(
                "it creates an executor without an error, although the graph breaks a rule: {broken}"
            ))
        };
        let Some(fault) = &self.fault else {
            return unseen();
        };
        match verdict(&read.graph, fault) {
            Verdict::Unseen => unseen(),
            Verdict::Memory => Load::unknown(format!(
                "it reads memory after the end of its lists, and either crashes or uses what it finds. The graph breaks a rule: {fault}"
            )),
            Verdict::Rejects => Load::fails(fault.to_string()),
        }
    }
}

/// Returns the reason why `release` rejects a member that only later releases write (GRF-03, GRF-13).
fn newer_member(release: Release, read: &ReadGraph) -> Option<String> {
    let since = |minor| release < Release::of(minor);
    if since(6) && read.has_metadata {
        return Some("it does not know the member `metadata`".into());
    }
    if since(10) && read.graph.get("attrs")?.get("storage_scope").is_some() {
        return Some("it cannot skip the attribute `storage_scope`".into());
    }
    None
}

/// Returns the verdict for a graph with an element type that only other releases can name (GRF-17).
fn unnamed_type(release: Release, graph: &Value) -> Option<Load> {
    let names = graph.pointer("/attrs/dltype/1")?.as_array()?;
    let mut names = names.iter().filter_map(Value::as_str);
    let name = names.find(|name| {
        let is_known = Release::all().any(|other| Dtype::parse(name, other).is_ok());
        is_custom(name) || is_known && Dtype::parse(name, release).is_err()
    })?;
    // TEN-02: 0.6 introduced custom types.
    Some(if is_custom(name) && release >= Release::of(6) {
        Load::unknown(format!(
            "it makes an executor if the process has registered the type of `{name}`"
        ))
    } else {
        Load::fails(format!("it has no element type `{name}`"))
    })
}

fn is_custom(dtype: &str) -> bool {
    dtype.starts_with("custom[")
}

/// The effect of a broken rule on the readers of 0.2 to 0.19.
enum Verdict {
    /// They reject it, or end the process.
    Rejects,
    /// They do not check the rule.
    Unseen,
    /// They use an index beyond the end of a list.
    Memory,
}

/// Returns the effect of `broken`, the first broken rule of a text.
fn verdict(graph: &Value, broken: &Violation) -> Verdict {
    let rule = broken.rule().id();
    // Every reader stops at a number where it expects a text. A text is accepted, whether or not its content is valid.
    if matches!(rule, "GRF-07" | "GRF-11" | "GRF-12") && !is_typed(graph) {
        return Verdict::Rejects;
    }
    let nodes = list(graph, "nodes").len() as u64;
    match rule {
        "GRF-07" if broken.kind() == Kind::Malformed => Verdict::Unseen,
        "GRF-10" => Verdict::Unseen,
        "GRF-09" => judge_node_numbers(nodes, entries(graph)),
        "GRF-11" => judge_node_numbers(nodes, list(graph, "arg_nodes").iter()),
        // The last element counts the entries, and the lists of the graph must have that length.
        "GRF-12" => {
            let rows = list(graph, "node_row_ptr");
            let shapes = graph.pointer("/attrs/shape/1").and_then(Value::as_array);
            let counted = rows.last().and_then(Value::as_u64);
            let whole = counted == shapes.map(|shapes| shapes.len() as u64);
            if whole && rows.len() as u64 > nodes {
                Verdict::Unseen
            } else {
                Verdict::Rejects
            }
        }
        // The product of the extents overflows, and too little memory is allocated. For an image, the device gets the extents instead.
        "GRF-23" if graph.pointer("/attrs/storage_scope").is_none() => Verdict::Unseen,
        "GRF-52" => Verdict::Memory,
        _ => Verdict::Rejects,
    }
}

/// Returns the verdict on node numbers: unseen if each is less than the number of nodes, otherwise memory.
fn judge_node_numbers<'v>(nodes: u64, mut numbers: impl Iterator<Item = &'v Value>) -> Verdict {
    if numbers.all(|number| number.as_u64().is_some_and(|number| number < nodes)) {
        Verdict::Unseen
    } else {
        Verdict::Memory
    }
}

/// Returns the node number of every entry: the inputs of nodes, and the heads.
fn entries(graph: &Value) -> impl Iterator<Item = &Value> {
    let inputs = list(graph, "nodes")
        .iter()
        .flat_map(|node| list(node, "inputs"));
    inputs
        .chain(list(graph, "heads"))
        .filter_map(|entry| entry.get(0))
}

/// Returns whether the attributes of nodes are texts, and the lists of numbers contain integers only.
fn is_typed(graph: &Value) -> bool {
    let texts = |attrs: &Value| match attrs.as_object() {
        Some(attrs) => attrs.values().all(Value::is_string),
        None => false,
    };
    let nodes = list(graph, "nodes").iter();
    let mut attrs = nodes.flat_map(|node| node.get("attrs").or_else(|| node.get("attr")));
    let numbers = ["arg_nodes", "node_row_ptr"].iter().all(|name| {
        let numbers = graph.get(name).and_then(Value::as_array);
        numbers.is_some_and(|numbers| numbers.iter().all(|n| n.is_i64() || n.is_u64()))
    });
    numbers && attrs.all(texts)
}

/// Returns the elements of the member `name`; empty if it is not a list.
fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
