//! Entries: which output of which node, and lists of node indices.

use super::json_text::JsonText;
use crate::graph::GRF_08;
use crate::rule::{Kind, Rule, Violation};
use serde_json::{Value, json};

/// Output `index` of node `node` (GRF-08): three numbers in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The index of the node.
    pub node: usize,
    /// Which of its outputs.
    pub index: usize,
    /// Always 0 in released graphs; carried along.
    pub version: usize,
}

/// GRF-08: an entry is two or three numbers.
pub(super) fn read_entry_list(list: JsonText<'_>, what: &str) -> Result<Vec<NodeEntry>, Violation> {
    let mut entries = Vec::new();
    for item in list.elements(GRF_08, what)? {
        let numbers = read_indices(item, GRF_08, what)?;
        let entry = match numbers.as_slice() {
            // GRF-08: both forms occur in every release, and no executor uses the version.
            [node, index] => NodeEntry {
                node: *node,
                index: *index,
                version: 0,
            },
            [node, index, version] => NodeEntry {
                node: *node,
                index: *index,
                version: *version,
            },
            _ => {
                let message = format!(
                    "an entry of {what} has {} numbers, two or three are expected",
                    numbers.len()
                );
                return Err(GRF_08
                    .broken(Kind::Malformed, item.offset(), message)
                    .in_field(what));
            }
        };
        entries.push(entry);
    }
    Ok(entries)
}

/// A list of indices of nodes or entries, each from 0 on; what is no such list breaks `rule`.
pub(super) fn read_indices(
    list: JsonText<'_>,
    rule: Rule,
    what: &str,
) -> Result<Vec<usize>, Violation> {
    list.elements(rule, what)?
        // Only whether it is a number: which ones there are is for GRF-09 to GRF-12, when all of the graph is read.
        .iter()
        .map(|item| item.index(rule, what))
        .collect()
}

/// Entries in normal form: three numbers each (GRF-08).
pub(super) fn entries_json(list: &[NodeEntry]) -> Value {
    list.iter()
        .map(|entry| json!([entry.node, entry.index, entry.version]))
        .collect()
}
