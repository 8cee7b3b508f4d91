//! The graph JSON as a whole: its five members, and the rules that connect them.

use super::attrs::{DataEntry, attrs_json, read_attrs};
use super::entry::{NodeEntry, entries_json, read_entry_list, read_indices};
use super::json_text::JsonText;
use super::node::{Node, read_nodes};
#[cfg(feature = "graph")]
use crate::graph::GRF_15;
use crate::graph::{GRF_01, GRF_02, GRF_03, GRF_09, GRF_10, GRF_11, GRF_12, GRF_20};
use crate::rule::{Findings, Kind, Violation};
use serde_json::{Value, json};

/// A graph. [`Graph::read`] checks it against every rule of its format.
///
/// A graph that is built member by member is not checked. [`Plan::from_graph`](super::Plan::from_graph) and the executor then check the rules that
/// they rely on.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The nodes, in the order in which they run.
    pub nodes: Vec<Node>,
    /// The indices of the nodes that are inputs or parameters.
    pub arg_nodes: Vec<usize>,
    /// The first entry of each node, and at the end the number of all entries (GRF-12).
    pub node_row_ptr: Vec<usize>,
    /// The outputs. The position of an output is its number.
    pub heads: Vec<NodeEntry>,
    /// The type, the shape and the storage of each entry.
    pub entries: Vec<DataEntry>,
}

impl Graph {
    /// Returns the number of `entry` among all entries, which indexes every list of `attrs`. Returns `None` if its node has no such
    /// output (GRF-09).
    pub fn entry_id(&self, entry: NodeEntry) -> Option<usize> {
        self.entry_of(entry.node, entry.index)
    }

    /// Returns the same as [`Graph::entry_id`], for output `index` of `node`.
    pub(crate) fn entry_of(&self, node: usize, index: usize) -> Option<usize> {
        let first = *self.node_row_ptr.get(node)?;
        // GRF-09: releases only add the two numbers. An output that the node does not have becomes the first entry of the next
        // node.
        let behind = *self.node_row_ptr.get(node.checked_add(1)?)?;
        let id = first.checked_add(index)?;
        (id < behind).then_some(id)
    }

    /// Returns the node index and the name of each input or parameter, in the order of `arg_nodes`, which numbers them (GRF-11). Names
    /// may repeat.
    pub fn inputs(&self) -> impl Iterator<Item = (usize, &str)> {
        self.arg_nodes
            .iter()
            .filter_map(|index| Some((*index, self.nodes.get(*index)?.name.as_str())))
    }

    /// Reads graph JSON and checks it against every rule of the chapter.
    ///
    /// # Errors
    ///
    /// Returns the first broken rule of GRF-01 to GRF-18, GRF-22, GRF-51 and GRF-52, with the byte offset of the JSON value that breaks
    /// it. Violations of GRF-20 and GRF-21 are added to `findings`, and are errors only if these are strict.
    pub fn read(text: &str, findings: &mut Findings) -> Result<Graph, Violation> {
        let document = JsonText::document(text)?;
        let top = GraphMembers::read(&document, findings)?;
        let nodes = read_nodes(top.nodes, findings)?;
        let arg_nodes = read_indices(top.arg_nodes, GRF_11, "arg_nodes")?;
        let node_row_ptr = read_indices(top.node_row_ptr, GRF_12, "node_row_ptr")?;
        // GRF-15: the lists of `attrs` are checked against this count, so it comes first, regardless of its position in the text.
        let count = check_rows(&nodes, &node_row_ptr, top.node_row_ptr)?;
        let entries = read_attrs(top.attrs, count, findings)?;
        let heads = read_entry_list(top.heads, "heads")?;
        let graph = Graph {
            nodes,
            arg_nodes,
            node_row_ptr,
            heads,
            entries,
        };
        // The references are checked last, because they may come before the nodes in the text.
        graph.check_references(&top)?;
        Ok(graph)
    }

    /// Reads a graph as [`Graph::read`] does, from bytes that may not be UTF-8.
    ///
    /// # Errors
    ///
    /// Returns GRF-01 at the first byte that is not UTF-8; the kind is [`Kind::Truncated`] if the text ends inside a character.
    /// Otherwise as [`Graph::read`].
    pub fn read_bytes(bytes: &[u8], findings: &mut Findings) -> Result<Graph, Violation> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            // In a truncated text the last character may also be cut.
            let kind = match error.error_len() {
                Some(_) => Kind::Malformed,
                None => Kind::Truncated,
            };
            let shown = bytes.get(at).copied().unwrap_or_default();
            let message = format!("the graph is not UTF-8: byte {shown:#04x}");
            GRF_01.broken(kind, at as u64, message)
        })?;
        Graph::read(text, findings)
    }

    /// Returns the graph JSON in normal form: entries as three numbers, members in the order of upstream's writers.
    ///
    /// Members and attributes that reading skips are not kept (`metadata`, `control_deps`, GRF-16).
    pub fn to_json(&self) -> Value {
        let nodes: Vec<Value> = self.nodes.iter().map(Node::to_json).collect();
        json!({
            "nodes": nodes,
            "arg_nodes": self.arg_nodes,
            "heads": entries_json(&self.heads),
            "attrs": attrs_json(&self.entries),
            "node_row_ptr": self.node_row_ptr,
        })
    }

    /// Checks the rules that an executor relies on, for a graph that may be built member by member: GRF-09 to GRF-12, GRF-15.
    #[cfg(feature = "graph")]
    pub(in crate::graph) fn check_members(&self) -> Result<(), Violation> {
        let rows = rows_of(&self.nodes);
        // This check comes first, because `entry_of` adds to these numbers and all later checks use it.
        GRF_12.demand(Kind::Malformed, self.node_row_ptr == rows, || {
            format!("node_row_ptr is {:?}, not {rows:?}", self.node_row_ptr)
        })?;
        let (found, counted) = (self.entries.len(), rows.last().copied());
        GRF_15.demand(Kind::Malformed, counted == Some(found), || {
            format!(
                "{found} entries are described, but the nodes have {} outputs",
                counted.unwrap_or(0)
            )
        })?;
        let known = |entry: &NodeEntry| {
            GRF_09.demand(Kind::Malformed, self.entry_id(*entry).is_some(), || {
                format!("node {} has no output {}", entry.node, entry.index)
            })
        };
        for (index, node) in self.nodes.iter().enumerate() {
            for input in &node.inputs {
                known(input)?;
                GRF_10.demand(Kind::Malformed, input.node < index, || {
                    reads_later(index, *input)
                })?;
            }
        }
        self.heads.iter().try_for_each(known)?;
        self.arg_nodes.iter().try_for_each(|index| {
            let node = self.nodes.get(*index);
            let is_input = node.is_some_and(|node| node.call.is_none());
            GRF_11.demand(Kind::Malformed, is_input, || {
                format!("node {index} is not an input")
            })
        })
    }

    /// Checks that every reference is valid, and that a node reads only entries of earlier nodes (GRF-09 to GRF-11).
    fn check_references(&self, top: &GraphMembers<'_>) -> Result<(), Violation> {
        for (index, node) in self.nodes.iter().enumerate() {
            for (nth, input) in node.inputs.iter().enumerate() {
                let place = || {
                    Some(
                        top.nodes
                            .element(index)?
                            .member("inputs")?
                            .element(nth)?
                            .offset(),
                    )
                };
                let field = || format!("nodes[{index}].inputs[{nth}]");
                self.check_entry(*input, place, field)?;
                // GRF-10: releases do not check this. Such a node reads bytes of the previous run, or uninitialized bytes.
                let offset = error_offset(input.node < index, place);
                GRF_10
                    .require(input.node < index, offset, || reads_later(index, *input))
                    .map_err(|broken| broken.in_field(field()))?;
            }
        }
        for (nth, head) in self.heads.iter().enumerate() {
            let place = || Some(top.heads.element(nth)?.offset());
            self.check_entry(*head, place, || format!("heads[{nth}]"))?;
        }
        for (nth, index) in self.arg_nodes.iter().enumerate() {
            let is_input = self
                .nodes
                .get(*index)
                .is_some_and(|node| node.call.is_none());
            let offset = error_offset(is_input, || Some(top.arg_nodes.element(nth)?.offset()));
            GRF_11
                .require(is_input, offset, || {
                    format!(
                        "node {index} is not an input of this graph of {} nodes",
                        self.nodes.len()
                    )
                })
                .map_err(|broken| broken.in_field(format!("arg_nodes[{nth}]")))?;
        }
        Ok(())
    }

    /// Checks GRF-09 for one entry. If it is broken, `place` finds its bytes and `field` names it.
    fn check_entry(
        &self,
        entry: NodeEntry,
        place: impl FnOnce() -> Option<u64>,
        field: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        let known = self.entry_id(entry).is_some();
        GRF_09
            .require(known, error_offset(known, place), || {
                format!(
                    "there is no output {} of node {} in this graph of {} nodes",
                    entry.index,
                    entry.node,
                    self.nodes.len()
                )
            })
            .map_err(|broken| broken.in_field(field()))
    }
}

/// Returns the message for node `index`, which reads an entry of itself or of a later node.
fn reads_later(index: usize, input: NodeEntry) -> String {
    let node = input.node;
    format!("node {index} reads node {node}: expected a node before it")
}

/// Returns the offset for the error. A reference is searched again only if it is wrong.
fn error_offset(kept: bool, place: impl FnOnce() -> Option<u64>) -> u64 {
    let broken = (!kept).then(place);
    broken.flatten().unwrap_or_default()
}

/// The required members, in the order of [`GraphMembers`].
const TOP: [&str; 5] = ["nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"];

/// The five required members of a graph (GRF-02, GRF-03).
struct GraphMembers<'a> {
    nodes: JsonText<'a>,
    arg_nodes: JsonText<'a>,
    node_row_ptr: JsonText<'a>,
    heads: JsonText<'a>,
    attrs: JsonText<'a>,
}

impl<'a> GraphMembers<'a> {
    /// Reads the members. If a name repeats, the last member is used (GRF-20).
    fn read(
        document: &JsonText<'a>,
        findings: &mut Findings,
    ) -> Result<GraphMembers<'a>, Violation> {
        let mut found: [Option<JsonText<'a>>; 5] = [None; 5];
        for (key, value) in document.members(GRF_01, "")? {
            if key == "metadata" {
                // GRF-02: from 0.6 on a reader stops at `metadata`, so that members after it count as missing. Up to 0.5 the name
                // itself is rejected. Here it is accepted for every release (GRF-03).
                break;
            }
            let Some(slot) = TOP
                .iter()
                .position(|name| *name == key)
                .and_then(|index| found.get_mut(index))
            else {
                // GRF-03: releases also fail here (`key .. is not supported`).
                GRF_03.require_as(Kind::Unsupported, false, value.offset(), || {
                    format!("unknown member `{key}` in a graph")
                })?;
                continue;
            };
            if slot.is_some() {
                findings.note(
                    GRF_20,
                    Kind::Duplicate,
                    value.offset(),
                    format!("a second `{key}`; the last one counts"),
                )?;
            }
            *slot = Some(value);
        }
        // GRF-02: the first missing member is reported, in the order of the specification.
        let mut required = TOP.iter().zip(found).map(|(name, value)| {
            value.ok_or_else(|| {
                GRF_02.broken(
                    Kind::Missing,
                    document.offset(),
                    format!("the graph lacks the required member `{name}` (members after `metadata` are not read)"),
                )
            })
        });
        // `TOP` has five members, and five are taken.
        let mut next = || required.next().unwrap_or(Ok(*document));
        Ok(GraphMembers {
            nodes: next()?,
            arg_nodes: next()?,
            node_row_ptr: next()?,
            heads: next()?,
            attrs: next()?,
        })
    }
}

/// Checks that `node_row_ptr` counts the entries of each node (GRF-12). Returns the number of all entries.
fn check_rows(nodes: &[Node], rows: &[usize], list: JsonText<'_>) -> Result<usize, Violation> {
    let counted = rows_of(nodes);
    let count = counted.last().copied().unwrap_or(0);
    // GRF-12: releases do not check the last number, and use it as the length of the lists of `attrs` (GRF-15).
    GRF_12
        .require(rows == counted, list.offset(), || {
            let found = rows.iter().zip(&counted);
            let same = found.take_while(|(row, count)| row == count).count();
            format!(
                "expected {} values, which count the {count} outputs of {} nodes; found {} values, of which the first {same} are right",
                counted.len(),
                nodes.len(),
                rows.len()
            )
        })
        .map_err(|broken| broken.in_field("node_row_ptr"))?;
    Ok(count)
}

/// Returns the correct `node_row_ptr` of these nodes (GRF-12).
fn rows_of(nodes: &[Node]) -> Vec<usize> {
    let mut count = 0;
    let rows = nodes.iter().map(|node| {
        // GRF-06: an input has one output. For a node without attributes, upstream reads the count from uninitialized memory.
        let outputs = node.call.as_ref().map_or(1, |call| call.num_outputs);
        // `num_outputs` comes from the file and may be any number. A saturated sum is larger than the length of any list (GRF-15).
        count = outputs.saturating_add(count);
        count
    });
    // GRF-12: the first number is 0, and each sum is the start of the next node.
    std::iter::once(0).chain(rows).collect()
}
