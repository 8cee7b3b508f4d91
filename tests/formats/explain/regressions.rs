//! Files for which `convert`, `call`, `run` or `explain` once gave wrong answers. Each expected answer comes from a real release, if
//! one is named.

use super::first_use::outcome;
use super::user_files::print;
use super::{ask, compile, golden};
use crate::support::skip::skipped;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::import_tree::ImportTree;
use tvmspec::rule::Findings;
use tvmspec::wire::Writer;

/// A parameter file with one tensor.
pub(super) const E4M3: &str = "tensor/e4m3-0.16.params";

/// A file with content that a test wrote.
pub(super) struct Made {
    pub(super) folder: tempfile::TempDir,
    pub(super) path: PathBuf,
}

pub(super) fn made(name: &str, bytes: impl AsRef<[u8]>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    Made { folder, path }
}

pub(super) fn edited(file: &str, edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = fs::read(golden(file)).unwrap();
    edit(&mut bytes);
    bytes
}

pub(super) fn form(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/forms")
        .join(name)
}

fn explained(file: &Path) -> Value {
    ask(&["explain", "--json", "--elsewhere"], file).unwrap()
}

/// Compares the outcome of each release, and searches for a text in the reason.
#[track_caller]
pub(super) fn expect(file: &Path, truth: &[(u8, &str, &str)]) {
    let explained = explained(file);
    for (release, expected, text) in truth {
        let (outcome, why) = outcome(&explained, *release);
        assert_eq!(
            outcome,
            *expected,
            "{} in 0.{release}: {why}",
            file.display()
        );
        assert!(
            why.contains(text),
            "{} in 0.{release}: {why}",
            file.display()
        );
    }
}

pub(super) fn convert(from: &Path, to: &Path, options: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .arg("convert")
        .arg(from)
        .arg("-o")
        .arg(to)
        .args(options)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Creates a copy of a tensor cache of 0.27 with a changed index and shard.
fn cache(edit: impl Fn(&mut String), damage: impl Fn(&mut Vec<u8>)) -> Made {
    let source = golden("tensor/cache-0.27");
    let mut index = fs::read_to_string(source.join("tensor-cache.json")).unwrap();
    edit(&mut index);
    let made = made("tensor-cache.json", index);
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let mut bytes = fs::read(entry.path()).unwrap();
        if entry.file_name() != "tensor-cache.json" {
            damage(&mut bytes);
            fs::write(made.folder.path().join(entry.file_name()), bytes).unwrap();
        }
    }
    made
}

#[test]
fn findings_in_weights_are_shown_and_explained() {
    let damaged = cache(|_| {}, |bytes| bytes[0] ^= 1);
    let out = damaged.folder.path().join("x.params");
    let (code, text) = convert(&damaged.path, &out, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("finding: ") && text.contains("[TEN-58]"),
        "{text}"
    );
    // The real 0.27 reads the bytes as raw data.
    let odd = cache(
        |index| *index = index.replacen("\"format\": \"raw\"", "\"format\": \"f32-to-fp8\"", 1),
        |_| {},
    );
    expect(
        &odd.path,
        &[
            (21, "fails", ""),
            (27, "silent", "which readers take for `raw`"),
        ],
    );
}

#[test]
fn a_cut_library_is_not_opened() {
    let bytes = fs::read(golden("blob/containers/tree3-0.8.so")).unwrap();
    let cut = made("cut.so", &bytes[..bytes.len() / 3]);
    // Real releases end with SIGBUS.
    expect(
        &cut.path,
        &[(8, "fails", "SIGBUS"), (27, "fails", "SIGBUS")],
    );
    if !cfg!(target_os = "linux") {
        return skipped("the library is of Linux");
    }
    for words in [&["run"][..], &["call"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(words)
            .arg(&cut.path)
            .args(words.contains(&"call").then_some("f"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(
            text.contains("is cut: a segment is at"),
            "{words:?}: {text}"
        );
        assert!(text.contains("BLOB-55"), "{words:?}: {text}");
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn what_a_constructor_registers_with_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("extension.so");
    let old = "int TVMFuncRegisterGlobal(const char*, void*, int);\n";
    let system = "int TVMBackendRegisterSystemLibSymbol(const char*, void*);\n";
    let new = "int TVMFFIFunctionSetGlobal(const void*, void*, int);\n";
    let start = "__attribute__((constructor)) static void start(void)";
    let function = "int f(void* a, int* t, int n, void* r, int* rt, void* h) { return 0; }";
    for (source, options, truth) in [
        // The real 0.27 ends: `undefined symbol: TVMFuncRegisterGlobal`.
        (
            format!("{old}{start} {{ TVMFuncRegisterGlobal(\"a\", 0, 0); }}"),
            &[][..],
            [(19, "silent"), (21, "unknown"), (27, "unknown")],
        ),
        (
            format!("{old}void start(void) {{ TVMFuncRegisterGlobal(\"a\", 0, 0); }}"),
            &["-Wl,-init=start"],
            [(19, "unknown"), (21, "unknown"), (27, "unknown")],
        ),
        // The real 0.8 ends: `undefined symbol: TVMFFIFunctionSetGlobal`.
        (
            format!("{new}{start} {{ TVMFFIFunctionSetGlobal(0, 0, 0); }}\n{function}"),
            &[],
            [(8, "unknown"), (19, "unknown"), (20, "unknown")],
        ),
        // The real 0.27 opens it, because nothing calls the function.
        (
            format!(
                "{system}int later(void) {{ return TVMBackendRegisterSystemLibSymbol(\"a\", 0); }}\n{function}"
            ),
            &[],
            [(20, "unknown"), (22, "silent"), (27, "silent")],
        ),
        (
            format!(
                "{system}{start} {{ TVMBackendRegisterSystemLibSymbol(\"a\", 0); }}\n{function}"
            ),
            &[],
            [(20, "unknown"), (22, "fails"), (27, "fails")],
        ),
    ] {
        let options = [&["-Wl,-z,lazy", "-O1"][..], options].concat();
        compile(&source, &library, &options);
        let explained = explained(&library);
        for (release, expected) in truth {
            let (outcome, why) = outcome(&explained, release);
            assert_eq!(outcome, expected, "{source} in 0.{release}: {why}");
        }
    }
}

#[test]
fn a_file_for_several_machines_is_one_library_for_each() {
    for name in ["macho-fat.o", "macho-fat64.o"] {
        let explained = explained(&golden("blob/containers").join(name));
        for account in explained.as_array().unwrap() {
            assert_eq!(account["as_it_is"]["loadable"], false, "{name}");
            for load in account["loads"].as_array().unwrap() {
                assert!(
                    !load["why"].as_str().unwrap().contains("several machines"),
                    "{load}"
                );
            }
        }
    }
}

fn objects(version: &str, nodes: Value) -> Made {
    let text = json!({
        "root": 1, "nodes": nodes, "b64ndarrays": [], "attrs": { "tvm_version": version }
    });
    made("objects.json", text.to_string())
}

#[test]
fn values_of_objects_are_read_as_their_releases_do() {
    let tensor = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQAGAAAAAAAAABgAAAAAAAAAAAAAAAAAgD8AAABAAABAQAAAgEAAAKBA";
    let tensor = objects(
        "0.21.dev0",
        json!([{ "type_key": "" }, { "type_key": "ffi.NDArray", "repr_str": tensor }]),
    );
    expect(&tensor.path, &[(19, "fails", ""), (21, "loads", "")]);
    for (value, expected) in [("1.5", "loads"), ("abc", "fails"), ("inf", "unknown")] {
        let attrs = json!({ "dtype": "float32", "span": "0", "value": value });
        let float = objects(
            "0.16.0",
            json!([{ "type_key": "" }, { "type_key": "FloatImm", "attrs": attrs }]),
        );
        // The real 0.19 says: `Wrong value format for field value`.
        expect(&float.path, &[(16, expected, ""), (19, expected, "")]);
    }
    // 0.8 stores target kinds with all attributes. The real 0.9 loads them, even `llvmx`.
    expect(
        &golden("object/target-0.8.json"),
        &[(9, "loads", ""), (19, "fails", "")],
    );
}

#[test]
fn a_newer_form_is_named_as_one() {
    let library = fs::read(form("tirx-opencl.so")).unwrap();
    let marker = b"__tvm_function_info_v2__";
    let mut newer = library.clone();
    let places = library.windows(marker.len()).enumerate();
    for (at, _) in places.filter(|(_, window)| window == marker) {
        newer[at + marker.len() - 3] = b'3';
    }
    assert_ne!(newer, library);
    let newer = made("v3.so", newer);
    let (code, text) = print(&["verify"], &newer.path);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("has information of form 3, which a TVM after 0.27 writes"),
        "{text}"
    );
    let (_, text) = print(&["explain", "--elsewhere"], &newer.path);
    assert!(
        text.contains("library binary, layout 0.22, written by a TVM after 0.27"),
        "{text}"
    );
    // TVM increments a magic number when its format changes.
    let params = made("x.params", edited(E4M3, |bytes| bytes[0] += 1));
    let (_, text) = print(&["explain"], &params.path);
    assert!(
        text.contains("a parameter file with an unknown magic"),
        "{text}"
    );
    let reserved = made("x.params", edited(E4M3, |bytes| bytes[8] = 1));
    let (_, text) = print(&["verify"], &reserved.path);
    assert!(
        text.contains("not 0 as every release up to 0.27 writes it"),
        "{text}"
    );
}

#[test]
fn cut_data_break_the_rule_that_says_what_happens() {
    let file = golden("tensor/last-cut-0.8.params");
    let verified = ask(&["verify", "--json"], &file).unwrap();
    assert_eq!(verified["violations"][0]["rule"], "TEN-32");
    assert_eq!(verified["violations"][0]["kind"], "truncated");
    let (_, text) = print(&["verify"], &file);
    assert!(
        text.contains("A truncated file therefore loads with zeros"),
        "{text}"
    );
}

/// Creates a library binary of layout 0.22 with one module.
fn library(kind: &str, payload: &[u8]) -> Made {
    let mut body = Writer::new();
    ImportTree::new(&[0, 1, 1], &[1], &mut Findings::default())
        .unwrap()
        .write(&mut body);
    body.str("_lib");
    body.str(kind);
    body.bytes(payload);
    let mut out = Writer::new();
    out.bytes(&body.into_bytes());
    made("vendor.bin", out.into_bytes())
}

#[test]
fn kinds_of_vendors_are_read_in_every_layout() {
    let mut payload = Writer::new();
    payload.str("subgraph_0");
    payload.str("{\"nodes\": []}");
    payload.vector(&["c0"], |out, name| out.str(name));
    let payload = payload.into_bytes();
    let json = library("npu_json", &payload);
    let (code, text) = print(&["verify"], &json.path);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains(
            "no release has kind `npu_json`: its payload reads as that of a JSON runtime"
        ),
        "{text}"
    );
    let inspected = ask(&["inspect", "--json"], &json.path).unwrap();
    let module = &inspected["parts"][0]["libraries"][0]["modules"][1];
    assert_eq!(module["fields"]["symbol"], "subgraph_0", "{inspected}");
    let raw = library("npu_raw", b"\x01\x02\x03\xff");
    let (code, text) = print(&["verify"], &raw.path);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("no release has kind `npu_raw`: the grammar of its payload is not known"),
        "{text}"
    );
    // The statement of the caller is checked.
    let (code, _) = print(&["verify", "--grammar", "npu_raw=dnnl_json"], &raw.path);
    assert_eq!(code, Some(1));
    let (code, _) = print(&["verify", "--grammar", "npu_json=dnnl_json"], &json.path);
    assert_eq!(code, Some(0));
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn what_needs_tvm_ffi_is_of_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let ffi = folder.path().join("libtvm_ffi.so");
    compile("int TVMFFIFunctionSetGlobal(void) { return 0; }", &ffi, &[]);
    let library = folder.path().join("extension.so");
    let source = "int TVMFFIFunctionSetGlobal(void); __attribute__((visibility(\"hidden\"))) int use(void) { return TVMFFIFunctionSetGlobal(); }";
    compile(source, &library, &[ffi.to_str().unwrap()]);
    let (_, text) = print(&["inspect"], &library);
    assert!(text.contains("era tvm 0.22 and later"), "{text}");
}
