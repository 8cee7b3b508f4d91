//! Reads any text as graph JSON. Nothing panics, and the normal form of an accepted graph reads as the same graph.
#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;
use tvmspec::graph::{Graph, Plan};
use tvmspec::rule::Findings;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data.get(1..).unwrap_or_default()) else { return };
    let mut findings = Findings::default();
    let read = Graph::read(text, &mut findings);
    let mut odd = naive::Odd::new();
    let Ok(naive) = naive::graph::read(text, &mut odd) else { return };
    let graph = match read {
        Ok(graph) => graph,
        Err(broken) => {
            assert!(!naive.is_some_and(|naive| naive.sure), "what keeps every rule is read");
            // A value that is not an object, or lacks members, also breaks later rules, but only the first rule is reported.
            if let Some((rule, kind)) = naive::graph::blame(text) {
                assert_eq!((broken.rule().id(), broken.kind()), (rule, kind.unwrap_or(broken.kind())), "{broken}");
            }
            return;
        }
    };
    let naive = naive.expect("the second reading accepts it too");
    assert_eq!(naive::findings(&findings, &["GRF"]), odd);
    let outputs = graph.nodes.iter().map(|node| node.call.as_ref().map_or(1, |call| call.num_outputs));
    assert!(outputs.eq(naive.outputs));
    match Plan::from_graph(&graph) {
        Ok(plan) => {
            let pools: Vec<u64> = plan.pools.iter().map(|pool| pool.bytes).collect();
            // The independent reader distinguishes texel types only by name.
            if naive.sure || plan.pools.iter().all(|pool| pool.texture.is_none()) {
                assert_eq!(Some(pools), naive.pools, "a pool is as large as its largest entry");
            }
            assert!(plan.pools.len() <= graph.entries.len());
        }
        Err(broken) => assert!(!naive.sure || naive.pools.is_none(), "{broken}"),
    }
    let normal = graph.to_json().to_string();
    let again = Graph::read(&normal, &mut Findings::default()).expect("the normal form is a graph");
    assert_eq!(graph, again);
});
