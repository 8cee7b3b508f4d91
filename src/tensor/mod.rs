//! Stored tensors: data types, devices, the tensor record, the parameter file and the tensor cache.
//!
//! | value | bytes | rule |
//! |---|---|---|
//! | [`Dtype`] | u8 code, u8 bits, u16 lanes | TEN-01 |
//! | [`Device`] | i32 type, i32 id | TEN-10 |
//! | [`TensorRecord`] | magic, reserved, device, ndim, dtype, shape, size, data | TEN-20 .. TEN-34 |
//! | [`Elements`] | a record as a tensor in memory | TEN-35 |
//! | [`Params`] | magic, reserved, names, count, records | TEN-40 .. TEN-45 |
//! | [`TensorCache`] | an index in JSON, and shards of data | TEN-50 .. TEN-61 |
//!
//! [`Params::open`] reads a parameter file of any release. Functions that read from a cursor require a [`Sizing`]: the method by which
//! a family of releases counts bytes. The bytes do not show it.
//!
//! ```
//! use tvmspec::tensor::Params;
//!
//! let file = std::fs::read("golden/graph/models/v0.8/mlp.params")?;
//! let params = Params::open(&file)?.value;
//! for (name, tensor) in &params {
//!     println!("{name}: {:?}", tensor.shape());
//! }
//! # assert!(!params.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod device;
mod dtype;
mod dtype_meaning;
mod dtype_text;
mod elements;
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub mod json;
mod number;
mod packing;
mod params;
mod record;
mod sizing;

crate::rule::chapter_rules!("tensor");
pub(crate) use rules::*;

pub use cache::{CacheEncoding, CacheWriter, CachedTensor, Shard, TensorCache};
#[cfg(feature = "runtime")]
pub(crate) use device::DEVICE_NAMES;
pub use device::Device;
pub use dtype::Dtype;
#[cfg(feature = "runtime")]
pub(crate) use dtype_text::push_lanes;
pub use elements::Elements;
pub use number::Scalar;
pub use packing::Packing;
pub(crate) use packing::extents_times;
pub use params::Params;
pub use record::TensorRecord;
pub use sizing::Sizing;
