//! The format half: saved objects as text, without values, for every build. What is in here never panics, and takes no memory
//! that its input does not justify: [`super`] states the lints for all of it.

pub mod ffi;
pub(crate) mod key_hash;
pub mod legacy;
pub mod text;
