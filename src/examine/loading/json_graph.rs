//! The graph of a vendor's JSON runtime, which is read when the module is loaded.

use super::Stop;
use super::stream::text;
use crate::release::Release;
use crate::wire::json::with_repeated_names;
use serde_json::Value;

/// Walks the graph as the loader of `release` reads it.
///
/// The graph is the text of a payload of PAY-45. Members may be in any order, and none is required.
pub(super) fn walk(release: Release, graph: &[u8]) -> Result<(), Stop> {
    let (graph, repeated) = with_repeated_names(graph).map_err(|error| {
        let why = format!("the graph of the subgraph is not JSON: {error}");
        match release.minor() {
            24.. => Stop::Rejects(why),
            // dmlc's reader accepts some text that is not JSON.
            _ => Stop::Unknown(why),
        }
    })?;
    // `graph` keeps only the last value of a repeated member. A reader that checks each value may reject an earlier one.
    if let Some(name) = repeated.first() {
        let name = text(name.as_bytes());
        return Err(unknown(&format!(
            "an object of the graph has `{name}` twice"
        )));
    }
    // The behaviour for another type depends on the JSON parser of the reader, which was not examined.
    let root = graph
        .as_object()
        .ok_or_else(|| unknown("the graph is not an object"))?;
    for (key, value) in root {
        match key.as_str() {
            "nodes" => {
                let nodes = value
                    .as_array()
                    .ok_or_else(|| unknown("nodes are not an array"))?;
                nodes.iter().try_for_each(node)?;
            }
            "arg_nodes" | "node_row_ptr" => numbers(value)?,
            "heads" => entries(value)?,
            // The reader of 0.7 rejects it as unknown, and that of 0.16 accepts it. The releases in between were not examined.
            "symbol" => {
                return Err(unknown(
                    "the graph has a member `symbol`, which some releases reject",
                ));
            }
            key => {
                let key = text(key.as_bytes());
                return Err(Stop::Rejects(format!(
                    "the graph has an unknown member `{key}`"
                )));
            }
        }
    }
    Ok(())
}

/// Walks a node: its members by name, each of the type that the reader expects.
fn node(node: &Value) -> Result<(), Stop> {
    let node = node
        .as_object()
        .ok_or_else(|| unknown("a node is not an object"))?;
    for (key, value) in node {
        match key.as_str() {
            "op" | "name" if value.is_string() => {}
            "inputs" => entries(value)?,
            // Readers accept both names. The content depends on the vendor's runtime.
            "attr" | "attrs" if value.is_object() => {}
            "op" | "name" | "attr" | "attrs" => {
                return Err(unknown(&format!("`{key}` of a node is of another type")));
            }
            key => {
                let key = text(key.as_bytes());
                return Err(Stop::Rejects(format!(
                    "a node has an unknown member `{key}`"
                )));
            }
        }
    }
    Ok(())
}

/// Walks a list of entries, each a list of numbers.
fn entries(value: &Value) -> Result<(), Stop> {
    let entries = value
        .as_array()
        .ok_or_else(|| unknown("entries are not an array"))?;
    entries.iter().try_for_each(numbers)
}

/// Checks that the value is a list of integers, each at least 0. The loader's treatment of other numbers was not examined.
fn numbers(value: &Value) -> Result<(), Stop> {
    let numbers = value.as_array();
    if numbers.is_some_and(|numbers| numbers.iter().all(Value::is_u64)) {
        return Ok(());
    }
    Err(unknown("a list of numbers in the graph is none"))
}

/// Creates the outcome for content that this reader treats in an unexamined way.
fn unknown(why: &str) -> Stop {
    Stop::Unknown(why.to_owned())
}
