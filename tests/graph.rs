//! The graph JSON: normal form is stable, cut and changed text never panics, plans hold every entry.

use proptest::prelude::*;
use std::path::PathBuf;
use tvmspec::graph::{Graph, Plan};
use tvmspec::rule::Findings;

fn golden(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/graph")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const REAL: [&str; 7] = [
    "mlp.json",
    "multi-out.json",
    "dtypes.json",
    "resnet8.json",
    "mlp-0.19.json",
    "dtypes-0.19.json",
    "shared-storage.json",
];

#[test]
fn the_normal_form_reads_as_itself() {
    for name in REAL {
        let graph = Graph::read(&golden(name), &mut Findings::default()).unwrap();
        let normal = graph.to_json().to_string();
        let again = Graph::read(&normal, &mut Findings::default()).unwrap();
        assert_eq!(graph, again, "{name}");
        assert_eq!(again.to_json().to_string(), normal, "{name}");
    }
}

#[test]
fn the_plan_of_shared_storage_is_the_released_one() {
    let graph = Graph::read(&golden("shared-storage.json"), &mut Findings::default()).unwrap();
    let bytes: Vec<u64> = Plan::of(&graph)
        .unwrap()
        .pools
        .iter()
        .map(|pool| pool.bytes)
        .collect();
    // What the 0.8.0 executor allocated for this graph.
    assert_eq!(bytes, [24, 48, 16, 32, 16, 24]);
}

proptest! {
    #[test]
    fn cut_text_is_refused(which in 0..REAL.len(), at in any::<prop::sample::Index>()) {
        let text = golden(REAL[which]);
        let text = text.trim_end();
        let at = at.index(text.len());
        prop_assert!(Graph::read(&text[..at], &mut Findings::default()).is_err());
    }

    #[test]
    fn changed_text_never_panics(which in 0..REAL.len(), at in any::<prop::sample::Index>(), to in 0x20_u8..0x7f) {
        let mut text = golden(REAL[which]).into_bytes();
        let at = at.index(text.len());
        text[at] = to;
        let text = String::from_utf8(text).unwrap();
        if let Ok(graph) = Graph::read(&text, &mut Findings::default()) {
            let _ = Plan::of(&graph);
        }
    }
}

/// What breaks a reference or a storage id is shown where it stands.
#[test]
fn a_wrong_number_is_found_where_it_stands() {
    for (name, field, blamed) in [
        ("reads-later-node", "nodes[1].inputs[0]", "[2, 0, 0]"),
        ("reads-itself", "nodes[1].inputs[0]", "[1, 0, 0]"),
        ("input-beyond-nodes", "nodes[1].inputs[0]", "[9, 0, 0]"),
        ("head-beyond-nodes", "heads[0]", "[3, 0, 0]"),
        ("arg-beyond-nodes", "arg_nodes[0]", "7"),
        ("arg-is-a-call", "arg_nodes[0]", "1"),
        ("storage-id-2-31", "attrs.storage_id", "2147483648"),
        ("negative-storage", "attrs.storage_id", "-1"),
    ] {
        let text = golden(&format!("{name}.json"));
        let broken = Graph::read(&text, &mut Findings::default()).unwrap_err();
        assert_eq!(broken.field(), field, "{name}");
        let offset = usize::try_from(broken.offset().unwrap()).unwrap();
        let shown: String = text[offset..]
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let blamed = blamed.replace(' ', "");
        assert!(shown.starts_with(&blamed), "{name}: {}", &text[offset..]);
    }
}

#[test]
fn what_is_not_utf8_is_no_graph() {
    let text = golden("mlp.json");
    let at = text.find("\"name\": \"").unwrap() + 9;
    let mut bytes = text.into_bytes();
    bytes[at] = 0xff;
    let broken = Graph::read_bytes(&bytes, &mut Findings::default()).unwrap_err();
    assert_eq!(broken.rule().id(), "GRF-01");
    assert_eq!(broken.offset(), Some(at as u64));
    bytes.truncate(at);
    bytes.push(0xc3);
    let broken = Graph::read_bytes(&bytes, &mut Findings::default()).unwrap_err();
    assert_eq!(broken.kind(), tvmspec::rule::Kind::Truncated);
}
