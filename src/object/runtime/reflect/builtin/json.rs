//! Registration of the functions for JSON and the JSON graph (OBJ-16 to OBJ-20).
//!
//! A graph is read and written as a value of arrays and maps, or as text.

use super::def;
use crate::object::{graph, json};
use crate::value::{Any, Str};

/// Registers the functions of this file.
pub(super) fn register() {
    def("ffi.json.Parse", |text: Str| json::parse(text.as_bytes()));
    def("ffi.json.Stringify", |value: Any, indent: Option<i64>| {
        // None and 0 are both compact (OBJ-17).
        json::stringify(value.view(), indent.unwrap_or(0))
    });
    def("ffi.ToJSONGraph", |value: Any, metadata: Any| {
        graph::encode(value.view(), metadata.view())
    });
    def("ffi.ToJSONGraphString", |value: Any, metadata: Any| {
        graph::encode_text(value.view(), metadata.view())
    });
    def("ffi.FromJSONGraph", |graph: Any| {
        graph::decode(graph.view())
    });
    def("ffi.FromJSONGraphString", |text: Str| {
        graph::decode_text(text.as_bytes())
    });
}
