//! The exported C symbols: each converts its arguments, calls a chapter, and returns the result or a code.
//!
//! | interface | declared in | functions |
//! |---|---|---|
//! | functions that compiled code of every release calls | `tvm_c_runtime_api.h` | [`backend`], [`half`] |
//! | 0.8 to 0.20, and the types of extensions of 0.2 to 0.6 | `tvm_c_runtime_api.h` | [`legacy`] |
//! | 0.21 on | `tvm_ffi_c_api.h` | [`ffi`] |
//! | extensions of this library | `tvmspec.h`, `tvmspec_device.h` | `examine`, [`extras`], [`device`], `target`, `export` |
//!
//! The rules are in the chapters. This module contains only the C side: addresses and handles, texts that end in NUL, and the return codes
//! of each era. For the newer era it also contains backtraces and the symbols of C++, which no chapter needs.

pub mod backend;
#[cfg(feature = "target")]
mod call_result;
pub mod device;
#[cfg(feature = "inspect")]
pub mod examine;
#[cfg(feature = "target")]
pub mod export;
mod exports;
pub mod extras;
pub mod ffi;
pub mod float16;
pub mod legacy;
#[cfg(feature = "target")]
pub mod target;

pub(crate) use exports::install;
