//! The sample testees join the suite like any implementation, and fail no case.
#![cfg(all(feature = "cli", unix))]

use crate::support::skip::skipped;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
}

/// Checks that the testee fails no case and passes some of chapter import_tree.
fn judge(command: &str) {
    let implementation = format!("exec:{command}");
    let out = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args([
            "check",
            "--report",
            "json",
            "--timeout",
            "60",
            "--impl",
            &implementation,
        ])
        .output()
        .unwrap();
    let report: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    let failed: Vec<String> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["expected"].is_string())
        .map(|result| {
            format!(
                "{} {}: {}",
                result["verdict"], result["case"], result["reason"]
            )
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let chapters = report["chapters"].as_array().unwrap();
    let chapter = chapters
        .iter()
        .find(|chapter| chapter["name"] == "import_tree");
    let passed = chapter.and_then(|chapter| chapter["counts"]["pass"].as_u64());
    assert!(passed > Some(0), "{command} passes nothing");
    assert_eq!(out.status.code(), Some(0));
}

#[test]
fn the_python_testee_agrees() {
    if !is_there("python3") {
        skipped("there is no python3");
        return;
    }
    let script = root().join("conformance/testee/python/testee.py");
    judge(&format!("python3 '{}'", script.display()));
}

#[test]
fn the_c_testee_agrees() {
    if !is_there("cc") {
        skipped("there is no C compiler");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path());
    judge(&format!("'{}'", program.display()));
}

fn compiled(folder: &Path) -> PathBuf {
    let program = folder.join("testee");
    let out = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(root().join("conformance/testee/c/testee.c"))
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    program
}
