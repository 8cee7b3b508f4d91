//! Reflection: what types say about their fields, methods and hooks, and objects that are made, read and changed by it (OBJ-15).
//! The table of types itself is in the chapter `value` (VAL-14, VAL-15). [`describe`] fills it for Rust types, [`column`] names the
//! attributes that are looked at here, [`native`] calls hooks that are C functions; [`record`] reads and writes fields, [`storage`]
//! knows how they lie in memory, [`construct`] makes whole objects. [`builtin`] registers the types and functions of this library;
//! [`env`] and [`opaque`] hold what a frontend, Python's for one, brings.

pub(crate) mod builtin;
pub(crate) mod column;
pub mod construct;
pub(crate) mod describe;
pub(crate) mod env;
pub(crate) mod native;
pub(crate) mod opaque;
pub(crate) mod record;
pub(crate) mod storage;
