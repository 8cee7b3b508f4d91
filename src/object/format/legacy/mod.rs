//! The JSON graph of 0.2 to 0.21 (`save_json`, `load_json`): nodes by type key, attributes as text.
//!
//! ```text
//! {"root": R, "nodes": [N0, ...], "b64ndarrays": [T0, ...], "attrs": {"tvm_version": "0.8.0"}}
//! ```
//!
//! | member of a node | content | releases | rule |
//! |---|---|---|---|
//! | `type_key` | the type; empty for null | all | OBJ-22 |
//! | `global_key` | name of an object that exists once per process | 0.5, 0.6 | OBJ-22 |
//! | `repr_str`, `repr_b64` | the whole object as text, as bytes | 0.7 on | OBJ-25 |
//! | `attrs` | fields: numbers as text, references as node indices, tensors as indices of `b64ndarrays` | all | OBJ-22 |
//! | `keys` | keys of a map, if all are strings | 0.4 on | OBJ-24 |
//! | `data` | node indices: elements of an array, values of a map, or keys and values alternately | all | OBJ-23, OBJ-24 |
//!
//! Only the type of a node defines the meaning of its attributes, and most types belong to the compiler. A [`LegacyGraph`] therefore
//! keeps every node as it is in the file. With the feature `runtime`, `LegacyGraph::value` creates the value of the root, with objects
//! of the types that this process knows. `LegacyGraph::of` creates the graph of a value.

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

/// The graph attribute that names the release that wrote the graph.
pub(crate) const VERSION: &str = "tvm_version";

/// A graph of nodes of any type. Read by [`LegacyGraph::read`], written by [`LegacyGraph::write`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyGraph {
    /// Index of the root node.
    pub root: usize,
    /// The nodes. In every graph that a release wrote, the first one is null.
    pub nodes: Vec<LegacyNode>,
    /// Tensor records, to which attributes refer by index. `None` in graphs of 0.2 and 0.3, which have no such member.
    pub tensors: Option<Vec<Vec<u8>>>,
    /// Attributes of the graph. Every release writes `tvm_version`.
    pub attrs: BTreeMap<String, Vec<u8>>,
}

/// A node. Texts are bytes, because C++ writes its strings unchanged, UTF-8 or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyNode {
    /// The type; empty for null.
    pub type_key: String,
    /// The name of an object that exists once per process; otherwise empty.
    pub global_key: Vec<u8>,
    /// The whole object as bytes; otherwise empty.
    pub repr: Vec<u8>,
    /// Fields by name, as text.
    pub attrs: BTreeMap<String, Vec<u8>>,
    /// Keys of a map whose keys are strings.
    pub keys: Vec<Vec<u8>>,
    /// Indices of nodes.
    pub data: Vec<usize>,
}

/// The meaning of a node's `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// Elements.
    Array,
    /// Values, with the keys in `keys`; or keys and values alternately.
    Map,
    /// Values, always with the keys in `keys` (0.4 to 0.6).
    StrMap,
}

impl LegacyNode {
    /// Returns the kind of container; `None` for other nodes.
    pub(crate) fn container(&self) -> Option<Container> {
        Some(match self.type_key.as_str() {
            "Array" | "ffi.Array" => Container::Array,
            "Map" | "ffi.Map" => Container::Map,
            "StrMap" => Container::StrMap,
            _ => return None,
        })
    }

    /// Returns the releases that know the type key, if it belongs to the runtime, and the releases of each member.
    fn releases(&self) -> impl Iterator<Item = Releases> + use<> {
        let key = match self.type_key.as_str() {
            "Array" | "Map" => Some(Releases::between(2, 20)),
            // OBJ-32: a separate type, until 0.7 made it a `Map` with `keys`.
            "StrMap" => Some(Releases::between(4, 6)),
            "int" | "bool" | "float" | "DataType" | "Device" => Some(Releases::between(21, 21)),
            // OBJ-32: the names of tvm-ffi. 0.22 also has them, but in another form (OBJ-18).
            key if key.starts_with("ffi.") => Some(Releases::between(21, 21)),
            "runtime.NDArray" => Some(Releases::between(9, 20)),
            "runtime.ShapeTuple" => Some(Releases::between(12, 20)),
            "runtime.BoxInt" | "runtime.BoxFloat" | "runtime.BoxBool" => {
                Some(Releases::between(18, 20))
            }
            // OBJ-32: the only `runtime.` name that 0.21 still writes.
            "runtime.Module" => Some(Releases::between(14, 21)),
            key if key.starts_with("runtime.") => Some(Releases::between(7, 20)),
            // A type of the compiler: its releases are not part of this form.
            _ => None,
        };
        // An empty member is not written (OBJ-31), so no release needs to know it.
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
    /// Returns the release that wrote the graph, if the graph states it.
    pub fn release(&self) -> Option<Release> {
        let text = self.attrs.get(VERSION)?;
        // A graph may have been edited, or written by a build without a version. No rule concerns this text.
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    /// Returns the releases that know every member and every container of the graph (OBJ-32), or `None` if no release knows all. Types of
    /// the compiler are not considered.
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

    /// Reads tensor `index` of the graph. The release of the graph decides how the tensor's size is counted.
    pub fn tensor(&self, index: usize) -> Option<Result<TensorRecord<'_>, Violation>> {
        let bytes = self.tensors.as_ref()?.get(index)?;
        let mut cursor = Cursor::new(bytes);
        Some(TensorRecord::read(
            &mut cursor,
            self.sizing(),
            &mut Findings::default(),
        ))
    }

    /// Returns how the release that wrote the graph counts the size of a tensor. Graphs without a release count as from 0.7 on.
    fn sizing(&self) -> Sizing {
        self.release().map_or(Sizing::V0_7, Sizing::of)
    }
}
