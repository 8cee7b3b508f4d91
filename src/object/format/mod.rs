//! Formats of saved objects, without values, for every build. This code never panics, and allocates only as much as its input justifies.
//! [`super`] sets the lints for all of it.

pub mod ffi;
pub(crate) mod key_hash;
pub mod legacy;
pub mod text;
