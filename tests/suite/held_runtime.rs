//! `explain FILE --runtime` with runtimes of our own: what they register is listed, and one that crashes, hangs or is no runtime does not take us with it.
#![cfg(all(unix, feature = "cli"))]

use crate::support::schema;
use crate::support::skip::skipped;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A library of C code; `None` where there is no compiler.
fn compiled(folder: &Path, name: &str, code: &str) -> Option<PathBuf> {
    let source = folder.join(format!("{name}.c"));
    std::fs::write(&source, code).unwrap();
    let library = folder.join(format!("{name}.so"));
    let cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    match cc {
        Ok(status) => {
            assert!(status.success(), "{code}");
            Some(library)
        }
        Err(error) => {
            skipped(format_args!("there is no C compiler: {error}"));
            None
        }
    }
}

/// A runtime of the interface up to 0.20 that registers `names`.
fn runtime(names: &[&str]) -> String {
    let listed: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "static const char* names[] = {{{}}};\n\
         int TVMFuncListGlobalNames(int* count, const char*** list) {{ *count = {}; *list = names; return 0; }}\n\
         int TVMFuncCall(void) {{ return 0; }}\n",
        listed.join(", "),
        names.len()
    )
}

fn explain(file: &str, words: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let explain = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["explain", "--elsewhere", file])
        .args(words)
        .current_dir(root)
        .output();
    explain.unwrap()
}

const FILE: &str = "golden/blob/containers/tree3-0.8.so";

#[test]
fn what_a_runtime_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "runtime.module.loadbinary_opencl",
        "device_api.cpu",
        "runtime.module.loadbinary_metadata",
    ];
    let Some(part) = compiled(folder.path(), "part", &runtime(&names)) else {
        return;
    };
    let part = part.to_str().unwrap();
    let output = explain(FILE, &["--runtime", part]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains(
            "MISSING: loader `runtime.module.loadbinary_metal`, which module 1 of kind metal needs"
        ),
        "{text}"
    );
    assert!(text.contains("USE_METAL"), "{text}");
    assert!(text.contains("loaders          metadata, opencl"), "{text}");
    let output = explain(FILE, &["--json", "--runtime", part]);
    let held: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = schema::schema(include_str!("../../spec/schema/explain.json"));
    schema::conforms(&schema, &held, "explain --runtime");
    let missing = held["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0]["name"], "runtime.module.loadbinary_metal");
    assert_eq!(held["runtime"]["interface"], "packed");
}

#[test]
fn a_runtime_that_crashes_or_hangs_ends_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let crash =
        "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }\n";
    let hang = "#include <unistd.h>\n__attribute__((constructor)) static void start(void) { sleep(1000); }\n";
    let list =
        "#include <stdlib.h>\nint TVMFuncListGlobalNames(int* n, const char*** l) { abort(); }\n";
    let other = "int nothing(void) { return 0; }\n";
    for (name, code, why) in [
        ("crash", crash, "SIGABRT"),
        ("hang", hang, "no answer in 1 s"),
        ("list", list, "SIGABRT"),
        ("other", other, "is not a TVM runtime"),
    ] {
        let Some(library) = compiled(folder, name, code) else {
            return;
        };
        let begin = Instant::now();
        let words = ["--timeout", "1", "--runtime", library.to_str().unwrap()];
        let output = explain(FILE, &words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {error}");
        assert!(error.contains(why), "{name}: {error}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{name}");
    }
    let absent = explain(FILE, &["--runtime", "./none.so"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("no library at `./none.so`"));
}
