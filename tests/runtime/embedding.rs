//! A program that embeds the library has to install nothing before it loads a compiled library.
#![cfg(all(feature = "graph", feature = "vm"))]

use std::ffi::{CString, c_void};
use std::path::Path;
use tvmspec::capi::ffi::function::{TVMFFIFunctionCall, TVMFFIFunctionGetGlobal};
use tvmspec::capi::legacy::{TVMModFree, TVMModGetFunction, TVMModLoadFromFile};
use tvmspec::function::{Function, registry};
use tvmspec::module::{self, Module};
use tvmspec::value::{Any, ByteArray, cast};

const FACTORY: &str = "golden/graph/models/v0.8/mlp.so";
const EXECUTABLE: &str = "golden/vm/branches.so";

fn path(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(name).to_str().unwrap().to_owned()
}

/// Checks that the functions of the model exist, so its kind has a loader.
fn holds_a_model(root: &Module) {
    let own = |name| root.function(name, true).unwrap().is_some();
    assert!(own("default") || own("vm_load_executable"), "{root:?}");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_rust_program_just_loads() {
    for library in [FACTORY, EXECUTABLE] {
        // SAFETY: the library is a golden of a release, called as it was compiled.
        holds_a_model(&unsafe { module::load(path(library)) }.unwrap());
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_program_with_the_c_interface_just_loads() {
    let name = "ffi.ModuleLoadFromFile";
    let mut load = std::ptr::null_mut();
    // SAFETY: the name is readable, and the place is writable.
    let code = unsafe { TVMFFIFunctionGetGlobal(&ByteArray::of(name.as_bytes()), &mut load) };
    assert_eq!(code, 0);
    assert!(!load.is_null(), "no `{name}`");
    for library in [FACTORY, EXECUTABLE] {
        let library = Any::from(path(library).as_str());
        let mut made = Any::none().into_raw();
        // SAFETY: there is one live argument, and a place for the result.
        let code = unsafe { TVMFFIFunctionCall(load.cast(), library.as_raw(), 1, &mut made) };
        assert_eq!(code, 0);
        // SAFETY: the call succeeded, so the cell is its result, which this test owns.
        let made = unsafe { Any::from_raw(made) };
        holds_a_model(&cast::<Module>(made.view()).unwrap());
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_program_with_the_old_c_interface_just_loads() {
    let text = |text: &str| CString::new(text).unwrap();
    for (library, function) in [(FACTORY, "default"), (EXECUTABLE, "vm_load_executable")] {
        let mut module: *mut c_void = std::ptr::null_mut();
        let mut found: *mut c_void = std::ptr::null_mut();
        let (path, format) = (text(&path(library)), text("so"));
        // SAFETY: the arguments are C strings and a place for the handle.
        let code = unsafe { TVMModLoadFromFile(path.as_ptr(), format.as_ptr(), &mut module) };
        assert_eq!(code, 0);
        // SAFETY: the arguments are a loaded module, a C string, and a place for the handle.
        let code = unsafe { TVMModGetFunction(module, text(function).as_ptr(), 0, &mut found) };
        assert_eq!(code, 0);
        // SAFETY: the loaded module is not used any more.
        assert_eq!(unsafe { TVMModFree(module) }, 0);
        assert!(!found.is_null(), "{library} has no `{function}`");
        // MOD-32: the stated format counts, not the file name.
        let format = text("other");
        // SAFETY: the arguments are C strings and a place for the handle.
        let code = unsafe { TVMModLoadFromFile(path.as_ptr(), format.as_ptr(), &mut module) };
        assert_eq!(code, -1);
    }
}

#[test]
fn the_registry_finds_what_the_chapters_bring() {
    for name in [
        "runtime.GetDeviceAttr",
        "tvm.graph_executor.create",
        "vm.builtin.copy",
    ] {
        assert!(registry::lookup(name).is_some(), "{name}");
        assert!(registry::names().contains(&name), "{name} is not listed");
    }
}

/// A function that takes the name of a removed default is not a default itself.
#[test]
fn a_removed_default_is_none() {
    let (name, seven) = ("vm.builtin.make_tuple", || Function::from_typed(|| 7i64));
    assert!(registry::remove(name));
    assert!(registry::lookup(name).is_none());
    assert!(registry::details(name).is_none());
    assert!(!registry::names().contains(&name));
    registry::register(name, seven(), false).unwrap();
    registry::register(name, seven(), false).unwrap_err();
}

/// Another runtime in the process, loaded before or after this library, registers its functions without override.
#[test]
fn a_default_yields_once() {
    let seven = || Function::from_typed(|| 7i64);
    // The runtime of TVM 0.26 registers the second name itself, without which its Python is not imported.
    for name in ["vm.builtin.null_value", "runtime.RuntimeEnabled"] {
        assert!(registry::lookup(name).is_some());
        registry::register(name, seven(), false).unwrap();
        let now = registry::require(name).unwrap().call(()).unwrap();
        assert_eq!(i64::try_from(&now).unwrap(), 7);
        registry::register(name, seven(), false).unwrap_err();
        let names = registry::names();
        let known = names.iter().filter(|known| **known == name);
        assert_eq!(known.count(), 1);
    }
}
