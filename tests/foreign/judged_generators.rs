//! The code generators of real releases, put to the cases of `target.generate`.
//!
//! No C interface reaches them: `target.build.<kind>` takes a module object that only the compiler's library has types for, so that `--impl` has no
//! way to it. A script in their Python calls them instead. `TVMSPEC_PYTHON` is a Python with TVM; `TVMSPEC_PYTHON_0_16` one with the package
//! `hhb-tvm` 3.2.3, which is 0.16.dev0.

#[path = "../support/skip.rs"]
mod skip;

use serde_json::Value;
use skip::skipped;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// What releases do otherwise, each for a reason that is in its rule: generators, cases by their names without `target/generate/`, what is found.
const KNOWN: [(&[&str], &[&str], &str); 6] = [
    // TGT-83: its name in the map takes the place of the symbol.
    (
        &["opencl"],
        &["no-symbol-0.27", "empty-symbol-kernel-0.27"],
        "accepted",
    ),
    (&["c"], &["empty-symbol-host-0.27"], "accepted"),
    // TGT-82, TGT-84: it does not look at the convention.
    (
        &["c"],
        &[
            "no-convention-host-0.16",
            "no-convention-host-0.27",
            "convention-2-of-host-0.16",
            "convention-2-of-host-0.27",
        ],
        "accepted",
    ),
    // TGT-88: that of WebGPU has no third axis of blocks, and says so.
    (&["webgpu"], &["kernel-of-axes-0.27"], "rejected"),
    // OBJ-36: releases write `nan`, and do not read it: no generator is called.
    (
        &["opencl", "metal", "webgpu"],
        &["no-number-0.16"],
        "rejected",
    ),
    // TGT-87: addresses of variables are in the metadata of aliases.
    (
        &["llvm"],
        &[
            "host-0.16",
            "no-entry-0.16",
            "host-of-matmul-0.16",
            "host-of-pair-0.16",
            "host-of-scale-vec-0.16",
            "host-of-half-0.16",
            "host-of-counted-0.16",
            "host-of-mixed-0.16",
        ],
        "not repeatable",
    ),
];

/// The deviation that is known of a generator in a case.
fn known(id: &str, kind: &str) -> Option<&'static str> {
    let name = id.strip_prefix("target/generate/")?;
    let found = KNOWN
        .iter()
        .find(|(kinds, names, _)| kinds.contains(&kind) && names.contains(&name));
    found.map(|(.., what)| *what)
}

/// What the generators of this Python's TVM make of the cases; `None` where there is none.
fn verdicts(variable: &str) -> Option<Vec<Value>> {
    let python = env::var_os(variable)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("verdicts.json");
    let ran = Command::new(python)
        .arg(root.join("tests/foreign/judged_generators.py"))
        .arg(root.join("conformance/target/cases/generate.json"))
        .arg(root.join("golden"))
        .arg(&out)
        .current_dir(folder.path())
        .output()
        .expect("Python runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    let text = fs::read_to_string(out).expect("its output");
    let verdicts: Value = serde_json::from_str(&text).expect("JSON");
    Some(verdicts.as_array().expect("a list").clone())
}

/// What the case expects.
fn expectation(id: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/target/cases/generate.json");
    let cases: Value =
        serde_json::from_str(&fs::read_to_string(file).expect("cases")).expect("JSON");
    let cases = cases.as_array().expect("a list").iter();
    let case = cases.clone().find(|case| case["id"] == id);
    case.unwrap_or_else(|| panic!("{id} is no case"))["expect"].clone()
}

/// How an answer differs from what the case expects; `None` where it does not.
fn difference(verdict: &Value, expected: &Value) -> Option<&'static str> {
    let answer = verdict.get("answer");
    let Some(wanted) = expected.get("accept") else {
        return answer.map(|_| "accepted");
    };
    let Some(answer) = answer else {
        // TGT-88: an operator that the generator has no code for is to be rejected, and the message names it.
        let why = verdict["rejected"].as_str().unwrap_or_default();
        let declined = ["Unresolved call", "unknown intrinsic"];
        return (!declined.iter().any(|text| why.contains(text))).then_some("rejected");
    };
    let is_found = |symbol: &Value| {
        let symbol = symbol.as_str().expect("a name");
        let plain = symbol.strip_prefix("__tvm_ffi_").unwrap_or(symbol);
        let mut found = answer["functions"].as_array().expect("names").iter();
        // TGT-90: the library has the entry function of `llvm` under the prefix alone; the module is not asked for it.
        found.any(|found| found == symbol || found == plain)
            || (verdict["kind"] == "llvm" && ["main", "__tvm_main__"].contains(&plain))
    };
    let functions = wanted["functions"].as_array().expect("names");
    let kernels = !wanted["kernels"].as_array().expect("kernels").is_empty();
    let checks = [
        (functions.iter().all(is_found), "a function is missing"),
        (
            !kernels || answer["serializable"] == true,
            "not serialisable",
        ),
        (answer["repeatable"] == true, "not repeatable"),
    ];
    checks
        .into_iter()
        .find(|(kept, _)| !kept)
        .map(|(_, why)| why)
}

fn judge(verdicts: &[Value]) {
    let mut unexpected = Vec::new();
    for verdict in verdicts {
        let (id, kind) = (
            verdict["case"].as_str().expect("an id"),
            verdict["kind"].as_str().expect("a kind"),
        );
        let found = difference(verdict, &expectation(id));
        println!("{id} {kind}: {}", found.unwrap_or("pass"));
        if found != known(id, kind) {
            unexpected.push(format!("{id} {kind}: {found:?}, {verdict}"));
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    assert!(verdicts.len() >= 170, "{} verdicts", verdicts.len());
}

#[test]
fn the_generators_of_the_wheel_keep_the_contract() {
    let Some(verdicts) = verdicts("TVMSPEC_PYTHON") else {
        return skipped("TVMSPEC_PYTHON names no Python with TVM");
    };
    judge(&verdicts);
}

#[test]
fn the_generators_of_0_16_dev0_keep_the_contract() {
    let Some(verdicts) = verdicts("TVMSPEC_PYTHON_0_16") else {
        return skipped("TVMSPEC_PYTHON_0_16 names no Python with TVM 0.16.dev0");
    };
    judge(&verdicts);
}
