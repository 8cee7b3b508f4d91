//! Tests of the suite itself: it fails every liar, survives every loss, and reports according to its schema.
#![cfg(feature = "cli")]

mod device_steps;
mod known_failures;
mod liars;
mod reports;
mod selection;
mod testees;

use serde_json::Value;
use std::env;
use std::process::{Command, Output};
use tvmspec::conformance::case::{Case, Suite};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tvmspec");

fn check(args: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("check")
        .args(args)
        .output()
        .unwrap()
}

fn json(args: &[&str]) -> Value {
    let out = check(&[args, &["--report", "json"]].concat());
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"))
}

fn verdicts(report: &Value) -> impl Iterator<Item = (&Case, &str)> {
    report["results"].as_array().unwrap().iter().map(|result| {
        let case = Suite::expect_ours()
            .case(result["case"].as_str().unwrap())
            .unwrap();
        (case, result["verdict"].as_str().unwrap())
    })
}
