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
//! An *entry* is one output of one node. `node_row_ptr` numbers the entries, and every list in `attrs` has one element for each.
//!
//! | file | content | rules |
//! |---|---|---|
//! | `format/graph` | [`Graph`]: the JSON as a whole, and its references | GRF-01 .. GRF-03, GRF-09 .. GRF-12 |
//! | `format/node` | [`Node`], and the function it calls | GRF-04 .. GRF-07 |
//! | `format/entry` | [`NodeEntry`]: an output of a node | GRF-08 |
//! | `format/attrs` | [`DataEntry`]: type, shape and storage of each entry | GRF-13 .. GRF-18, GRF-22, GRF-51, GRF-52 |
//! | `format/json_text` | JSON text with byte offsets | GRF-01 |
//! | `format/plan` | [`Plan`]: which entries share memory | GRF-23, GRF-24, GRF-53 |
//! | `runtime/executor` | `Executor`: memory, functions, inputs, runs | GRF-30 .. GRF-39, GRF-47, GRF-48 |
//! | `runtime/debug` | one node at a time, times, the dump of a run | GRF-40 .. GRF-42 |
//! | `runtime/module`, `executor_module`, `methods`, `debug_methods`, `arguments` | upstream's names for it | GRF-43 .. GRF-46, GRF-50 |
//! | `runtime/factory`, `linked_params` | models inside libraries, and parameters linked into them | GRF-43, GRF-49 |
//! | `runtime/model` | `Model`: a model in three lines | |
//!
//! ```
//! use tvmspec::graph::Graph;
//! use tvmspec::rule::Findings;
//!
//! let text = std::fs::read_to_string("golden/graph/dtypes-0.19.json")?;
//! let graph = Graph::read(&text, &mut Findings::default())?;
//! println!("{} nodes", graph.nodes.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// The formats have a common module only for their lints, as in the crate's root.
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
mod format;
#[cfg(feature = "graph")]
mod runtime;

#[cfg(feature = "inspect")]
pub(crate) use format::dtype_text;
pub use format::{DataEntry, Graph, Node, NodeEntry, Plan, StoragePool, Texture, TvmOpParam};
crate::rule::chapter_rules!("graph");
pub(crate) use rules::*;
#[cfg(feature = "graph")]
pub use runtime::{Model, debug, executor, module};
