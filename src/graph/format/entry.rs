//! Entries, each an output of a node, and lists of node indices.

use super::json_text::JsonText;
use crate::graph::GRF_08;
use crate::rule::{Kind, Rule, Violation};
use serde_json::{Value, json};

/// Output `index` of node `node` (GRF-08), which JSON stores as three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The index of the node.
    pub node: usize,
    /// The number of the output.
    pub index: usize,
    /// The version. Always 0 in released graphs; kept when a graph is written.
    pub version: usize,
}

/// Reads a list of entries, each of two or three numbers (GRF-08).
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
                    "an entry of {what}: expected 2 or 3 numbers, found {}",
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

/// Reads a list of node or entry indices, all from 0 on. Any other value breaks `rule`.
pub(super) fn read_indices(
    list: JsonText<'_>,
    rule: Rule,
    what: &str,
) -> Result<Vec<usize>, Violation> {
    list.elements(rule, what)?
        // This checks only the form. GRF-09 to GRF-12 check the values after the whole graph is read.
        .iter()
        .map(|item| item.index(rule, what))
        .collect()
}

/// Returns entries in normal form: three numbers each (GRF-08).
pub(super) fn entries_json(list: &[NodeEntry]) -> Value {
    list.iter()
        .map(|entry| json!([entry.node, entry.index, entry.version]))
        .collect()
}
