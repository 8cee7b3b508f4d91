//! Reading and writing of graphs, without running them: no I/O, no `unsafe`, no panic.

mod attrs;
mod entry;
mod graph;
mod json_text;
mod node;
mod plan;

pub use attrs::DataEntry;
pub use entry::NodeEntry;
pub use graph::Graph;
pub use node::{Node, TvmOpParam};
pub use plan::{Plan, StoragePool, Texture};

#[cfg(any(feature = "graph", feature = "inspect"))]
pub(crate) use attrs::dtype_text;
#[cfg(feature = "graph")]
pub(super) use plan::bytes_of;
