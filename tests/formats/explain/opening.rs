//! Obstacles to opening a library, and the places that are searched.

use super::{ask, compile, reply};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn obstacles_to_opening_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let host = "int __tvm_ffi_f(void* self, const void* args, int n, void* out) { return 0; }";

    // A needed library, present and then missing.
    let needed = at("libtvmspec_absent.so");
    let search = format!("-L{}", folder.path().display());
    compile("int absent(void) { return 0; }", &needed, &[]);
    let source = format!("int absent(void);\nint use(void) {{ return absent(); }}\n{host}");
    let library = at("needs.so");
    let link = [search.as_str(), "-ltvmspec_absent"];
    compile(&source, &library, &link);
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("needs libtvmspec_absent.so, which cannot be found here"),
        "{text}"
    );
    // With its folder among the search paths, it is found.
    compile(&source, &library, &[link[0], link[1], "-Wl,-rpath,$ORIGIN"]);
    assert_eq!(reply("0.27", &library).0, Some(0));
    let inspected = ask(&["inspect", "--json"], &library).unwrap();
    let links = inspected["links"].as_array().unwrap();
    assert!(links.contains(&"libtvmspec_absent.so".into()), "{links:?}");

    // A function that only later releases have.
    let library = at("calls.so");
    let source = format!(
        "void* TVMFFIBacktrace(const char*, int, const char*, int);\nvoid* use(void) {{ return TVMFFIBacktrace(0, 0, 0, 0); }}\n{host}"
    );
    compile(&source, &library, &["-Wl,-z,lazy"]);
    assert_eq!(reply("0.22", &library).0, Some(0));
    let plain = source.replace("__tvm_ffi_f", "f");
    compile(&plain, &library, &["-Wl,-z,lazy"]);
    let (code, text) = reply("0.21", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`TVMFFIBacktrace` (from 0.22 on)"), "{text}");

    // The runtime itself, instead of a library for it.
    let library = at("libruntime.so");
    compile("int TVMFFIFunctionCall(void) { return 0; }", &library, &[]);
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("it is the library that loads compiled ones"),
        "{text}"
    );
}

/// Creates a folder below `folder`.
fn folder_of(folder: &Path, name: &str) -> PathBuf {
    let made = folder.join(name);
    fs::create_dir(&made).unwrap();
    made
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn libraries_are_looked_for_in_the_order_of_the_loader() {
    let folder = tempfile::tempdir().unwrap();
    let (own, named, linked) = (
        folder_of(folder.path(), "own"),
        folder_of(folder.path(), "named"),
        folder_of(folder.path(), "linked"),
    );
    // Two libraries have the same name. Only the one on the file's own path has the function.
    let name = "libtvmspec_twice.so";
    compile("int twice(void) { return 0; }", &own.join(name), &[]);
    compile("int other(void) { return 0; }", &named.join(name), &[]);
    let source = "int twice(void);\nint __tvm_ffi_f(void* self, const void* args, int n, void* out) { return twice(); }";
    let search = format!("-L{}", own.display());
    let (newer, older) = (own.join("newer.so"), own.join("older.so"));
    let link = [search.as_str(), "-ltvmspec_twice", "-Wl,-z,now"];
    let with = |tags| [&link[..], &["-Wl,-rpath,$ORIGIN", tags]].concat();
    compile(source, &newer, &with("-Wl,--enable-new-dtags"));
    compile(source, &older, &with("-Wl,--disable-new-dtags"));
    let reply = |file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["explain", "--release", "0.27"])
            .arg(file)
            .env("LD_LIBRARY_PATH", &named)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    // `DT_RPATH` comes before the environment, `DT_RUNPATH` after it.
    assert_eq!(reply(&older).0, Some(0));
    let (code, text) = reply(&newer);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("twice"), "{text}");

    // `$ORIGIN` is the folder in which the file is opened, not the folder of a link's target.
    #[cfg(unix)]
    {
        let link = linked.join("link.so");
        std::os::unix::fs::symlink(&older, &link).unwrap();
        fs::remove_file(named.join(name)).unwrap();
        let (code, text) = reply(&link);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(name), "{text}");
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn what_libraries_need_in_turn_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (deep, near, library) = (
        at("libtvmspec_deep.so"),
        at("libtvmspec_near.so"),
        at("f.so"),
    );
    let search = format!("-L{}", folder.path().display());
    let origin = [search.as_str(), "-Wl,-rpath,$ORIGIN"];
    compile("int deep(void) { return 0; }", &deep, &[]);
    let source = "int deep(void);\nint near(void) { return deep(); }";
    compile(source, &near, &[&origin[..], &["-ltvmspec_deep"]].concat());
    let source = "int near(void);\nint __tvm_ffi_f(void* self, const void* args, int n, void* out) { return near(); }";
    compile(
        source,
        &library,
        &[&origin[..], &["-ltvmspec_near"]].concat(),
    );
    assert_eq!(reply("0.27", &library).0, Some(0));
    fs::remove_file(&deep).unwrap();
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("needs libtvmspec_deep.so (which libtvmspec_near.so needs)"),
        "{text}"
    );
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn versions_of_symbols_are_held_to_the_library_that_is_here() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (versioned, library) = (at("libtvmspec_versioned.so"), at("f.so"));
    let version = |names: &str| {
        let script = at("versions");
        fs::write(&script, names).unwrap();
        let script = format!("-Wl,--version-script={}", script.display());
        compile(
            "int old(void) { return 0; }\nint new(void) { return 0; }",
            &versioned,
            &[&script],
        );
    };
    version("NEAR_1 { old; };\nNEAR_2 { new; } NEAR_1;\n");
    let search = format!("-L{}", folder.path().display());
    let source = "int new(void);\nint __tvm_ffi_f(void* self, const void* args, int n, void* out) { return new(); }";
    compile(
        source,
        &library,
        &[&search, "-Wl,-rpath,$ORIGIN", "-ltvmspec_versioned"],
    );
    assert_eq!(reply("0.27", &library).0, Some(0));
    version("NEAR_1 { old; new; };\n");
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("it needs NEAR_2 of libtvmspec_versioned.so"),
        "{text}"
    );
}
