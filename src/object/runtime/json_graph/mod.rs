//! Saved objects as values: the graphs of both eras, and JSON text. The formats themselves are in `format`.

#[cfg(feature = "suite")]
pub mod form;
pub mod graph;
pub mod json;
mod legacy;
