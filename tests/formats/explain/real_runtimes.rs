//! Files for which `explain` was compared with real runtimes. Each test states the behaviour of those runtimes.

use super::user_files::{outcome, posted, print};
use super::{ask, compile, golden, outcomes, reply};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a file with this name and content, in a folder that lives as long as the result.
fn written(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, content).unwrap();
    (folder, file)
}

/// Returns the reason of the first outcome for one release.
fn why(file: &Path, release: &str) -> String {
    let explained = ask(
        &["explain", "--json", "--elsewhere", "--release", release],
        file,
    );
    outcomes(&explained.unwrap()).remove(0).1
}

/// On x86-64 Linux, `ld` rejects all of these. On their own machine they can be linked and loaded.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn objects_of_another_machine_are_not_for_this_one() {
    let files = [
        (
            "riscv64-0.16.tar",
            "0.16",
            "riscv64, 64 bits, and the linker",
        ),
        ("coff-weak-0.19.o", "0.19", "x86_64, 64 bits of Windows"),
        ("wasm-0.27.o", "0.27", "wasm32, 32 bits"),
        ("wasm-0.27.tar", "0.27", "wasm32, 32 bits"),
    ];
    for (name, release, machine) in files {
        let file = posted(name);
        let explained = ask(&["explain", "--json", "--release", release], &file).unwrap();
        for account in explained.as_array().unwrap() {
            let here = &account["here"];
            assert_eq!(here["good"], false, "{name}");
            let why = here["machine"].as_str().unwrap_or_default();
            assert!(why.contains(machine), "{name}: {why}");
        }
        let (code, text) = reply(release, &file);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("NOT ON THIS MACHINE"), "{text}");
        assert!(!text.contains("loads it, "), "{text}");
        let elsewhere = ask(
            &["explain", "--json", "--elsewhere", "--release", release],
            &file,
        );
        assert_eq!(elsewhere.unwrap()[0]["here"]["good"], true, "{name}");
    }
    let own = ask(&["explain", "--json"], &posted("system-0.27.a")).unwrap();
    assert_eq!(own[0]["here"]["machine"], Value::Null);
}

/// `load_module` of 0.21, 0.22 and 0.27 compiles a tar of 0.19 with its own headers, and fails: `tvm/runtime/c_runtime_api.h: No such
/// file or directory`.
#[test]
fn c_text_needs_the_headers_that_it_includes() {
    let tar = posted("c-host-0.19.tar");
    for release in ["0.8", "0.19", "0.20"] {
        assert_eq!(outcome(&tar, release), "loads", "{release}");
    }
    for release in ["0.21", "0.22", "0.27"] {
        assert_eq!(outcome(&tar, release), "fails", "{release}");
        let why = why(&tar, release);
        assert!(
            why.contains("includes `tvm/runtime/c_runtime_api.h`, a header of tvm 0.2 to 0.20"),
            "{why}"
        );
    }
    let text = "// tvm target: c -keys=cpu\n#include \"tvm/runtime/base.h\"\n#include \"tvm/ffi/extra/c_env_api.h\"\nTVM_DLL int32_t __tvm_ffi_add(void* self_handle, void* args, int32_t num_args, void* result) {\n}\n";
    let (_folder, file) = written("lib0.c", text);
    assert_eq!(outcome(&file, "0.19"), "fails");
    assert!(why(&file, "0.21").contains("c_env_api.h"));
    assert_eq!(outcome(&file, "0.22"), "loads");
    // A commented-out include has no effect.
    let (_folder, file) = written("lib0.c", text.replace("\n#include", "\n// #include"));
    assert_eq!(outcome(&file, "0.19"), "silent");
}

/// 0.8 and 0.9 with LLVM 14 reject text of 0.19 with LLVM 22. 0.19 opens their text, and rejects its data layout at the first look-up.
/// 0.21 calls the functions of 0.19 and crashes.
#[test]
fn whether_llvm_takes_a_text_is_not_known() {
    let text = "; ModuleID = 'TVMMod'\ntarget triple = \"x86_64-unknown-linux-gnu\"\n@__TVMAPISetLastError = linkonce dllexport local_unnamed_addr global ptr null, align 8\ndefine dllexport i32 @copy(ptr %args) {\n}\n";
    let (_folder, old) = written("saved.ll", text);
    let (_folder, new) = written(
        "saved.ll",
        "; ModuleID = 'TVMMod'\ndefine dllexport i32 @__tvm_ffi_copy(ptr %self) {\n}\ndefine internal void @other() {\n}\n",
    );
    for release in ["0.8", "0.19", "0.21", "0.27"] {
        for file in [&old, &new] {
            assert_eq!(outcome(file, release), "unknown", "{release}");
            assert!(why(file, release).contains("version of LLVM"));
        }
    }
    assert!(!why(&old, "0.19").contains("where it does"));
    assert!(why(&old, "0.21").contains("the wrong calling convention"));
    assert!(why(&old, "0.27").contains("names that begin with `__tvm_ffi_`"));
    assert!(why(&new, "0.19").contains("their names begin with `__tvm_ffi_`"));
    assert!(!why(&new, "0.27").contains("where it does"));
}

/// The real 0.19 loads the executable, and `VirtualMachine` fails: "Need to load late-bound-constants before creating VM".
#[test]
fn late_bound_constants_are_in_another_file() {
    let file = golden("payload/relay-late-0.19.ro");
    assert_eq!(outcome(&file, "0.19"), "fails");
    let why = why(&file, "0.19");
    assert!(why.contains("late-bound constants (`"), "{why}");
    assert!(why.contains("`load_late_bound_consts`"), "{why}");
}

/// The real 0.19 loads it. A Relay VM executable states its release, and 0.18 and 0.20 reject it.
#[test]
fn relay_vm_code_is_of_one_release() {
    let file = golden("blob/posted/relay-vm-0.19.so");
    for (release, expected) in [
        ("0.7", "fails"),
        ("0.18", "fails"),
        ("0.19", "loads"),
        ("0.20", "fails"),
        ("0.21", "silent"),
        ("0.27", "silent"),
    ] {
        assert_eq!(outcome(&file, release), expected, "{release}");
    }
    assert!(why(&file, "0.18").contains("its Relay VM code is of 0.19.0"));
    assert!(why(&file, "0.20").contains("no loader `runtime.module.loadbinary_VMExecutable`"));
}

/// The real 0.22 opens a library with CUDA source without an error. Its driver rejects the text at the first kernel.
#[test]
fn cuda_source_is_a_trap_before_0_24() {
    let file = golden("blob/cuda.bin");
    assert_eq!(outcome(&file, "0.22"), "silent");
    assert_eq!(outcome(&file, "0.23"), "silent");
    assert_eq!(outcome(&file, "0.27"), "loads");
    assert!(why(&file, "0.22").starts_with("module 1: its code is CUDA source"));
}

/// The real 0.8, 0.9 and 0.19 find and call the functions of such a library. 0.21 calls them and crashes; 0.22 and 0.27 find none.
#[test]
fn functions_that_nothing_marks_may_be_packed() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("three.so");
    let function = |name: &str| {
        format!("int {name}(void* a, int* b, int c, void* d, int* e, void* f) {{ return 0; }}\n")
    };
    compile(&[function("f0"), function("f1")].concat(), &library, &[]);
    for release in ["0.8", "0.19", "0.21"] {
        assert_eq!(outcome(&library, release), "unknown", "{release}");
    }
    for release in ["0.22", "0.27"] {
        assert_eq!(outcome(&library, release), "silent", "{release}");
    }
    let empty = folder.path().join("empty.so");
    compile("static int unused;\n", &empty, &[]);
    assert_eq!(outcome(&empty, "0.19"), "silent");
}

/// The real 0.19 loads a library of BYOC's `ccompiler`, which calls `tvm::runtime::Object` of libtvm.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn cpp_functions_of_tvm_are_those_of_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("external.so");
    let source = "int _ZNK3tvm7runtime6Object11DerivedFromEj(void*, unsigned);\nint _ZN3other4callEv(void);\nint TVMAPISetLastError(const char*);\nvoid* __tvm_module_ctx;\nint f(void* a) { TVMAPISetLastError(0); return _ZNK3tvm7runtime6Object11DerivedFromEj(a, 0); }\n";
    compile(source, &library, &["-Wl,-z,lazy"]);
    let (code, text) = reply("0.19", &library);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("it calls C++ functions of TVM"), "{text}");
    // A function that does not belong to TVM is missing.
    compile(
        &source.replace("return _Z", "_ZN3other4callEv(); return _Z"),
        &library,
        &["-Wl,-z,lazy"],
    );
    let (code, text) = reply("0.19", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("it calls `_ZN3other4callEv`, which"),
        "{text}"
    );
}

/// The real 0.21 loads a saved tensor.
#[test]
fn tensors_of_0_21_are_loaded_by_it() {
    let text = r#"{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "ffi.NDArray", "repr_str": "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAAAAAAAAgD8="}], "b64ndarrays": [], "attrs": {"tvm_version": "0.21.dev0"}}"#;
    let (_folder, file) = written("tensor.json", text);
    assert_eq!(outcome(&file, "0.21"), "loads");
}

/// Real releases use the last of two members: 0.19, 0.21 and 0.22 to 0.27 for objects, 0.19, 0.21 and 0.27 for tensor caches. 0.19 and
/// 0.21 read those with picojson.
#[test]
fn the_last_of_two_members_counts() {
    let old = r#"{"root": 0, "root": 1, "nodes": [{"type_key": ""}, {"type_key": "runtime.String", "repr_str": "a"}], "b64ndarrays": [], "attrs": {"tvm_version": "0.19.0"}}"#;
    let new = r#"{"root_index": 0, "nodes": [{"type": "None", "type": "int", "data": 1}], "metadata": {"tvm_version": "0.27.0"}}"#;
    let (_folder, old) = written("old.json", old);
    let (_folder, new) = written("new.json", new);
    for (file, release, member) in [
        (&old, "0.19", "`root`"),
        (&new, "0.22", "`type`"),
        (&new, "0.27", "`type`"),
    ] {
        assert_eq!(outcome(file, release), "silent", "{release}");
        let why = why(file, release);
        assert!(
            why.contains("the last of both") && why.contains(member),
            "{why}"
        );
        assert_eq!(print(&["verify"], file).0, Some(0));
    }
    let from = golden("tensor/cache-0.27");
    let text = fs::read_to_string(from.join("tensor-cache.json")).unwrap();
    let (folder, cache) = written(
        "tensor-cache.json",
        text.replacen("\"dtype\":", "\"dtype\": \"int8\", \"dtype\":", 1),
    );
    for shard in 0..3 {
        let name = format!("params_shard_{shard}.bin");
        fs::copy(from.join(&name), folder.path().join(&name)).unwrap();
    }
    assert_eq!(outcome(&cache, "0.27"), "silent");
}

/// A graph with one input.
const GRAPH: &str = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "node_row_ptr": [0, 1], "heads": [[0, 0, 0]], "attrs": {"dltype": ["list_str", ["float32"]], "shape": ["list_shape", [[2]]], "storage_id": ["list_int", [0]]}}"#;

/// The real 0.8, 0.9 and 0.19 agree on each text: they created an executor, or an error said why not.
#[test]
fn texts_of_graphs_are_read_as_releases_read_them() {
    let edits = [
        (r#""x""#, r#""\n\t\r\"\\""#, "accepts"),
        (r#""x""#, r#""\u0041""#, "rejects"),
        (r#""x""#, r#""\/""#, "rejects"),
        (r#""x""#, r#""\b""#, "rejects"),
        (r#""x""#, r#""\f""#, "rejects"),
        (r#""x""#, r#""\x""#, "rejects"),
        (r#""x""#, "\"\u{1}\t\u{7f}\"", "accepts"),
        (r#""x""#, "\"\n\"", "rejects"),
        (r#""x""#, "\"é\"", "accepts"),
        (r#"["list_int", [0]]"#, r#"["list_int", [+0]]"#, "accepts"),
        ("[[2]]", "[[02]]", "accepts"),
        ("[[2]]", "[[2.]]", "rejects"),
        ("[[2]]", "[[2.0]]", "rejects"),
        ("[[2]]", "[[2e0]]", "rejects"),
        ("[[2]]", "[[0x2]]", "rejects"),
        ("[0, 0, 0]", "[0 0 0]", "rejects"),
        (r#""arg_nodes": [0]"#, r#""arg_nodes": [0,]"#, "rejects"),
        (r#""arg_nodes": [0], "#, r#""arg_nodes": [0] "#, "rejects"),
        ("[0]]}}", "[0]]},}", "rejects"),
        (r#""arg_nodes": "#, r#""arg_nodes" "#, "rejects"),
        (r#""arg_nodes": [0]"#, r#""arg_nodes": [0}"#, "rejects"),
        (r#""inputs": []}"#, r#""inputs": []]"#, "rejects"),
        ("[0]]}}", "[0]]}", "accepts"),
        ("[0]]}}", "[0]]", "accepts"),
        ("[0]]}}", "[0", "accepts"),
        ("[0]]}}", "[", "rejects"),
        (r#""arg_nodes""#, "'arg_nodes'", "rejects"),
        (r#""arg_nodes""#, r#"/* */ "arg_nodes""#, "rejects"),
        (r#""arg_nodes""#, "\u{c}\"arg_nodes\"", "accepts"),
        ("[0]]}}", "[0]]}}x", "accepts"),
        ("[0]]}}", "[0]]}, \"metadata\": !!!", "accepts"),
        ("[0]]}}", "[0]]}, \"metadata\": {\"a", "accepts"),
        ("[0]]}}", "[0]]}, \"metadata\"", "rejects"),
        ("[0]]}}", "[0]]}, \"metadata", "rejects"),
        ("\"heads\"", "\"metadata\": {}, \"heads\"", "rejects"),
    ];
    let (_folder, file) = written("graph.json", GRAPH);
    assert_eq!(outcome(&file, "0.19"), "loads");
    for (from, to, did) in edits {
        let text = GRAPH.replacen(from, to, 1);
        assert_ne!(text, GRAPH, "{from}");
        fs::write(&file, text).unwrap();
        for release in ["0.8", "0.9", "0.19"] {
            let outcome = outcome(&file, release);
            let fits = match did {
                "accepts" => outcome == "loads" || outcome == "silent",
                _ => outcome == "fails",
            };
            assert!(
                fits,
                "{from} -> {to}: {release} {did} it, {outcome}: {}",
                why(&file, release)
            );
        }
    }
    // Releases before 0.6 do not know the member.
    fs::write(
        &file,
        GRAPH.replacen("[0]]}}", "[0]]}, \"metadata\": !!!", 1),
    )
    .unwrap();
    assert_eq!(outcome(&file, "0.5"), "fails");
}

/// The payload of a vendor's kind is guessed: no fault is known, but the content is uncertain.
#[test]
fn a_kind_that_was_guessed_ends_with_2() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/forms/vendor-shl_json-0.9.so");
    let elsewhere = ["explain", "--elsewhere"];
    for words in [
        ["verify"].as_slice(),
        &["verify", "--json"],
        &elsewhere,
        &["explain", "--elsewhere", "--json"],
        &["explain", "--elsewhere", "--release", "0.9"],
    ] {
        let (code, text) = print(words, &file);
        assert_eq!(code, Some(2), "{words:?}: {text}");
        assert!(text.contains("which is a guess"), "{text}");
        assert!(text.contains("--grammar shl_json=KNOWN"), "{text}");
    }
    // The answer for its own release is certain.
    let (code, _) = print(&["explain", "--elsewhere", "--release", "0.27"], &file);
    assert_eq!(code, Some(1));
    // With a stated grammar, it is read like any other kind.
    let stated = ["--grammar", "shl_json=dnnl_json"];
    assert_eq!(
        print(&[&["verify"], stated.as_slice()].concat(), &file).0,
        Some(0)
    );
    assert_eq!(
        print(&[elsewhere.as_slice(), &stated].concat(), &file).0,
        Some(0)
    );
}
