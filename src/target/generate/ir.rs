//! The JSON graph of a compiler's module, of both eras, as nodes with fields.
//!
//! Both eras name nodes by index. Only the type of a node decides whether a number in it is an index: [`IrGraph::child`] takes it as one,
//! [`IrGraph::int`] as what it is. Only what the contract asks for is read: functions, their attributes and parameters.

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
    /// The release that wrote it.
    pub(super) release: Release,
}

/// A node: its type key, and what is in it.
#[derive(Clone, Debug)]
struct IrNode {
    key: String,
    data: IrData,
}

/// What a node holds.
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
/// Both in maps of one module: functions are named by nodes (`GlobalVar`), attributes by texts.
#[derive(Clone, Debug)]
enum IrKey {
    Text(String),
    Node(usize),
}

impl IrGraph {
    /// Reads what `save_json` wrote, of either era.
    pub(super) fn read(text: &[u8]) -> Result<IrGraph, Violation> {
        let legacy = LegacyGraph::read(text, &mut Findings::default());
        match legacy {
            Ok(graph) => IrGraph::of_legacy(graph),
            // OBJ-17: the numbers of this form are those of tvm-ffi, and JSON has not all of them.
            Err(broken) => match IrJson::read(text) {
                Ok(form) if form.member("root_index").is_some() => {
                    ffi::check(text, &mut Findings::default()).map_err(|fault| fault.violation)?;
                    IrGraph::of_ffi(form)
                }
                _ => Err(broken),
            },
        }
    }

    /// A graph up to 0.21, whose members are all text (OBJ-22): a word is kept until it is known whether it is a number or an index.
    fn of_legacy(graph: LegacyGraph) -> Result<IrGraph, Violation> {
        let release = graph.release();
        let nodes = graph.nodes.into_iter().map(|node| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            // OBJ-24: a node up to 0.21 does not say which form it has. A map with text for keys has them in a member of its own; one
            // with nodes for keys has keys and values in turn, and only its type key tells that from an array.
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

    /// A graph from 0.22 on (OBJ-18), whose numbers are numbers.
    fn of_ffi(form: IrJson) -> Result<IrGraph, Violation> {
        let release = form
            .member("metadata")
            .and_then(|metadata| metadata.member("tvm_version")?.text());
        // TGT-82: without the release it is not known which members a node has.
        let release: Option<Release> = release.and_then(|text| text.parse().ok());
        let release = release.ok_or_else(no_release)?;
        // OBJ-20: `ffi::check` has seen that there is one, and that it names a node.
        let root = form.member("root_index").and_then(IrJson::index);
        Ok(IrGraph {
            nodes: form.items_of("nodes").map(IrNode::of_ffi).collect(),
            root: root.unwrap_or_default(),
            release,
        })
    }

    /// The whole type key of a node; empty for one that is not there.
    pub(super) fn type_key(&self, at: usize) -> &str {
        self.nodes.get(at).map_or("", |node| &node.key)
    }

    /// The last part of the type key: `For` of `tir.For` and `tirx.For`, which moved between releases and stayed what they are.
    pub(super) fn key(&self, at: usize) -> &str {
        let key = self.type_key(at);
        key.rsplit_once('.').map_or(key, |(_, last)| last)
    }

    /// Whether the node is null.
    pub(super) fn is_null(&self, at: usize) -> bool {
        matches!(self.type_key(at), "" | "None")
    }

    /// A member of a node as it is stored: a number, or the index of a node.
    fn field(&self, at: usize, name: &str) -> Option<&IrJson> {
        match &self.nodes.get(at)?.data {
            IrData::Fields(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The node that a field names; `None` for no field, and for null.
    pub(super) fn child(&self, at: usize, name: &str) -> Option<usize> {
        let child = self.field(at, name)?.index()?;
        (!self.is_null(child) && child < self.nodes.len()).then_some(child)
    }

    /// [`IrGraph::child`] of a field that has to be there.
    pub(super) fn required(&self, at: usize, name: &str) -> Result<usize, Violation> {
        let child = self.child(at, name);
        child.ok_or_else(|| self.malformed(at, &format!("has no `{name}`")))
    }

    /// The integer that a node is.
    pub(super) fn int(&self, at: usize) -> Option<i64> {
        match self.field(at, "value")? {
            IrJson::Word(text) => text.parse().ok(),
            IrJson::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// A field that is a text: itself, or the node with it.
    pub(super) fn text(&self, at: usize, name: &str) -> Option<&str> {
        let field = self.field(at, name)?;
        // OBJ-22: of 0.20 and before every field is a text, also one that is an index.
        let named = field.index().and_then(|child| self.plain(child));
        named.or(field.text())
    }

    /// The text that a node is: a string, or the name of an operator.
    pub(super) fn plain(&self, at: usize) -> Option<&str> {
        match &self.nodes.get(at)?.data {
            IrData::Text(text) => Some(text),
            // A string that is empty leaves no member in the form of 0.20 and before.
            IrData::Fields(fields) if fields.is_empty() && self.key(at) == "String" => Some(""),
            _ => None,
        }
    }

    /// What is in an array.
    pub(super) fn items(&self, at: usize) -> &[usize] {
        match self.nodes.get(at).map(|node| &node.data) {
            Some(IrData::Items(items)) => items,
            _ => &[],
        }
    }

    /// What is in the array that a field names.
    pub(super) fn list(&self, at: usize, name: &str) -> &[usize] {
        self.child(at, name).map_or(&[], |list| self.items(list))
    }

    /// The entries of a map, by the texts or the names that are their keys.
    pub(super) fn entries(&self, at: usize) -> Vec<(String, usize)> {
        let Some(IrData::Pairs(pairs)) = self.nodes.get(at).map(|node| &node.data) else {
            return Vec::new();
        };
        let name = |key: &IrKey| match key {
            IrKey::Text(text) => text.clone(),
            IrKey::Node(node) => {
                let name = self.plain(*node).or_else(|| self.text(*node, "name_hint"));
                name.unwrap_or_default().to_owned()
            }
        };
        pairs
            .iter()
            .map(|(key, value)| (name(key), *value))
            .collect()
    }

    /// The violation of a node that lacks what its type has.
    pub(super) fn malformed(&self, at: usize, what: &str) -> Violation {
        let key = self.type_key(at);
        TGT_88.rejected(Kind::Malformed, format!("node {at} ({key}) {what}"))
    }
}

impl IrNode {
    /// A node from 0.22 on: `data` is an array for containers, a text for strings and operators, an object for all others.
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
            // A number or a truth value is a node of its own, and is read as if it were a field.
            Some(plain) => IrData::Fields([("value".to_owned(), plain.clone())].into()),
            None => IrData::Nothing,
        };
        IrNode { key, data }
    }
}

impl IrData {
    /// Keys and values in turn.
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
