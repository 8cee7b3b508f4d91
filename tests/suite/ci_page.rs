//! Tests of the commands on the page `conformance/ci.md`.
#![cfg(all(feature = "cli", unix))]

use crate::support::skip::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

/// Returns the command of the page that judges. Both snippets must have the same one.
fn command_of(page: &str) -> &str {
    let lines = page.lines().map(|line| {
        let line = line.trim_start().trim_start_matches("- ");
        line.trim_start_matches("run: ")
    });
    let commands: Vec<&str> = lines
        .filter(|line| line.starts_with("tvmspec check "))
        .collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!(commands[0], commands[1]);
    commands[0]
}

/// Runs a command line in `folder`, as a job of a forge does. Only two chapters are judged, to be fast.
fn job(folder: &Path, command: &str) -> Output {
    let tvmspec = env!("CARGO_BIN_EXE_tvmspec");
    let script = format!(
        "tvmspec() {{ '{tvmspec}' \"$@\"; }}\n{command} --chapter wire --chapter import_tree"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder);
    shell.output().expect("there is a shell")
}

#[test]
fn the_job_keeps_both_reports_and_fails_if_a_case_fails() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped("there is no python3");
    }
    let page = fs::read_to_string(root().join("conformance/ci.md")).unwrap();
    let command = command_of(&page);
    let folder = tempfile::tempdir().unwrap();
    let testee = folder.path().join("my_testee.py");
    let sample = fs::read_to_string(root().join("conformance/testee/python/testee.py")).unwrap();
    fs::write(&testee, &sample).unwrap();
    let known = folder.path().join("known.toml");
    fs::write(&known, "").unwrap();

    let good = job(folder.path(), command);
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    let reports = || {
        ["tvmspec.html", "tvmspec.xml"]
            .map(|name| fs::read_to_string(folder.path().join(name)).expect("the report"))
    };
    let [html, junit] = reports();
    assert!(html.contains("</html>"), "{html}");
    assert!(junit.contains("failures=\"0\""), "{junit}");

    // A faulty testee, which accepts invalid input.
    let wrong = sample.replacen("\"reject\"", "\"ok\"", 1);
    assert_ne!(wrong, sample, "the sample rejects something");
    fs::write(&testee, wrong).unwrap();
    let bad = job(folder.path(), command);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    let [_, junit] = reports();
    assert!(!junit.contains("failures=\"0\">"), "{junit}");

    // The sample of the page has the form that the program reads.
    let (_, toml) = page.split_once("```toml\n").expect("a sample");
    let (toml, _) = toml.split_once("```").expect("its end");
    fs::write(&known, toml).unwrap();
    fs::write(&testee, &sample).unwrap();
    let listed = job(folder.path(), command);
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(!said.contains("known.toml"), "{said}");
}

#[test]
fn the_ending_of_a_saved_report_states_its_form() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = job(folder.path(), "tvmspec check --save report.pdf");
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("its ending is not .html, .json"), "{said}");
}
