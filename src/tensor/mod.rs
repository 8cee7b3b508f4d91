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
//! Functions that read take a [`Sizing`], the way in which a family of releases counts bytes, because the bytes do not show it.
//!
//! ```
//! use tvmspec::rule::Findings;
//! use tvmspec::tensor::{Params, Sizing};
//! use tvmspec::wire::Cursor;
//!
//! let file = std::fs::read("golden/graph/models/v0.8/mlp.params")?;
//! let params = Params::read(&mut Cursor::new(&file), Sizing::V0_7, &mut Findings::default())?;
//! for (name, tensor) in params.iter() {
//!     println!("{name}: {:?}", tensor.shape());
//! }
//! # assert!(!params.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod device;
mod dtype;
mod elements;
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub mod json;
mod meaning;
mod packing;
mod params;
mod record;
mod rules;
mod sizing;
mod text;

pub use rules::*;

pub use cache::{CacheEncoding, CacheWriter, CachedTensor, Shard, TensorCache};
#[cfg(feature = "runtime")]
pub(crate) use device::DEVICE_NAMES;
pub use device::Device;
pub use dtype::Dtype;
pub use elements::Elements;
pub use packing::Packing;
pub(crate) use packing::extents_times;
pub use params::Params;
pub use record::TensorRecord;
pub use sizing::Sizing;
