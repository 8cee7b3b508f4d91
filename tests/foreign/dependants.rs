//! Foreign programs: a Rust program that depends on this crate, and a Python that opens the C library like `ctypes`. The dynamic
//! linker does not export our functions there, but the libraries that they load must still call them (MOD-05, MOD-26).
#![cfg(feature = "runtime")]

use crate::support::cargo;
use crate::support::skip::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

const ADDED: &str = "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn golden(name: &str) -> PathBuf {
    root().join("golden/module").join(name)
}

/// Checks whether this machine can run the golden libraries, which are compiled for x86-64 Linux.
fn runs_here() -> bool {
    let runs = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if !runs {
        skipped("the golden libraries are for x86-64 Linux");
    }
    runs
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    format!(
        "{}{error}{}",
        String::from_utf8_lossy(&output.stdout),
        output.status
    )
}

/// Builds `examples/embed.rs` in a package that depends on this crate with one feature.
fn dependant() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let table = format!(
            "[package]\nname = \"dependant\"\nedition = \"2024\"\n\n[[bin]]\nname = \"dependant\"\npath = \"main.rs\"\n\n\
             [dependencies]\ntvmspec = {{ path = {:?}, default-features = false, features = [\"runtime\"] }}\n\n\
             [profile.dev]\ndebug = \"line-tables-only\"\n",
            root()
        );
        fs::write(folder.path().join("Cargo.toml"), table).unwrap();
        fs::copy(root().join("examples/embed.rs"), folder.path().join("main.rs")).unwrap();
        // The lock file pins the versions that are already downloaded.
        fs::copy(root().join("Cargo.lock"), folder.path().join("Cargo.lock"))
            .map_err(|_| "the package has no Cargo.lock")?;
        cargo::program(folder.path(), "dependant")
    });
    match built {
        Ok(program) => Some(program),
        Err(why) => {
            skipped(why);
            None
        }
    }
}

fn runs(program: &Path, library: &Path) -> Output {
    Command::new(program).arg(library).output().unwrap()
}

/// Compiles C code to a library, with additional compiler `flags`.
fn compiled(folder: &Path, name: &str, code: &str, flags: &[&str]) -> Option<PathBuf> {
    let (source, library) = (
        folder.join(format!("{name}.c")),
        folder.join(format!("{name}.so")),
    );
    fs::write(&source, code).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source);
    match compiler.args(flags).status() {
        Ok(status) => {
            assert!(status.success(), "{name}.c");
            Some(library)
        }
        Err(why) => {
            skipped(format_args!("there is no C compiler: {why}"));
            None
        }
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_dependant_calls_and_reads_why_a_call_failed() {
    let Some(program) = dependant() else { return };
    let text = text(&runs(program, &golden("host-0.27.so")));
    assert!(text.contains(&format!("main(0 .. 11) = {ADDED}")), "{text}");
    let failed = "main of three numbers fails: ValueError: Invalid A.shape[0] on argument #0";
    assert!(
        text.contains(failed) && text.ends_with("exit status: 0"),
        "{text}"
    );
}

/// Constructors, addresses in data and immediate binding all need the functions before `dlopen` returns.
#[test]
fn a_library_is_bound_before_it_runs() {
    const CODE: &str = "
        int TVMFFIFunctionGetGlobal(const void*, void**);
        void TVMFFIErrorSetRaisedFromCStr(const char*, const char*);
        static int began = 1;
        int (*in_data)(const void*, void**) = TVMFFIFunctionGetGlobal;
        __attribute__((constructor)) static void begin(void) {
            struct { const char* text; unsigned long size; } name = {\"no.such.function\", 16};
            void* found = &name;
            began = in_data(&name, &found) == 0 && !found && !TVMFFIFunctionGetGlobal(&name, &found) && !found;
        }
        int __tvm_ffi_main(void* self, const void* args, int count, void* result) {
            TVMFFIErrorSetRaisedFromCStr(\"KeyError\", began ? \"began well\" : \"began badly\");
            return -1;
        }";
    let Some(program) = dependant().filter(|_| runs_here()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, flags) in [
        ("lazy", "-Wl,-z,lazy"),
        ("now", "-Wl,-z,now,-z,relro"),
        ("direct", "-fno-plt"),
    ] {
        let Some(library) = compiled(folder.path(), name, CODE, &[flags]) else {
            return;
        };
        let text = text(&runs(program, &library));
        assert!(
            text.contains("KeyError") && text.contains("began well"),
            "{name}: {text}"
        );
    }
}

/// A library stays usable if an undefined function is never called. Immediate binding would reject the library.
#[test]
fn what_else_is_missing_waits_until_it_is_called() {
    const CODE: &str = "
        void TVMFFIErrorSetRaisedFromCStr(const char*, const char*);
        int no_such_function_of_any_library(void);
        int __tvm_ffi_main(void* self, const void* args, int count, void* result) {
            if (count > 100) return no_such_function_of_any_library();
            TVMFFIErrorSetRaisedFromCStr(\"KeyError\", \"called\");
            return -1;
        }";
    let Some(program) = dependant().filter(|_| runs_here()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compiled(folder.path(), "lazy", CODE, &["-Wl,-z,lazy"]) else {
        return;
    };
    let text = text(&runs(program, &library));
    assert!(
        text.contains("KeyError") && text.contains("called"),
        "{text}"
    );
}

#[test]
fn a_library_of_another_runtime_is_rejected_when_it_is_loaded() {
    const CODE: &str = "
        int TVMFFINoRelease(void);
        int __tvm_ffi_main(void* self, const void* args, int count, void* result) { return TVMFFINoRelease(); }";
    const CXX: &str = "
        int _ZN3tvm3ffi7nothingEv(void);
        int __tvm_ffi_main(void* self, const void* args, int count, void* result) { return _ZN3tvm3ffi7nothingEv(); }";
    let Some(program) = dependant().filter(|_| runs_here()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, code, flag, expected) in [
        ("lazy", CODE, "-Wl,-z,lazy", "TVMFFINoRelease"),
        ("now", CODE, "-Wl,-z,now", "No release up to 0.27"),
        ("cxx", CXX, "-Wl,-z,lazy", "C++ of the runtime"),
    ] {
        let Some(library) = compiled(folder.path(), name, code, &[flag]) else {
            return;
        };
        let text = text(&runs(program, &library));
        assert!(
            text.contains(" needs ") && text.contains(expected),
            "{name}: {text}"
        );
        assert!(text.ends_with("exit status: 1"), "{name}: {text}");
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn ctypes_opens_the_c_library_as_it_does_by_default() {
    let library = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let python = env::var_os("TVMSPEC_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python)
        .arg(root().join("examples/python/load.py"))
        .arg(library)
        .args([golden("host-0.8.so"), golden("host-0.27.so")])
        .output();
    let output = match output {
        Ok(output) => text(&output),
        Err(why) => return skipped(format_args!("there is no Python: {why}")),
    };
    for expected in [
        "twice(21) = 42",
        &format!("add1 of host-0.8.so = {ADDED}"),
        &format!("main of host-0.27.so = {ADDED}"),
        "main of host-0.27.so, once more with 3 numbers: ValueError: Invalid A.shape[0] on argument #0",
    ] {
        assert!(output.contains(expected), "no `{expected}` in\n{output}");
    }
    assert!(output.ends_with("exit status: 0"), "{output}");
}
