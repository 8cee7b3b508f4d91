//! Reflection: descriptions of fields, methods and hooks of types, and the creation, reading and changing of objects through them (OBJ-15).
//! The table of types itself is in the chapter `value` (VAL-14, VAL-15). [`describe`] fills it for Rust types, [`column`] names the
//! attributes that are read here, and [`key_hooks`] calls hooks that are C functions. [`field_access`] reads and writes fields, [`storage`] knows
//! their memory layout, and [`construct`] creates whole objects. [`builtin`] registers the types and functions of this library. [`env`] and
//! [`opaque`] store objects that a frontend such as Python provides.

pub(crate) mod builtin;
pub(crate) mod column;
pub mod construct;
pub(crate) mod describe;
pub(crate) mod env;
pub(crate) mod field_access;
pub(crate) mod key_hooks;
pub(crate) mod opaque;
pub(crate) mod storage;
