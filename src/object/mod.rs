//! Objects: types, containers, reflection, comparison, and the JSON graph.

pub mod big_int;
mod builtin;
pub(crate) mod column;
pub mod construct;
pub(crate) mod copy;
mod depth;
mod describe;
pub(crate) mod env;
#[cfg(feature = "suite")]
pub mod form;
pub(crate) mod frontend;
pub mod graph;
pub mod graph_check;
pub mod hash;
pub mod json;
pub mod legacy_graph;
mod map;
mod native;
pub(crate) mod opaque;
mod record;
pub mod recursive;
pub mod repr;
mod seen;
mod seq;
mod shape;
pub mod structural;
mod tensor;
pub(crate) mod text;
mod turnstile;
#[cfg(feature = "frontend")]
pub(crate) mod visit;

#[cfg(feature = "suite")]
pub(crate) use crate::value::header::BareObject;
pub use crate::value::header::{Header, Object, ObjectRef, Ref};
pub use crate::value::types;
pub(crate) use builtin::{ArrayOf, def, def_packed};
pub use builtin::{init, missing};
pub(crate) use map::pair_count;
#[cfg(feature = "frontend")]
pub(crate) use map::swap_value;
pub use map::{Dict, Map, PairIter, Pairs, lookup_in, pairs_of};
pub use record::field;
pub(crate) use seen::Seen;
pub(crate) use seq::element_cell;
pub(crate) use seq::item_count;
#[cfg(feature = "frontend")]
pub(crate) use seq::swap_element;
pub use seq::{Array, List, sequence_of};
pub use shape::{Shape, extents_of};
pub(crate) use tensor::Allocator;
pub use tensor::Tensor;
#[cfg(feature = "suite")]
pub(crate) use tensor::compact_strides;

crate::rule::rules! {
    OBJ_01 "OBJ-01" OBJ_02 "OBJ-02" OBJ_38 "OBJ-38" OBJ_03 "OBJ-03" OBJ_04 "OBJ-04" OBJ_05 "OBJ-05" OBJ_06 "OBJ-06" OBJ_07 "OBJ-07"
    OBJ_08 "OBJ-08" OBJ_09 "OBJ-09" OBJ_10 "OBJ-10" OBJ_11 "OBJ-11" OBJ_12 "OBJ-12" OBJ_13 "OBJ-13" OBJ_14 "OBJ-14"
    OBJ_15 "OBJ-15" OBJ_16 "OBJ-16" OBJ_17 "OBJ-17" OBJ_18 "OBJ-18" OBJ_19 "OBJ-19" OBJ_20 "OBJ-20" OBJ_21 "OBJ-21"
    OBJ_22 "OBJ-22" OBJ_23 "OBJ-23" OBJ_24 "OBJ-24" OBJ_25 "OBJ-25" OBJ_26 "OBJ-26" OBJ_27 "OBJ-27" OBJ_28 "OBJ-28"
    OBJ_29 "OBJ-29" OBJ_30 "OBJ-30" OBJ_31 "OBJ-31" OBJ_32 "OBJ-32" OBJ_33 "OBJ-33" OBJ_34 "OBJ-34" OBJ_35 "OBJ-35"
    OBJ_36 "OBJ-36" OBJ_37 "OBJ-37" OBJ_39 "OBJ-39" OBJ_40 "OBJ-40" OBJ_41 "OBJ-41"
}
