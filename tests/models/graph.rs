//! Graph JSON: the normal form is stable, truncated or changed text never panics, and plans contain every entry.

use proptest::prelude::*;
use serde_core::de::IgnoredAny;
use serde_json::{Value, json};
use std::path::PathBuf;
use tvmspec::graph::{Graph, NodeEntry, Plan};
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
    let plan = Plan::from_graph(&graph).unwrap();
    let bytes: Vec<u64> = plan.pools.iter().map(|pool| pool.bytes).collect();
    // Allocation of the 0.8.0 executor for this graph.
    assert_eq!(bytes, [24, 48, 16, 32, 16, 24]);
    assert_eq!(plan.total_bytes(), 160);
    // The outputs are entries, and their nodes are not arguments.
    let outputs = graph.heads.iter();
    let nodes: Vec<usize> = outputs.map(|NodeEntry { node, .. }| *node).collect();
    assert!(
        nodes.iter().all(|node| !graph.arg_nodes.contains(node)),
        "{nodes:?}"
    );
}

proptest! {
    #[test]
    fn cut_text_is_rejected(which in 0..REAL.len(), at in any::<prop::sample::Index>()) {
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
            let _ = Plan::from_graph(&graph);
        }
    }
}

/// The error of a wrong reference or storage id shows its place.
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

/// Returns a graph with one call, whose name, attributes and extent are this JSON.
fn graph_of(name: &str, attrs: &str, extent: &str) -> String {
    format!(
        r#"{{"nodes": [{{"op": "null", "name": {name}, "inputs": []}}, {{"op": "tvm_op", "name": "f", "inputs": [[0, 0, 0]],
        "attrs": {{"func_name": "f", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"{attrs}}}}}],
        "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]],
        "attrs": {{"dltype": ["list_str", ["int8", "int8"]], "storage_id": ["list_int", [0, 1]],
        "shape": ["list_shape", [[{extent}], [1]]]}}}}"#
    )
}

fn read(text: &str) -> Result<Graph, tvmspec::rule::Violation> {
    Graph::read(text, &mut Findings::default())
}

/// Checks whether the reader accepts the text as JSON.
fn is_json(text: &str) -> bool {
    !matches!(read(text), Err(broken) if broken.message().starts_with("not JSON"))
}

/// Generates JSON with the variety of real files: blanks, escapes, repeated members, and numbers of every form.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "true|false|null",
        number(),
        string(),
        // Mostly invalid JSON.
        "-?[0-9.eE+-]{0,6}|tru|nul|NaN|Infinity|'a'|\"[\u{0}-\u{20}]\"|//",
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let blank = "[ \t\r\n]{0,2}";
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 0..5), blank).prop_map(
                |(items, blank)| format!("[{blank}{}]", items.join(&format!(",{blank}")))
            ),
            (proptest::collection::vec((string(), inner), 0..5), blank).prop_map(
                |(members, blank)| {
                    let members: Vec<String> = members
                        .iter()
                        .map(|(key, value)| format!("{key}{blank}:{blank}{value}"))
                        .collect();
                    format!("{blank}{{{}{blank}}}", members.join(","))
                }
            ),
        ]
    })
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        "-?(0|[1-9][0-9]{0,24})",
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,4})?",
        "-?0{1,2}",
    ]
}

/// Generates a string literal, with complete and broken surrogate pairs among its escapes.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -!#-\\[\\]-~\u{7f}\u{e9}\u{20ac}\u{1f600}]{0,4}",
        2 => r#"\\["\\/bfnrt]"#,
        2 => r"\\u[0-9a-cA-CE-Fe-f][0-9a-fA-F]{3}",
        1 => r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}",
        1 => r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}",
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

proptest! {
    #[test]
    fn json_acceptance_matches_serde_json(text in json_text(), cut in any::<prop::sample::Index>(), to in any::<char>()) {
        let plain = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
        prop_assert_eq!(is_json(&text), plain(&text), "{}", &text);
        let mut letters: Vec<char> = text.chars().collect();
        if !letters.is_empty() {
            let at = cut.index(letters.len());
            letters[at] = if to.is_ascii() { to } else { b"{}[]\",:\\u0-"[to as usize % 11].into() };
            let changed: String = letters.iter().collect();
            prop_assert_eq!(is_json(&changed), plain(&changed), "{}", &changed);
            let cut: String = letters[..at].iter().collect();
            prop_assert_eq!(is_json(&cut), plain(&cut), "{}", &cut);
        }
    }

    #[test]
    fn strings_say_what_they_say_to_serde_json(name in string(), members in proptest::collection::vec((string(), string()), 0..4)) {
        let attrs: String = members.iter().map(|(key, value)| format!(", {key}: {value}")).collect();
        let known: Result<Value, _> = serde_json::from_str(&format!("[{name}, {{\"\": \"\"{attrs}}}]"));
        match (read(&graph_of(&name, &attrs, "1")), known) {
            (Ok(graph), Ok(known)) => {
                prop_assert_eq!(&known[0], &json!(graph.nodes[0].name));
                let mut read = json!(graph.nodes[1].call.as_ref().unwrap().attrs);
                let read = read.as_object_mut().unwrap();
                read.entry("").or_insert_with(|| "".into());
                prop_assert_eq!(known[1].as_object().unwrap(), &*read);
            }
            (Err(broken), Err(_)) => prop_assert!(["GRF-04", "GRF-07"].contains(&broken.rule().id()), "{broken}"),
            (read, known) => prop_assert!(false, "{read:?}, but {known:?}"),
        }
    }

    #[test]
    fn integers_are_those_of_serde_json(extent in number()) {
        let read = read(&graph_of("\"x\"", "", &extent));
        let read = read.map(|graph| graph.entries[0].shape[0]);
        match serde_json::from_str::<i64>(&extent) {
            Ok(known) if known >= 0 => prop_assert_eq!(read.ok(), Some(known)),
            // serde_json reads a float, and this reader 0.
            Err(_) if extent == "-0" => prop_assert_eq!(read.ok(), Some(0)),
            _ => {
                let json = serde_json::from_str::<IgnoredAny>(&extent).is_ok();
                let rule = if json { "GRF-18" } else { "GRF-01" };
                prop_assert_eq!(read.map_err(|broken| broken.rule().id()), Err(rule));
            }
        }
    }
}

#[test]
fn every_ascii_letter_is_what_it_is_to_serde_json() {
    for letter in '\0'..='\u{80}' {
        for text in [
            format!("\"{letter}\""),
            format!("\"\\{letter}\""),
            format!("{letter}1"),
            format!("1{letter}"),
            format!("[1{letter}2]"),
            format!("[1.{letter}]"),
            format!("\"\\u000{letter}\""),
        ] {
            let json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            assert_eq!(is_json(&text), json, "{text:?}");
        }
    }
}

#[test]
fn brackets_may_nest_two_million_deep() {
    const DEEP: usize = 2_000_000;
    let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    let broken = read(&deep).unwrap_err();
    assert_eq!(
        (broken.rule().id(), broken.offset()),
        ("GRF-01", Some(0)),
        "{broken}"
    );
    let broken = read(&deep[..DEEP]).unwrap_err();
    assert_eq!(broken.offset(), Some(DEEP as u64), "{broken}");
    // A list of unknown type is skipped without being parsed.
    let text = golden("unknown-list-int.json");
    let graph = Graph::read(&text, &mut Findings::default()).unwrap();
    let at = text.find("\"priority\"").unwrap();
    let at = at + text[at..].find("1,").unwrap();
    let deeper = format!("{}{deep},{}", &text[..at], &text[at..]);
    assert_eq!(read(&deeper).unwrap(), graph);
}

#[test]
fn a_name_that_is_half_a_surrogate_pair_is_blamed_itself() {
    for (text, rule) in [
        (r#"{"nodes": [], "\ud800": 1}"#.to_owned(), "GRF-01"),
        (graph_of("\"x\"", r#", "\udc00": "1""#, "1"), "GRF-07"),
    ] {
        let broken = read(&text).unwrap_err();
        assert_eq!(broken.rule().id(), rule, "{broken}");
        let at = text.find("\"\\ud").unwrap();
        assert_eq!(broken.offset(), Some(at as u64), "{broken}");
        assert!(broken.message().contains("\\ud"), "{broken}");
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

#[test]
fn a_second_member_is_reported_wherever_it_is() {
    let once = graph_of("\"x\"", "", "1");
    let mut findings = Findings::default();
    let graph = Graph::read(&once, &mut findings).unwrap();
    assert!(findings.is_empty());
    for (first, second) in [
        ("\"func_name\": \"f\"", "\"func_name\": \"g\", "),
        ("\"op\": \"null\"", "\"op\": \"tvm_op\", "),
        ("\"attrs\": {\"func_name\"", "\"attr\": {}, "),
        (
            "\"dltype\"",
            "\"dltype\": [\"list_str\", [\"int4\", \"int4\"]], ",
        ),
        ("\"heads\"", "\"heads\": [], "),
    ] {
        let at = once.find(first).unwrap();
        let twice = format!("{}{second}{}", &once[..at], &once[at..]);
        let mut findings = Findings::default();
        assert_eq!(
            Graph::read(&twice, &mut findings).unwrap(),
            graph,
            "{second}"
        );
        let [finding] = findings.as_slice() else {
            panic!("{second}: {findings:?}");
        };
        assert_eq!(finding.rule.id(), "GRF-20");
        assert!(finding.offset as usize > at + second.len(), "{second}");
    }
}

/// TEN-35: a parameter that stores only one lane, or no byte of a bool, is not read past its end.
#[cfg(feature = "graph")]
#[test]
fn a_parameter_without_all_of_its_elements_is_rejected() {
    use std::sync::Arc;
    use tvmspec::device::Device;
    use tvmspec::graph::executor::{Executor, ExecutorDevice};
    use tvmspec::tensor::{Dtype, Params, Sizing, TensorRecord};

    for (name, dtype, sizing, stored) in [
        (
            "float32x1024",
            Dtype {
                code: 2,
                bits: 32,
                lanes: 1024,
            },
            Sizing::V0_7,
            4096 * 4,
        ),
        ("uint1", Dtype::scalar(Dtype::UINT, 1), Sizing::V0_4, 0),
    ] {
        let text = format!(
            r#"{{"nodes": [{{"op": "null", "name": "p", "inputs": []}}], "arg_nodes": [0], "node_row_ptr": [0, 1],
            "heads": [[0, 0, 0]], "attrs": {{"dltype": ["list_str", ["{name}"]], "storage_id": ["list_int", [0]],
            "shape": ["list_shape", [[4096]]]}}}}"#
        );
        let place = ExecutorDevice::new(Device::CPU).unwrap();
        let mut executor =
            Executor::new(Arc::new(read(&text).unwrap()), &|_| Ok(None), vec![place]).unwrap();
        let record = TensorRecord::new(dtype, &[4096], vec![1; stored], sizing).unwrap();
        let error = executor
            .load_params(&Params::new(vec![("p".into(), record)]))
            .err()
            .unwrap();
        assert!(error.to_string().contains("TEN-35"), "{error}");
        executor.clear_input(0).unwrap();
        assert!(executor.unset_inputs().is_empty());
    }
}

/// GRF-23: a pool slightly smaller than 2^64 bytes must be rejected. Rounded up to a word, its size overflows to 0.
#[cfg(feature = "graph")]
#[test]
fn a_pool_of_nearly_all_memory_is_rejected() {
    use std::sync::Arc;
    use tvmspec::device::Device;
    use tvmspec::graph::executor::{Executor, ExecutorDevice};

    for (dtype, extents) in [
        ("int8x2", "9223372036854775807"),
        ("int8", "4611686018427387904, 2, 0"),
    ] {
        let text = format!(
            r#"{{"nodes": [{{"op": "null", "name": "p", "inputs": []}}, {{"op": "tvm_op", "name": "f", "inputs": [[0, 0, 0]],
            "attrs": {{"func_name": "f", "num_inputs": "1", "num_outputs": "1", "flatten_data": "1"}}}}], "arg_nodes": [0],
            "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]], "attrs": {{"dltype": ["list_str", ["{dtype}", "{dtype}"]],
            "storage_id": ["list_int", [0, 1]], "shape": ["list_shape", [[{extents}], [{extents}]]]}}}}"#
        );
        let place = ExecutorDevice::new(Device::CPU).unwrap();
        let kernel = tvmspec::function::Function::from_packed(|_| Ok(tvmspec::value::Any::none()));
        let kernels = |_: &str| Ok(Some(kernel.clone()));
        let graph = read(&text).unwrap();
        let made = Executor::new(Arc::new(graph), &kernels, vec![place]);
        // A tensor without elements needs no memory. The other one needs more memory than exists.
        assert_eq!(made.is_ok(), extents.ends_with('0'), "{extents}");
    }
}
