//! Runs a test in its own process.

use std::process::Command;

/// Returns the command that runs only the test `name` of the module `module` (`module_path!()`) of this program, with its output.
///
/// An ignored test runs too.
pub(crate) fn alone(module: &str, name: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let (_, path) = module.split_once("::").unwrap();
    let mut command = Command::new(program);
    command.args([
        &format!("{path}::{name}"),
        "--exact",
        "--nocapture",
        "--include-ignored",
    ]);
    command
}
