//! The exported C symbols. No logic of their own.

pub mod backend;
pub mod ffi;
