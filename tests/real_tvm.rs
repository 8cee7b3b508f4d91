//! What we pack, the real TVM loads. Needs a Python with apache-tvm 0.27: `TVMSPEC_PYTHON`, or a `python3` that has it.

#![cfg(feature = "runtime")]

use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::blob::container;
use tvmspec::blob::pack::{self, Naming, Shared};
use tvmspec::release::Release;

/// The Python to ask, or the reason why there is none.
fn python() -> Option<String> {
    let named = std::env::var("TVMSPEC_PYTHON").ok();
    let name = named.unwrap_or_else(|| "python3".to_owned());
    let probe = Command::new(&name)
        .args(["-c", "import tvm, tvm_ffi"])
        .output();
    match probe {
        Ok(output) if output.status.success() => Some(name),
        _ => {
            println!(
                "skipped, because `{name}` cannot import tvm and tvm_ffi; set TVMSPEC_PYTHON to a Python that can"
            );
            None
        }
    }
}

/// Runs a script; what it prints.
fn run(python: &str, script: &str, arguments: &[&Path]) -> String {
    let output = Command::new(python)
        .arg("-c")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

const TREE: &str = "
import sys, json, tvm, tvm_ffi
def tree(m): return [m.kind, [tree(c) for c in m.imports]]
try: answer = tree(tvm_ffi.load_module(sys.argv[1]))
except RuntimeError as error: answer = str(error)
print(json.dumps(answer, separators=(',', ':')))
";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/blob/containers")
        .join(name)
}

#[test]
fn a_packed_library_loads_with_its_imports() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("packed.so");
    let pack_and_load = |bytes: &[u8]| {
        let naming = Naming::library(Release::of(27));
        pack::shared(bytes, &naming, &Shared::default(), &output).unwrap();
        run(&python, TREE, &[&output])
    };
    // Blobs that the real writer left, in libraries that we made.
    for (blob, tree) in [
        ("const_loader.bin", r#"["const_loader",[["library",[]]]]"#),
        (
            "const_loader_c-0.27.library_bin",
            r#"["const_loader",[["library",[]]]]"#,
        ),
        ("c_alone-0.27.library_bin", r#"["library",[]]"#),
    ] {
        let bytes = std::fs::read(golden(blob)).unwrap();
        assert_eq!(pack_and_load(&bytes), tree, "{blob}");
    }
    // And libraries that the real exporter left: what loads there loads here, with the same answer. The wheel has no
    // loader for cuda and says so.
    for library in ["relax_vm-0.27.so", "cuda-0.27.so"] {
        let bytes = std::fs::read(golden(library)).unwrap();
        let file = container::open(&bytes).unwrap();
        let (_, blob) = file.blobs().next().unwrap();
        let original = run(&python, TREE, &[&golden(library)]);
        assert_eq!(pack_and_load(&blob.bytes), original, "{library}");
    }
}

#[test]
fn a_packed_system_library_is_found_by_its_prefix() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("system.so");
    let bytes = std::fs::read(golden("const_loader.bin")).unwrap();
    let naming = Naming::system(Release::of(27), "ours_").unwrap();
    pack::shared(&bytes, &naming, &Shared::default(), &output).unwrap();
    let script = "
import sys, ctypes, tvm, tvm_ffi
ctypes.CDLL(sys.argv[1])
m = tvm_ffi.system_lib('ours_')
print(m.kind, [c.kind for c in m.imports])
";
    assert_eq!(run(&python, script, &[&output]), "const_loader ['library']");
}

#[test]
fn the_c_text_is_what_the_real_packer_writes() {
    let Some(python) = python() else { return };
    let script = "
import sys, tvm, tvm_ffi
call = tvm_ffi.get_global_func
module = call('ffi.Module.create.const_loader')({}, {'k': []})
module.import_module(call('runtime.CSourceModuleCreate')('int x;', 'c', ['f'], []))
open(sys.argv[1], 'wb').write(call('runtime.ModulePackImportsToTensor')(module).numpy().tobytes())
open(sys.argv[2], 'w').write(call('runtime.ModulePackImportsToC')(module, False, ''))
open(sys.argv[3], 'w').write(call('runtime.ModulePackImportsToC')(module, True, 'p_'))
";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run(&python, script, &[&at("blob"), &at("plain"), &at("system")]);
    let blob = std::fs::read(at("blob")).unwrap();
    let read = |name| std::fs::read_to_string(at(name)).unwrap();
    assert_eq!(
        pack::c_text(&blob, &Naming::library(Release::of(27))),
        read("plain")
    );
    let system = Naming::system(Release::of(27), "p_").unwrap();
    assert_eq!(pack::c_text(&blob, &system), read("system"));
}
