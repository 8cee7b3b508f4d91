//! Files from users' questions: what each is, and what `explain` concludes.

use super::{ask, compile, golden, outcomes};
use crate::support::skip::skipped;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the program, and returns its exit code and its text on one line.
pub(super) fn print(words: &[&str], file: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code(), words.join(" "))
}

pub(super) fn posted(name: &str) -> std::path::PathBuf {
    golden("blob/posted").join(name)
}

/// Returns the outcome for one release, which every account must share.
pub(super) fn outcome(file: &Path, release: &str) -> String {
    let explained = ask(
        &["explain", "--json", "--elsewhere", "--release", release],
        file,
    );
    let explained = explained.expect("it is explained");
    let mut outcomes: Vec<String> = outcomes(&explained)
        .into_iter()
        .map(|(word, _)| word)
        .collect();
    outcomes.dedup();
    assert_eq!(outcomes.len(), 1, "{release}: {explained:#}");
    outcomes.concat()
}

#[test]
fn the_signature_in_c_text_states_the_convention() {
    let tar = posted("c-host-0.19.tar");
    let (_, text) = print(&["inspect"], &tar);
    assert!(text.contains("tvm 0.7 to 0.20 functions add"), "{text}");
    // The real 0.19 loads and runs it. 0.21 and 0.27 lack the headers that it includes.
    let of = [
        ("0.19", "loads"),
        ("0.8", "loads"),
        ("0.21", "fails"),
        ("0.27", "fails"),
    ];
    for (release, expected) in of {
        assert_eq!(outcome(&tar, release), expected, "{release}");
    }

    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| {
        let file = folder.path().join("lib0.c");
        fs::write(&file, format!("#define TVM_EXPORTS\n{text}")).unwrap();
        file
    };
    // One file for each convention: 0.6 has three parameters, 0.7 six, 0.21 four, 0.22 a prefix.
    let eras = [
        (
            "TVM_DLL int32_t add( void* args,  void* arg_type_ids, int32_t num_args) {\n}\n",
            "..0.6",
        ),
        (
            "TVM_DLL int32_t add(void* args, void* arg_type_ids, int32_t num_args, void* out_ret_value, void* out_ret_tcode,\n    void* resource_handle) {\n}\n",
            "0.7..0.20",
        ),
        (
            "TVM_DLL int32_t add(void* self_handle, void* args, int32_t num_args, void* result) {\n}\n",
            "0.21..0.21",
        ),
        (
            "TVM_DLL int32_t __tvm_ffi_add(void* self_handle, void* args, int32_t num_args, void* result)\n{\n}\n",
            "0.22..",
        ),
    ];
    for (text, releases) in eras {
        let file = write(text);
        let inspected = ask(&["inspect", "--json"], &file).expect("a lone source is read");
        assert_eq!(inspected["parts"][0]["releases"], releases, "{text}");
        assert_eq!(
            inspected["parts"][0]["functions"],
            serde_json::json!(["add"])
        );
        assert_eq!(print(&["verify"], &file).0, Some(0));
        let explained = ask(&["explain", "--json", "--elsewhere"], &file).unwrap();
        let loads = explained[0]["loads"].as_array().unwrap();
        let loading: Vec<&Value> = loads
            .iter()
            .filter(|load| load["outcome"] == "loads")
            .collect();
        assert_eq!(loading.len(), 1, "{explained:#}");
        let shown = loading[0]["releases"]
            .as_str()
            .unwrap()
            .trim_end_matches("..0.21");
        assert!(releases.starts_with(shown), "{releases}: {explained:#}");
    }
    // A declaration defines nothing, and other C is not read, so that neither allows a conclusion.
    for text in [
        "TVM_DLL int32_t add(void* self_handle, void* args, int32_t num_args, void* result);\n",
        "extern int other(void);\nint add(void* self, void* args, int n, void* out) { return 0; }\n",
    ] {
        let file = write(text);
        for release in ["0.19", "0.27"] {
            assert_eq!(outcome(&file, release), "unknown", "{text}");
        }
    }
}

#[test]
fn nothing_is_concluded_from_members_that_were_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#define TVM_EXPORTS\nTVM_DLL int32_t __tvm_ffi_add(void* self_handle, void* args, int32_t num_args, void* result) {\n}\n";
    let read = ("lib0.c", source.as_bytes());
    let unread: [(&str, &[u8]); 4] = [
        (
            "other.c",
            b"extern int other(void);\nint other(void) { return 0; }\n",
        ),
        ("code.s", b"\t.globl add\nadd:\n\tret\n"),
        ("code.ll", b"target triple = \"x86_64-linux-gnu\"\n"),
        ("code.bin", b"\x01\x02\x03\x04\x05\x06\x07\x00\x09"),
    ];
    for member in unread {
        for members in [vec![member], vec![read, member], vec![member, read]] {
            let file = folder.path().join("lib.tar");
            fs::write(&file, tar(&members)).unwrap();
            for release in ["0.8", "0.19", "0.21", "0.27"] {
                let word = outcome(&file, release);
                assert!(
                    word == "unknown" || word == "fails",
                    "{}, {release}: {word}",
                    member.0
                );
            }
        }
    }
    let file = folder.path().join("lib.tar");
    fs::write(&file, tar(&[read])).unwrap();
    assert_eq!(outcome(&file, "0.27"), "loads");
}

/// Creates a tar of these files.
pub(super) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_convention_that_nothing_states_is_unknown() {
    let library = posted("c-host-0.19.so");
    // The C host of 0.21 defines a context symbol, which is missing here. No symbol states the convention itself.
    for (release, expected) in [("0.19", "loads"), ("0.21", "unknown"), ("0.22", "silent")] {
        assert_eq!(outcome(&library, release), expected, "{release}");
    }
}

#[test]
fn what_an_initializer_calls_has_to_be_there() {
    let library = posted("system-lib-0.8.so");
    // The real 0.27 ends the process: `undefined symbol: TVMBackendRegisterSystemLibSymbol`.
    for (release, expected) in [
        ("0.8", "loads"),
        ("0.20", "loads"),
        ("0.21", "silent"),
        ("0.22", "fails"),
        ("0.27", "fails"),
    ] {
        assert_eq!(outcome(&library, release), expected, "{release}");
    }
    // The newer function has the same effect, in objects that are still to be linked.
    let archive = posted("system-0.27.a");
    for (release, expected) in [("0.20", "fails"), ("0.21", "fails"), ("0.27", "loads")] {
        assert_eq!(outcome(&archive, release), expected, "{release}");
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("it compiles libraries as Linux does");
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("data.so");
    let host = "int __tvm_ffi_f(void* self, const void* args, int n, void* out) { return 0; }";
    // A call is bound on first use. An address in data is bound when the library is opened.
    let declared = "void* TVMFFIHandleInitOnce(void);";
    for (use_, expected) in [
        (
            "void* use(void) { return TVMFFIHandleInitOnce(); }",
            "silent",
        ),
        ("void* (*use)(void) = TVMFFIHandleInitOnce;", "fails"),
    ] {
        compile(
            &format!("{declared}\n{use_}\n{host}"),
            &library,
            &["-Wl,-z,lazy"],
        );
        assert_eq!(outcome(&library, "0.22"), expected, "{use_}");
        assert_eq!(outcome(&library, "0.27"), "loads", "{use_}");
    }
}

#[test]
fn several_libraries_in_one_file_are_each_explained() {
    for name in ["two-systems.so", "two-systems.a"] {
        let explained = ask(&["explain", "--json", "--elsewhere"], &posted(name)).unwrap();
        let accounts = explained.as_array().unwrap();
        assert_eq!(accounts.len(), 2, "{name}");
        for (account, prefix) in accounts.iter().zip(["llama_", "phi_"]) {
            let remarks = account["remarks"].to_string();
            assert!(
                remarks.contains(&format!("with the prefix `{prefix}`")),
                "{name}: {remarks}"
            );
        }
        let (_, text) = print(&["inspect"], &posted(name));
        assert!(
            text.contains("llama_") && text.contains("phi_"),
            "{name}: {text}"
        );
    }
    let inspected = ask(&["inspect", "--json"], &posted("two-systems.so")).unwrap();
    let libraries = inspected["parts"][0]["libraries"].as_array().unwrap();
    let prefixes: Vec<&Value> = libraries.iter().map(|library| &library["prefix"]).collect();
    assert_eq!(prefixes, ["llama_", "phi_"]);
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("it compiles libraries as Linux does");
    }
    // A third system library without device code has only a context symbol.
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("three.so");
    let third = "void* solo___tvm_ffi__library_ctx = 0;\nint __tvm_ffi_solo_f(void* s, const void* a, int n, void* r) { return 0; }";
    let archive = posted("two-systems.a").display().to_string();
    let link = ["-Wl,--whole-archive", &archive, "-Wl,--no-whole-archive"];
    compile(third, &library, &link);
    let explained = ask(&["explain", "--json", "--elsewhere"], &library).unwrap();
    let titles: Vec<&str> = explained
        .as_array()
        .unwrap()
        .iter()
        .map(|account| account["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles.len(), 3, "{titles:?}");
    assert!(titles[2].contains("system library `solo_`"), "{titles:?}");
}

#[test]
fn a_library_with_a_runtime_in_it_is_both() {
    let library = posted("function-and-runtime.so");
    let explained = ask(&["explain", "--json", "--elsewhere"], &library).unwrap();
    assert!(
        explained[0]["remarks"]
            .to_string()
            .contains("It is a TVM runtime as well"),
        "{explained:#}"
    );
    for (release, expected) in [("0.21", "silent"), ("0.27", "loads")] {
        assert_eq!(outcome(&library, release), expected, "{release}");
    }
    let (code, text) = print(&["inspect"], &library);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("defines 3 functions of TVM's C interface") && text.contains("functions f"),
        "{text}"
    );
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("it compiles libraries as Linux does");
    }
    let folder = tempfile::tempdir().unwrap();
    let host = "int __tvm_ffi_f(void* self, const void* args, int n, void* out) { return 0; }";
    let runtime = "int TVMFFIFunctionCall(void* f, void* a, int n, void* r) { return 0; }";
    let both = folder.path().join("both.so");
    compile(&format!("{runtime}\n{host}"), &both, &[]);
    assert_eq!(outcome(&both, "0.27"), "loads");
    assert!(print(&["inspect"], &both).1.contains("functions f"));
    // A runtime alone is not a compiled library, and code that only registers functions is not compiled code.
    let alone = folder.path().join("alone.so");
    compile(runtime, &alone, &[]);
    assert_eq!(outcome(&alone, "0.27"), "silent");
    let extension = folder.path().join("extension.so");
    compile(
        "int TVMFFIFunctionSetGlobal(const void*, void*, int);\n__attribute__((constructor)) static void start(void) { TVMFFIFunctionSetGlobal(0, 0, 0); }",
        &extension,
        &[],
    );
    let (_, text) = print(&["explain", "--elsewhere"], &extension);
    assert!(
        text.contains("that registers functions with a TVM runtime"),
        "{text}"
    );
    assert!(!text.contains("as host code"), "{text}");
}

/// A manifest from a user's question about one library for everything: the functions of a runtime as host code, and an OpenCL module.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_packed_library_with_a_runtime_in_it_is_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let runtime = "int TVMFFIEnvModRegisterSystemLibSymbol(const char* n, void* p) { return 0; }
        int TVMFFIFunctionCall(void* f, void* a, int n, void* r) { return 0; }
        int __tvm_ffi_f(void* s, const void* a, int n, void* r) { return 0; }";
    fs::write(path("runtime.c"), runtime).unwrap();
    fs::copy(posted("opencl-kernel.json"), path("kernel.json")).unwrap();
    let device = "imports = [1]\n[[modules]]\nkind = \"opencl\"\ndecoded = \"kernel.json\"\n";
    for (name, code, lines) in [
        ("both.so", "code = \"runtime.c\"\n", "functions f"),
        ("device.so", "", "1 opencl"),
    ] {
        let manifest = format!("layout = \"0.22\"\n[[modules]]\nkind = \"_lib\"\n{code}{device}");
        fs::write(path("modules.toml"), manifest).unwrap();
        let library = path(name);
        let packed = print(
            &["pack", "-o", library.to_str().unwrap()],
            &path("modules.toml"),
        );
        assert_eq!(packed.0, Some(0), "{packed:?}");
        let (code, text) = print(&["inspect"], &library);
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains("import tree 0 _lib") && text.contains(lines),
            "{text}"
        );
        assert_eq!(
            text.contains("defines 2 functions of TVM's C interface"),
            name == "both.so",
            "{text}"
        );
        for (release, expected) in [("0.20", "silent"), ("0.21", "silent"), ("0.27", "loads")] {
            assert_eq!(outcome(&library, release), expected, "{name} in {release}");
        }
    }
}
