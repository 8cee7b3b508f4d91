//! Loading and calling real libraries of both calling conventions.
#![cfg(feature = "runtime")]

mod c_interface;

use crate::support::separate_process::alone;
use std::path::PathBuf;
use tvmspec::module::{self, Library, Module, ModuleKind};
use tvmspec::object::Tensor;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::Strictness;
use tvmspec::tensor::Dtype;
use tvmspec::value::Any;

const F32: Dtype = Dtype::FLOAT32;

const I32: Dtype = Dtype::INT32;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/module")
        .join(name)
}

fn open(name: &str) -> Module {
    // SAFETY: the library is a golden of a release, called as it was compiled.
    unsafe { module::load(golden(name)) }.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn tensor(values: &[f32]) -> Tensor {
    let tensor = Tensor::empty(&[values.len() as i64], F32).unwrap();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    tensor.fill(&bytes).unwrap();
    tensor
}

fn values(tensor: &Tensor) -> Vec<f32> {
    let bytes = tensor.to_bytes().unwrap();
    let chunks = bytes.chunks_exact(4);
    chunks
        .map(|chunk| f32::from_le_bytes(chunk.try_into().unwrap()))
        .collect()
}

/// Checks that `add1` of a sample adds 1 to each element.
fn adds_one(module: &Module, function: &str) {
    let add1 = module.require(function).unwrap();
    let input = tensor(&[0.0, 1.5, -2.0, 1e6]);
    let output = tensor(&[0.0; 4]);
    add1.call((input, output.clone())).unwrap();
    assert_eq!(values(&output), [1.0, 2.5, -1.0, 1_000_001.0]);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn libraries_of_both_eras_give_the_right_numbers() {
    for name in [
        "host-0.8.so",
        "c-0.8.so",
        "tree3-0.8.so",
        "opencl-root-0.8.so",
        "host-0.19.so",
        "c-0.19.so",
    ] {
        adds_one(&open(name), "add1");
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn the_entry_point_of_an_old_library_is_the_function_that_its_symbol_names() {
    adds_one(&open("host-0.8.so"), "__tvm_main__");
    // A C host exports a function of this name instead.
    adds_one(&open("c-0.8.so"), "__tvm_main__");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_wrong_argument_has_the_error_of_the_compiled_code() {
    let add1 = open("host-0.8.so").require("add1").unwrap();
    let (input, output) = (tensor(&[0.0; 4]), tensor(&[0.0; 4]));
    let message = |args: Vec<Any>| {
        let views: Vec<_> = args.iter().map(Any::view).collect();
        add1.call_packed(&views).unwrap_err().message().to_owned()
    };
    let count = message(vec![input.clone().into()]);
    assert!(count.contains("num_args should be 2"), "{count}");
    let whole = Tensor::empty(&[4], I32).unwrap();
    let dtype = message(vec![whole.into(), output.clone().into()]);
    assert!(
        dtype.contains("arg0.dtype is expected to be float32"),
        "{dtype}"
    );
    let shape = message(vec![input.into(), tensor(&[0.0; 5]).into()]);
    assert!(
        shape.contains("Argument arg1.shape[0] has an unsatisfied constraint"),
        "{shape}"
    );
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn the_tree_of_a_library_is_the_tree_that_was_exported() {
    let tree = |module: &Module| -> (String, Vec<String>) {
        (
            module.kind(),
            module.imports().iter().map(Module::kind).collect(),
        )
    };
    let owned = |kinds: &[&str]| kinds.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        tree(&open("tree3-0.8.so")),
        ("library".into(), owned(&["metal", "opencl"]))
    );
    assert_eq!(
        tree(&open("opencl-root-0.8.so")),
        ("opencl".into(), owned(&["library"]))
    );
    assert_eq!(
        tree(&open("tree-0.21.so")),
        ("library".into(), owned(&["opencl", "metal"]))
    );
    assert_eq!(
        tree(&open("opencl-0.27.so")),
        ("library".into(), owned(&["opencl"]))
    );
    assert_eq!(
        tree(&open("const-loader-0.27.so")),
        ("const_loader".into(), owned(&["library"]))
    );
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_library_says_what_it_is() {
    let layout = |name| {
        // SAFETY: the library is a golden of a release, and nothing of it is called.
        unsafe { module::load_library(golden(name), Strictness::Strict) }
            .unwrap()
            .layout
    };
    assert_eq!(layout("host-0.8.so"), Layout::V0_7);
    assert_eq!(layout("host-0.21.so"), Layout::V0_21);
    assert_eq!(layout("host-0.27.so"), Layout::V0_22);
    let functions = |name| {
        let module = open(name);
        let mut names: Vec<String> = module
            .walk()
            .iter()
            .filter_map(Library::of)
            .filter_map(ModuleKind::functions)
            .flatten()
            .collect();
        names.sort();
        names
    };
    assert_eq!(functions("host-0.8.so"), ["add1"]);
    assert_eq!(functions("tree3-0.8.so"), ["add1", "add2", "add3"]);
    assert_eq!(functions("host-0.27.so"), ["main"]);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn data_is_no_function() {
    assert!(
        open("tree3-0.8.so")
            .function("__tvm_dev_mblob", false)
            .unwrap()
            .is_none()
    );
    assert!(
        open("opencl-0.27.so")
            .function("_library_bin", false)
            .unwrap()
            .is_none()
    );
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_kind_without_a_runtime_fails_when_it_is_called_and_says_why() {
    let module = open("tree3-0.8.so");
    let metal = &module.imports()[0];
    let kernel = metal
        .function("add3_kernel0", false)
        .unwrap()
        .expect("the payload names it");
    let message = kernel.call(()).unwrap_err().message().to_owned();
    assert!(
        message.contains("`metal` has no runtime in this process"),
        "{message}"
    );
    assert_eq!(metal.property_mask(), 1);
}

#[test]
fn a_mask_says_what_a_module_can_do() {
    use module::property::{EXPORTABLE, RUNNABLE, SERIALIZABLE};
    let mask = |kind: &str| module::property_mask(kind, Release::LAST, true);
    assert_eq!(mask("GraphExecutor"), RUNNABLE);
    assert_eq!(mask("opencl"), SERIALIZABLE | RUNNABLE);
    assert_eq!(mask("static_library") & EXPORTABLE, EXPORTABLE);
}

#[test]
fn a_kind_has_a_loader_once_one_is_registered() {
    let kind = "tests.module.kind";
    let loader: module::Loader = |entry| {
        assert_eq!(entry.kind, kind_of_the_test());
        module::system_library("tests.module.")
    };
    fn kind_of_the_test() -> &'static str {
        "tests.module.kind"
    }
    assert!(!module::has_loader(kind, Layout::V0_22));
    module::register_loader(kind, loader);
    assert!(module::has_loader(kind, Layout::V0_22));
    let asked = |layout| module::global_name("opencl", layout);
    assert_eq!(asked(Layout::V0_22), "ffi.Module.load_from_bytes.opencl");
    assert_eq!(asked(Layout::V0_7), "runtime.module.loadbinary_opencl");
}

#[test]
fn a_layout_says_how_its_functions_are_called() {
    use module::{Convention, Dialect};
    let convention = |layout| Dialect::of(layout).convention;
    assert_eq!(convention(Layout::V0_7), Convention::Legacy);
    assert_eq!(convention(Layout::V0_21), Convention::Ffi021);
    assert_eq!(convention(Layout::V0_22), Convention::Ffi);
}

/// Returns whether the dynamic linker has mapped the file.
fn is_mapped(name: &str) -> bool {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .contains(name)
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_library_stays_mapped_while_a_function_of_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("stays-mapped.so");
    std::fs::copy(golden("host-0.8.so"), &copy).unwrap();
    // SAFETY: the library is a copy of a golden of a release, called as it was compiled.
    let module = unsafe { module::load(&copy) }.unwrap();
    let function = module.require("add1").unwrap();
    drop(module);
    assert!(is_mapped("stays-mapped.so"));
    let output = tensor(&[0.0]);
    function.call((tensor(&[1.0]), output.clone())).unwrap();
    assert_eq!(values(&output), [2.0]);
    drop(function);
    assert!(!is_mapped("stays-mapped.so"));
}

/// The test calls `add1` of 0.21, and of 0.22 and later, which has fixed shapes.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn one_process_calls_libraries_of_every_convention() {
    let (oldest, middle, newest) = (
        open("host-0.8.so"),
        open("host-0.21.so"),
        open("host-0.27.so"),
    );
    let input: Vec<f32> = (0..12).map(|at| at as f32 / 4.0).collect();
    let expected: Vec<f32> = input.iter().map(|value| value + 1.0).collect();
    for (module, name) in [(&oldest, "add1"), (&middle, "add1"), (&newest, "main")] {
        let output = tensor(&[0.0; 12]);
        let function = module.require(name).unwrap();
        function.call((tensor(&input), output.clone())).unwrap();
        assert_eq!(values(&output), expected);
    }
    let output = tensor(&[0.0; 12]);
    let addone = open("c-0.27.so").require("addone").unwrap();
    addone.call((tensor(&input), output.clone())).unwrap();
    assert_eq!(values(&output), expected);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn new_code_says_what_it_expected() {
    let main = open("host-0.27.so").require("main").unwrap();
    let error = main
        .call((tensor(&[0.0; 3]), tensor(&[0.0; 3])))
        .unwrap_err();
    assert_eq!(error.kind(), "ValueError");
    assert!(
        error
            .message()
            .starts_with("Invalid A.shape[0] on argument #0 when calling:"),
        "{error}"
    );
    let add1 = open("host-0.21.so").require("add1").unwrap();
    let whole = Tensor::empty(&[3], I32).unwrap();
    let error = add1.call((whole, tensor(&[0.0; 3]))).unwrap_err();
    assert!(
        error.message().contains("dtype is expected to be float32"),
        "{error}"
    );
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn static_constructors_fill_the_system_library() {
    // Opening the library runs its constructors, which register its content. The plain loader finds no blob under the library's own name.
    let opened = open("system-0.27.so");
    let system = module::system_library("modA_").unwrap();
    assert_eq!(system, module::system_library("modA_").unwrap());
    assert_eq!(
        system
            .imports()
            .iter()
            .map(Module::kind)
            .collect::<Vec<_>>(),
        ["opencl"]
    );
    assert!(system.implements("my_fn", false).unwrap());
    assert!(!system.implements("nothing", true).unwrap());
    // The registered content lives as long as the process.
    std::mem::forget(opened);
}

/// The C interfaces leave a name without a folder to the dynamic linker, but `load` of this library always takes a path as a file.
///
/// The search path of the linker is fixed when a process starts, so this test runs itself again.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_bare_name_is_left_to_the_dynamic_linker() {
    if std::env::var_os("TVMSPEC_BARE_NAME").is_some() {
        // SAFETY: the libraries are copies of a golden of a release, called as they were compiled.
        let named = |name: &str| unsafe { module::load_named(name) };
        // SAFETY: the libraries are copies of a golden of a release, called as they were compiled.
        let path = |name: &str| unsafe { module::load(name) };
        adds_one(&named("elsewhere.so").unwrap(), "add1");
        assert!(named("here.so").is_err());
        adds_one(&path("here.so").unwrap(), "add1");
        assert!(path("elsewhere.so").is_err());
        return;
    }
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::copy(golden("host-0.8.so"), here.path().join("here.so")).unwrap();
    let other = elsewhere.path().join("elsewhere.so");
    std::fs::copy(golden("host-0.8.so"), other).unwrap();
    let ran = alone(module_path!(), "a_bare_name_is_left_to_the_dynamic_linker")
        .env("TVMSPEC_BARE_NAME", "1")
        .env("LD_LIBRARY_PATH", elsewhere.path())
        .current_dir(here.path())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );
}

/// MOD-26: the message names the library and the missing functions.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_library_that_misses_functions_is_named_with_them() {
    // SAFETY: the golden runs nothing when it is opened.
    let error = unsafe { module::load(golden("open-unmet.so")) }.unwrap_err();
    let message = error.to_string();
    for part in ["MOD-26", "open-unmet.so", "TVMNoSuchFunction"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_version_behind_the_ending_is_not_the_ending() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libm.so.6", "a.b-libx.so.1.22.333"] {
        let path = folder.path().join(name);
        std::fs::copy(golden("host-0.8.so"), &path).unwrap();
        // SAFETY: the library is a copy of a golden of a release, called as it was compiled.
        adds_one(&unsafe { module::load(&path) }.unwrap(), "add1");
    }
    for (name, ending) in [
        ("model.6", "6"),
        ("lib.so.bak", "bak"),
        ("lib.so.6.", ""),
        ("lib.tar.6", "6"),
    ] {
        // SAFETY: the file is not loaded.
        let error = unsafe { module::load(folder.path().join(name)) }.unwrap_err();
        let words = format!("Loader for `.{ending}` files is not registered");
        assert!(error.message().contains(&words), "{name}: {error}");
    }
}
