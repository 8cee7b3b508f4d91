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
#[cfg(feature = "runtime")]
pub(crate) mod walk;

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
#[cfg(feature = "runtime")]
pub use container::scalar::Scalar;
#[cfg(feature = "frontend")]
pub(crate) use container::seq::swap_element;
#[cfg(feature = "runtime")]
pub use container::seq::{Array, List, sequence_of};
#[cfg(feature = "runtime")]
pub(crate) use container::seq::{element_cell, item_count};
#[cfg(feature = "runtime")]
pub use container::shape::{Shape, extents_of};
#[cfg(feature = "runtime")]
pub(crate) use container::tensor::Allocator;
#[cfg(feature = "runtime")]
pub use container::tensor::Tensor;
#[cfg(feature = "suite")]
pub(crate) use container::tensor::compact_strides;
#[cfg(feature = "runtime")]
pub use container::{big_int, hash};
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

crate::rule::rules! {
    OBJ_01 "OBJ-01" OBJ_02 "OBJ-02" OBJ_38 "OBJ-38" OBJ_03 "OBJ-03" OBJ_04 "OBJ-04" OBJ_05 "OBJ-05" OBJ_06 "OBJ-06" OBJ_07 "OBJ-07"
    OBJ_08 "OBJ-08" OBJ_09 "OBJ-09" OBJ_10 "OBJ-10" OBJ_11 "OBJ-11" OBJ_12 "OBJ-12" OBJ_13 "OBJ-13" OBJ_14 "OBJ-14"
    OBJ_15 "OBJ-15" OBJ_16 "OBJ-16" OBJ_17 "OBJ-17" OBJ_18 "OBJ-18" OBJ_19 "OBJ-19" OBJ_20 "OBJ-20" OBJ_21 "OBJ-21"
    OBJ_22 "OBJ-22" OBJ_23 "OBJ-23" OBJ_24 "OBJ-24" OBJ_25 "OBJ-25" OBJ_26 "OBJ-26" OBJ_27 "OBJ-27" OBJ_28 "OBJ-28"
    OBJ_29 "OBJ-29" OBJ_30 "OBJ-30" OBJ_31 "OBJ-31" OBJ_32 "OBJ-32" OBJ_33 "OBJ-33" OBJ_34 "OBJ-34" OBJ_35 "OBJ-35"
    OBJ_36 "OBJ-36" OBJ_37 "OBJ-37" OBJ_39 "OBJ-39" OBJ_40 "OBJ-40" OBJ_41 "OBJ-41"
}
