//! `explain FILE --runtime` with our own runtimes: it lists their registrations, and survives one that crashes, hangs or is not a
//! runtime.
#![cfg(all(unix, feature = "cli"))]

use crate::support::schema;
use crate::support::skip::skipped;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Compiles C code to a library, or returns `None` if there is no compiler.
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

/// Returns C code of a runtime with the interface up to 0.20 that registers `names`.
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
fn missing_runtime_functions_are_named() {
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

/// Host code that looks up a custom function name and calls a C++ function of the runtime.
const HOST: &str = "
extern void _ZN3tvm7runtime3OwnEv(void);
int TVMFuncGetGlobal(const char* name, void** out);
int TVMBackendGetFuncFromEnv(void* context, const char* name, void** out);
static void* slot;
int f(void* args, void* codes, int count, void* value, void* code, void* resource) {
    if (count > 99) _ZN3tvm7runtime3OwnEv();
    return TVMBackendGetFuncFromEnv(0, \"my.own.fn\", &slot);
}
";

#[test]
fn what_host_code_looks_up_and_links_to_is_held_against_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some(file) = compiled(folder, "host", HOST) else {
        return;
    };
    let exports = "int TVMBackendGetFuncFromEnv(void* c, const char* n, void** o) { return 0; }\n\
                   int TVMFuncGetGlobal(const char* n, void** o) { return 0; }\n\
                   void _ZN3tvm7runtime3OwnEv(void) {}\n";
    let with = |names: &[&str], name: &str| {
        let code = format!("{}{exports}", runtime(names));
        let library = compiled(folder, name, &code).unwrap();
        // Uses the libraries of this machine, in which C++ functions are looked up.
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["explain", file.to_str().unwrap(), "--runtime"])
            .arg(library)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        (output.status.code(), words.join(" "))
    };
    let (code, text) = with(&["device_api.cpu"], "without");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("PERHAPS MISSING"), "{text}");
    assert!(text.contains("does not register: `my.own.fn`"), "{text}");
    assert!(!text.contains("nothing that the file needs"), "{text}");
    // The stated runtime has the function.
    assert!(!text.contains("_ZN3tvm7runtime3OwnEv"), "{text}");
    let (_, text) = with(&["device_api.cpu", "my.own.fn"], "whole");
    assert!(!text.contains("PERHAPS"), "{text}");
    assert!(text.contains("host code may look up others"), "{text}");
}

#[test]
fn a_runtime_that_is_cut_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compiled(folder.path(), "part", &runtime(&[])) else {
        return;
    };
    let whole = std::fs::read(&library).unwrap();
    std::fs::write(&library, &whole[..whole.len() / 2]).unwrap();
    let output = explain(FILE, &["--runtime", library.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("is not loaded: ") && error.contains("[BLOB-55]"),
        "{error}"
    );
}
