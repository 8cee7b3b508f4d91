//! What real code generators make of the modules of `target.run`, by the answers that the cases expect.
//!
//! A script calls their generator for LLVM and the functions that it makes. `TVMSPEC_PYTHON` is a Python with TVM.

use crate::support::cases;
use crate::support::skip::skipped;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Cases that the generator for LLVM ends the process at: it has no code for `bfloat16` that no pass replaced.
const KNOWN: [&str; 1] = ["target/run/sixteen-bits-0.27"];

#[test]
fn the_generator_of_the_wheel_computes_what_the_cases_expect() {
    let Some(python) = env::var_os("TVMSPEC_PYTHON") else {
        return skipped("TVMSPEC_PYTHON names no Python with TVM");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = root.join("conformance/target/cases/run.json");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("answers.json");
    let ran = Command::new(python)
        .arg(root.join("tests/foreign/judged_runs.py"))
        .args([&cases, &root.join("golden"), &out])
        .current_dir(folder.path())
        .output()
        .expect("Python runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    let read = |path: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
    };
    let (answers, cases) = (read(&out), cases::cases(&cases));
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (id, answer) in answers.as_object().expect("answers") {
        let case = cases.iter().find(|case| case["id"] == id.as_str());
        let expected = &case.expect("the case of an answer")["expect"]["accept"];
        let is_same = same(answer, expected);
        println!("{id}: {}", if is_same { "pass" } else { "another answer" });
        judged += 1;
        if is_same == KNOWN.contains(&id.as_str()) {
            let mut text = answer.to_string();
            text.truncate(600);
            wrong.push(format!("{id}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged >= 14, "{judged} cases");
}

/// Equal, a whole number and a fraction by what they are.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        _ => one == other,
    }
}
