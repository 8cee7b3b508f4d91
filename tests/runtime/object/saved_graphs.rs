//! Saved objects of 0.2 to 0.21: their values, and random ones.

use super::int;
use proptest::prelude::*;
use tvmspec::object::json_graph::legacy::{LegacyGraph, LegacyNode};
use tvmspec::object::{Array, Map, Shape};
use tvmspec::release::Release;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Dtype, Sizing, TensorRecord};
use tvmspec::value::{Any, Str};
use tvmspec::wire::Writer;

/// Returns the names and texts of the objects that releases saved.
fn saved() -> Vec<(String, Vec<u8>)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/object");
    let mut files = Vec::new();
    for release in ["0.8", "0.19", "0.21"] {
        for entry in std::fs::read_dir(root.join(release)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".json") && !name.ends_with(".expect.json") {
                files.push((
                    format!("{release}/{name}"),
                    std::fs::read(entry.path()).unwrap(),
                ));
            }
        }
    }
    assert!(files.len() >= 22);
    files
}

#[test]
fn what_releases_saved_has_a_value() {
    tvmspec::object::init();
    for (name, text) in saved() {
        let graph = LegacyGraph::read(&text, &mut Findings::default()).expect(&name);
        let release = graph.release().expect(&name);
        assert!(name.starts_with(&format!("{release}/")), "{name}");
        graph.value().expect(&name);
    }
}

/// Returns a graph of `links` arrays, each in the next, the first innermost.
fn chain(links: usize) -> LegacyGraph {
    let link = |index: usize| LegacyNode {
        type_key: "Array".into(),
        data: vec![index],
        ..LegacyNode::default()
    };
    LegacyGraph {
        root: links,
        nodes: std::iter::once(LegacyNode::default())
            .chain((0..links).map(link))
            .collect(),
        ..LegacyGraph::default()
    }
}

#[test]
fn nesting_is_bounded_whichever_way_it_is_met() {
    tvmspec::object::init();
    let value = chain(900).value().unwrap();
    for minor in [8, 21] {
        let graph = LegacyGraph::from_value(value.view(), Release::of(minor)).unwrap();
        assert_eq!(graph.nodes.len(), 901);
        // Children follow their parents, as a release writes them.
        let text = graph.write(None).unwrap();
        let read = LegacyGraph::read(&text, &mut Findings::default()).unwrap();
        assert_eq!(read, graph);
    }
    assert!(chain(100_000).value().is_err());
    // Every link is read before the one that holds it. So nothing is deep on the way, but the result would be.
    let mut flat = chain(100_000);
    flat.nodes.push(LegacyNode {
        type_key: "Array".into(),
        data: (1..=100_000).collect(),
        ..LegacyNode::default()
    });
    flat.root = 100_001;
    assert!(flat.value().is_err());
    let links: Vec<String> = (0..100_000)
        .map(|index| format!(r#"{{"type":"ffi.Array","data":[{index}]}}"#))
        .collect();
    let all: Vec<String> = (1..=100_000).map(|index| index.to_string()).collect();
    let text = format!(
        r#"{{"root_index":100001,"nodes":[{{"type":"None"}},{},{{"type":"ffi.Array","data":[{}]}}]}}"#,
        links.join(","),
        all.join(",")
    );
    assert!(tvmspec::object::graph::decode_text(text.as_bytes()).is_err());
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z0-9 \"\\\\\r\n\t/é\u{0}]{0,9}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..9),
    ]
}

/// Returns a node whose children come before it, so there are no cycles.
fn node(index: usize) -> impl Strategy<Value = LegacyNode> {
    let children =
        || proptest::collection::vec(0..index.max(1), 0..if index == 0 { 1 } else { 24 });
    let attrs = || proptest::collection::btree_map("[a-zé_]{0,4}", texts(), 0..4);
    prop_oneof![
        children().prop_map(|data| LegacyNode {
            type_key: "Array".into(),
            data,
            ..LegacyNode::default()
        }),
        proptest::collection::vec(
            (texts(), 0..index.max(1)),
            0..if index == 0 { 1 } else { 5 }
        )
        .prop_map(|pairs| {
            let (keys, data) = pairs.into_iter().unzip();
            LegacyNode {
                type_key: "StrMap".into(),
                keys,
                data,
                ..LegacyNode::default()
            }
        }),
        ("[a-z.\"\n]{0,9}", texts(), texts(), attrs()).prop_map(
            |(type_key, repr, global_key, mut attrs)| {
                // OBJ-25.
                if !repr.is_empty() {
                    attrs.clear();
                }
                LegacyNode {
                    type_key,
                    repr,
                    global_key,
                    attrs,
                    ..LegacyNode::default()
                }
            }
        ),
    ]
}

fn graphs() -> impl Strategy<Value = LegacyGraph> {
    let record = proptest::collection::vec(any::<u8>(), 0..9).prop_map(|data| {
        let dtype = Dtype::UINT8;
        let shape = [data.len() as i64];
        let mut out = Writer::new();
        let record = TensorRecord::new(dtype, &shape, data, Sizing::V0_7).unwrap();
        record.write(&mut out);
        out.into_bytes()
    });
    let tensors = proptest::option::of(proptest::collection::vec(record, 0..3));
    (1usize..9)
        .prop_flat_map(|count| ((0..count).map(node).collect::<Vec<_>>(), 0..count))
        .prop_flat_map(move |(nodes, root)| (Just(nodes), Just(root), tensors.clone()))
        .prop_map(|(nodes, root, tensors)| LegacyGraph {
            root,
            nodes,
            tensors,
            attrs: [("tvm_version".to_owned(), b"0.19.0".to_vec())].into(),
        })
}

/// Returns values that 0.21 can save, and floats with few digits.
fn values() -> impl Strategy<Value = Any> {
    let leaf = prop_oneof![
        Just(()).prop_map(|()| Any::none()),
        any::<bool>().prop_map(Any::from),
        any::<i64>().prop_map(Any::from),
        (-1000i32..1000).prop_map(|value| Any::from(f64::from(value) / 4.0)),
        texts().prop_map(|text| Any::from(Str::new(text))),
        proptest::collection::vec(any::<i64>(), 0..4).prop_map(|shape| Shape::new(&shape).into()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let pair = (
            texts().prop_map(|key| Any::from(Str::new(key))),
            inner.clone(),
        );
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| Array::new(items).into()),
            proptest::collection::vec(pair, 0..4)
                .prop_map(|pairs| Map::from_pairs(pairs).unwrap().into()),
            proptest::collection::vec((any::<i64>().prop_map(Any::from), inner), 0..3)
                .prop_map(|pairs| Map::from_pairs(pairs).unwrap().into()),
        ]
    })
}

proptest! {
    #[test]
    fn legacy_graphs_are_read_as_they_were_written(graph in graphs()) {
        let text = graph.write(None).unwrap();
        let mut findings = Findings::default();
        prop_assert_eq!(&LegacyGraph::read(&text, &mut findings).unwrap(), &graph);
    }

    #[test]
    fn broken_legacy_graphs_are_reported_and_nothing_else(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let files = saved();
        let mut text = which.get(&files).1.clone();
        let at = at.index(text.len());
        text[at] = byte;
        match LegacyGraph::read(&text, &mut Findings::default()) {
            Ok(graph) => { let _ = graph.value(); }
            Err(broken) => prop_assert!(broken.offset().unwrap() <= text.len() as u64, "{:?}", broken),
        }
    }

    #[test]
    fn values_go_through_a_graph_of_0_19_and_0_21(value in values()) {
        tvmspec::object::init();
        for minor in [19, 21] {
            let graph = LegacyGraph::from_value(value.view(), Release::of(minor)).unwrap();
            let text = graph.write(Some(Release::of(minor))).unwrap();
            let read = LegacyGraph::read(&text, &mut Findings::default()).unwrap();
            prop_assert_eq!(&read, &graph);
            let back = read.value().unwrap();
            prop_assert!(tvmspec::object::structural::equal(value.view(), back.view(), false, false).unwrap());
        }
    }
}

#[test]
fn types_that_describe_themselves_are_saved_field_by_field() {
    use tvmspec::object::construct::make_object;
    tvmspec::object::init();
    let text = |text: &str| Any::from(Str::new(text));
    let make = |parts: &[Any]| {
        let views: Vec<_> = parts.iter().map(Any::view).collect();
        make_object(&views).unwrap()
    };
    let key = text("ffi.reflection.AccessStep");
    let step = make(&[key, text("kind"), int(2), text("key"), text("a key")]);
    let path = make(&[
        text("ffi.reflection.AccessPath"),
        text("parent"),
        Any::none(),
        text("step"),
        step,
        text("depth"),
        int(1),
    ]);
    let graph = LegacyGraph::from_value(path.view(), Release::of(21)).unwrap();
    let attrs = |node: &LegacyNode| -> Vec<String> {
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let pairs = node.attrs.iter();
        pairs
            .map(|(name, value)| format!("{name}={}", text(value)))
            .collect()
    };
    assert_eq!(attrs(&graph.nodes[1]), ["depth=1", "parent=null", "step=2"]);
    assert_eq!(attrs(&graph.nodes[2]), ["key=3", "kind=2"]);
    assert_eq!(graph.nodes[3].repr, b"a key");
    let back = graph.value().unwrap();
    assert!(tvmspec::object::recursive::equal(path.view(), back.view()).unwrap());

    // Only the type knows that this is a reference. No rule of the text sees the cycle, and the value has none.
    for (parent, kind) in [("1", "ValueError"), ("9", "ValueError"), ("3", "TypeError")] {
        let mut wrong = graph.clone();
        wrong.nodes[1].attrs.insert("parent".into(), parent.into());
        let read = LegacyGraph::read(&wrong.write(None).unwrap(), &mut Findings::default());
        let error = read.unwrap().value().unwrap_err();
        assert_eq!(error.kind(), kind, "{parent}: {}", error.message());
    }
    let mut wrong = graph.clone();
    wrong.nodes[2].attrs.remove("key");
    assert!(wrong.value().is_err());
}

/// OBJ-36 is checked for every type that all processes know, including the place of the number.
#[test]
fn numbers_of_saved_objects_are_numbers_to_their_end() {
    let text = |node: &str| {
        format!(
            r#"{{"root": 1, "nodes": [{{"type_key": ""}}, {{{node}}}], "b64ndarrays": [], "attrs": {{}}}}"#
        )
    };
    let verify = |text: &str| LegacyGraph::verify(text.as_bytes(), &mut Findings::default());
    for (node, number) in [
        (r#""type_key": "runtime.BoxInt", "repr_str": "12""#, "12"),
        (
            r#""type_key": "runtime.BoxFloat", "repr_str": "1e9""#,
            "1e9",
        ),
        (r#""type_key": "int", "attrs": {"v_int64": "-3"}"#, "-3"),
        (r#""type_key": "bool", "attrs": {"v_int64": "1"}"#, "1"),
        (
            r#""type_key": "float", "attrs": {"a": "b", "v_float64": "-inf"}"#,
            "-inf",
        ),
        (
            r#""type_key": "Device", "attrs": {"v_device_type": "1", "v_device_id": "7"}"#,
            "7",
        ),
    ] {
        let good = text(node);
        assert!(verify(&good).is_ok(), "{node}");
        let at = good.find(&format!("\"{number}\"")).unwrap() as u64;
        let at = if node.contains("Device") {
            good.find("\"7\"").unwrap() as u64
        } else {
            at
        };
        for wrong in [
            "12abc",
            " 1",
            "",
            "1e999",
            "0x1p3",
            "nan(0x1)",
            "Infinity",
            "9223372036854775808.",
            "2 ",
        ] {
            let bad = format!(
                "{}\"{wrong}{}",
                &good[..at as usize],
                &good[at as usize + 1 + number.len()..]
            );
            // A float may end with a point.
            if wrong.ends_with('.') && node.contains("loat") {
                continue;
            }
            let broken = verify(&bad).expect_err(&bad);
            assert_eq!(
                (broken.rule().id(), broken.offset()),
                ("OBJ-36", Some(at)),
                "{bad}"
            );
            assert_eq!(broken.field(), "nodes[1]");
        }
    }
    // If an attribute occurs several times, the last one is read and reported.
    let bad = text(r#""type_key": "bool", "attrs": {"v_int64": "1", "v_int64": "2"}"#);
    let broken = verify(&bad).unwrap_err();
    assert_eq!(broken.offset(), bad.find("\"2\"").map(|at| at as u64));
}
