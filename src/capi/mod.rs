//! The exported C symbols: each converts its arguments, calls a chapter, and returns the result or a code.
//!
//! What only C sees is done here and nowhere else: handles, texts that stay until the next call on the thread, and how each
//! era passes a failure. The rules FUN-13 to FUN-24 of the older interface are kept in [`legacy`].

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
