//! Selecting, listing and showing cases and rules.

use super::{PROGRAM, check, json, verdicts};
use crate::support::schema::{conforms, schema};
use serde_json::Value;
use std::process::Command;
use std::{env, fs};

#[test]
fn no_matching_case_and_bad_usage_are_exit_code_2() {
    for args in [
        &["--case", "wire/no-such-case"][..],
        &["--chapter", "no-such-chapter"],
        &["--impl", "no-such-adapter"],
        &["--impl", "liar:no-such-liar"],
        &["--impl", "exec:/no/such/command"],
        &["--impl", "exec:"],
        &["--release", "0.99"],
        &["--known", "/no/such/file"],
        &["--report", "pdf"],
        // Options without an effect are rejected.
        &["--timeout", "1"],
        &["--memory", "1000"],
        &["--max-hangs", "1"],
        &["--max-crashes", "1"],
        &["--impl", "liar:crash", "--memory", "0"],
        &[
            "--list",
            "--known",
            "conformance/known/apache-tvm-0.7-0.20.toml",
        ],
        &["--list", "--impl", "liar:crash"],
        &["--list", "--complete"],
        &["--list", "--report", "md"],
        &["--list", "--case", "wire/no-such-case"],
        &["--ops", "--report", "json"],
        &["--help-exec", "--list"],
        &["--report", "json", "--report", "md"],
        &["--release", "0.8", "--release", "0.9"],
    ] {
        let out = check(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {out:?}");
        assert!(!out.stderr.is_empty(), "{args:?} says nothing");
    }
}

#[test]
fn an_empty_selection_says_what_is_wrong_with_it() {
    let reply = |args: &[&str]| String::from_utf8(check(args).stderr).unwrap();
    let both = reply(&["--case", "wire/u32", "--chapter", "blob"]);
    assert_eq!(
        both,
        "error: no case matches `wire/u32` and is in chapter blob\n"
    );
    let release = reply(&["--case", "blob/find-elf-0.27", "--release", "0.8"]);
    assert_eq!(
        release,
        "error: no case matches `blob/find-elf-0.27` and holds in 0.8\n"
    );
    let near = reply(&["--case", "wire/u33", "--chapter", "wire"]);
    assert!(
        near.starts_with("error: no case matches `wire/u33`"),
        "{near}"
    );
}

#[test]
fn rules_are_shown_for_people_and_for_programs() {
    let rule = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .arg("rule")
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let all: Value = serde_json::from_str(&rule(&["--json", "*"])).unwrap();
    let schema = schema(include_str!("../../../spec/schema/rule.json"));
    conforms(&schema, &all, "$");
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), tvmspec::spec::rules().len());
    // A rule's row lists its code, its cases and its known failures.
    let rows = all.iter().find(|rule| rule["rule"] == "TREE-03").unwrap();
    assert!(
        rows["code"]
            .as_array()
            .unwrap()
            .iter()
            .any(|place| place.as_str().unwrap().starts_with("src/import_tree/"))
    );
    assert!(
        rows["cases"]
            .as_array()
            .unwrap()
            .contains(&Value::from("import_tree/row-runs-backwards"))
    );
    let details = rows["case_details"].as_array().unwrap();
    let ids: Vec<&Value> = details.iter().map(|case| &case["case"]).collect();
    assert_eq!(
        ids,
        rows["cases"].as_array().unwrap().iter().collect::<Vec<_>>()
    );
    let runs_backwards = details
        .iter()
        .find(|case| case["case"] == "import_tree/row-runs-backwards");
    let runs_backwards = runs_backwards.unwrap();
    assert_eq!(runs_backwards["op"], "import_tree.decode");
    assert_eq!(runs_backwards["expected"], "rejects as malformed");
    let why = runs_backwards["why"].as_str().unwrap();
    let case =
        tvmspec::conformance::case::Suite::expect_ours().case("import_tree/row-runs-backwards");
    assert_eq!(why, case.unwrap().why);
    assert!(!rows["known_failures"].as_array().unwrap().is_empty());
    let page = rule(&["TREE-03"]);
    for word in [
        "TREE-03",
        "MUST for reader, writer, since 0.7; rejected as malformed",
        "spec/import_tree.md",
        "evidence",
        "code",
        "cases",
        "known to fail",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn cases_are_listed_for_people_and_for_programs() {
    let selection = ["--list", "--chapter", "wire", "--case", "wire/u*"];
    let lines = String::from_utf8(check(&selection).stdout).unwrap();
    let list = json(&selection);
    let schema = schema(include_str!("../../../spec/schema/list.json"));
    conforms(&schema, &list, "$");
    let ids: Vec<&str> = list["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["case"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"wire/u32"));
    assert_eq!(lines.lines().count(), ids.len());
    assert!(
        lines
            .lines()
            .zip(&ids)
            .all(|(line, id)| line.starts_with(id))
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.txt");
    let to_file = check(&[&selection[..], &["-o", file.to_str().unwrap()]].concat());
    assert!(to_file.stdout.is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), lines);
}

#[test]
fn cases_are_selected_by_chapter_glob_and_release() {
    let ids = |args: &[&str]| -> Vec<String> {
        verdicts(&json(args))
            .map(|(case, _)| case.id.clone())
            .collect()
    };
    assert_eq!(ids(&["--case", "wire/u3?"]), ["wire/u32"]);
    assert!(
        ids(&["--chapter", "wire"])
            .iter()
            .all(|id| id.starts_with("wire/"))
    );
    let old = json(&["--release", "0.8"]);
    let release = "0.8".parse().unwrap();
    assert!(verdicts(&old).all(|(case, _)| case.releases.contains(release)));
}

#[test]
fn the_help_fits_a_screen_and_its_example_works() {
    let help = check(&["--help-exec"]);
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.lines().count() <= 50, "{} lines", help.lines().count());
    assert!(help.lines().all(|line| line.chars().count() <= 120));
    let request = r#"{"id":1,"op":"wire.decode","args":{"type":"u32","data":"AQAAAA=="}}"#;
    assert!(help.contains(request));
    let out = talk(&["testee"], request);
    assert_eq!(out.trim(), r#"{"id":1,"ok":1,"findings":[]}"#);
}

/// Returns the program's answer to one line.
fn talk(args: &[&str], line: &str) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}
