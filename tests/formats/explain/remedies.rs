//! Advice to users: it must work, or it must not be given.

use super::golden;
use super::user_files::{outcome, posted, print, tar};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the program, and returns its exit code and its output.
fn tvmspec(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into())
}

#[test]
fn a_target_that_is_told_is_accepted() {
    let here = Path::new(".");
    let told = |text: &str| {
        let (code, said) = tvmspec(&["target", text, "--release", "0.27"], here);
        assert_eq!(code, Some(1), "{text}: {said}");
        let line = said.lines().find(|line| line.starts_with("instead"));
        line.unwrap_or_else(|| panic!("{text}: {said}")).to_owned()
    };
    for (text, kept) in [
        (
            "llvm -target=aarch64-linux-gnu",
            "\"mtriple\":\"aarch64-linux-gnu\"",
        ),
        ("metal -max_threads=3", "\"max_num_threads\":3"),
        ("cuda -unroll=3", "0.27 has no option `unroll`"),
        ("arm_cpu -device=rasp3b", "\"device\":\"arm_cpu\""),
        ("arm_cpu", "\"device\":\"arm_cpu\""),
        ("intel_graphics", "\"device\":\"intel_graphics\""),
        (
            "c -executor=aot -interface-api=c",
            "`interface-api` is no option",
        ),
        (
            r#"{"kind": "llvm", "target": "x86_64"}"#,
            "\"mtriple\":\"x86_64\"",
        ),
    ] {
        let line = told(text);
        assert!(line.contains(kept), "{text}: {line}");
        let json = &line[line.find('{').unwrap()..=line.find('}').unwrap()];
        let (code, said) = tvmspec(&["target", json, "--release", "0.27"], here);
        assert_eq!(code, Some(0), "{json}: {said}");
    }
    assert!(told("nvidia/geforce-rtx-4909").contains("are `nvidia/geforce-rtx-4090`"));
    assert!(told("nvidia/rtx-4090x").contains("are `nvidia/geforce-rtx-4090`"));
    for other in ["micro", "sdaccel"] {
        assert!(
            told(other).contains("the kinds that 0.27 has are "),
            "{other}"
        );
    }
    let line = told("llvm, c");
    assert!(
        line.contains("`llvm`, `c` is a target of its own"),
        "{line}"
    );
}

#[test]
fn a_package_is_told_by_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let explain = |members: &[(&str, &[u8])]| {
        let file = folder.path().join("package.tar");
        fs::write(&file, tar(members)).unwrap();
        let fails = outcome(&file, "0.19") == "fails";
        (print(&["explain", "--elsewhere"], &file).1, fails)
    };
    let graph = fs::read(golden("graph/mlp.json")).unwrap();
    let relax = fs::read(golden("eras/0.16/relax-vm.so")).unwrap();
    let library = fs::read(golden("graph/models/v0.8/mlp.kernels.so")).unwrap();
    let (text, _) = explain(&[("lib.so", &relax)]);
    assert!(text.contains("the library of a Relax VM"), "{text}");
    let (text, _) = explain(&[("mod.so", &library), ("mod.json", &graph)]);
    assert!(text.contains("--graph mod.json --lib mod.so"), "{text}");
    assert!(!text.contains("--params"), "{text}");
    let (text, fails) = explain(&[("a.json", &graph), ("b.json", &graph)]);
    assert!(text.contains("an archive without code"), "{text}");
    assert!(fails && !text.contains("SILENT TRAP"), "{text}");
    let (_, text) = print(&["explain"], &golden("blob/containers/mixed-machines.a"));
    assert!(!text.contains("Link it into a library first"), "{text}");
}

#[test]
fn web_code_is_found_in_the_system_library_alone() {
    for name in ["wasm-0.27.o", "wasm-0.27.tar"] {
        let file = posted(name);
        assert_eq!(outcome(&file, "0.27"), "silent", "{name}");
        let (_, text) = print(&["explain"], &file);
        assert!(text.contains("create_tvmjs_wasm"), "{text}");
        assert!(text.contains("It is no system library"), "{text}");
    }
    let (_, text) = print(&["explain"], &posted("web-system-0.27.o"));
    assert!(text.contains("create_tvmjs_wasm"), "{text}");
    assert!(!text.contains("It is no system library"), "{text}");
    assert!(!text.contains("tvmjs instantiates"), "{text}");
    // Native objects get advice too.
    let (_, text) = print(&["explain"], &posted("riscv64-0.16.tar"));
    assert!(text.contains("It is no system library"), "{text}");
}

#[test]
fn what_is_written_is_explained_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let archive = golden("vm/unknown-builtin-0.27.tar");
    let archive = archive.to_str().unwrap();
    let words = ["convert", archive, "--release", "0.27", "-o", "x.so"];
    let (code, said) = tvmspec(&words, folder.path());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("vm.builtin.no_such_thing"), "{said}");
    // Code for another machine cannot become code for this machine.
    let riscv = posted("riscv64-0.16.tar");
    let words = ["convert", riscv.to_str().unwrap(), "-o", "x.o"];
    let (_, said) = tvmspec(&words, folder.path());
    assert!(said.contains("code of the input is for riscv64"), "{said}");
    let here = golden("blob/containers/opencl_root-0.8.so");
    let words = ["convert", here.to_str().unwrap(), "-o", "y.o"];
    let (_, said) = tvmspec(&words, folder.path());
    assert!(!said.contains("code of the input"), "{said}");
    // All commands share one list of extensions: an object of Windows may contain host code too.
    fs::write(folder.path().join("host.c"), "int f(void) { return 0; }\n").unwrap();
    let manifest = r#"{"layout": "0.22", "modules": [{"kind": "_lib", "code": "host.c"}]}"#;
    fs::write(folder.path().join("m.json"), manifest).unwrap();
    for words in [
        [
            "pack",
            "m.json",
            "-o",
            "lib.obj",
            "--target",
            "x86_64-pc-windows-msvc",
        ],
        ["pack", "m.json", "-o", "lib.cc", "--layout", "0.22"],
    ] {
        let (_, said) = tvmspec(&words, folder.path());
        assert!(!said.contains("does not state the form"), "{said}");
    }
    let graph = golden("graph/mlp.json");
    let graph = graph.to_str().unwrap();
    let (code, said) = tvmspec(&["explain", graph, "--lib", graph], folder.path());
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("is no library: its form is graph JSON"),
        "{said}"
    );
}

#[test]
fn files_of_other_programs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, says) in [
        ("m.relay", &b"#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1), float32]) { %x }\n"[..], "text of Relay"),
        ("tune.log", b"{\"input\": [\"llvm\"], \"config\": {}, \"result\": [], \"version\": 0.2}\n{\"input\": []}\n", "a tuning log of AutoTVM"),
        ("old.log", b"{\"i\": [\"llvm\"], \"r\": [], \"v\": 0.1}\n{}\n", "a tuning log of AutoTVM"),
        ("ansor.log", b"{\"i\": [[\"llvm\"]], \"r\": [[0], 0], \"v\": \"v0.6\"}\n{}\n", "a tuning log of the auto-scheduler"),
        ("lib.s", b"\t.text\n\t.file\t\"main\"\n\t.globl\t__tvm_ffi_add\n__tvm_ffi_add:\n", "assembly"),
        ("a.tar.bz2", b"BZh91AY&SY\0\x01", "under bzip2"),
        ("a.tar.xz", b"\xfd7zXZ\0\0\x04", "under xz"),
        ("a.tar.zst", b"\x28\xb5\x2f\xfd\x04\0", "under zstd"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "7-Zip"),
        ("net.prototxt", b"name: \"a\"\nlayer {\n  name: \"b\"\n}\n", "a model of Caffe"),
        ("net.xml", b"<?xml version=\"1.0\"?>\n<net name=\"a\"></net>\n", "OpenVINO"),
        ("frozen.pb", b"\n\x1c\n\x05input\x12\x0bPlaceholder*\x06\n\x01a\x12\x010", "a model of TensorFlow"),
        ("saved_model.pb", b"\x08\x01\x12\x90\x01\n\x14\n\x0bVarHandleOp\x12\x05dtype", "a model of TensorFlow"),
        ("net.mlmodel", b"\x08\x04\x12\x40\n\x10\n\x05image com.github.apple.coremltools.version", "a model of Core ML"),
        ("p.pkl", b"(dp0\nVw\np1\n", "a pickle of Python"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let (code, text) = print(&["inspect"], &file);
        assert_eq!(code, Some(2), "{name}: {text}");
        assert!(text.contains(says), "{name}: {text}");
    }
    for (name, content, says) in [
        (
            "a.cc",
            "#include <tvm/ffi/tvm_ffi.h>\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one, AddOne);\n",
            "exports `add_one` by the macro `TVM_FFI_DLL_EXPORT_TYPED_FUNC`",
        ),
        (
            "b.cc",
            "#include <tvm/runtime/packed_func.h>\nTVM_DLL_EXPORT_TYPED_FUNC(one, f);\nTVM_DLL_EXPORT_TYPED_FUNC(two, f);\n",
            "exports `one`, `two`",
        ),
        (
            "c.c",
            "int __tvm_ffi_f(void* s, const void* a, int n, void* r){ return 0; }\n",
            "C text",
        ),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        assert_eq!(outcome(&file, "0.27"), "unknown", "{name}");
        let (_, text) = print(&["explain"], &file);
        assert!(text.contains(says), "{name}: {text}");
    }
    let index = fs::read(golden("tensor/cache-0.27/tensor-cache.json")).unwrap();
    let file = folder.path().join("tensor-cache.json");
    fs::write(&file, [b"\xef\xbb\xbf", &*index].concat()).unwrap();
    let (_, text) = print(&["verify"], &file);
    assert!(text.contains("begins with a byte order mark"), "{text}");
}
