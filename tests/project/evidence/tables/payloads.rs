//! Kinds of payloads: their loaders, the properties of their modules, and the number of fields in their forms.

use super::{releases, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tvmspec::payload::kinds;
use tvmspec::release::Release;

/// Kinds of upstream that no library binary contains: modules of a running process, modules of a compiler, and base classes.
const NEVER_STORED: [&str; 21] = [
    "AotExecutor",
    "EdgeTPURuntime",
    "GraphExecutor",
    "PipelineExecutor",
    "RelayBuildModule",
    "RelayGraphExecutorCodegenModule",
    "RelayGraphRuntimeCodegenModule",
    "TFLiteRuntime",
    "VMCompiler",
    "VirtualMachine",
    "frontend_test",
    "h",
    "json",
    "library",
    "llvm",
    "model_library_format_printer",
    "onnx",
    "param_module",
    "relax.VirtualMachine",
    "rpc",
    "source",
];

/// Kinds whose storing source is not where the script looks.
const STORED_ELSEWHERE: [(&str, &str); 2] = [
    (
        "webgpu",
        "its source module of 0.12 has no runtime beside it",
    ),
    ("stackvm", "a file of its own, by another function"),
];

#[test]
fn kinds_and_their_loaders() {
    let table = table("kinds");
    let mut problems = Vec::new();
    for kind in table.keys() {
        let known = kinds().iter().any(|info| info.kind == kind);
        if known == NEVER_STORED.contains(&kind.as_str()) {
            problems.push(format!(
                "{kind}: upstream has it; we {}",
                if known { "too" } else { "not" }
            ));
        }
    }
    for info in kinds() {
        let facts = table.get(info.kind).unwrap_or(&Value::Null);
        let range = |name: &str| facts.get(name).map(releases).unwrap_or_default();
        let loaded: BTreeSet<Release> = match info.kind {
            "webgpu" => range("loaded in the browser"),
            _ => range("loaded"),
        };
        for release in Release::all() {
            let ours = info.loader(release).is_some();
            if ours != loaded.contains(&release) {
                problems.push(format!("{} {release}: loaded here: {ours}", info.kind));
            }
        }
        problems.extend(stored(info, facts));
        problems.extend(masks(info, facts));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Checks that the kind is stored in the releases of its forms.
fn stored(info: &tvmspec::payload::KindInfo, facts: &Value) -> Vec<String> {
    if STORED_ELSEWHERE.iter().any(|(kind, _)| *kind == info.kind) {
        return Vec::new();
    }
    let mut upstream: BTreeSet<Release> =
        facts.get("source module").map(releases).unwrap_or_default();
    for range in facts
        .get("writes")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        upstream.extend(releases(range.1));
    }
    let ours = |release| {
        info.forms
            .iter()
            .any(|form| form.releases.contains(release))
    };
    let wrong = Release::all().filter(|release| ours(*release) != upstream.contains(release));
    wrong
        .map(|release| format!("{} {release}: stored here: {}", info.kind, ours(release)))
        .collect()
}

/// Compares the property masks. A class that cannot run its own payload may exist next to one that can; this crate uses the class of
/// the runtime.
fn masks(info: &tvmspec::payload::KindInfo, facts: &Value) -> Vec<String> {
    let mut upstream: BTreeMap<Release, BTreeSet<u8>> = BTreeMap::new();
    for (mask, range) in facts
        .get("mask")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        for release in releases(range) {
            let mask = mask.parse().expect("a number");
            upstream.entry(release).or_default().insert(mask);
        }
    }
    if let Some(range) = facts.get("source module") {
        // Every source module has this property: it is stored, and nothing else.
        for release in releases(range)
            .into_iter()
            .filter(|release| release.minor() >= 12)
        {
            upstream.entry(release).or_default().insert(1);
        }
    }
    let mut problems = Vec::new();
    for release in Release::all() {
        let own = info.masks.iter().find(|(range, _)| range.contains(release));
        let theirs = upstream.get(&release);
        let agree = match (own, theirs) {
            (Some((_, own)), Some(theirs)) => theirs.contains(own),
            (None, None) => true,
            _ => false,
        };
        if !agree {
            let own = own.map(|(_, own)| own);
            problems.push(format!(
                "{} {release}: mask {own:?} here, {theirs:?} upstream",
                info.kind
            ));
        }
    }
    problems
}

/// Checks that the form changes when the written fields change. For fields that are written in loops, their number means nothing.
#[test]
fn forms_have_as_many_fields_as_are_written() {
    const LOOPS: [&str; 10] = [
        "AotExecutorFactory",
        "GraphExecutorFactory",
        "GraphRuntimeFactory",
        "VMExecutable",
        "const_loader",
        "coreml",
        "ethos-n",
        "metadata",
        "relax.Executable",
        "relax.VMExecutable",
    ];
    let mut compared = 0;
    for (kind, facts) in table("kinds") {
        let info = kinds().iter().find(|info| info.kind == kind);
        let (Some(info), Some(writes)) = (info, facts.get("writes").and_then(Value::as_object))
        else {
            continue;
        };
        for (fields, range) in writes.iter().filter(|_| !LOOPS.contains(&&*kind)) {
            for release in releases(range) {
                let forms = info
                    .forms
                    .iter()
                    .filter(|form| form.releases.contains(release));
                let counts: Vec<usize> = forms.map(|form| form.slots.len()).collect();
                let wanted = fields.split_whitespace().count();
                assert!(
                    counts.contains(&wanted),
                    "{kind} {release}: upstream writes `{fields}`, our forms have {counts:?} fields"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared}");
}
