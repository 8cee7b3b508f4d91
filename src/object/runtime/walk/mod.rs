//! Walks over a value and everything that it contains: comparison, hash, copy, print, visit and rewrite (OBJ-13, OBJ-14, OBJ-34, OBJ-35,
//! OBJ-41). Every walk checks with [`depth`] that it may go deeper.

pub(crate) mod copy;
pub(crate) mod depth;
pub mod recursive;
mod region;
pub mod repr;
pub mod structural;
pub(crate) mod text;
#[cfg(feature = "frontend")]
pub(crate) mod visit;
pub(crate) mod visited;
