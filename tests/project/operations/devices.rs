//! Tests that each program of devices that is code is described, and is a case.

use super::root;
use std::fs;
use tvmspec::conformance::case::{CaseInput, Suite};

#[test]
fn every_program_that_is_code_is_described() {
    let text = fs::read_to_string(root("spec/device-programs.md")).unwrap();
    let described: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'))
        .collect();
    let cases = Suite::expect_ours().cases.iter();
    let cases: Vec<&str> = cases
        .filter(|case| case.op == "device.behaviour")
        .map(|case| {
            assert_eq!(case.input, CaseInput::Value(case.id.clone().into()));
            &*case.id
        })
        .collect();
    assert_eq!(described, cases);
}
