//! Containers and saved objects, through the public interface.
#![cfg(feature = "frontend")]

mod maps;
mod recursion;
mod saved_graphs;
mod scalars;
mod sequences;
mod tensors;

use tvmspec::value::Any;

fn int(value: i64) -> Any {
    Any::from(value)
}

fn heap_text(number: usize) -> Any {
    Any::from(format!("a text on the heap, number {number}").as_str())
}
