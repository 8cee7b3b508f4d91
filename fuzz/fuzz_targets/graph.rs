//! Any text as graph JSON: no panic, and what is accepted has a normal form that reads as itself.
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
            // What is no object, or has not all members, breaks later rules as well: the first is to blame.
            if let Some((rule, kind)) = naive::graph::blame(text) {
                assert_eq!((broken.rule().id(), broken.kind()), (rule, kind.unwrap_or(broken.kind())), "{broken}");
            }
            return;
        }
    };
    let naive = naive.expect("what is read keeps every rule");
    assert_eq!(naive::findings(&findings, &["GRF"]), odd);
    let outputs = graph.nodes.iter().map(|node| node.call.as_ref().map_or(1, |call| call.num_outputs));
    assert!(outputs.eq(naive.outputs));
    match Plan::of(&graph) {
        Ok(plan) => {
            let pools: Vec<u64> = plan.pools.iter().map(|pool| pool.bytes).collect();
            // The second reading tells types of texels apart by their names.
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
