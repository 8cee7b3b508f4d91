//! Output format of the command line: line width from `COLUMNS`, file names on one line, lists of files by their schema, colours of
//! messages.

use crate::support::schema;
use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// Runs `tvmspec` in the root of the package, without stdin. A pipe without `COLUMNS` has no width.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("tvmspec runs")
}

fn stdout(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    String::from_utf8(run(arguments, variables).stdout).expect("text")
}

/// Returns the length of the longest line, in characters.
fn widest(text: &str) -> usize {
    text.lines()
        // Names of files and messages are not wrapped.
        .filter(|line| line.starts_with("  "))
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn lines_are_as_wide_as_columns_and_rows_whole_in_a_pipe() {
    for arguments in [
        &[
            "explain",
            "--elsewhere",
            "golden/blob/containers/tree3-0.8.so",
        ][..],
        &["inspect", "golden/blob/containers/relax_vm-0.27.so"],
        &["verify", "golden/blob/two-libraries.bin"],
    ] {
        let whole = stdout(arguments, &[]);
        // Only the line breaks differ, not the words.
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let mut lines = whole.lines().count();
        for columns in ["200", "100"] {
            let shown = stdout(arguments, &[("COLUMNS", columns)]);
            let most: usize = columns.parse().expect("a number");
            assert!(
                widest(&shown) <= most || lines == shown.lines().count(),
                "{arguments:?}: {shown}"
            );
            assert!(shown.lines().count() >= lines, "{arguments:?}: {shown}");
            if arguments[0] != "inspect" {
                assert_eq!(words(&shown), words(&whole), "{arguments:?}");
            }
            lines = shown.lines().count();
        }
        assert!(widest(&whole) > 100, "{arguments:?}: {whole}");
    }
    let dump = |columns| {
        let file = "golden/blob/containers/dev_opencl-0.8.mblob";
        let shown = stdout(&["dump", file], &[("COLUMNS", columns)]);
        shown.lines().map(str::len).max()
    };
    assert!(dump("100") < dump("200"));
}

#[test]
fn headers_are_broken_at_blanks_alone() {
    let file = "golden/blob/opencl-0.6.bin";
    for columns in ["60", "40"] {
        let shown = stdout(&["inspect", file], &[("COLUMNS", columns)]);
        for head in ["kind", "format", "payload", "functions"] {
            assert!(
                shown.split_whitespace().any(|word| word == head),
                "{head}: {shown}"
            );
        }
    }
}

#[test]
fn a_name_of_a_file_forges_no_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder
        .path()
        .join("a\nx.so: 0 violations, 0 findings\u{1b}[31m.bin");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/blob/two-libraries.bin");
    std::fs::copy(golden, &path).expect("a copy");
    let path = path.to_str().expect("a name in UTF-8");
    let missing = folder.path().join("b\nerror: none.bin");
    let missing = missing.to_str().expect("a name in UTF-8");
    let out = folder.path().join("out");
    let out = out.to_str().expect("a name in UTF-8");
    for arguments in [
        &["verify", path, path][..],
        &["verify", missing],
        &["verify", path, missing],
        &["inspect", path],
        &["explain", path],
        &["dump", path],
        &["dump", missing],
        &["unpack", path, "-o", out],
        &["extract", path, "9", "-o", out],
        &["convert", path, "-o", missing],
        &["call", path, "f"],
        &["pack", path, "-o", out],
    ] {
        let output = run(arguments, &[]);
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).expect("text");
            let forged = text
                .lines()
                .any(|line| line.starts_with("x.so: ") || line.starts_with("error: none"));
            assert!(!forged && !text.contains('\u{1b}'), "{arguments:?}: {text}");
        }
    }
    // JSON contains the unescaped name.
    let report: Value =
        serde_json::from_str(&stdout(&["verify", "--json", path], &[])).expect("JSON");
    assert_eq!(report["file"], path);
}

#[test]
fn the_list_of_several_files_has_its_schema() {
    for (command, schema) in [
        ("verify", include_str!("../../../spec/schema/verify.json")),
        ("inspect", include_str!("../../../spec/schema/inspect.json")),
    ] {
        let schema = schema::schema(schema);
        let files = [
            "golden/blob/opencl-0.6.bin",
            "no/such.so",
            "-",
            "golden/blob/two-libraries.bin",
            // The file contains a text with an invisible letter, which terminals see as an escape of Rust.
            "golden/vm/texts.vmexec",
        ];
        let text = stdout(&[&[command, "--json"], &files[..]].concat(), &[]);
        let list: Value = serde_json::from_str(&text).expect("JSON");
        schema::conforms(&schema, &list, command);
        assert_eq!(list[2]["file"], "<stdin>");
        let rejected = |value: &Value| !schema.is_valid(value);
        assert!(
            rejected(&Value::from(vec![list[0].clone()])),
            "a list of one"
        );
        assert!(rejected(&list[1]), "an error of the only file");
    }
}

#[test]
fn messages_are_painted_as_asked() {
    let wrong_word = ["inspekt", "x"];
    let no_file = ["inspect", "no/such.so"];
    for arguments in [wrong_word, no_file] {
        for (choice, is_painted) in [("always", true), ("never", false), ("auto", false)] {
            for own in [
                vec!["--color", choice],
                vec![match choice {
                    "always" => "--color=always",
                    "never" => "--color=never",
                    _ => "--color=auto",
                }],
            ] {
                let all = [&own[..], &arguments[..]].concat();
                let text = String::from_utf8(run(&all, &[]).stderr).expect("text");
                assert_eq!(text.contains("\u{1b}["), is_painted, "{all:?}: {text}");
                if is_painted {
                    assert!(
                        text.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m")
                            || text.starts_with("\u{1b}[1;31merror:\u{1b}[0m"),
                        "{text:?}"
                    );
                }
            }
        }
    }
}
