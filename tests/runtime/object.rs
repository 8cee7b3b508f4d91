//! Containers and saved objects, from outside.
#![cfg(feature = "frontend")]

#[path = "object/maps.rs"]
mod maps;
#[path = "object/recursion.rs"]
mod recursion;
#[path = "object/saved_graphs.rs"]
mod saved_graphs;
#[path = "object/scalars.rs"]
mod scalars;
#[cfg(feature = "suite")]
#[path = "../support/schema.rs"]
mod schema;
#[path = "object/sequences.rs"]
mod sequences;
#[path = "object/tensors.rs"]
mod tensors;

use tvmspec::value::Any;

fn int(value: i64) -> Any {
    Any::from(value)
}

fn heap_text(number: usize) -> Any {
    Any::from(format!("a text on the heap, number {number}").as_str())
}
