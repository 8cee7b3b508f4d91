//! What an executor of each release makes of the text of a graph: of some rules it looks at no part, of others at the types only.

use super::Load;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use serde_json::Value;

/// What `release` makes of the text when an executor is made of it; `broken` is the first rule that it breaks.
pub(crate) fn judge(release: Release, text: &[u8], broken: Option<&Violation>) -> Load {
    if release >= Release::of(20) {
        return Load::fails("there is no graph executor");
    }
    let first = serde_json::Deserializer::from_slice(text)
        .into_iter::<Value>()
        .next();
    let Some(Ok(graph)) = first else {
        return match broken {
            Some(broken) if broken.kind() == Kind::Truncated => Load::fails(broken.to_string()),
            Some(broken) => Load::unknown(format!(
                "it breaks {broken}; its reader takes some texts that are not JSON"
            )),
            None => Load::unknown("it is not JSON"),
        };
    };
    if !graph.is_object() {
        return Load::fails("the text is not an object");
    }
    if let Some(why) = newer_member(release, &graph) {
        return Load::fails(why);
    }
    let Some(broken) = broken else {
        return Load::whole("with the library that it was built with");
    };
    match verdict(&graph, broken) {
        Verdict::Unseen => Load::silent(format!(
            "it makes an executor and does not look at what is wrong: it breaks {broken}"
        )),
        Verdict::Memory => Load::unknown(format!(
            "it reads what lies behind its lists, and ends the process or takes it: it breaks {broken}"
        )),
        Verdict::Rejects => Load::fails(broken.to_string()),
    }
}

/// Why `release` does not know a member that later ones write (GRF-03, GRF-13).
fn newer_member(release: Release, graph: &Value) -> Option<String> {
    let since = |minor| release < Release::of(minor);
    if since(6) && graph.get("metadata").is_some() {
        return Some("it does not know the member `metadata`".into());
    }
    if since(10) && graph.get("attrs")?.get("storage_scope").is_some() {
        return Some("it cannot skip the attribute `storage_scope`".into());
    }
    None
}

/// What a broken rule means to the readers of 0.2 to 0.19.
enum Verdict {
    /// They reject it, or end the process.
    Rejects,
    /// They do not look.
    Unseen,
    /// They use an index that is behind their lists.
    Memory,
}

/// What readers make of a text whose first broken rule is `broken`.
fn verdict(graph: &Value, broken: &Violation) -> Verdict {
    let rule = broken.rule().id();
    // A number where a text is expected stops every reader; what the text says is another matter.
    if matches!(rule, "GRF-07" | "GRF-11" | "GRF-12") && !is_typed(graph) {
        return Verdict::Rejects;
    }
    let nodes = list(graph, "nodes").len() as u64;
    match rule {
        // The text behind the closing brace is not read.
        "GRF-01" if broken.kind() == Kind::Malformed => Verdict::Unseen,
        "GRF-07" if broken.kind() == Kind::Malformed => Verdict::Unseen,
        "GRF-10" => Verdict::Unseen,
        "GRF-09" => within(nodes, entries(graph)),
        "GRF-11" => within(nodes, list(graph, "arg_nodes").iter()),
        // The last row counts the entries: the lists of the graph have as many.
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
        // The product of the extents wraps, and a small memory is made; an image is asked of the device.
        "GRF-23" if graph.pointer("/attrs/storage_scope").is_none() => Verdict::Unseen,
        "GRF-52" => Verdict::Memory,
        _ => Verdict::Rejects,
    }
}

/// Whether every number of a node is below the number of nodes.
fn within<'v>(nodes: u64, mut numbers: impl Iterator<Item = &'v Value>) -> Verdict {
    if numbers.all(|number| number.as_u64().is_some_and(|number| number < nodes)) {
        Verdict::Unseen
    } else {
        Verdict::Memory
    }
}

/// The number of the node of every entry: of the inputs of nodes, and of the heads.
fn entries(graph: &Value) -> impl Iterator<Item = &Value> {
    let inputs = list(graph, "nodes")
        .iter()
        .flat_map(|node| list(node, "inputs"));
    inputs
        .chain(list(graph, "heads"))
        .filter_map(|entry| entry.get(0))
}

/// Whether the attributes of nodes are texts, and the lists of numbers have numbers.
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

/// The elements of the member `name`; empty where it is no list.
fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
