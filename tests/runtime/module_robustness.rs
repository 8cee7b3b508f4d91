//! The malformed libraries of `golden/module/robustness.py`, each loaded in a separate process.
//!
//! No library may crash or hang the loader. A malformed one is rejected, or accepted with a finding that names the rule. The table is
//! printed; see it with `cargo test --test runtime module_robustness -- --nocapture`.
#![cfg(feature = "runtime")]

use crate::support::separate_process::alone;
use crate::support::skip::skipped;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{self, Module, ModuleKind};
use tvmspec::rule::Strictness;
use tvmspec::value::{Any, bytes_bytes};

/// Environment variable of the process that loads one library. Its value is the path.
const VICTIM: &str = "TVMSPEC_ROBUSTNESS_LIBRARY";

const HOST: &str = r#"
typedef struct { int type_index; unsigned aux; long long value; } Any;
void* __tvm_ffi__library_ctx = 0;
int __tvm_ffi_rob_f(void* self, const Any* args, int count, Any* result) {
  result->type_index = 1; result->aux = 0; result->value = 2;
  return 0;
}
"#;

/// A module of kind `rob` without any content.
struct Rob;

impl ModuleKind for Rob {
    fn kind(&self) -> &str {
        "rob"
    }

    fn function(&self, _module: &Module, _name: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }
}

/// Runs in the process that loads, and prints the outcome as its last line.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else {
        return;
    };
    let loader = |make: fn() -> Result<Any, Error>| {
        Function::from_packed(move |args| {
            args.first()
                .and_then(bytes_bytes)
                .ok_or_else(|| Error::new("TypeError", "no payload"))?;
            make()
        })
    };
    let register = |kind: &str, make| {
        registry::register(
            &format!("ffi.Module.load_from_bytes.{kind}"),
            loader(make),
            true,
        )
        .unwrap();
    };
    register("rob", || Ok(Module::new(Rob).into()));
    register("robint", || Ok(7_i64.into()));
    register("robraise", || Err(Error::new("KeyError", "loader says no")));
    println!("\nOUTCOME {}", outcome(Path::new(&path)));
}

fn outcome(path: &Path) -> String {
    // SAFETY: the library is a golden with edited data, and its code is unchanged.
    let loaded = unsafe { module::load_library(path, Strictness::Lenient) };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            return match error.violation() {
                Some(broken) => format!("rejected {}: {}", broken.rule(), broken.message()),
                None => format!("loader {error}"),
            };
        }
    };
    let mut rules: Vec<&str> = loaded
        .findings
        .iter()
        .map(|finding| finding.rule.id())
        .collect();
    rules.dedup();
    let root = loaded.module;
    assert!(root.function("no_such_function", true).unwrap().is_none());
    let opaque = root.walk().iter().any(|module| {
        module
            .implementation()
            .is_some_and(|own| own.why_not_runnable().is_some())
    });
    let called = root.function("rob_f", true).unwrap().map(|function| {
        let result = function.call(()).unwrap();
        i64::try_from(&result).unwrap()
    });
    drop(root);
    let kind = if opaque { "opaque" } else { "accepted" };
    format!("{kind} [{}] rob_f = {called:?}", rules.join(" "))
}

fn words(values: &[u64]) -> Vec<u8> {
    let all = std::iter::once(values.len() as u64).chain(values.iter().copied());
    all.flat_map(u64::to_le_bytes).collect()
}

fn text(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u64).to_le_bytes()[..], content].concat()
}

/// Returns the blob of a case. Large blobs are made in the same way as in `robustness.py`.
fn blob(case: &Value) -> Vec<u8> {
    if let Some(hex) = case["blob"].as_str() {
        let digits = hex.as_bytes().chunks(2);
        return digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
    }
    let (kind, count) = (
        case["recipe"][1].as_str().unwrap(),
        case["recipe"][2].as_u64().unwrap(),
    );
    let mut body = words(&(0..count).chain([count - 1]).collect::<Vec<u64>>());
    body.extend(words(&(1..count).collect::<Vec<u64>>()));
    for at in 0..count {
        match kind {
            "rob" if at > 0 => body.extend([text(b"rob"), text(b"x")].concat()),
            _ => body.extend(text(b"_lib")),
        }
    }
    [&(body.len() as u64).to_le_bytes()[..], &body].concat()
}

fn compile(folder: &Path, host: &Path, id: &str, blob: &[u8]) -> PathBuf {
    let (bin, source, library) = (
        folder.join(format!("{id}.bin")),
        folder.join(format!("{id}.s")),
        folder.join(format!("{id}.so")),
    );
    std::fs::write(&bin, blob).unwrap();
    let symbol = "__tvm_ffi__library_bin";
    let text = format!(
        ".section .rodata\n.globl {symbol}\n.type {symbol}, @object\n.size {symbol}, {}\n{symbol}:\n.incbin \"{}\"\n.section .note.GNU-stack,\"\",@progbits\n",
        blob.len(),
        bin.display()
    );
    std::fs::write(&source, text).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-o"])
        .arg(&library)
        .arg(&source)
        .arg(host)
        .status()
        .unwrap();
    assert!(status.success(), "{id}: the linker failed");
    library
}

/// Runs `victim` on `library`. Returns its output, or the way in which it ended.
fn load(library: &Path) -> String {
    let mut child = alone(module_path!(), "victim")
        .arg("--test-threads=1")
        .env(VICTIM, library)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill().unwrap();
                return "hang".to_owned();
            }
            None => std::thread::sleep(Duration::from_millis(3)),
        }
    };
    let output = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix("OUTCOME "));
    match line {
        Some(line) if status.success() => line.to_owned(),
        _ => format!("crash ({status})"),
    }
}

#[test]
fn no_malformed_library_crashes_hangs_or_passes_in_silence() {
    if !cfg!(all(target_os = "linux", target_pointer_width = "64"))
        || Command::new("cc").arg("--version").output().is_err()
    {
        skipped("this needs Linux and a C compiler");
        return;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/module/robustness.json");
    let cases: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("host.c");
    let host = folder.path().join("host.o");
    std::fs::write(&source, HOST).unwrap();
    assert!(
        Command::new("cc")
            .args(["-fPIC", "-c", "-o"])
            .arg(&host)
            .arg(&source)
            .status()
            .unwrap()
            .success()
    );
    let mut wrong = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    for case in &cases {
        let (id, expect) = (
            case["id"].as_str().unwrap(),
            case["expect"].as_str().unwrap(),
        );
        let library = compile(folder.path(), &host, id, &blob(case));
        let outcome = load(&library);
        std::fs::remove_file(&library).unwrap();
        println!("{id:<30} {expect:<8} {outcome}");
        *counts
            .entry(outcome.split(' ').next().unwrap().to_owned())
            .or_insert(0) += 1;
        let kept = match expect {
            "valid" => outcome.starts_with("accepted []"),
            "finding" => outcome.starts_with("accepted [") && !outcome.starts_with("accepted []"),
            "opaque" => outcome.starts_with("opaque"),
            "loader" => outcome.starts_with("loader"),
            _ => outcome.starts_with("rejected"),
        };
        if !kept {
            wrong.push(format!("{id}: expected {expect}, got {outcome}"));
        }
    }
    println!("{} cases: {counts:?}", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
