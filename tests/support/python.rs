//! A Python with the real TVM: `TVMSPEC_PYTHON`, or a `python3` that has it.

use crate::support::skip::skipped;
use std::path::Path;
use std::process::Command;

/// Returns a Python that imports `modules`, such as `tvm, tvm_ffi`. Without one, the test is skipped.
pub(crate) fn python(modules: &str) -> Option<String> {
    let named = std::env::var("TVMSPEC_PYTHON").ok();
    let name = named.unwrap_or_else(|| "python3".to_owned());
    let probe = Command::new(&name)
        .args(["-c", &format!("import {modules}")])
        .output();
    match probe {
        Ok(output) if output.status.success() => Some(name),
        _ => {
            skipped(format_args!(
                "`{name}` cannot import {modules}; set TVMSPEC_PYTHON to a Python that can"
            ));
            None
        }
    }
}

/// Runs a script and returns its output.
pub(crate) fn run(python: &str, script: &str, arguments: &[&Path]) -> String {
    let output = Command::new(python)
        .arg("-c")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    printed
}
