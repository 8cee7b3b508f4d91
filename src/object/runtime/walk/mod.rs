//! Walks: what goes through a value and all that it holds, to compare, hash, copy, print, visit or rewrite it (OBJ-13, OBJ-14,
//! OBJ-34, OBJ-35, OBJ-41). Every walk checks with [`depth`] that it may go deeper.

pub(crate) mod copy;
pub(crate) mod depth;
pub mod recursive;
pub mod repr;
pub mod structural;
pub(crate) mod text;
#[cfg(feature = "frontend")]
pub(crate) mod visit;
pub(crate) mod visited;
