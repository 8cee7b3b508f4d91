//! `run --trace`: the Chrome trace, and the page with bars.
#![cfg(all(feature = "cli", target_os = "linux", target_arch = "x86_64"))]

use super::commands::{text, tvmspec};
use serde_json::Value;
use std::fs;

/// Runs a model, and returns the trace in a file of this name.
fn traced(model: &str, more: &[&str], name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let run = ["run", model, "--trace", path.to_str().unwrap()];
    let out = tvmspec(&[&run, more].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_trace_names_its_model_and_has_one_complete_event_for_each_call() {
    let vm = "golden/vm/chain1000.so";
    let inputs = ["--inputs", "golden/vm/chain1000.io.npz"];
    for (model, more, calls) in [
        ("golden/graph/models/v0.8/chain1000.so", &[][..], 1000),
        (vm, &inputs[..], 3007),
    ] {
        let trace: Value = serde_json::from_str(&traced(model, more, "trace.json")).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let (named, timed): (Vec<_>, Vec<_>) = events.iter().partition(|event| event["ph"] == "M");
        assert_eq!(named[0]["name"], "process_name");
        assert_eq!(named[0]["args"]["name"], "chain1000.so");
        assert_eq!(timed.len(), calls, "{model}");
        let mut end = 0.0;
        for event in timed {
            assert_eq!(event["ph"], "X", "{event}");
            assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
            let [start, took] = ["ts", "dur"].map(|name| event[name].as_f64().unwrap());
            // Of the sums of microseconds, the last digits are rounded.
            assert!(took >= 0.0 && start >= end - 1e-6, "{event} before {end}");
            end = start + took;
        }
    }
}

#[test]
fn a_page_has_a_part_for_each_call_and_a_row_for_each_operator() {
    let page = traced("golden/graph/models/v0.8/mlp.so", &[], "profile.html");
    assert!(page.contains("<h1>Profile of mlp.so</h1>"), "{page}");
    assert!(page.contains("<p>3 calls of 3 operators took "), "{page}");
    assert_eq!(page.matches("<tr id=\"o").count(), 3);
    // Once in each bar.
    assert_eq!(page.matches("href=\"#o2\"").count(), 2);
    // The common prefix of the names is left out.
    assert!(page.contains(">softmax</a>"), "{page}");
    assert!(!page.contains("<script"));
}

#[test]
fn a_page_without_calls_has_the_reason() {
    let inputs = tempfile::tempdir().unwrap();
    let path = |name: &str| inputs.path().join(name).to_str().unwrap().to_owned();
    let element = |value: u8| super::commands::npy("|b1", "()", &[value]);
    fs::write(path("flag.npy"), element(1)).unwrap();
    let floats = super::commands::npy("<f4", "(2, 3)", &[0; 24]);
    fs::write(path("pair.npy"), floats).unwrap();
    let inputs = [
        format!("flag={}", path("flag.npy")),
        format!("pair.0={}", path("pair.npy")),
        format!("pair.1={}", path("pair.npy")),
    ];
    let more: Vec<&str> = inputs.iter().flat_map(|input| ["--input", input]).collect();
    let page = traced("golden/vm/compiled-0.27.so", &more, "profile.html");
    assert!(page.contains("called no operator"), "{page}");
}
