//! The JSON graph of a compiler's module, in both formats, as nodes with fields.
//!
//! Both formats refer to nodes by index. Only the type of a node decides whether a number in it is an index. [`IrGraph::child`] reads a
//! number as an index, and [`IrGraph::int`] as a number. Only the parts that the contract needs are read: functions, their attributes
//! and parameters.

use super::TGT_88;
use super::ir_json::IrJson;
use crate::object::json_graph::ffi;
use crate::object::json_graph::legacy::LegacyGraph;
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use std::collections::BTreeMap;

/// A graph of nodes.
#[derive(Clone, Debug)]
pub(super) struct IrGraph {
    nodes: Vec<IrNode>,
    pub(super) root: usize,
    /// The release that wrote the graph.
    pub(super) release: Release,
}

/// A node: its type key and its content.
#[derive(Clone, Debug)]
struct IrNode {
    key: String,
    data: IrData,
}

/// The content of a node.
#[derive(Clone, Debug)]
enum IrData {
    Nothing,
    Text(String),
    Items(Vec<usize>),
    Pairs(Vec<(IrKey, usize)>),
    Fields(BTreeMap<String, IrJson>),
}

/// A key of a map.
///
/// Maps of one module use both kinds: nodes (`GlobalVar`) name functions, and texts name attributes.
#[derive(Clone, Debug)]
enum IrKey {
    Text(String),
    Node(usize),
}

impl IrGraph {
    /// Reads the output of `save_json`, in either format.
    pub(super) fn read(text: &[u8]) -> Result<IrGraph, Violation> {
        let legacy = LegacyGraph::read(text, &mut Findings::default());
        match legacy {
            Ok(graph) => IrGraph::of_legacy(graph),
            // OBJ-17: the numbers of this format are those of tvm-ffi, some of which standard JSON lacks.
            Err(broken) => match IrJson::read(text) {
                Ok(form) if form.member("root_index").is_some() => {
                    ffi::check(text, &mut Findings::default()).map_err(|fault| fault.violation)?;
                    IrGraph::of_ffi(form)
                }
                _ => Err(broken),
            },
        }
    }

    /// Converts a graph up to 0.21, whose members are all text (OBJ-22). A word is kept until it is known whether it is a number or
    /// an index.
    fn of_legacy(graph: LegacyGraph) -> Result<IrGraph, Violation> {
        let release = graph.release();
        let nodes = graph.nodes.into_iter().map(|node| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            // OBJ-24: a node up to 0.21 does not state its form. A map with text keys has a separate member for them. A map with node
            // keys has alternating keys and values, and differs from an array only in its type key.
            let data = if !node.keys.is_empty() {
                let keys = node.keys.iter().map(|key| IrKey::Text(text(key)));
                IrData::Pairs(keys.zip(node.data).collect())
            } else if node.type_key == "Map" {
                IrData::of_pairs(&node.data)
            } else if node.type_key == "Array" {
                IrData::Items(node.data)
            } else if !node.repr.is_empty() {
                IrData::Text(text(&node.repr))
            } else {
                let fields = node.attrs.iter();
                IrData::Fields(
                    fields
                        .map(|(name, value)| (name.clone(), IrJson::Word(text(value))))
                        .collect(),
                )
            };
            IrNode {
                key: node.type_key,
                data,
            }
        });
        Ok(IrGraph {
            nodes: nodes.collect(),
            root: graph.root,
            release: release.ok_or_else(no_release)?,
        })
    }

    /// Converts a graph from 0.22 on (OBJ-18), whose numbers are numbers.
    fn of_ffi(form: IrJson) -> Result<IrGraph, Violation> {
        let release = form
            .member("metadata")
            .and_then(|metadata| metadata.member("tvm_version")?.text());
        // TGT-82: the members of a node depend on the release.
        let release: Option<Release> = release.and_then(|text| text.parse().ok());
        let release = release.ok_or_else(no_release)?;
        // OBJ-20: `ffi::check` has checked that there is a root, and that it names a node.
        let root = form.member("root_index").and_then(IrJson::index);
        Ok(IrGraph {
            nodes: form.items_of("nodes").map(IrNode::of_ffi).collect(),
            root: root.unwrap_or_default(),
            release,
        })
    }

    /// Returns the whole type key of a node; empty for a node that does not exist.
    pub(super) fn type_key(&self, at: usize) -> &str {
        self.nodes.get(at).map_or("", |node| &node.key)
    }

    /// Returns the last part of the type key. For example, `For` of `tir.For` and `tirx.For`, which moved between releases without
    /// a change.
    pub(super) fn key(&self, at: usize) -> &str {
        let key = self.type_key(at);
        key.rsplit_once('.').map_or(key, |(_, last)| last)
    }

    /// Returns whether the node is null.
    pub(super) fn is_null(&self, at: usize) -> bool {
        matches!(self.type_key(at), "" | "None")
    }

    /// Returns a member of a node as it is stored: a number, or the index of a node.
    fn field(&self, at: usize, name: &str) -> Option<&IrJson> {
        match &self.nodes.get(at)?.data {
            IrData::Fields(fields) => fields.get(name),
            _ => None,
        }
    }

    /// Returns the node that a field names, or `None` for a missing field and for null.
    pub(super) fn child(&self, at: usize, name: &str) -> Option<usize> {
        let child = self.field(at, name)?.index()?;
        (!self.is_null(child) && child < self.nodes.len()).then_some(child)
    }

    /// Returns [`IrGraph::child`] of a field that must exist.
    pub(super) fn required(&self, at: usize, name: &str) -> Result<usize, Violation> {
        let child = self.child(at, name);
        child.ok_or_else(|| self.malformed(at, &format!("has no `{name}`")))
    }

    /// Returns the integer of a node.
    pub(super) fn int(&self, at: usize) -> Option<i64> {
        match self.field(at, "value")? {
            IrJson::Word(text) => text.parse().ok(),
            IrJson::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a field that is a text, either directly or as the index of a text node.
    pub(super) fn text(&self, at: usize, name: &str) -> Option<&str> {
        let field = self.field(at, name)?;
        // OBJ-22: up to 0.20 every field is a text, including indices.
        let named = field.index().and_then(|child| self.node_text(child));
        named.or(field.text())
    }

    /// Returns the text of a node: a string, or the name of an operator.
    pub(super) fn node_text(&self, at: usize) -> Option<&str> {
        match &self.nodes.get(at)?.data {
            IrData::Text(text) => Some(text),
            // An empty string has no member in the format of 0.20 and before.
            IrData::Fields(fields) if fields.is_empty() && self.key(at) == "String" => Some(""),
            _ => None,
        }
    }

    /// Returns the items of an array.
    pub(super) fn items(&self, at: usize) -> &[usize] {
        match self.nodes.get(at).map(|node| &node.data) {
            Some(IrData::Items(items)) => items,
            _ => &[],
        }
    }

    /// Returns the items of the array that a field names.
    pub(super) fn list(&self, at: usize, name: &str) -> &[usize] {
        self.child(at, name).map_or(&[], |list| self.items(list))
    }

    /// Returns the entries of a map, by their keys as text: the texts themselves, or the names of the nodes.
    pub(super) fn entries(&self, at: usize) -> Vec<(String, usize)> {
        let Some(IrData::Pairs(pairs)) = self.nodes.get(at).map(|node| &node.data) else {
            return Vec::new();
        };
        let name = |key: &IrKey| match key {
            IrKey::Text(text) => text.clone(),
            IrKey::Node(node) => {
                let name = self
                    .node_text(*node)
                    .or_else(|| self.text(*node, "name_hint"));
                name.unwrap_or_default().to_owned()
            }
        };
        pairs
            .iter()
            .map(|(key, value)| (name(key), *value))
            .collect()
    }

    /// Creates the violation for a node that lacks a member of its type.
    pub(super) fn malformed(&self, at: usize, what: &str) -> Violation {
        let key = self.type_key(at);
        TGT_88.rejected(Kind::Malformed, format!("node {at} ({key}) {what}"))
    }
}

impl IrNode {
    /// Converts a node from 0.22 on: `data` is an array for containers, a text for strings and operators, and an object for all
    /// others.
    fn of_ffi(node: &IrJson) -> IrNode {
        let key = node.member("type").and_then(IrJson::text);
        let key = key.unwrap_or_default().to_owned();
        let data = match node.member("data") {
            Some(IrJson::Array(items, _)) => {
                let items: Vec<usize> = items.iter().filter_map(IrJson::index).collect();
                match key.as_str() {
                    "ffi.Map" | "ffi.Dict" => IrData::of_pairs(&items),
                    _ => IrData::Items(items),
                }
            }
            Some(IrJson::Object(fields, _)) => IrData::Fields(fields.clone()),
            Some(IrJson::Text(text)) => IrData::Text(text.clone()),
            // A number or a bool is a separate node, and is read as if it were a field.
            Some(plain) => IrData::Fields([("value".to_owned(), plain.clone())].into()),
            None => IrData::Nothing,
        };
        IrNode { key, data }
    }
}

impl IrData {
    /// Converts alternating keys and values.
    fn of_pairs(items: &[usize]) -> IrData {
        let pairs = items.as_chunks().0.iter();
        IrData::Pairs(
            pairs
                .map(|[key, value]| (IrKey::Node(*key), *value))
                .collect(),
        )
    }
}

/// Creates the error for a graph without its release, on which the names and meanings of members depend.
fn no_release() -> Violation {
    TGT_88.rejected(
        Kind::Malformed,
        "the graph does not name the release that wrote it",
    )
}
