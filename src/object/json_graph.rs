//! Saved objects: the JSON graph of both eras (`save_json`, `load_json`).
//!
//! | form | releases | rules | here |
//! |---|---|---|---|
//! | nodes by type key, attributes as text | 0.2 to 0.21 | OBJ-21 to OBJ-37 | [`legacy`] |
//! | nodes of tvm-ffi | from 0.22 on | OBJ-16 to OBJ-20 | [`ffi`], over JSON [`text`] |
//!
//! With the feature `runtime` there are also `json`, JSON text as values (OBJ-16, OBJ-17, OBJ-40), and `graph`, the nodes of
//! tvm-ffi as values (OBJ-18 to OBJ-20); with `suite` `form`, any value as JSON for cases.

pub use super::format::{ffi, legacy, text};
#[cfg(feature = "suite")]
pub use super::runtime::json_graph::form;
#[cfg(feature = "runtime")]
pub use super::runtime::json_graph::{graph, json};
