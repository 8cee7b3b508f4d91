//! Failures at the first use of a file, and the types of its tensors.

use super::{ask, compile, golden, reply};
use crate::support::skip::skipped;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the outcome in one release, and its reason.
pub(super) fn outcome(explained: &Value, release: u8) -> (String, String) {
    let accounts = explained.as_array().unwrap();
    let mut loads = accounts
        .iter()
        .flat_map(|one| one["loads"].as_array().unwrap());
    let release = tvmspec::release::Release::of(release);
    let holds = |load: &&Value| {
        let range = load["releases"].as_str().unwrap();
        range
            .parse::<tvmspec::release::Releases>()
            .unwrap()
            .contains(release)
    };
    let load = loads.find(holds).unwrap();
    let text = |name: &str| load[name].as_str().unwrap().to_owned();
    (text("outcome"), text("why"))
}

fn explained(file: &Path) -> Value {
    ask(&["explain", "--json", "--elsewhere"], file).unwrap()
}

/// Compares the outcome of each release, and searches for a text in the reason.
#[track_caller]
fn expect(file: &str, truth: &[(u8, &str, &str)]) {
    let explained = explained(&golden(file));
    for (release, expected, text) in truth {
        let (outcome, why) = outcome(&explained, *release);
        assert_eq!(outcome, *expected, "{file} in 0.{release}: {why}");
        assert!(why.contains(text), "{file} in 0.{release}: {why}");
    }
}

#[test]
fn a_machine_without_a_builtin_is_not_made() {
    let reduced = "`vm.builtin.paged_attention_kv_cache_create_reduced` (of 0.16 to 0.19)";
    expect(
        "module/missing-builtins-0.27.so",
        &[
            (20, "silent", "finds none"),
            (25, "fails", reduced),
            (27, "fails", reduced),
        ],
    );
    let (code, text) = reply("0.27", &golden("module/missing-builtins-0.27.so"));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`cutlass.gemm_e4m3_e4m3_fp16`"), "{text}");
    // All its functions and builtins exist.
    expect("blob/containers/relax_vm-0.27.so", &[(27, "loads", "")]);
}

#[test]
fn a_graph_is_held_against_its_library() {
    let graph = golden("graph/mlp.json");
    let whole = golden("graph/models/v0.8/mlp.kernels.so");
    let other = golden("blob/containers/tree3-0.8.so");
    let with = |lib: &Path| {
        let lib = lib.to_str().unwrap();
        let words = ["explain", "--release", "0.8", "--json", "--lib", lib];
        outcome(&ask(&words, &graph).unwrap(), 8)
    };
    assert_eq!(with(&whole).0, "loads");
    let (outcome, why) = with(&other);
    assert_eq!(outcome, "fails", "{why}");
    assert!(
        why.contains("making its executor fails: the library has no function"),
        "{why}"
    );
}

#[test]
fn a_factory_without_a_function_makes_no_executor() {
    let mut bytes = fs::read(golden("graph/models/v0.8/dtypes.so")).unwrap();
    let call = b"\"func_name\": \"tvm";
    let at = bytes.windows(call.len()).position(|text| text == call);
    bytes[at.unwrap() + call.len() - 3] = b'x';
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("other.so");
    fs::write(&library, bytes).unwrap();
    let (outcome, why) = outcome(&explained(&library), 8);
    assert_eq!(outcome, "fails", "{why}");
    assert!(
        why.contains("making its executor fails: the library has no function `xvm"),
        "{why}"
    );
    expect(
        "graph/models/v0.8/dtypes.so",
        &[(8, "loads", ""), (19, "loads", "")],
    );
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn host_code_names_functions_that_came_and_went() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("names.so");
    // As in generated code: the name is a constant, and the look-up goes through a slot.
    let source = "int (*__TVMFuncCall)();\n\
        int (*__TVMBackendGetFuncFromEnv)(void*, const char*, void**);\n\
        int f(void* a, int* t, int n, void* r, int* rt, void* h) {\n\
        void* g; return __TVMBackendGetFuncFromEnv(0, \"vm.builtin.ndarray_cache.get\", &g); }";
    compile(source, &library, &[]);
    assert_eq!(outcome(&explained(&library), 19).0, "loads");
    let (outcome, why) = outcome(&explained(&library), 8);
    assert_eq!(outcome, "silent");
    assert!(
        why.contains("`vm.builtin.ndarray_cache.get` (of 0.16 to 0.21)"),
        "{why}"
    );
}

#[test]
fn cut_parameters_load_with_what_was_in_memory() {
    let missing = "the others are zeros, or what was in memory (TEN-32)";
    expect(
        "tensor/last-cut-0.8.params",
        &[
            (8, "silent", missing),
            (16, "silent", missing),
            (27, "silent", missing),
        ],
    );
    // No other data may follow the truncated tensor.
    let bytes = fs::read(golden("tensor/mlp-0.8.params")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.params");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let (_, why) = outcome(&explained(&cut), 27);
    assert!(why.contains("TEN-32") || why.contains("are left"), "{why}");
}

#[test]
fn a_type_code_with_two_meanings_shows_both() {
    let file = "tensor/e4m3-0.16.params";
    let bool = "it reads `q`, float8_e4m3fn as 0.13 to 0.20 write it, as bool";
    expect(
        file,
        &[
            (8, "silent", "and has no name for the type of `q`"),
            (16, "loads", ""),
            (20, "loads", ""),
            (21, "silent", "and has no name"),
            (22, "silent", bool),
            (27, "silent", bool),
        ],
    );
    let inspected = ask(&["inspect", "--json"], &golden(file)).unwrap();
    let both = "float8_e4m3fn (to 0.20) or bool (from 0.22)";
    assert_eq!(inspected["params"][0]["dtype"], both);
    let verified = ask(&["verify", "--json"], &golden(file)).unwrap();
    assert_eq!(verified["findings"][0]["rule"], "TEN-02");
    assert_eq!(verified["findings"][0]["offset"], 0x45);
    // Zeros and ones are bools, which 0.27 writes with this code.
    expect(
        "tensor/bool-0.27.params",
        &[(27, "loads", ""), (19, "silent", "as float8_e4m3fn")],
    );
    // New releases read the bool of old files as an integer.
    expect(
        "tensor/all_dtypes-0.19.params",
        &[
            (19, "loads", ""),
            (25, "silent", "as uint1"),
            (27, "silent", "memory is reserved for only 1"),
        ],
    );
}

#[test]
fn objects_are_held_to_the_types_of_each_release() {
    expect(
        "object/unknown-type-0.16.json",
        &[
            (16, "fails", "it has no type"),
            (19, "fails", "it has no type"),
        ],
    );
    // Every answer is the behaviour of the real release with this number.
    expect(
        "object/ir-0.16.json",
        &[
            (8, "loads", ""),
            (9, "fails", "no attribute `preflattened_buffer_map`"),
            (19, "loads", ""),
            (21, "fails", ""),
        ],
    );
    expect(
        "object/target-0.8.json",
        &[(8, "loads", ""), (19, "fails", ""), (21, "fails", "")],
    );
}

/// Runs the program, and returns its exit code and its output.
fn run(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn nothing_is_written_that_its_release_rejects() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.bin");
    let (library, out) = (
        golden("module/relax-0.16.so"),
        out.to_str().unwrap().to_owned(),
    );
    let library = library.to_str().unwrap();
    let convert = |release: &str| {
        run(&[
            "convert",
            library,
            "--layout",
            "0.7",
            "--release",
            release,
            "-o",
            &out,
        ])
    };
    let (code, text) = convert("0.20");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("tvm 0.20 does not load it"), "{text}");
    assert!(text.contains("`relax.VMExecutable` since 0.20"), "{text}");
    assert!(!Path::new(&out).exists());
    let (code, text) = convert("0.19");
    assert_eq!((code, text.as_str()), (Some(0), ""));
}

#[test]
fn a_name_of_another_system_is_rejected() {
    if !cfg!(target_os = "linux") {
        return skipped("the names are those of other systems than Linux");
    }
    let folder = tempfile::tempdir().unwrap();
    let source = golden("blob/two-imports-0.6.bin");
    for (name, system) in [
        ("lib.dll", "Windows"),
        ("lib.dylib", "macOS"),
        ("lib.obj", "Windows"),
    ] {
        let out = folder.path().join(name);
        let (source, out) = (source.to_str().unwrap(), out.to_str().unwrap());
        let (code, text) = run(&["convert", source, "-o", out]);
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains(&format!("is the name of a file for {system}")),
            "{text}"
        );
        assert!(!Path::new(out).exists());
    }
}
