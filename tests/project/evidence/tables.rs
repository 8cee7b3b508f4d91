//! Comparison of `spec/evidence/tables`, read from upstream's source, with this crate's answers for the same release.

mod payloads;

use super::root;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Reply, Testee as _};
use tvmspec::release::{Release, Releases};
use tvmspec::value::{index, legacy};

/// Parses the releases of a range such as `0.2..0.6 0.8..`.
fn releases(range: &Value) -> BTreeSet<Release> {
    let text = range.as_str().expect("a range");
    let ranges: Vec<Releases> = text
        .split(' ')
        .map(|range| range.parse().expect("a range"))
        .collect();
    let held = |release: &Release| ranges.iter().any(|range| range.contains(*release));
    Release::all().filter(held).collect()
}

fn table(name: &str) -> Map<String, Value> {
    let path = root().join(format!("spec/evidence/tables/{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).expect("a table")
}

/// Returns the answer of an operation of the suite; null if it rejects.
fn ask(name: &str, value: Value, release: Release) -> Value {
    match BuiltinTestee.answer(
        name,
        &json!({"value": value, "release": release.to_string()}),
    ) {
        Reply::Ok { value, .. } => value,
        Reply::Reject(_) => Value::Null,
        other => panic!("{name}: {other:?}"),
    }
}

/// Compares two sets of facts, release by release, which should be equal.
fn compare<T: Ord + std::fmt::Debug>(
    what: &str,
    upstream: &BTreeSet<(Release, T)>,
    ours: &BTreeSet<(Release, T)>,
) {
    let mut problems = Vec::new();
    for (release, fact) in upstream.difference(ours) {
        problems.push(format!(
            "{what} {release}: upstream has {fact:?}, this crate not"
        ));
    }
    for (release, fact) in ours.difference(upstream) {
        problems.push(format!(
            "{what} {release}: this crate has {fact:?}, upstream not"
        ));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(upstream.len() > 26, "{what}: {} facts", upstream.len());
}

#[test]
fn device_names() {
    let mut upstream = BTreeSet::new();
    let mut ours = BTreeSet::new();
    for (number, names) in table("devices") {
        for (name, range) in names.as_object().expect("names") {
            let of = |release| (release, (number.parse().expect("a number"), name.clone()));
            upstream.extend(releases(range).into_iter().map(of));
        }
    }
    for release in Release::all() {
        for number in 0..128 {
            let name = ask("device.name", json!(number), release);
            let name = name
                .as_str()
                .map(|name| (release, (number, name.to_owned())));
            ours.extend(name);
        }
    }
    compare("device", &upstream, &ours);
}

#[test]
fn device_attributes() {
    let mut upstream = BTreeSet::new();
    let mut ours = BTreeSet::new();
    for (name, numbers) in table("attributes") {
        for (number, range) in numbers.as_object().expect("numbers") {
            let number: i64 = number.parse().expect("a number");
            let of = |release| (release, (name.clone(), number));
            upstream.extend(releases(range).into_iter().map(of));
        }
        for release in Release::all() {
            let number = ask("device.attribute", json!(name), release);
            ours.extend(
                number
                    .as_i64()
                    .map(|number| (release, (name.clone(), number))),
            );
        }
    }
    compare("attribute", &upstream, &ours);
}

/// Compares names of element types. Every code is tried, with the widths that its types have.
#[test]
fn element_types() {
    let mut upstream = BTreeSet::new();
    let mut ours = BTreeSet::new();
    let names = table("dtype_names");
    for (name, codes) in &names {
        for (code, range) in codes.as_object().expect("codes") {
            let code: u8 = code.parse().expect("a code");
            let of = |release| (release, (code, name.clone()));
            upstream.extend(releases(range).into_iter().map(of));
        }
    }
    for release in Release::all() {
        for code in 0..=20 {
            // With the width that the name implies, the text has no number.
            for bits in [4, 6, 8, 32] {
                let value = json!([code, bits, 1]);
                let text = ask("tensor.dtype_text", value, release);
                let Some(text) = text.as_str() else { continue };
                let name = match text.strip_suffix(&bits.to_string()) {
                    Some(name) if !names.contains_key(text) => name,
                    _ => text,
                };
                ours.insert((release, (code, name.to_owned())));
            }
        }
    }
    compare("element type", &upstream, &ours);
}

/// Compares the names of argument codes in messages, up to 0.20.
#[test]
fn type_codes() {
    let last = Release::of(20);
    let mut upstream = BTreeSet::new();
    let mut ours = BTreeSet::new();
    for (code, names) in table("type_code_names") {
        let code: i32 = code.parse().expect("a code");
        for (name, range) in names.as_object().expect("names") {
            let of = |release| (release, (code, name.clone()));
            upstream.extend(releases(range).into_iter().map(of));
        }
    }
    for release in Release::all().filter(|release| *release <= last) {
        for code in 0..128 {
            let name = legacy::code_name(code, release);
            if !name.contains("unknown") {
                ours.insert((release, (code, name)));
            }
        }
    }
    compare("type code", &upstream, &ours);
}

/// Upstream's names of type indices whose keys differ.
const INDEX_KEYS: [(&str, &str); 10] = [
    ("ByteArrayPtr", "TVMFFIByteArray*"),
    ("DLTensorPtr", "DLTensor*"),
    ("NDArray", "Tensor"),
    ("OpaquePtr", "void*"),
    ("RawStr", "const char*"),
    ("Str", "String"),
    ("Bool", "bool"),
    ("Int", "int"),
    ("Float", "float"),
    ("Object", "Object"),
];

/// Compares type indices with the newest layout of cells, from 0.22 on.
#[test]
fn type_indices() {
    let mut compared = 0;
    for (name, numbers) in table("type_indices") {
        if name.starts_with("StaticObject") {
            continue;
        }
        let key = INDEX_KEYS.iter().find(|(other, _)| *other == name);
        let key = key.map_or(name.as_str(), |(_, key)| key);
        for (number, range) in numbers.as_object().expect("numbers") {
            if releases(range).last() == Some(&Release::of(21)) {
                continue;
            }
            let number: usize = number.parse().expect("a number");
            let own = match number.checked_sub(index::OBJECT_BEGIN as usize) {
                Some(at) => index::OBJECT_KEYS.get(at),
                None => index::PLAIN_KEYS.get(number),
            };
            let own = own.map(|own| own.trim_start_matches("ffi."));
            assert_eq!(own, Some(key), "{name} is {number}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

/// Compares the table in `spec/README.md`.
#[test]
fn the_table_of_releases_is_true() {
    const BEGIN: &str =
        "<!-- releases: written by BLESS=1 cargo test --test project evidence -->\n";
    const END: &str = "<!-- end of releases -->";
    let path = root().join("spec/evidence/tables/releases.json");
    let rows: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("rows");
    assert_eq!(rows.len(), Release::all().count());
    let mut table =
        "| release | first state | last state | tvm-ffi |\n|---|---|---|---|\n".to_owned();
    for (row, release) in rows.iter().zip(Release::all()) {
        assert_eq!(row["release"], release.to_string());
        let of = |pointer: &str| row.pointer(pointer).and_then(Value::as_str);
        let (first, last) = (of("/first").expect("a tag"), of("/last").expect("a tag"));
        let ffi = match (of("/tvm_ffi/at"), of("/tvm_ffi/behind")) {
            (Some(at), Some(behind)) if at != behind => format!("{at}, after {behind}"),
            (at, _) => at.unwrap_or_default().to_owned(),
        };
        table += &format!("| {release} | {first} | {last} | {ffi} |\n");
    }
    let path = root().join("spec/README.md");
    let readme = fs::read_to_string(&path).expect("a file");
    let (before, rest) = readme.split_once(BEGIN).expect("where the table begins");
    let (stands, behind) = rest.split_once(END).expect("where it ends");
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{behind}")).expect("writable");
    } else {
        assert_eq!(
            stands, table,
            "BLESS=1 cargo test --test project evidence writes it"
        );
    }
}

/// Functions for language models, which no rule covers: caches of attention, sampling, parameters from files, Python.
const MODELS: [&str; 14] = [
    "apply_",
    "attention_kv_cache_",
    "call_py_func",
    "clear_py_func",
    "get_py_func",
    "kv_",
    "multinomial_",
    "ndarray_cache",
    "paged_attention",
    "param_",
    "register_py_func",
    "rnn_state",
    "sample_",
    "tensor_cache",
];

/// Functions of devices and of debugging, which this crate does not have.
const ABSENT: [&str; 5] = [
    "cuda_graph.get_cached_alloc",
    "cuda_graph.run_or_capture",
    "hexagon.dma_copy",
    "hexagon.dma_wait",
    "invoke_debug_func",
];

#[cfg(feature = "vm")]
#[test]
fn functions_of_the_vm() {
    // A name that no tag has, but the wheels of 0.27.
    const LATER: &str = "vm.builtin.check_string_info";
    let table = table("vm_builtins");
    let ours = tvmspec::vm::builtins();
    for name in &ours {
        assert!(
            table.contains_key(*name) || *name == LATER,
            "{name} is in no release"
        );
    }
    for name in table.keys() {
        let short = name.strip_prefix("vm.builtin.").expect("a builtin");
        let absent = ABSENT.contains(&short) || MODELS.iter().any(|of| short.starts_with(of));
        assert_ne!(ours.contains(&name.as_str()), absent, "{name}");
    }
}

/// Names that modules of the graph executor once answered to, and that this crate does not.
const FORGOTTEN: [&str; 2] = ["cuda_graph_create", "profile"];

/// Checks that each name that a module of the graph executor answers to is in the source of this crate.
#[test]
fn functions_of_the_graph_executor() {
    let mut source = String::new();
    for file in ["module.rs", "methods.rs", "debug_methods.rs", "factory.rs"] {
        let path = root().join("src/graph/runtime").join(file);
        source += &fs::read_to_string(path).expect("a file");
    }
    for (executor, names) in table("executors") {
        for name in names.as_object().expect("names").keys() {
            let has = source.contains(&format!("\"{name}\""));
            assert_ne!(
                has,
                FORGOTTEN.contains(&name.as_str()),
                "{executor}: {name}"
            );
        }
    }
}
