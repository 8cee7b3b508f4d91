//! Output to a terminal.

use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// Returns the output of `tvmspec`, for any exit code.
fn printed(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .output()
        .expect("tvmspec runs");
    String::from_utf8(output.stdout).expect("text")
}

/// Removes the escape sequences that start and end a colour.
fn without_color(text: &str) -> String {
    [
        "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m",
    ]
    .iter()
    .fold(text.to_owned(), |text, escape| text.replace(escape, ""))
}

/// Commands that each find a problem, with the words that must be red.
const PAINTED: [(&[&str], &str); 5] = [
    (
        &[
            "verify",
            "golden/blob/two-libraries.bin",
            "golden/blob/payload-empty.bin",
        ],
        "error",
    ),
    (&["inspect", "golden/blob/two-libraries.bin"], "error"),
    (&["dump", "golden/blob/two-libraries.bin"], "<- broken:"),
    (
        &["explain", "golden/blob/containers/tree3-0.8.so"],
        "SILENT TRAP",
    ),
    // A known failure that does not occur.
    (
        &[
            "check",
            "--case",
            "tensor/empty",
            "--known",
            "conformance/known/apache-tvm-ffi-0.1.toml",
        ],
        "error:",
    ),
];

#[test]
fn colour_is_for_terminals_and_those_who_ask() {
    for (arguments, words) in PAINTED {
        let plain = printed(arguments, &[]);
        assert!(
            !plain.contains('\x1b') && !plain.is_empty(),
            "{arguments:?}"
        );
        let asked = |choice| [arguments, &["--color", choice]].concat();
        // A pipe is not a terminal.
        assert_eq!(printed(&asked("auto"), &[]), plain);
        assert_eq!(printed(&asked("never"), &[]), plain);
        // With the option, the output has colours and the same words.
        for variables in [&[][..], &[("NO_COLOR", "1")]] {
            let painted = printed(&asked("always"), variables);
            let red = format!("\x1b[1m\x1b[31m{words}\x1b[0m");
            assert!(painted.contains(&red), "{arguments:?}: {painted}");
            assert_eq!(without_color(&painted), plain);
        }
    }
    // JSON has no colour, with or without the option.
    for json in [
        &[
            "verify",
            "golden/blob/two-libraries.bin",
            "golden/blob/cuda.bin",
            "--json",
            "--color",
            "always",
        ][..],
        &[
            "verify",
            "golden/blob/two-libraries.bin",
            "--json",
            "--color",
            "always",
        ][..],
        &[
            "check",
            "--case",
            "blob/opencl-root",
            "--report",
            "json",
            "--color",
            "always",
        ],
    ] {
        let text = printed(json, &[]);
        assert!(
            serde_json::from_str::<Value>(&text).is_ok() && !text.contains('\x1b'),
            "{json:?}"
        );
    }
}

/// `script` runs a command in a new terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_painted_unless_no_color_is_set() {
    let command = format!(
        "{} verify golden/blob/two-libraries.bin",
        env!("CARGO_BIN_EXE_tvmspec")
    );
    let on_terminal = |variables: &[(&str, &str)]| {
        Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .map(|output| String::from_utf8_lossy(&output.stdout).replace('\r', ""))
    };
    let Ok(painted) = on_terminal(&[]) else {
        println!("skipped, because there is no `script` that makes a terminal");
        return;
    };
    let plain = printed(&["verify", "golden/blob/two-libraries.bin"], &[]);
    assert!(
        painted.contains("\x1b[1m\x1b[31merror\x1b[0m: "),
        "{painted:?}"
    );
    assert_eq!(without_color(&painted), plain);
    for variables in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert_eq!(on_terminal(&[variables]).expect("it ran before"), plain);
    }
    assert_eq!(
        without_color(&on_terminal(&[("NO_COLOR", "")]).expect("it ran before")),
        plain
    );
}

/// File names may contain characters that a terminal interprets: DEL, and CSI as one character of UTF-8.
#[test]
fn no_control_character_of_a_file_reaches_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let object = folder.path().join("object.json");
    let text = r#"{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "aCSI2JbDEL"}], "b64ndarrays": [], "attrs": {"tvm_version": "0.8CSI"}}"#;
    let text = text.replace("CSI", "\u{9b}").replace("DEL", "\u{7f}");
    fs::write(&object, text).expect("a writable folder");
    let broken = folder.path().join("broken.json");
    let text = r#"{"root": 9, "nodes": [{"type_key": ""}], "b64ndarrays": [], "aCSIDEL": {}}"#;
    let text = text.replace("CSI", "\u{9b}").replace("DEL", "\u{7f}");
    fs::write(&broken, text).expect("a writable folder");
    for words in [
        &["inspect"][..],
        &["inspect", "--json"],
        &["explain"],
        &["explain", "--json"],
        &["verify"],
        &["verify", "--json"],
    ] {
        for file in [&object, &broken] {
            let reply = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
                .args(words)
                .arg(file)
                .output()
                .expect("the program runs");
            for text in [reply.stdout, reply.stderr] {
                let text = String::from_utf8(text).expect("UTF-8");
                let bad = text.chars().find(|one| one.is_control() && *one != '\n');
                assert_eq!(bad, None, "{words:?}: {text:?}");
            }
        }
    }
    let reply = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["inspect", "--json"])
        .arg(&object)
        .output()
        .expect("the program runs");
    let form: Value = serde_json::from_slice(&reply.stdout).expect("JSON");
    assert!(form.to_string().contains("a\u{9b}2Jb\u{7f}"), "{form}");
}
