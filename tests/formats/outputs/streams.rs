//! Outputs that nobody can read: stdout that is closed or full. Also HTML pages, which show names unchanged.

use super::{command_after, succeed, tvmspec};
use std::process::Stdio;

/// Every command that writes to stdout.
const COMMANDS: [&[&str]; 29] = [
    &["--help"],
    &["--version"],
    &["inspect", "--help"],
    &["inspect", "golden/blob/metal.bin"],
    &["inspect", "--json", "golden/blob/metal.bin"],
    &["inspect", "golden/blob/metal.bin", "golden/blob/cuda.bin"],
    &["explain", "golden/blob/metal.bin"],
    &["verify", "golden/blob/metal.bin"],
    &["dump", "golden/blob/metal.bin"],
    &["dump", "--json", "golden/blob/metal.bin"],
    &["extract", "golden/blob/metal.bin", "1"],
    &["convert", "golden/blob/metal.bin", "-o", "-"],
    &[
        "pack",
        "tests/cli/manifest/tree.toml",
        "--order=topological",
        "-o",
        "-",
    ],
    &["call", "golden/blob/host.so", "no such function"],
    &["devices"],
    &["run", "golden/graph/models/v0.8/mlp.so"],
    &["rpc-decode", "golden/rpc/timeout-0.27"],
    &["check", "--case", "wire/*"],
    &["check", "--list"],
    &["check", "--show", "--case", "wire/*"],
    &["check", "--ops"],
    &["check", "--help-exec"],
    &["serve", "--port", "0", "--port-end", "1"],
    &["tracker", "--port", "0", "--port-end", "1"],
    &["proxy", "--port", "0"],
    &["target", "llvm"],
    &["rule", "BLOB-01"],
    &["completions", "bash"],
    &["testee"],
];

#[test]
fn stdout_that_takes_nothing_is_an_error_of_every_command() {
    let line = "{\"id\": 1, \"op\": \"hello\"}\n";
    let folder = tempfile::tempdir().unwrap();
    let request = folder.path().join("request");
    std::fs::write(&request, line).unwrap();
    for stdout in [">&-", ">/dev/full"] {
        for command in COMMANDS {
            let ended = command_after(&format!("exec {stdout}; "))
                .args(command)
                .stdin(std::fs::File::open(&request).unwrap())
                .output()
                .unwrap();
            let message = String::from_utf8_lossy(&ended.stderr);
            // The called function does not exist. The message says so even if stdout is full.
            let is_called = command[0] == "call" && stdout != ">&-";
            assert_eq!(
                ended.status.code(),
                Some(2),
                "{command:?} {stdout}: {message}"
            );
            assert!(
                is_called || message.contains("error: stdout: "),
                "{command:?} {stdout}: {message}"
            );
        }
    }
}

#[test]
fn a_closed_pipe_is_no_error_of_any_command() {
    for command in COMMANDS {
        // The first three serve until they are stopped, and the last two write nothing here.
        if matches!(
            command[0],
            "serve" | "tracker" | "proxy" | "testee" | "call"
        ) {
            continue;
        }
        let mut child = tvmspec()
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(!message.contains("error"), "{command:?}: {message}");
        assert!(
            ended.status.code() < Some(2),
            "{command:?}: {}",
            ended.status
        );
    }
}

#[test]
fn stderr_that_takes_nothing_changes_no_exit_code() {
    for (command, code) in [
        (&["verify", "no/such/file"][..], 2),
        (&["target", "llvm"], 0),
    ] {
        let ended = command_after("exec 2>/dev/full; ")
            .args(command)
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(code), "{command:?}");
    }
}

#[test]
fn a_page_shows_names_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\u{1b}]0;b\u{7}\u{9b}\u{202e}<img src=x>\u{200b}\n.bin";
    let (file, page) = (folder.path().join(name), folder.path().join("page"));
    std::fs::copy("golden/blob/metal.bin", &file).unwrap();
    succeed(tvmspec().arg("inspect").arg(&file).arg("--html").arg(&page));
    let page = std::fs::read_to_string(page).unwrap();
    let unseen = |letter: &char| letter.is_control() && *letter != '\n';
    assert_eq!(page.chars().find(unseen), None);
    assert!(
        !page.contains(['\u{202e}', '\u{200b}']) && !page.contains("<img"),
        "{page}"
    );
    assert!(page.contains("a\\u{1b}]0;b"), "{page}");
}
