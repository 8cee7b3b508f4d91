//! A wrong step of a device program is reported, and never silently skipped.

use serde_json::{Value, json};
use std::fs;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Reply, Testee};

/// Runs a program that is expected to be wrong and returns the reason.
fn reason(op: &str, args: &Value) -> String {
    match BuiltinTestee.answer(op, args) {
        Reply::Ok { value, .. } => value["because"].as_str().unwrap_or("holds").to_owned(),
        Reply::Unsupported(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_step_fails_its_case() {
    let begin = json!([["alloc", "a", 4], ["write", "a", 0, 4, 1]]);
    let wrong = [
        (json!(["copy", "a", 0, "a", 0]), "missing `BYTES`"),
        (
            json!(["copy", "a", "0", "a", 0, 4]),
            "`OFFSET` is a count, not \"0\"",
        ),
        (json!(["copy", "a", 0, "a", 2, 4]), "`a` is smaller"),
        (json!(["read", "b"]), "`b` is not alive"),
        (json!(["read", "a", 0]), "missing `BYTES`"),
        (
            json!(["read", "a", 0, 4, null, 1]),
            "1 is one argument too many",
        ),
        (json!(["alloc", "b"]), "missing `BYTES`"),
        (
            json!(["alloc", "b", 4, "x"]),
            "`ALIGNMENT` is a count, not \"x\"",
        ),
        (json!(["workspace", "b", 4, "word"]), "unknown dtype `word`"),
        (json!(["different", "a", "b"]), "no step names `b`"),
        (json!(["sync", "s"]), "no step makes the stream `s`"),
        (json!(["alloc-tensor", "b", {"shape": ["1"]}]), "shape[0]"),
        (
            json!(["alloc-tensor", "b", {"shape": [1], "stride": [1]}]),
            "stride",
        ),
        (
            json!(["copy-tensor", {"shape": [4]}, {"shape": [4]}]),
            "a tensor without `data`",
        ),
        (
            json!(["reject", "DEV-40", "malformed", ["copy", "a", 0]]),
            "missing `TO`",
        ),
        (
            json!(["thread", [["alloc", "b"]]]),
            "step 1 `alloc NAME BYTES [ALIGNMENT]`: missing",
        ),
        (json!(["needs", "luck"]), "`needs` knows no `luck`"),
        (json!(["on", "gpu"]), "unknown variant `gpu`"),
        (json!(["on", {"manager": [1]}]), "invalid type"),
        (
            json!(["launch", "add", []]),
            "`launch` is not a step of this device",
        ),
        (json!(["device", 0.5]), "0.5 is no device"),
        (json!(["jump"]), "`jump`: there is no such step"),
        (json!("jump"), "a step is a list"),
    ];
    for (step, expected) in wrong {
        let mut steps = begin.clone();
        steps.as_array_mut().unwrap().push(step.clone());
        // A wrong step does not count as a defect of the device either.
        for args in [
            json!({"value": &steps}),
            json!({"value": &steps, "defect": "sync-returns-early"}),
        ] {
            let reason = reason("device.program", &args);
            assert!(reason.contains(expected), "{step}: {reason}");
            let place = if step[0] == "on" { "`on`" } else { "step 3 " };
            assert!(reason.contains(place), "{step}: {reason}");
        }
    }
}

#[test]
fn a_wrong_script_has_no_answer() {
    let wrong = [
        (
            json!({"steps": [["alloc", "a"]]}),
            "step 1 `alloc NAME BYTES [ALIGNMENT]`: missing `BYTES`",
        ),
        (json!({"steps": [["host", "h", [256]]]}), "256"),
        (
            json!({"steps": [["alloc", "a", 1], ["fill", "a", 256]]}),
            "step 2 out of range",
        ),
        (
            json!({"steps": [["see", "h"]]}),
            "`h` is not a buffer of the host",
        ),
        (json!({"steps": [], "seed": "1"}), "seed"),
        (json!({"steps": [], "sead": 1}), "sead"),
        (json!({"steps": [], "on": "chair"}), "chair"),
        (json!({}), "steps"),
    ];
    for (script, expected) in wrong {
        let reason = reason("device.simulate", &json!({"value": &script}));
        assert!(reason.contains(expected), "{script}: {reason}");
    }
}

/// The tables of the specification and of the interpreter have the same steps and arguments.
#[test]
fn every_step_of_the_specification_is_known() {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/spec/device-programs.md"
    ));
    let text = text.unwrap();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    let mut known = 0;
    for form in rows.flat_map(|(forms, _)| forms.trim_end_matches('`').split("`, `")) {
        let Some((step, first)) = form.split_once(' ') else {
            continue;
        };
        let first = first.split(' ').next().unwrap();
        if !first.starts_with(char::is_uppercase) || step.starts_with('{') {
            continue;
        }
        let expected = format!("step 1 `{form}`: missing `{}`", first.trim_end_matches('?'));
        let reason = reason("device.program", &json!({"value": [[step]]}));
        // The error of a step with two forms shows the second.
        assert!(reason == expected || step == "read", "{form}: {reason}");
        known += 1;
    }
    assert!(known > 30, "{known}");
}
