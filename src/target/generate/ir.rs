//! The JSON graph of a compiler's module, of both eras, as nodes with fields.
//!
//! Both eras name nodes by index. Only the type of a node decides whether a number in it is an index: [`IrGraph::child`] takes it as one,
//! [`IrGraph::int`] as what it is.

use super::TGT_88;
use crate::object::json_graph::ffi;
use crate::object::json_graph::legacy::LegacyGraph;
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use serde_json::Value;
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
    Fields(BTreeMap<String, Value>),
}

/// A key of a map.
#[derive(Clone, Debug)]
enum IrKey {
    Text(String),
    Node(usize),
}

impl IrGraph {
    /// Reads what `save_json` wrote, of either era.
    ///
    /// # Errors
    ///
    /// The rules of the JSON graph (OBJ-18 to OBJ-32); TGT-88 of kind malformed for a text that is neither, or does not name its release.
    pub(super) fn read(text: &[u8]) -> Result<IrGraph, Violation> {
        let legacy = LegacyGraph::read(text, &mut Findings::default());
        match legacy {
            Ok(graph) => IrGraph::of_legacy(graph),
            Err(broken) => match serde_json::from_slice::<Value>(text) {
                Ok(form) if form.get("root_index").is_some() => {
                    ffi::check(text).map_err(|fault| fault.violation)?;
                    IrGraph::of_ffi(&form)
                }
                _ => Err(broken),
            },
        }
    }

    fn of_legacy(graph: LegacyGraph) -> Result<IrGraph, Violation> {
        let release = graph.release();
        let nodes = graph.nodes.into_iter().map(|node| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
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
                        .map(|(name, value)| (name.clone(), text(value).into()))
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

    fn of_ffi(form: &Value) -> Result<IrGraph, Violation> {
        let release = form
            .pointer("/metadata/tvm_version")
            .and_then(Value::as_str);
        let release = release.and_then(|text| text.parse().ok());
        let nodes = form.get("nodes").and_then(Value::as_array);
        let plain = |value: &Value| nodes?.get(index(value)?)?.get("data").cloned();
        let nodes = nodes.into_iter().flatten().map(|node| {
            let key = node.get("type").and_then(Value::as_str);
            let key = key.unwrap_or_default().to_owned();
            let data = match node.get("data") {
                Some(Value::Array(items)) => {
                    let items: Vec<usize> = items.iter().filter_map(index).collect();
                    match key.as_str() {
                        "ffi.Map" | "ffi.Dict" => IrData::of_pairs(&items),
                        _ => IrData::Items(items),
                    }
                }
                Some(Value::Object(fields)) => {
                    let mut fields: BTreeMap<String, Value> = fields.clone().into_iter().collect();
                    // The number of an `IntImm` may be too big for 64 bits, so it is a node of its own. `null` is no number.
                    if key == "ir.IntImm"
                        && let Some(value) = fields.get_mut("value")
                    {
                        *value = plain(value).unwrap_or_default();
                    }
                    IrData::Fields(fields)
                }
                Some(Value::String(text)) => IrData::Text(text.clone()),
                // A number or a truth value is a node of its own, and is read as if it were a field.
                Some(plain) => IrData::Fields([("value".to_owned(), plain.clone())].into()),
                None => IrData::Nothing,
            };
            IrNode { key, data }
        });
        Ok(IrGraph {
            nodes: nodes.collect(),
            root: form.get("root_index").and_then(index).unwrap_or_default(),
            release: release.ok_or_else(no_release)?,
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

    fn field(&self, at: usize, name: &str) -> Option<&Value> {
        match &self.nodes.get(at)?.data {
            IrData::Fields(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The node that a field names; `None` for no field, and for null.
    pub(super) fn child(&self, at: usize, name: &str) -> Option<usize> {
        let child = index(self.field(at, name)?)?;
        (!self.is_null(child) && child < self.nodes.len()).then_some(child)
    }

    /// [`IrGraph::child`] of a field that has to be there.
    ///
    /// # Errors
    ///
    /// TGT-88 of kind malformed.
    pub(super) fn required(&self, at: usize, name: &str) -> Result<usize, Violation> {
        let child = self.child(at, name);
        child.ok_or_else(|| self.malformed(at, &format!("has no `{name}`")))
    }

    /// A field, or a node, that is an integer.
    pub(super) fn int(&self, at: usize, name: &str) -> Option<i64> {
        match self.field(at, name)? {
            Value::String(text) => text.parse().ok(),
            Value::Bool(truth) => Some((*truth).into()),
            other => other.as_i64(),
        }
    }

    /// A field that is a number with a fraction.
    pub(super) fn float(&self, at: usize, name: &str) -> Option<f64> {
        match self.field(at, name)? {
            Value::String(text) => text.parse().ok(),
            other => other.as_f64(),
        }
    }

    /// A field that is a text: itself, or the node with it.
    pub(super) fn text(&self, at: usize, name: &str) -> Option<&str> {
        let field = self.field(at, name)?;
        // OBJ-22: of 0.20 and before every field is a text, also one that is an index.
        let named = index(field).and_then(|child| self.plain(child));
        named.or(field.as_str())
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

/// The index that a field is.
fn index(field: &Value) -> Option<usize> {
    match field {
        Value::String(text) => text.parse().ok(),
        other => usize::try_from(other.as_u64()?).ok(),
    }
}

fn no_release() -> Violation {
    TGT_88.rejected(
        Kind::Malformed,
        "the graph does not name the release that wrote it",
    )
}
