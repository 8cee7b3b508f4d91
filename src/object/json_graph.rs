//! Saved objects: the JSON graph of both eras (`save_json`, `load_json`).
//!
//! | form | releases | rules | module |
//! |---|---|---|---|
//! | nodes by type key, attributes as text | 0.2 to 0.21 | OBJ-21 to OBJ-37 | [`legacy`] |
//! | nodes of tvm-ffi | from 0.22 on | OBJ-16 to OBJ-20 | [`ffi`], over JSON [`text`] |
//!
//! The feature `runtime` adds `json`, which converts JSON text to values (OBJ-16, OBJ-17, OBJ-40). It also adds `graph`, which converts the
//! nodes of tvm-ffi to values (OBJ-18 to OBJ-20). The feature `suite` adds `form`, which shows any value as JSON for cases.

pub use super::format::{ffi, legacy, text};
#[cfg(feature = "suite")]
pub use super::runtime::json_graph::form;
#[cfg(feature = "runtime")]
pub use super::runtime::json_graph::{graph, json};
