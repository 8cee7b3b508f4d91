//! The exported C symbols. No logic of their own.

pub mod backend;
pub mod device;
#[cfg(feature = "inspect")]
pub mod examine;
pub(crate) mod exports;
pub mod extras;
pub mod ffi;
pub mod half;
pub mod legacy;
pub mod legacy_device;
