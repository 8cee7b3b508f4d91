//! The JSON graph of 0.2 to 0.21 (`save_json`, `load_json`): nodes by type key, attributes as text.
//!
//! ```text
//! {"root": R, "nodes": [N0, ...], "b64ndarrays": [T0, ...], "attrs": {"tvm_version": "0.8.0"}}
//! ```
//!
//! | member of a node | what | releases | rule |
//! |---|---|---|---|
//! | `type_key` | the type; empty for null | all | OBJ-22 |
//! | `global_key` | name of an object that the process has once | 0.5, 0.6 | OBJ-22 |
//! | `repr_str`, `repr_b64` | the whole object as text, as bytes | 0.7 on | OBJ-25 |
//! | `attrs` | fields: numbers as text, references as node indices, tensors as indices of `b64ndarrays` | all | OBJ-22 |
//! | `keys` | keys of a map, where all are strings | 0.4 on | OBJ-24 |
//! | `data` | node indices: elements of an array, values of a map, or keys and values in turn | all | OBJ-23, OBJ-24 |
//!
//! What an attribute means only its type knows, and most types are the compiler's. A [`LegacyGraph`] therefore keeps every
//! node as it stands. With the feature `runtime` `LegacyGraph::value` makes the value of the root, with objects of the types that
//! this process knows, and `LegacyGraph::of` the graph of a value.

mod check;
#[cfg(feature = "suite")]
pub mod form;
pub(crate) mod numbers;
mod read;
mod text;
mod write;

use crate::release::{Release, Releases};
use crate::rule::{Findings, Violation};
use crate::tensor::{Sizing, TensorRecord};
use crate::wire::Cursor;
use std::collections::BTreeMap;

/// The releases that read and write this form.
pub const RELEASES: Releases = Releases::between(2, 21);

/// The attribute of the graph that names the release that wrote it.
pub(crate) const VERSION: &str = "tvm_version";

/// A graph of nodes, whatever their types. Read by [`LegacyGraph::read`], written by [`LegacyGraph::write`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyGraph {
    /// Index of the node that the graph is about.
    pub root: usize,
    /// The nodes. The first is null in everything that a release wrote.
    pub nodes: Vec<LegacyNode>,
    /// Tensor records that attributes refer to by index; `None` in graphs of 0.2 and 0.3, which have no such member.
    pub tensors: Option<Vec<Vec<u8>>>,
    /// Attributes of the graph: `tvm_version`, in every release.
    pub attrs: BTreeMap<String, Vec<u8>>,
}

/// A node. Texts are bytes: C++ writes what a string holds, UTF-8 or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyNode {
    /// The type; empty for null.
    pub type_key: String,
    /// The name of an object that the process has once; empty for none.
    pub global_key: Vec<u8>,
    /// The whole object as bytes; empty for none.
    pub repr: Vec<u8>,
    /// Fields by name, as text.
    pub attrs: BTreeMap<String, Vec<u8>>,
    /// Keys of a map of strings.
    pub keys: Vec<Vec<u8>>,
    /// Indices of nodes.
    pub data: Vec<usize>,
}

/// What is in `data` of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// Elements.
    Array,
    /// Values, with keys beside them, or keys and values in turn.
    Map,
    /// Values, with keys beside them, always (0.4 to 0.6).
    StrMap,
}

impl LegacyNode {
    /// Which container it is; `None` for everything else.
    pub(crate) fn container(&self) -> Option<Container> {
        Some(match self.type_key.as_str() {
            "Array" | "ffi.Array" => Container::Array,
            "Map" | "ffi.Map" => Container::Map,
            "StrMap" => Container::StrMap,
            _ => return None,
        })
    }

    /// The releases that know its type key, where that is one of the runtime, and each of its members.
    fn releases(&self) -> impl Iterator<Item = Releases> + use<> {
        let key = match self.type_key.as_str() {
            "Array" | "Map" => Some(Releases::between(2, 20)),
            // OBJ-32: a type of its own, until 0.7 made it a `Map` with `keys`.
            "StrMap" => Some(Releases::between(4, 6)),
            "int" | "bool" | "float" | "DataType" | "Device" => Some(Releases::between(21, 21)),
            // OBJ-32: the names of tvm-ffi; 0.22 has them too, in another form (OBJ-18).
            key if key.starts_with("ffi.") => Some(Releases::between(21, 21)),
            "runtime.NDArray" => Some(Releases::between(9, 20)),
            "runtime.ShapeTuple" => Some(Releases::between(12, 20)),
            "runtime.BoxInt" | "runtime.BoxFloat" | "runtime.BoxBool" => {
                Some(Releases::between(18, 20))
            }
            // OBJ-32: the only one of its names that 0.21 still writes.
            "runtime.Module" => Some(Releases::between(14, 21)),
            key if key.starts_with("runtime.") => Some(Releases::between(7, 20)),
            // A type of the compiler: when it came and went is not of this form.
            _ => None,
        };
        // An empty member is not written (OBJ-31), so it needs no release.
        let keys = !self.keys.is_empty();
        let global_key = !self.global_key.is_empty();
        let repr = !self.repr.is_empty();
        key.into_iter()
            .chain(keys.then_some(Releases::between(4, 21)))
            .chain(global_key.then_some(Releases::between(5, 6)))
            .chain(repr.then_some(Releases::between(7, 21)))
    }
}

impl LegacyGraph {
    /// The release that wrote the graph, as far as it says so.
    pub fn release(&self) -> Option<Release> {
        let text = self.attrs.get(VERSION)?;
        // A graph may have been edited, or written by a build without a version: no rule is about this text.
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    /// The releases that know every member and every container of the graph (OBJ-32); `None` where no release knows all. What
    /// the compiler's own types ask for is not counted.
    pub fn releases(&self) -> Option<Releases> {
        let tensors = self.tensors.is_some().then_some(Releases::between(4, 21));
        let nodes = self.nodes.iter().flat_map(LegacyNode::releases);
        let all = tensors
            .into_iter()
            .chain(nodes)
            .fold(RELEASES, |all, one| Releases {
                since: all.since.max(one.since),
                until: all.until.min(one.until),
            });
        (all.since <= all.until).then_some(all)
    }

    /// Tensor `index` of the graph, its size counted as the release of the graph counts.
    pub fn tensor(&self, index: usize) -> Option<Result<TensorRecord<'_>, Violation>> {
        let bytes = self.tensors.as_ref()?.get(index)?;
        let mut cursor = Cursor::new(bytes);
        Some(TensorRecord::read(
            &mut cursor,
            self.sizing(),
            &mut Findings::default(),
        ))
    }

    /// How the size of a tensor is counted by the release that wrote the graph; as from 0.7 on where the graph does not state one.
    fn sizing(&self) -> Sizing {
        self.release().map_or(Sizing::V0_7, Sizing::of)
    }
}
