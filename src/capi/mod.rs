//! The exported C symbols. No logic of their own.

pub mod backend;
pub mod device;
pub(crate) mod exports;
pub mod extras;
pub mod ffi;
pub mod half;
#[cfg(feature = "inspect")]
pub mod inspect;
pub mod legacy;
pub mod legacy_device;
