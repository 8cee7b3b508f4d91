//! Objects: types, containers, reflection, comparison, and the JSON graph.

pub mod json_graph;

#[cfg(feature = "runtime")]
pub mod big_int;
#[cfg(feature = "runtime")]
mod builtin;
#[cfg(feature = "runtime")]
pub(crate) mod column;
#[cfg(feature = "runtime")]
pub mod construct;
#[cfg(feature = "runtime")]
pub(crate) mod copy;
#[cfg(feature = "runtime")]
mod depth;
#[cfg(feature = "runtime")]
mod describe;
#[cfg(feature = "runtime")]
pub(crate) mod env;
#[cfg(feature = "suite")]
pub mod form;
#[cfg(feature = "runtime")]
pub(crate) mod frontend;
#[cfg(feature = "runtime")]
pub mod graph;
#[cfg(feature = "runtime")]
pub mod hash;
#[cfg(feature = "runtime")]
pub mod json;
#[cfg(feature = "runtime")]
mod map;
#[cfg(feature = "runtime")]
mod native;
#[cfg(feature = "runtime")]
pub(crate) mod opaque;
#[cfg(feature = "runtime")]
mod record;
#[cfg(feature = "runtime")]
pub mod recursive;
#[cfg(feature = "runtime")]
pub mod repr;
#[cfg(feature = "runtime")]
mod seen;
#[cfg(feature = "runtime")]
mod seq;
#[cfg(feature = "runtime")]
mod shape;
#[cfg(feature = "runtime")]
pub mod structural;
#[cfg(feature = "runtime")]
mod tensor;
#[cfg(feature = "runtime")]
pub(crate) mod text;
#[cfg(feature = "runtime")]
mod turnstile;
#[cfg(feature = "frontend")]
pub(crate) mod visit;

#[cfg(feature = "suite")]
pub(crate) use crate::value::header::BareObject;
#[cfg(feature = "runtime")]
pub use crate::value::header::{Header, Object, ObjectRef, Ref};
#[cfg(feature = "runtime")]
pub use crate::value::types;
#[cfg(feature = "runtime")]
pub(crate) use builtin::{ArrayOf, def, def_packed};
#[cfg(feature = "runtime")]
pub use builtin::{init, missing};
#[cfg(feature = "runtime")]
pub(crate) use map::pair_count;
#[cfg(feature = "frontend")]
pub(crate) use map::swap_value;
#[cfg(feature = "runtime")]
pub use map::{Dict, Map, PairIter, Pairs, lookup_in, pairs_of};
#[cfg(feature = "runtime")]
pub use record::field;
#[cfg(feature = "runtime")]
pub(crate) use seen::Seen;
#[cfg(feature = "runtime")]
pub(crate) use seq::element_cell;
#[cfg(feature = "runtime")]
pub(crate) use seq::item_count;
#[cfg(feature = "frontend")]
pub(crate) use seq::swap_element;
#[cfg(feature = "runtime")]
pub use seq::{Array, List, sequence_of};
#[cfg(feature = "runtime")]
pub use shape::{Shape, extents_of};
#[cfg(feature = "runtime")]
pub(crate) use tensor::Allocator;
#[cfg(feature = "runtime")]
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
