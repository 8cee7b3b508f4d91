//! The runtime half: objects in memory and operations on them. It uses the format half; the format half never uses it.

pub(crate) mod container;
pub(crate) mod json_graph;
pub(crate) mod reflect;
pub(crate) mod walk;

#[cfg(feature = "suite")]
pub(crate) use crate::value::header::BareObject;
pub use crate::value::header::{Header, Object, ObjectRef, Ref};
pub use crate::value::types;
pub(crate) use container::map::pair_count;
#[cfg(feature = "frontend")]
pub(crate) use container::map::swap_value;
pub use container::map::{Dict, Map, PairIter, Pairs, lookup_in, pairs_of};
#[cfg(feature = "vm")]
pub(crate) use container::seq::element_cell;
#[cfg(any(feature = "frontend", feature = "vm"))]
pub(crate) use container::seq::item_count;
#[cfg(feature = "frontend")]
pub(crate) use container::seq::swap_element;
pub use container::seq::{Array, List, sequence_of};
pub use container::shape::{Shape, extents_of};
pub use container::tensor::Tensor;
pub(crate) use container::tensor::TensorAllocator;
#[cfg(feature = "suite")]
pub(crate) use container::tensor::compact_strides;
pub use container::{big_int, hash};
#[doc(no_inline)]
pub use half::{bf16, f16};
#[cfg(feature = "suite")]
pub use json_graph::form;
pub use json_graph::{graph, json};
pub(crate) use reflect::builtin::{ArrayOf, def, def_packed};
pub use reflect::builtin::{init, missing};
pub use reflect::construct;
pub use reflect::field_access::field;
pub(crate) use walk::visited::VisitedObjects;
pub use walk::{recursive, repr, structural};
