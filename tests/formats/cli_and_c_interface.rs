//! The command line and the C interface give the same answer for every golden file, in JSON of the published schemas.
#![cfg(all(feature = "cli", feature = "inspect"))]

use crate::support::folder;
use crate::support::schema;
use crate::support::skip::skipped;
use crate::support::test_scale::is_thorough;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::capi::examine::{tvmspec_examine, tvmspec_examine_file};
use tvmspec::capi::extras::tvmspec_free;
use tvmspec::payload::file::side_file_of;

/// Each request, and the schema of its answer. The C interface searches no libraries on this machine.
const COMMANDS: [(&str, &[&str], &str); 5] = [
    (
        "inspect",
        &[],
        include_str!("../../spec/schema/inspect.json"),
    ),
    ("verify", &[], include_str!("../../spec/schema/verify.json")),
    (
        "verify --strict",
        &[],
        include_str!("../../spec/schema/verify.json"),
    ),
    (
        "explain",
        &["--elsewhere"],
        include_str!("../../spec/schema/explain.json"),
    ),
    ("dump", &[], include_str!("../../spec/schema/dump.json")),
];

#[test]
fn all_fronts_say_the_same_about_every_golden() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = COMMANDS.map(|(command, _, text)| (command, schema::schema(text)));
    let schemas: BTreeMap<_, _> = schemas.into_iter().collect();
    let mut counts = BTreeMap::<(&str, i32), usize>::new();
    let mut goldens = folder::files(&root.join("golden"));
    // Descriptions, dumps and origins of goldens are not goldens.
    goldens.retain(|path| {
        let end = path.extension();
        end.is_none_or(|end| end != "txt" && end != "md")
    });
    if !is_thorough() {
        // Each golden needs five processes, so that only one of each kind and folder is tested.
        let mut kinds = BTreeSet::new();
        goldens.retain(|path| {
            let end = path.extension().map(ToOwned::to_owned);
            kinds.insert((path.parent().map(Path::to_owned), end))
        });
    }
    for path in goldens {
        let name = path.to_str().expect("a golden has a plain name");
        let bytes = fs::read(&path).expect(name);
        // TEN-54: a buffer has no shards next to it.
        if name.ends_with("-cache.json") || name.ends_with("-cache-b16.json") {
            continue;
        }
        for (command, besides, _) in COMMANDS {
            let place = format!("{command} {name}");
            // PAY-23: a buffer has no side file.
            let (code, reply) = if side_file_of(name).is_some_and(|side| Path::new(&side).exists())
            {
                from_c_file(command, name)
            } else {
                from_c(command, name, &bytes)
            };
            let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
                .args(command.split(' '))
                .args(["--json"])
                .args(besides)
                .arg(&path)
                .output()
                .expect("tvmspec runs");
            assert_eq!(output.status.code(), Some(code), "{place}: {reply}");
            *counts.entry((command, code)).or_default() += 1;
            if code == 2 {
                let message = String::from_utf8_lossy(&output.stderr);
                assert_eq!(message.trim_end(), format!("error: {reply}"), "{place}");
                continue;
            }
            let ours: Value = serde_json::from_str(&reply).expect(&place);
            let theirs: Value = serde_json::from_slice(&output.stdout).expect(&place);
            assert_eq!(ours, theirs, "{place}");
            schema::conforms(&schemas[command], &ours, &place);
        }
    }
    println!("answers by command and exit code: {counts:?}");
    for (command, _, _) in COMMANDS {
        assert!(
            counts.contains_key(&(command, 0)),
            "{command} is good of nothing"
        );
        assert!(
            counts.contains_key(&(command, 2)),
            "{command} rejects nothing"
        );
    }
}

/// Returns the output of the command line, and its exit code.
fn from_shell(words: &[&str], path: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .args(["--json"])
        .arg(path)
        .output()
        .expect("tvmspec runs");
    let text = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), text)
}

/// Creates a parameter file with `count` scalars that have long names.
fn params(count: u64) -> Vec<u8> {
    let mut bytes = 0xF7E5_8D4F_0504_9CB7_u64.to_le_bytes().to_vec();
    bytes.extend([0; 8]);
    bytes.extend(count.to_le_bytes());
    for index in 0..count {
        let name = format!("{index:080}");
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
    }
    bytes.extend(count.to_le_bytes());
    for _ in 0..count {
        bytes.extend(0xDD5E_40F0_96B4_A13F_u64.to_le_bytes());
        bytes.extend([0; 8]);
        // CPU, no dimension, float32.
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 32, 1, 0]);
        bytes.extend(4_u64.to_le_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

#[test]
fn all_fronts_leave_out_as_much_of_a_large_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many.params");
    let bytes = params(20_000);
    fs::write(&path, &bytes).expect("written");
    let name = path.to_str().expect("a plain name");
    for command in ["inspect", "verify", "dump --from 0x100000"] {
        let words: Vec<&str> = command.split(' ').collect();
        let (code, text) = from_shell(&words, &path);
        let (ours, answer) = from_c(command, name, &bytes);
        assert_eq!(code, Some(ours), "{command}");
        let theirs: Value = serde_json::from_str(&text).expect(command);
        let ours: Value = serde_json::from_str(&answer).expect(command);
        assert!(
            ours == theirs,
            "{command}: {} and {}",
            answer.len(),
            text.len()
        );
    }
}

#[test]
fn all_fronts_take_the_same_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let asked = [
        ("inspect --code", "golden/vm/branch-to-itself.vmexec"),
        ("inspect --code", "golden/blob/containers/relax_vm-0.27.so"),
        ("inspect --layout=0.2", "golden/blob/opencl-0.6.bin"),
        ("verify --layout 0.22", "golden/blob/opencl-0.6.bin"),
        (
            "explain --elsewhere --release 0.6",
            "golden/blob/opencl-0.6.bin",
        ),
        (
            "explain --elsewhere --release=0.27",
            "golden/blob/opencl-0.6.bin",
        ),
        ("dump --from=0x20", "golden/blob/opencl-0.6.bin"),
    ];
    for (command, file) in asked {
        let path = root.join(file);
        let words: Vec<&str> = command.split(' ').collect();
        let (code, text) = from_shell(&words, &path);
        let bytes = fs::read(&path).expect(file);
        let (ours, answer) = from_c(command, path.to_str().expect("plain"), &bytes);
        assert_eq!(code, Some(ours), "{command} {file}: {answer}");
        let theirs: Value = serde_json::from_str(&text).expect(command);
        let ours: Value = serde_json::from_str(&answer).expect(command);
        assert_eq!(ours, theirs, "{command} {file}");
    }
}

/// Files of ten kinds, one of which TVM did not write.
const TEN: [&str; 10] = [
    "golden/blob/opencl-0.6.bin",
    "golden/blob/graph-factory.bin",
    "golden/blob/containers/relax_vm-0.27.so",
    "golden/blob/containers/tree3-0.8.so",
    "golden/blob/containers/system_lib-0.8.tar",
    "golden/blob/containers/elf-cut.o",
    "golden/object/map.json",
    "golden/object/0.8/irmodule-relay.json",
    "golden/tensor/all_dtypes-0.8.params",
    "README.md",
];

#[test]
fn webassembly_says_the_same_in_node() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(module) = module(root) else { return };
    for (command, besides, _) in COMMANDS {
        let output = Command::new("node")
            .current_dir(root)
            .env("TVMSPEC_WASM", &module)
            .args(["web/shell/node.mjs", command])
            .args(TEN)
            .output()
            .expect("node runs");
        let lines = String::from_utf8(output.stdout).expect("text");
        assert_eq!(lines.lines().count(), TEN.len(), "{command}: {lines}");
        for (name, line) in TEN.iter().zip(lines.lines()) {
            let theirs: Value = serde_json::from_str(line).expect(line);
            let bytes = fs::read(root.join(name)).expect(name);
            let (code, reply) = from_c(command, name, &bytes);
            assert_eq!(theirs["code"], code, "{command} {name} ({besides:?})");
            let ours = match code {
                2 => Value::from(reply),
                _ => serde_json::from_str(&reply).expect(name),
            };
            assert_eq!(theirs["answer"], ours, "{command} {name}");
        }
    }
}

#[test]
fn webassembly_works_without_what_node_adds_to_a_browser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(module) = module(root) else { return };
    let script = r#"
        import { readFileSync } from "node:fs";
        const { env } = process;
        delete globalThis.process;
        const { load } = await import(env.BINDING);
        const file = new Uint8Array(readFileSync(env.FILE)).buffer;
        const examine = await load(await WebAssembly.compile(readFileSync(env.TVMSPEC_WASM)));
        console.log(examine("verify", "a.bin", file).text);
        try { examine("verify", "a.bin", "text") } catch (error) { console.log(error.message) }
    "#;
    let output = Command::new("node")
        .env("TVMSPEC_WASM", &module)
        .env("BINDING", root.join("web/shell/tvmspec.mjs"))
        .env("FILE", root.join("golden/blob/opencl-0.6.bin"))
        .args(["--input-type=module", "--eval", script])
        .output()
        .expect("node runs");
    let lines = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = lines.lines().collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    let [report, wrong] = lines.as_slice() else {
        panic!("{lines:?} {errors}")
    };
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert_eq!(report["violations"], Value::Array(Vec::new()));
    assert_eq!(*wrong, "the file is an ArrayBuffer or a view of one");
}

/// Returns the WebAssembly module, or prints a reason and returns `None`.
fn module(root: &Path) -> Option<PathBuf> {
    if !root.join("web/shell").is_dir() {
        skipped("this package does not contain web/shell, which is a separate package");
        return None;
    }
    if Command::new("node").arg("--version").output().is_err() {
        skipped("node is not installed");
        return None;
    }
    let Some(cargo) = std::env::var_os("CARGO") else {
        skipped("cargo did not start this test");
        return None;
    };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let target = target.expect("a target folder");
    let built = Command::new(cargo)
        .current_dir(root.join("web/shell"))
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(target)
        .output()
        .expect("cargo runs");
    let reply = String::from_utf8_lossy(&built.stderr);
    if reply.contains("can't find crate for `core`") || reply.contains("may not be installed") {
        skipped("the target wasm32-unknown-unknown is not installed");
        return None;
    }
    assert!(built.status.success(), "{reply}");
    Some(target.join("wasm32-unknown-unknown/release/tvmspec_web.wasm"))
}

fn from_c(command: &str, name: &str, bytes: &[u8]) -> (i32, String) {
    let start = bytes.as_ptr().cast();
    answered(command, name, |command, name, text| {
        // SAFETY: two C strings, `length` bytes that live on, and a place for a text.
        unsafe { tvmspec_examine(command, name, start, bytes.len(), text) }
    })
}

/// Like `from_c`, for the file at `path`.
fn from_c_file(command: &str, path: &str) -> (i32, String) {
    // SAFETY: two C strings, and a place for a text.
    answered(command, path, |command, path, text| unsafe {
        tvmspec_examine_file(command, path, text)
    })
}

fn answered(
    command: &str,
    name: &str,
    ask: impl FnOnce(*const c_char, *const c_char, *mut *mut c_char) -> i32,
) -> (i32, String) {
    let (command, name) = (CString::new(command), CString::new(name));
    let (command, name) = (command.expect("no zero"), name.expect("no zero"));
    let mut text = std::ptr::null_mut();
    let code = ask(command.as_ptr(), name.as_ptr(), &raw mut text);
    // SAFETY: the library made the text, which ends with a zero.
    let reply = unsafe { CStr::from_ptr(text) }
        .to_str()
        .expect("UTF-8")
        .to_owned();
    // SAFETY: the library made the text, and it is not used any more.
    unsafe { tvmspec_free(text) };
    (code, reply)
}
