//! `explain FILE --runtime` with the runtimes of three releases and two interfaces. The file needs a loader and a builtin that none
//! of them has. The suite also judges the runtime of 0.21.
//!
//! The Pythons in `TVMSPEC_PYTHON_0_19` and `TVMSPEC_PYTHON_0_21` have the wheels of 0.19 and 0.21 (`xtc-tvm-python-bindings`).
//! `TVMSPEC_PYTHON` has that of 0.27.
#![cfg(all(target_os = "linux", target_arch = "x86_64", feature = "cli"))]

use crate::support::python::{python, run};
use crate::support::skip::skipped;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the libraries of a wheel, in load order.
const LIBRARIES: &str = "
import importlib.util, pathlib
def folder(name):
    found = importlib.util.find_spec(name)
    return pathlib.Path(found.origin).parent if found else None
ffi, tvm = folder('tvm_ffi'), folder('tvm')
first = [ffi / 'lib/libtvm_ffi.so'] if ffi else []
own = [tvm / 'libtvm_runtime.so', tvm / 'lib/libtvm_runtime.so']
print(','.join(map(str, first + [path for path in own if path.exists()])))
";

/// One release: its golden file, and how a library of its era is packed.
struct Era {
    release: &'static str,
    layout: &'static str,
    loader: &'static str,
}

const ERAS: [Era; 3] = [
    Era {
        release: "0.19",
        layout: "0.7",
        loader: "runtime.module.loadbinary_cuda",
    },
    Era {
        release: "0.21",
        layout: "0.21",
        loader: "runtime.module.loadbinary_cuda",
    },
    Era {
        release: "0.27",
        layout: "0.22",
        loader: "ffi.Module.load_from_bytes.cuda",
    },
];

#[test]
fn a_runtime_lacks_a_loader_and_a_builtin_by_name() {
    for era in &ERAS {
        let python = match era.release {
            "0.27" => python("tvm, tvm_ffi"),
            release => named(release),
        };
        let Some(python) = python else { continue };
        let libraries = run(&python, LIBRARIES, &[]);
        let folder = tempfile::tempdir().unwrap();
        let whole = library(era, folder.path(), true);
        let held = explain(&whole, &libraries, 1);
        let names = held["missing"].as_array().unwrap();
        let names: Vec<[&str; 2]> = names
            .iter()
            .map(|missing| ["what", "name"].map(|member| missing[member].as_str().unwrap()))
            .collect();
        let builtin = ["builtin", "vm.builtin.no_such_thing"];
        assert_eq!(names, [["loader", era.loader], builtin], "{}", era.release);
        assert!(
            held["missing"][0]["brought_by"]
                .as_str()
                .unwrap()
                .contains("USE_CUDA")
        );
        assert_eq!(releases_of(&held), era.release);
        let alone = library(era, folder.path(), false);
        let held = explain(&alone, &libraries, 1);
        assert_eq!(held["missing"].as_array().unwrap().len(), 1);
        // No release has the builtin, but another library may register it.
        assert_eq!(held["accounts"][0]["loads"][0]["outcome"], "unknown");
        let cannot = run(&python, INITIALIZES, &[&alone]);
        assert!(cannot.contains("vm.builtin.no_such_thing"), "{cannot}");
        let cannot = run(&python, INITIALIZES, &[&whole]);
        assert!(cannot.contains("{cuda}"), "{cannot}");
    }
}

/// Loads a file in the released runtime and creates a virtual machine for it. Prints why that fails.
const INITIALIZES: &str = "
import sys, tvm
from tvm import relax
try:
    relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
except BaseException as error:
    print(error)
";

/// Only 0.21 has this interface. The adapter of 0.20 translates it.
#[test]
fn a_runtime_of_0_21_is_judged() {
    let Some(python) = named("0.21") else { return };
    let library = run(&python, LIBRARIES, &[]);
    let check = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["check", "--memory", "8192", "--report", "json"])
        .args(["--impl", &format!("legacy:{library}")])
        .args(["--known", "conformance/known/apache-tvm-0.7-0.20.toml"])
        .args(
            ["import_tree", "blob", "module", "payload", "tensor"]
                .map(|name| format!("--chapter={name}")),
        )
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(report["good"], true, "{}", report["problems"]);
    assert_eq!(report["implementation"]["releases"], json!(["0.21"]));
    let pass = report["totals"]["pass"].as_u64().unwrap();
    assert!(pass > 200, "{pass} cases pass");
}

/// Returns the Python with the wheel of `release`.
fn named(release: &str) -> Option<String> {
    let variable = format!("TVMSPEC_PYTHON_{}", release.replace('.', "_"));
    let named = std::env::var(&variable).ok();
    if named.is_none() {
        skipped(format_args!(
            "{variable} names no Python with TVM {release}"
        ));
    }
    named
}

/// Returns the detected releases without the range end. 0.26 and 0.27 share one tvm-ffi, so the runtime reports both as one.
fn releases_of(held: &Value) -> &str {
    let releases = held["runtime"]["releases"].as_str().unwrap();
    releases.trim_end_matches("..")
}

/// Creates the library of the golden file. If `with_cuda` is set, it also has a CUDA module.
fn library(era: &Era, folder: &Path, with_cuda: bool) -> PathBuf {
    let archive = format!("golden/vm/unknown-builtin-{}.tar", era.release);
    let parts = folder.join("parts");
    let unpacked = folder.join("unpacked");
    fs::create_dir_all(&parts).unwrap();
    let tar = Command::new("tar")
        .args(["-xf", &archive, "-C"])
        .arg(&parts)
        .status();
    assert!(tar.unwrap().success());
    if !unpacked.exists() {
        tvmspec(&["unpack", &archive, "-o", unpacked.to_str().unwrap()]);
    }
    let manifest = fs::read_to_string(unpacked.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let mut code = manifest["modules"][0].clone();
    code["file"] = json!(unpacked.join(code["file"].as_str().unwrap()));
    let mut modules = vec![code, json!({ "kind": "_lib" })];
    let mut tree = json!({ "indptr": [0, 1, 1], "indices": [1] });
    if with_cuda {
        // Without functions, the payload has the same bytes in every era.
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/payload/cuda-no-functions.bin");
        modules.push(json!({ "kind": "cuda", "file": file }));
        tree = json!({ "indptr": [0, 1, 2, 2], "indices": [1, 2] });
    }
    let manifest = json!({ "layout": era.layout, "modules": modules, "import_tree": tree });
    let list = folder.join("list.json");
    fs::write(&list, manifest.to_string()).unwrap();
    let made = folder.join(format!("{with_cuda}.so"));
    let host = parts.join("lib0.o");
    let words = [&list, &made, &host].map(|path| path.to_str().unwrap());
    tvmspec(&["pack", words[0], "-o", words[1], "--with", words[2]]);
    made
}

fn explain(file: &Path, libraries: &str, code: i32) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["explain", "--json", "--elsewhere", "--runtime", libraries])
        .arg(file)
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn tvmspec(words: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {why}");
}
