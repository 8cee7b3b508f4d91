//! The graph executor: a model as JSON, a plan of its storage, and its execution. Released from 0.2 to 0.19.
//!
//! | member | form | rule |
//! |---|---|---|
//! | `nodes` | list of nodes: `op`, `name`, `inputs`, `attrs` | GRF-04 .. GRF-10 |
//! | `arg_nodes` | list of node indices | GRF-11 |
//! | `node_row_ptr` | list of entry indices, nodes + 1 | GRF-12 |
//! | `heads` | list of entries | GRF-08, GRF-09 |
//! | `attrs` | `dltype`, `storage_id`, `shape` and more, each `[type, list]` | GRF-13 .. GRF-18, GRF-51 |
//!
//! An *entry* is one output of one node; entries are numbered through `node_row_ptr`, and every list in `attrs` has one
//! element for each.

#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod json;
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod plan;
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod text;

#[cfg(feature = "runtime")]
mod aliases;
#[cfg(feature = "runtime")]
mod arguments;
#[cfg(feature = "runtime")]
pub mod debug;
#[cfg(feature = "runtime")]
mod debug_methods;
#[cfg(feature = "runtime")]
pub mod executor;
#[cfg(feature = "runtime")]
mod factory;
#[cfg(feature = "runtime")]
mod linked;
#[cfg(feature = "runtime")]
mod memory;
#[cfg(feature = "runtime")]
mod model;
#[cfg(feature = "runtime")]
pub mod module;
mod rules;

pub use rules::*;

#[cfg(feature = "runtime")]
pub use model::Model;
pub use plan::{Plan, Pool, Texture};

use crate::tensor::Dtype;
use std::collections::BTreeMap;

/// The last release with a graph executor: its names of dtypes are those of every graph.
const LAST: crate::release::Release = crate::release::Release::of(19);

/// A graph, held to every rule of its format.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The nodes, in the order in which they run.
    pub nodes: Vec<Node>,
    /// Which nodes are inputs or parameters.
    pub arg_nodes: Vec<usize>,
    /// First entry of each node, and behind the last node the number of entries.
    pub node_row_ptr: Vec<usize>,
    /// The outputs.
    pub heads: Vec<EntryRef>,
    /// What each entry is and where it lives.
    pub entries: Vec<Entry>,
}

/// One step, or one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name; inputs are set by it.
    pub name: String,
    /// The entries that it reads.
    pub inputs: Vec<EntryRef>,
    /// What it calls; `None` for an input or parameter (`op` is `null`).
    pub call: Option<Call>,
}

/// The function that a `tvm_op` node calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name; `__nop` does nothing, `__copy` copies its input to its output.
    pub func_name: String,
    /// How many inputs the compiler counted.
    pub num_inputs: usize,
    /// How many entries the node writes.
    pub num_outputs: usize,
    /// Whether every argument is passed as one flat dimension.
    pub flatten_data: bool,
    /// Other attributes, such as `hash` and `weight_layout`.
    pub attrs: BTreeMap<String, String>,
}

/// Output `index` of node `node`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef {
    /// The node.
    pub node: usize,
    /// Which of its outputs.
    pub index: usize,
    /// Always 0 in released graphs; carried along.
    pub version: usize,
}

/// What an entry is and where it lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Element type.
    pub dtype: Dtype,
    /// Extents; empty for a scalar.
    pub shape: Vec<i64>,
    /// The pool that it shares with every other entry of the same number.
    pub storage_id: usize,
    /// Device *type* number, where the graph names one (`device_index`, from 0.5 on).
    pub device: Option<i32>,
    /// Memory scope, where the graph names one (`storage_scope`, from 0.10 on); empty is the default scope.
    pub scope: Option<String>,
}

impl Graph {
    /// Number of `entry` among all entries.
    pub fn entry_id(&self, entry: EntryRef) -> Option<usize> {
        self.entry_of(entry.node, entry.index)
    }

    /// Number of output `index` of node `node` among all entries.
    pub(crate) fn entry_of(&self, node: usize, index: usize) -> Option<usize> {
        let first = *self.node_row_ptr.get(node)?;
        let behind = *self.node_row_ptr.get(node.checked_add(1)?)?;
        let id = first.checked_add(index)?;
        (id < behind).then_some(id)
    }

    /// The inputs and parameters: node index and name, in the order of `arg_nodes`.
    pub fn inputs(&self) -> impl Iterator<Item = (usize, &str)> {
        self.arg_nodes
            .iter()
            .filter_map(|index| Some((*index, self.nodes.get(*index)?.name.as_str())))
    }
}
