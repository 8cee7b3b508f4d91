//! Contents of a report about a case, and its destination.

use super::{check, json};
use crate::support::schema::{conforms, schema};
use serde_json::Value;
use std::fs;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Adapter, InProcess, Reply};
use tvmspec::conformance::case::{Case, CaseInput, Expect, Suite};

/// Readers of a report look at the offset in the input, so a rejection of other input than bytes has none.
#[test]
fn only_what_was_bytes_has_an_offset() {
    let mut placed = Vec::new();
    let rejected = |case: &&Case| matches!(case.expect, Expect::Reject(..));
    for case in Suite::expect_ours().cases.iter().filter(rejected) {
        // A text counts as bytes. The arguments of a program do not, and no instruction is at byte 0.
        let value = matches!(&case.input, CaseInput::Value(value) if !value.is_string());
        let called = case.op == "vm.run";
        if let Reply::Reject(rejection) = InProcess(BuiltinTestee).call(&case.op, &case.request())
            && let Some(offset) = rejection.offset
            && (value || called && offset == 0)
        {
            placed.push(format!("{} {offset:#x} {}", case.id, rejection.message));
        }
    }
    assert!(placed.is_empty(), "{}", placed.join("\n"));
}

#[test]
fn a_case_can_be_seen_and_taken_away() {
    let text = String::from_utf8(check(&["--show", "--case", "wire/u8"]).stdout).unwrap();
    let line = |name: &str| -> Value {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        serde_json::from_str(line.unwrap_or_else(|| panic!("{name}: {text}"))).unwrap()
    };
    let case = Suite::expect_ours().case("wire/u8").unwrap();
    assert_eq!(line("request   ")["args"], case.request());
    assert_eq!(line("expected  "), case.expectation());
    let folder = tempfile::tempdir().unwrap();
    let out = check(&[
        "--export",
        folder.path().to_str().unwrap(),
        "--case",
        "wire/u8*",
    ]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let of = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(of("wire/u8/input.bin"), case.bytes().unwrap());
    let request: Value = serde_json::from_slice(&of("wire/u8/request.json")).unwrap();
    assert_eq!(request["args"], case.request());
    let cuts: Value = serde_json::from_slice(&of("wire/u8.truncated/expected.json")).unwrap();
    assert_eq!(cuts["cuts"][0]["reject"]["rule"], "WIRE-01");
    let answer = json(&["--impl", "liar:reject-all", "--case", "wire/u8"]);
    let failed = &answer["results"][0];
    assert_eq!(failed["answer"]["reject"]["message"], "no");
    assert_eq!(failed["request"]["args"], case.request());
}

#[test]
fn the_json_report_keeps_to_its_schema() {
    let schema = schema(include_str!("../../../spec/schema/report.json"));
    for implementation in ["builtin", "liar:constant", "liar:crash", "liar:reject-all"] {
        let report = json(&["--impl", implementation, "--chapter", "wire"]);
        conforms(&schema, &report, "$");
    }
    let wrong = serde_json::json!({"report": 2});
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn reports_go_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for form in ["text", "json", "junit", "md", "html"] {
        let file = folder.path().join(form);
        let out = check(&[
            "--case",
            "wire/u8",
            "--report",
            form,
            "-o",
            file.to_str().unwrap(),
        ]);
        assert_eq!(out.status.code(), Some(0));
        assert!(out.stdout.is_empty());
        assert!(fs::metadata(&file).unwrap().len() > 100, "{form}");
    }
}
