//! Outputs of commands: file names from the content of a file, outputs that are complete or absent, and closed outputs.
// The libraries that are called are code for this machine.
#![cfg(all(feature = "cli", target_os = "linux", target_arch = "x86_64"))]

mod atomic_outputs;
mod names;
mod streams;

use crate::support::folder::files;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// Returns the command `tvmspec` in the folder of the sources.
fn tvmspec() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Returns the command `tvmspec` below a shell that first runs `setup`.
fn command_after(setup: &str) -> Command {
    let mut command = Command::new("sh");
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["-c", &format!("{setup}exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_tvmspec"));
    command
}

/// Runs a command that must succeed.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {reply}");
    output
}

/// Returns every file below `folder`, including hidden ones, with its content.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    let pairs = files(folder).into_iter();
    pairs
        .map(|path| (name(&path), std::fs::read(&path).unwrap()))
        .collect()
}
