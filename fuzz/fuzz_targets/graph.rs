//! Any text as graph JSON: no panic, and what is accepted has a normal form that reads as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::graph::{Graph, Plan};
use tvmspec::rule::Findings;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data.get(1..).unwrap_or_default()) else { return };
    let Ok(graph) = Graph::read(text, &mut Findings::default()) else { return };
    if let Ok(plan) = Plan::of(&graph) {
        assert!(plan.pools.len() <= graph.entries.len());
    }
    let normal = graph.to_json().to_string();
    let again = Graph::read(&normal, &mut Findings::default()).expect("the normal form is a graph");
    assert_eq!(graph, again);
});
