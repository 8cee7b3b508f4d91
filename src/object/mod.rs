//! Objects: types, containers, reflection, comparison, and the JSON graph.
//!
//! | room | what it holds | rules |
//! |---|---|---|
//! | `container` | arrays, maps, shapes, tensors, big integers, and the hash of keys | OBJ-01 to OBJ-12, OBJ-38, OBJ-39 |
//! | `key_hash` | the hash of texts and the slots of maps, without values | OBJ-01, OBJ-07, OBJ-39 |
//! | `reflect` | what types say about themselves, constructors, the builtins, the hooks of frontends | OBJ-15 |
//! | `walk` | comparison, hash, copies, text, visits | OBJ-13, OBJ-14, OBJ-34, OBJ-35, OBJ-41 |
//! | [`json_graph`] | JSON text, and saved objects of both eras | OBJ-16 to OBJ-33, OBJ-36, OBJ-37, OBJ-40 |

pub mod json_graph;
mod key_hash;

#[cfg(feature = "runtime")]
pub(crate) mod container;
#[cfg(feature = "runtime")]
pub(crate) mod reflect;
mod rules;
#[cfg(feature = "runtime")]
pub(crate) mod walk;

pub use rules::*;

#[cfg(feature = "suite")]
pub(crate) use crate::value::header::BareObject;
#[cfg(feature = "runtime")]
pub use crate::value::header::{Header, Object, ObjectRef, Ref};
#[cfg(feature = "runtime")]
pub use crate::value::types;
#[cfg(feature = "runtime")]
pub(crate) use container::map::pair_count;
#[cfg(feature = "frontend")]
pub(crate) use container::map::swap_value;
#[cfg(feature = "runtime")]
pub use container::map::{Dict, Map, PairIter, Pairs, lookup_in, pairs_of};
#[cfg(feature = "frontend")]
pub(crate) use container::seq::swap_element;
#[cfg(feature = "runtime")]
pub use container::seq::{Array, List, sequence_of};
#[cfg(feature = "runtime")]
pub(crate) use container::seq::{element_cell, item_count};
#[cfg(feature = "runtime")]
pub use container::shape::{Shape, extents_of};
#[cfg(feature = "runtime")]
pub(crate) use container::tensor::TensorAllocator;
#[cfg(feature = "suite")]
pub(crate) use container::tensor::compact_strides;
#[cfg(feature = "runtime")]
pub use container::tensor::{Scalar, Tensor};
#[cfg(feature = "runtime")]
pub use container::{big_int, hash};
#[cfg(feature = "runtime")]
#[doc(no_inline)]
pub use half::{bf16, f16};
#[cfg(feature = "suite")]
#[doc(inline)]
pub use json_graph::form;
#[cfg(feature = "runtime")]
#[doc(inline)]
pub use json_graph::{graph, json};
#[cfg(feature = "runtime")]
pub(crate) use reflect::builtin::{ArrayOf, def, def_packed};
#[cfg(feature = "runtime")]
pub use reflect::builtin::{init, missing};
#[cfg(feature = "runtime")]
pub use reflect::construct;
#[cfg(feature = "runtime")]
pub use reflect::record::field;
#[cfg(feature = "runtime")]
pub(crate) use walk::seen::Seen;
#[cfg(feature = "runtime")]
pub use walk::{recursive, repr, structural};
