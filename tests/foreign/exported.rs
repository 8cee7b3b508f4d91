//! Libraries that we export, loaded and run by this crate, by the wheel of 0.27 (`TVMSPEC_PYTHON`) and by the package of 0.16.dev0
//! (`TVMSPEC_PYTHON_0_16`).

#![cfg(feature = "runtime")]

#[cfg(feature = "target")]
#[path = "../../examples/foo.rs"]
mod foo;

use crate::support::skip::skipped;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::blob::pack::{
    self, ExportContent, ExportModule, HostCode, HostFormat, LinkOptions, ObjectTarget,
    SymbolNaming, plan,
};
use tvmspec::import_tree::Algorithm;
use tvmspec::release::{Layout, Release};

/// Returns C code of a function for 0.22 and later, which adds its two arguments and a number. `load_module` of the releases
/// compiles it as C++.
fn new_function(name: &str, more: i64) -> String {
    format!(
        "#include <stdint.h>\n\
         typedef struct {{ int32_t type; uint32_t zero; int64_t value; }} {name}_any;\n\
         #ifdef __cplusplus\nextern \"C\"\n#endif\n\
         int __tvm_ffi_{name}(void* self, const {name}_any* args, int32_t count, {name}_any* out) {{\n\
           out->type = 1; out->zero = 0; out->value = args[0].value + args[1].value + {more}; return 0;\n}}\n"
    )
}

/// Like `new_function`, for 0.7 to 0.20.
fn old_function(name: &str, more: i64) -> String {
    format!(
        "#include <stdint.h>\n\
         #ifdef __cplusplus\nextern \"C\"\n#endif\n\
         int {name}(int64_t* args, int* codes, int count, int64_t* out, int* out_code, void* self) {{\n\
           *out = args[0] + args[1] + {more}; *out_code = 0; return 0;\n}}\n"
    )
}

/// Creates a `const_loader` without constants: a module without code that every runtime can load.
fn constants(imports: &[usize]) -> ExportModule {
    ExportModule {
        content: ExportContent::Stored {
            kind: "const_loader".to_owned(),
            payload: vec![0; 32],
        },
        imports: imports.to_vec(),
    }
}

fn host(code: String, imports: &[usize]) -> ExportModule {
    ExportModule {
        content: ExportContent::Host(HostCode {
            format: HostFormat::C,
            code: code.into_bytes(),
        }),
        imports: imports.to_vec(),
    }
}

/// One shape of a tree: its name, its modules, the tree after loading, and its functions with the number that each adds.
type Shape = (
    &'static str,
    Vec<ExportModule>,
    &'static str,
    &'static [(&'static str, i64)],
);

fn shapes(function: fn(&str, i64) -> String) -> Vec<Shape> {
    vec![
        (
            "chain",
            vec![
                host(function("one", 1), &[1]),
                constants(&[2]),
                constants(&[]),
            ],
            "L(C(C()))",
            &[("one", 1)],
        ),
        (
            "diamond",
            vec![
                host(function("one", 1), &[1, 2]),
                host(function("two", 2), &[3]),
                host(function("three", 3), &[3]),
                constants(&[]),
            ],
            "L(C())",
            &[("one", 1), ("two", 2), ("three", 3)],
        ),
        (
            "under",
            vec![constants(&[1]), host(function("one", 1), &[])],
            "C(L())",
            &[("one", 1)],
        ),
        (
            "lone",
            vec![host(function("one", 1), &[])],
            "L()",
            &[("one", 1)],
        ),
    ]
}

fn exported(shape: &Shape, release: Release, folder: &Path, extension: &str) -> PathBuf {
    let naming = SymbolNaming::library(release);
    let plan = plan(&shape.1, &naming, Algorithm::V0_8, ObjectTarget::host()).unwrap();
    let path = folder.join(format!("{}-{release}.{extension}", shape.0));
    pack::export(&plan, &path, &LinkOptions::default()).unwrap();
    path
}

const LOAD: &str = "
import sys
def tree(m): return ('C' if kind(m) == 'const_loader' else 'L') + '(' + ','.join(tree(c) for c in imports(m)) + ')'
def find(m, name):
    f = get(m, name)
    if f is not None: return f
m = load(sys.argv[1])
print(tree(m), *[int(find(m, name)(20, 300)) for name in sys.argv[2:]])
";
const NEW: &str = "
import tvm, tvm_ffi
load = tvm.runtime.load_module
kind = lambda m: m.kind
imports = lambda m: m.imports
get = lambda m, name: m.get_function(name, query_imports=True)
";
const OLD: &str = "
import tvm
load = tvm.runtime.load_module
kind = lambda m: m.type_key
imports = lambda m: m.imported_modules
get = lambda m, name: m.get_function(name, query_imports=True)
";

fn runs(variable: &str, head: &str, release: Release, function: fn(&str, i64) -> String) {
    let Ok(python) = std::env::var(variable) else {
        return skipped(format_args!("{variable} names no Python"));
    };
    let import = head.lines().nth(1).unwrap();
    let there = Command::new(&python).args(["-c", import]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        return skipped(format_args!("{variable} names no Python with TVM"));
    }
    let folder = tempfile::tempdir().unwrap();
    for shape in shapes(function) {
        // `load_module` links archives and objects itself.
        for extension in ["so", "tar", "o"] {
            let path = exported(&shape, release, folder.path(), extension);
            let output = Command::new(&python)
                .args(["-c", &format!("{head}{LOAD}")])
                .arg(&path)
                .args(shape.3.iter().map(|(name, _)| name))
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let sums = shape.3.iter().map(|(_, more)| format!(" {}", 320 + more));
            let expected = format!("{}{}", shape.2, sums.collect::<String>());
            let words = String::from_utf8_lossy(&output.stderr);
            assert_eq!(printed, expected, "{} as {extension}: {words}", shape.0);
        }
    }
}

#[test]
fn the_wheel_of_0_27_runs_what_we_export() {
    runs("TVMSPEC_PYTHON", NEW, Release::of(27), new_function);
}

#[test]
fn the_package_of_0_16_runs_what_we_export() {
    runs("TVMSPEC_PYTHON_0_16", OLD, Release::of(16), old_function);
}

#[test]
fn our_loader_runs_what_we_export_for_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    for (minor, function) in [
        (27, new_function as fn(&str, i64) -> String),
        (16, old_function),
    ] {
        for shape in shapes(function) {
            let path = exported(&shape, Release::of(minor), folder.path(), "so");
            // SAFETY: this test compiled the library, and calls its functions accordingly.
            let module = unsafe { tvmspec::module::load(&path) }.unwrap();
            for (name, more) in shape.3 {
                let function = module.function(name, true).unwrap().expect("a function");
                let sum = function.call((20i64, 300i64)).unwrap();
                assert_eq!(i64::try_from(&sum).unwrap(), 320 + more, "{}", shape.0);
            }
        }
    }
}

/// One release: the variable with its Python, the C code of its function, the registration of a system library there, and its
/// lookup.
struct Era {
    variable: &'static str,
    release: Release,
    function: fn(&str, i64) -> String,
    announce: &'static str,
    script: &'static str,
}

/// Checks that a system library with a prefix is found by the prefix, together with its tree.
fn system_library(era: &Era) {
    let Ok(python) = std::env::var(era.variable) else {
        return skipped(format_args!("{} names no Python", era.variable));
    };
    let folder = tempfile::tempdir().unwrap();
    let code = (era.function)("one", 1)
        + era.announce
        + "__attribute__((constructor)) static void announce(void) { ANNOUNCE; }\n";
    let modules = [host(code, &[1]), constants(&[])];
    let naming = SymbolNaming::system(era.release, "ours_").unwrap();
    let plan = plan(&modules, &naming, Algorithm::V0_8, ObjectTarget::host()).unwrap();
    let path = folder.path().join("system.so");
    pack::export(&plan, &path, &LinkOptions::default()).unwrap();
    let output = Command::new(&python)
        .args(["-c", era.script])
        .arg(&path)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if words.contains("No module named") {
        return skipped(format_args!("{} names no Python with TVM", era.variable));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.trim(), "library ['const_loader'] 321", "{words}");
}

#[test]
fn a_system_library_with_a_prefix_is_found_by_the_wheel() {
    system_library(&Era {
        variable: "TVMSPEC_PYTHON",
        release: Release::of(27),
        function: new_function,
        announce: "int TVMFFIEnvModRegisterSystemLibSymbol(const char*, void*);\n\
                   #define ANNOUNCE TVMFFIEnvModRegisterSystemLibSymbol(\"__tvm_ffi_ours_one\", (void*)__tvm_ffi_one)\n",
        script: "
import sys, ctypes, tvm, tvm_ffi
ctypes.CDLL(sys.argv[1])
m = tvm_ffi.system_lib('ours_')
print(m.kind, [c.kind for c in m.imports], m['one'](20, 300))
",
    });
}

#[test]
fn a_system_library_with_a_prefix_is_found_by_the_package_of_0_16() {
    system_library(&Era {
        variable: "TVMSPEC_PYTHON_0_16",
        release: Release::of(16),
        function: old_function,
        announce: "int TVMBackendRegisterSystemLibSymbol(const char*, void*);\n\
                   #define ANNOUNCE TVMBackendRegisterSystemLibSymbol(\"ours_one\", (void*)one)\n",
        script: "
import sys, ctypes, tvm
ctypes.CDLL(sys.argv[1])
m = tvm.runtime.system_lib('ours_')
print(m.type_key, [c.type_key for c in m.imported_modules], m['one'](20, 300))
",
    });
}

#[test]
fn llvm_text_is_compiled_and_the_hook_gets_every_file() {
    let text = "define i32 @__tvm_ffi_f(i8* %s, i8* %a, i32 %n, i8* %r) {\n  ret i32 0\n}\n";
    let module = |imports: &[usize]| ExportModule {
        content: ExportContent::Host(HostCode {
            format: HostFormat::Llvm,
            code: text.into(),
        }),
        imports: imports.to_vec(),
    };
    let folder = tempfile::tempdir().unwrap();
    let naming = SymbolNaming::library(Release::of(27));
    let modules = [module(&[1]), constants(&[])];
    let plan = plan(&modules, &naming, Algorithm::V0_8, ObjectTarget::host()).unwrap();
    let path = folder.path().join("llvm.so");
    if Command::new("llc").arg("--version").output().is_err() {
        skipped("there is no llc");
    } else {
        pack::export(&plan, &path, &LinkOptions::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let library = &tvmspec::blob::open(&bytes).unwrap()[0];
        assert_eq!(*library.functions, ["f"]);
        assert_eq!(library.blob.as_ref().unwrap().layout, Layout::V0_22);
    }

    let mut with = LinkOptions::default();
    with.workspace = Some(folder.path().join("kept"));
    with.options = vec!["-x".into()];
    let mut names = Vec::new();
    let hooked = folder.path().join("hooked.so");
    pack::export_with(&plan, &hooked, &with, |job| {
        assert_eq!(job.options, ["-x"]);
        names.extend(
            job.inputs
                .iter()
                .map(|path| path.file_name().unwrap().to_owned()),
        );
        std::fs::copy(job.inputs.last().unwrap(), job.output).map(drop)
    })
    .unwrap();
    assert_eq!(names, ["lib0.ll", "devc.o"]);
    assert!(hooked.exists() && folder.path().join("kept/lib0.ll").exists());
}

#[test]
fn a_failure_leaves_what_was_there_and_prints_what_the_compiler_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lib.so");
    std::fs::write(&path, "what was there").unwrap();
    let naming = SymbolNaming::library(Release::of(27));
    let broken = [host("int f( {".to_owned(), &[1]), constants(&[])];
    let plan = plan(&broken, &naming, Algorithm::V0_8, ObjectTarget::host()).unwrap();
    let failed = |with: &LinkOptions| pack::export(&plan, &path, with).unwrap_err().to_string();
    let words = failed(&LinkOptions::default());
    assert!(
        words.contains("lib0.c") && words.contains("error"),
        "{words}"
    );
    let words = failed(&{
        let mut options = LinkOptions::default();
        options.triple = Some("riscv64-none-such".to_owned());
        options
    });
    assert!(words.contains("`riscv64-none-such-gcc`"), "{words}");
    let empty = pack::export_with(&plan, &path, &LinkOptions::default(), |job| {
        std::fs::write(job.output, "no library")
    });
    let words = empty.unwrap_err().to_string();
    assert!(words.contains("is not found"), "{words}");
    assert_eq!(std::fs::read(&path).unwrap(), b"what was there");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Checks that a library with a larger tree loads with the new tree, and that its code still runs.
#[test]
fn a_replaced_library_binary_is_loaded_and_the_host_code_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (minor, function, variable, head) in [
        (
            27,
            new_function as fn(&str, i64) -> String,
            "TVMSPEC_PYTHON",
            NEW,
        ),
        (16, old_function, "TVMSPEC_PYTHON_0_16", OLD),
    ] {
        let release = Release::of(minor);
        let shapes = shapes(function);
        let old = std::fs::read(exported(&shapes[1], release, folder.path(), "so")).unwrap();
        let naming = SymbolNaming::library(release);
        let grown = plan(&shapes[0].1, &naming, Algorithm::V0_8, None).unwrap();
        let blob = grown.blob.unwrap();
        let new = pack::replace(&old, 0, &blob).unwrap();
        // Replaced twice, because an appended blob must be replaceable like one from a linker.
        let own = plan(&shapes[1].1, &naming, Algorithm::V0_8, None).unwrap();
        let new = pack::replace(&new, 0, &own.blob.unwrap()).unwrap();
        let new = pack::replace(&new, 0, &blob).unwrap();
        let path = folder.path().join(format!("replaced-{minor}.so"));
        std::fs::write(&path, &new).unwrap();
        // SAFETY: this test compiled the library, and calls its functions accordingly.
        let module = unsafe { tvmspec::module::load(&path) }.unwrap();
        assert_eq!(module.walk().len(), 3);
        let two = module.function("two", true).unwrap().expect("a function");
        let sum = two.call((20i64, 300i64)).unwrap();
        assert_eq!(i64::try_from(&sum).unwrap(), 322);
        let python = std::env::var(variable).unwrap_or_default();
        let output = Command::new(&python)
            .args(["-c", &format!("{head}{LOAD}")])
            .arg(&path)
            .args(["one", "two", "three"])
            .output();
        match output {
            Ok(output) if output.status.success() => {
                let printed = String::from_utf8_lossy(&output.stdout);
                assert_eq!(printed.trim(), "L(C(C())) 321 322 323");
            }
            _ => skipped(format_args!("{variable} names no Python with TVM")),
        }
    }
}

#[cfg(feature = "target")]
#[test]
fn the_code_of_a_small_generator_is_exported_loaded_and_run() {
    foo::main().unwrap();
}
