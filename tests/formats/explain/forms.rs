//! Recognition of files: packages, objects for other machines, WebAssembly, files of other programs, truncated files.

use super::user_files::{outcome, posted, print, tar};
use super::{ask, golden};
use std::fs;

#[test]
fn packages_are_recognised_by_their_members() {
    let (_, text) = print(&["explain"], &posted("tvmc-0.19.tar"));
    for words in [
        "package of tvmc",
        "`tvmspec run --graph mod.json --params mod.params --lib mod.so`",
        "tvm 0.2 to 0.20 loads it",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("cc -shared"), "{text}");
    let object = fs::read(golden("blob/containers/devc-0.8.o")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let explain = |members: &[(&str, &[u8])]| {
        let file = folder.path().join("package.tar");
        fs::write(&file, tar(members)).unwrap();
        print(&["explain", "--elsewhere"], &file).1
    };
    let model: [(&str, &[u8]); 4] = [
        ("./metadata.json", b"{\"version\": 7}"),
        ("./codegen/host/lib/lib0.o", &object),
        ("./codegen/host/src/lib0.c", b"#include <math.h>\n"),
        ("./src/relay.txt", b"def @main() {}"),
    ];
    assert!(explain(&model).contains("it is in Model Library Format"));
    let inner = tar(&[("lib0.o", &object)]);
    let text = explain(&[
        ("mod.tar", &inner),
        ("mod.json", b"{\"nodes\": []}"),
        ("mod.params", b""),
    ]);
    assert!(
        text.contains("--lib mod.tar") && text.contains("Python links that archive itself"),
        "{text}"
    );
    let text = explain(&[("lib.tar", &inner)]);
    assert!(text.contains("a library of the Relay VM"), "{text}");
}

#[test]
fn the_advice_names_the_machine_and_its_compiler() {
    let mixed = golden("blob/containers/mixed-machines.a");
    let (_, text) = print(&["explain"], &mixed);
    let words = "`devc-0.8.o` is for x86_64, 64 bits, `elf-aarch64.o` for aarch64, 64 bits";
    assert!(text.contains(words), "{text}");
    assert_eq!(outcome(&mixed, "0.8"), "fails");
    assert!(print(&["verify"], &mixed).1.contains("BLOB-76"));
    let (_, text) = print(&["explain"], &posted("riscv64-0.16.tar"));
    let words = "sources for riscv64, 64 bits. Unpack it and link its members into a library first: `tar -xf FILE.tar` in an empty folder, then `riscv64-linux-gnu-gcc -shared -fPIC -o lib.so`";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("which cannot link this code"), "{text}");
    for (name, words) in [
        (
            "elf-aarch64.o",
            ["for aarch64, 64 bits", "`aarch64-linux-gnu-gcc -shared"],
        ),
        (
            "macho-arm64.o",
            ["for aarch64, 64 bits", "`clang -arch arm64 -shared"],
        ),
        (
            "coff-x86_64.obj",
            [
                "for x86_64, 64 bits",
                "`clang --target=x86_64-pc-windows-msvc -shared",
            ],
        ),
    ] {
        let file = golden("blob/containers").join(name);
        let (_, text) = print(&["explain"], &file);
        for word in words {
            assert!(text.contains(word), "{name}: {word}: {text}");
        }
    }
    let (_, text) = print(&["explain"], &posted("plain-0.27.a"));
    assert!(text.contains("It is no system library"), "{text}");
    let (_, text) = print(&["explain"], &posted("system-0.27.a"));
    assert!(
        text.contains("It is built as a system library without a prefix"),
        "{text}"
    );
}

#[test]
fn webassembly_objects_are_read() {
    for name in ["wasm-0.27.o", "wasm-0.27.tar"] {
        let (code, text) = print(&["inspect"], &posted(name));
        assert_eq!(code, Some(0), "{text}");
        for words in [
            "machine wasm32, 32 bit",
            "era tvm 0.22 and later",
            "functions add",
            "needs TVMFFIErrorSetRaisedFromCStrParts",
        ] {
            assert!(text.contains(words), "{name}: {words}: {text}");
        }
        let (_, text) = print(&["explain"], &posted(name));
        assert!(text.contains("emcc"), "{text}");
    }
    // A system library without imports registers itself with the runtime of 0.22 and later.
    for name in ["web-main-0.27.o", "web-main-0.27.tar"] {
        let (code, text) = print(&["inspect"], &posted(name));
        assert_eq!(code, Some(0), "{text}");
        for words in ["machine wasm32, 32 bit", "functions addone, main"] {
            assert!(text.contains(words), "{name}: {words}: {text}");
        }
        assert_eq!(outcome(&posted(name), "0.21"), "fails", "{name}");
        assert_eq!(outcome(&posted(name), "0.27"), "loads", "{name}");
        let (_, text) = print(&["explain"], &posted(name));
        assert!(
            text.contains("NOT LOADABLE AS IT IS: it is a")
                && text.contains("create_tvmjs_wasm")
                && text.contains("built as a system library without a prefix"),
            "{name}: {text}"
        );
    }
    // A system library for the browser. Its library binary is a data symbol in a separate segment.
    for name in ["web-system-0.27.o", "web-system-0.27.tar"] {
        let (code, text) = print(&["inspect"], &posted(name));
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("prefix llama_ (system library)"), "{text}");
        assert!(
            text.contains("1 webgpu") && text.contains("import tree"),
            "{name}: {text}"
        );
        assert_eq!(print(&["verify"], &posted(name)).0, Some(0));
    }
    let (_, text) = print(&["inspect"], &posted("web-system-0.27.wasm"));
    assert!(text.contains("functions llama_main"), "{text}");
    let bytes = fs::read(posted("wasm-0.27.o")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.o");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let (code, text) = print(&["verify"], &cut);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("BLOB-55"), "{text}");
    // The output of a linker: a module with an export.
    let module = folder.path().join("lib.wasm");
    let linked = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x11\x01\x0d__tvm_ffi_add\0\0\x0a\x04\x01\x02\0\x0b";
    fs::write(&module, linked).unwrap();
    let (_, text) = print(&["inspect"], &module);
    assert!(
        text.contains("WebAssembly module") && text.contains("functions add"),
        "{text}"
    );
    assert_eq!(outcome(&module, "0.27"), "fails");
}

#[test]
fn files_of_other_programs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |bytes: &[u8]| {
        let file = folder.path().join("posted");
        fs::write(&file, bytes).unwrap();
        let (code, text) = print(&["explain"], &file);
        assert_eq!(code, Some(2), "{text}");
        assert!(!text.contains("of no form that TVM writes"), "{text}");
        text
    };
    let read = |name: &str| fs::read(posted(name)).unwrap();
    let files: [(Vec<u8>, &str); 14] = [
        (read("mxnet.params"), "a parameter file of MXNet"),
        (read("labels.json"), "its members are `0`, `1`"),
        (b"\x93NUMPY\x01\0".to_vec(), "one array of numpy"),
        (
            b"PK\x03\x04\x14\0\0\0\0\0in_x.npy\x93NUMPY".to_vec(),
            "arrays of numpy (npz)",
        ),
        (
            b"PK\x03\x04\x14\0\0\0\0\0archive/data.pkl".to_vec(),
            "PyTorch",
        ),
        (
            b"\x80\x04\x95\x10\0\0\0\0\0\0\0}.".to_vec(),
            "a pickle of Python",
        ),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 120000\n".to_vec(),
            "git-lfs, and the file itself (120000 bytes) is not here",
        ),
        (
            b"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}".to_vec(),
            "safetensors",
        ),
        (b"\x08\x07\x12\x07pytorch\x1a\x051.0.0".to_vec(), "ONNX"),
        (b"\x1c\0\0\0TFL3\0\0".to_vec(), "TensorFlow Lite"),
        (b"<!DOCTYPE html><html></html>".to_vec(), "a page of HTML"),
        (b"\xff\xfe{\0\"\0".to_vec(), "UTF-16"),
        (vec![0; 4000], "zeros from the first byte"),
        (
            b"{\"model_type\": \"llama\"".to_vec(),
            "a beginning of JSON",
        ),
    ];
    for (bytes, words) in files {
        let text = said(&bytes);
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_graph_that_is_cut_or_marked_is_held_to_its_rules() {
    let (code, text) = print(&["verify"], &posted("graph-cut.json"));
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("error: ") && text.contains("[GRF-") && text.contains("byte"),
        "{text}"
    );
    let whole = fs::read(golden("graph/mlp.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.json");
    fs::write(&file, [b"\xef\xbb\xbf", &whole[..]].concat()).unwrap();
    let (code, text) = print(&["verify"], &file);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("[GRF-"), "{text}");
    // Truncated anywhere after the start of its first list.
    for length in [12, 40, 100, whole.len() / 2, whole.len() - 2] {
        fs::write(&file, &whole[..length]).unwrap();
        let (code, text) = print(&["verify"], &file);
        assert_eq!(code, Some(1), "{length}: {text}");
        assert!(text.contains("[GRF-"), "{length}: {text}");
    }
}

#[test]
fn default_symbols_of_coff_are_no_functions() {
    let inspected = ask(&["inspect", "--json"], &posted("coff-weak-0.19.o")).unwrap();
    assert_eq!(
        inspected["parts"][0]["functions"],
        serde_json::json!(["add"])
    );
}
