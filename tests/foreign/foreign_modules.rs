//! Modules of the C++ runtime, used through this crate: every virtual function, and every exception. Needs a Python with apache-tvm
//! 0.27 for its libraries: `TVMSPEC_PYTHON`, or a `python3` that has it.
#![cfg(all(
    feature = "runtime",
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64"
))]

use crate::support::skip::skipped;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use tvmspec::function::{Error, Function};
use tvmspec::module::Module;
use tvmspec::object::{Array, Map};
use tvmspec::value::{Any, ByteArray, Header, ObjectRef, cast};

const LIBRARIES: &str = "
import importlib.util, pathlib
folder = lambda name: pathlib.Path(importlib.util.find_spec(name).origin).parent / 'lib'
for name in ['libtvm_ffi.so', 'libtvm_ffi_testing.so']: print(folder('tvm_ffi') / name)
for name in ['libtvm_runtime.so', 'libtvm_compiler.so']: print(folder('tvm') / name)
";

fn open(path: &Path) -> Library {
    // We export the same names, so the foreign libraries must search their own names first.
    const DEEPBIND: i32 = 8;
    // SAFETY: when they are loaded, these libraries only register their functions.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL | DEEPBIND) };
    library.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The C++ runtime in this process, separate from ours.
struct Runtime {
    library: Library,
    testing: String,
}

impl Runtime {
    fn open() -> Option<Runtime> {
        let python = std::env::var("TVMSPEC_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let output = Command::new(&python).args(["-c", LIBRARIES]).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            skipped(format_args!("`{python}` has no tvm and tvm_ffi"));
            return None;
        };
        let output = String::from_utf8(output.stdout).unwrap();
        let mut libraries = output.lines().map(|path| open(path.as_ref()));
        let library = libraries.next()?;
        libraries.for_each(std::mem::forget);
        let testing = output.lines().nth(1)?.to_owned();
        Some(Runtime { library, testing })
    }

    fn call(&self, name: &str, args: &[Any]) -> Any {
        type Find = unsafe extern "C" fn(*const ByteArray, *mut *mut Header) -> i32;
        let mut found = null_mut();
        // SAFETY: as the header declares it.
        let find = unsafe { self.library.get::<Find>(b"TVMFFIFunctionGetGlobal") }.unwrap();
        // SAFETY: a name, and an out pointer for the handle.
        let code = unsafe { find(&ByteArray::of(name.as_bytes()), &mut found) };
        assert_eq!(code, 0);
        // SAFETY: null, or a function whose reference is ours.
        let function = unsafe { ObjectRef::from_nullable(found) };
        let function = function.unwrap_or_else(|| panic!("no `{name}`"));
        let function = Function::from_object(function).ok().unwrap();
        let args: Vec<_> = args.iter().map(Any::view).collect();
        function.call_packed(&args).unwrap()
    }

    fn module(&self, name: &str, args: &[Any]) -> Module {
        let module = cast::<Module>(self.call(name, args).view()).unwrap();
        assert!(module.implementation().is_none(), "{module:?} is our own");
        module
    }
}

#[track_caller]
fn says<T: std::fmt::Debug>(result: Result<T, Error>, kind: &str, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind);
    assert!(error.message().contains(words), "{error}");
}

#[test]
fn every_virtual_function_answers() {
    let Some(runtime) = Runtime::open() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let none = || Any::from(Array::new([]));

    let names = Array::new([Any::from("f")]);
    let args = ["int x;".into(), "c".into(), names.into(), none()];
    let code = runtime.module("runtime.CSourceModuleCreate", &args);
    assert_eq!(code.kind(), "c");
    assert_eq!(code.source("").unwrap(), "int x;");
    assert_eq!(code.write_formats().unwrap(), ["c"]);
    let path = folder.path().join("written.c");
    code.write_to_file(path.to_str().unwrap(), "c").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "int x;");
    says(code.write_to_file("x", "nope"), "InternalError", "format=c");
    assert!(code.implements("f", false).unwrap());
    assert!(!code.implements("g", false).unwrap());
    assert!(code.function("f", false).unwrap().is_none());

    let mut names = Map::new();
    names.set("k", none()).unwrap();
    let args = [Map::new().into(), names.into()];
    let constants = runtime.module("ffi.Module.create.const_loader", &args);
    let bytes = constants.save_to_bytes().unwrap();
    // There are no variables and no tensors, and one function with a name of one letter that needs no variables.
    let words = [0u64, 0, 1, 1].map(u64::to_le_bytes).concat();
    assert_eq!(bytes[..32], words);
    assert_eq!(
        bytes[32..],
        [&b"k"[..], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 8]].concat()
    );
    assert_eq!(constants.source("").unwrap(), "");
    says(
        constants.write_to_file("x", "y"),
        "RuntimeError",
        "does not support WriteToFile",
    );

    let library = runtime.module("ffi.ModuleLoadFromFile", &[runtime.testing.as_str().into()]);
    let documented = "testing_dll_test_add_with_docstring";
    let doc = library.doc(documented, false).unwrap().unwrap();
    assert!(doc.to_lowercase().contains("add"), "{doc}");
    let metadata = library.metadata(documented, false).unwrap().unwrap();
    assert!(metadata.contains("type_schema"), "{metadata}");
    assert_eq!(
        library.doc("testing_dll_schema_id_int", false).unwrap(),
        None
    );
    assert_eq!(library.metadata("nobody", false).unwrap(), None);
    says(
        library.save_to_bytes(),
        "RuntimeError",
        "Module[library] does not support SaveToBytes",
    );

    // Exceptions are caught and freed: a thousand times, then also through a module of ours that looks in its imports.
    let args = ["kernel".into(), "cl".into()];
    let source = runtime.module("runtime.SourceModuleCreate", &args);
    for _ in 0..1000 {
        says(
            source.function("f", false),
            "InternalError",
            "cannot execute",
        );
    }
    let root = Module::new(Nothing);
    root.import(source).unwrap();
    says(root.function("f", true), "InternalError", "cannot execute");
}

/// Exceptions that `tests/foreign/throws.cc` throws, and the errors that they become.
const THROWN: [(&str, &str, &str); 11] = [
    ("error", "ValueError", "error says so"),
    ("own_error", "KeyError", "own says so"),
    ("runtime_error", "InternalError", "runtime says so"),
    ("derived", "InternalError", "derived says so"),
    ("behind", "InternalError", "derived says so"),
    ("virtual", "InternalError", "virtual says so"),
    ("string", "InternalError", "`NSt7__cxx1112basic_stringI"),
    ("pair", "InternalError", "`St4pairIiiE`"),
    ("int", "InternalError", "`i`"),
    ("text", "InternalError", "`PKc`"),
    ("pointer", "InternalError", "`PSt9exception`"),
];

/// Opens the runtime together with the functions that `tests/foreign/throws.cc` registers.
fn runtime_with_throws() -> Option<Runtime> {
    let runtime = Runtime::open()?;
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("throws.so");
    let beside = Path::new(&runtime.testing).parent().unwrap();
    let built = Command::new("g++")
        .args(["-std=c++17", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/throws.cc"))
        .arg("-I")
        .arg(beside.with_file_name("include"))
        .arg(beside.join("libtvm_ffi.so"))
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the module does not compile"),
        Err(why) => {
            skipped(format_args!("there is no g++: {why}"));
            return None;
        }
    }
    std::mem::forget(open(&library));
    Some(runtime)
}

/// Tests both directions one after the other, because the functions of the library can be registered only once.
#[test]
fn exceptions_of_cxx_become_errors_and_errors_exceptions() {
    let Some(runtime) = runtime_with_throws() else {
        return;
    };
    let throws = runtime.module("tvmspec.test.throws", &[]);
    for (name, kind, words) in THROWN {
        says(throws.function(name, false), kind, words);
    }
    assert!(throws.function("nothing", false).unwrap().is_none());

    let caught = |name: &str, as_standard: bool| {
        let args = [Module::new(Fails).into(), name.into(), as_standard.into()];
        let output = runtime.call("tvmspec.test.caught", &args);
        cast::<String>(output.view()).unwrap()
    };
    let every = [
        ("GetFunction", "KeyError: no f"),
        ("ImplementsFunction", "KeyError: no f"),
        ("GetFunctionDoc", "ValueError: no doc of f"),
        ("GetFunctionMetadata", "ValueError: no metadata of f"),
        ("WriteToFile", "OSError: no path path for format"),
        ("SaveToBytes", "ValueError: nothing to save"),
        ("InspectSource", "ValueError: no source in format"),
        (
            "ImportModule",
            "RuntimeError: Cyclic dependency detected during import",
        ),
        ("ClearImports", "nothing"),
    ];
    for (name, text) in every {
        assert_eq!(caught(name, false), text, "{name}");
    }
    for _ in 0..1000 {
        let what = caught("SaveToBytes", true);
        assert!(what.contains("ValueError: nothing to save"), "{what}");
    }
    let args = [
        Module::new(Panics).into(),
        "SaveToBytes".into(),
        false.into(),
    ];
    let output = runtime.call("tvmspec.test.caught", &args);
    let output = cast::<String>(output.view()).unwrap();
    assert!(output.contains("this is a panic"), "{output}");
}

/// Module of ours whose functions all fail.
struct Fails;

impl tvmspec::module::ModuleKind for Fails {
    fn kind(&self) -> &str {
        "fails"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        Err(Error::new("KeyError", format!("no {name}")))
    }

    fn doc(&self, _: &Module, name: &str) -> Result<Option<String>, Error> {
        Err(Error::new("ValueError", format!("no doc of {name}")))
    }

    fn metadata(&self, _: &Module, name: &str) -> Result<Option<String>, Error> {
        Err(Error::new("ValueError", format!("no metadata of {name}")))
    }

    fn write_to_file(&self, path: &str, format: &str) -> Result<(), Error> {
        let text = format!("no path {path} for {format}");
        Err(Error::new("OSError", text))
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Err(Error::new("ValueError", "nothing to save"))
    }

    fn source(&self, format: &str) -> Result<String, Error> {
        Err(Error::new("ValueError", format!("no source in {format}")))
    }
}

/// Module of ours that panics.
struct Panics;

impl tvmspec::module::ModuleKind for Panics {
    fn kind(&self) -> &str {
        "panics"
    }

    fn function(&self, _: &Module, _: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        panic!("this is a panic")
    }
}

/// Module of ours without functions.
struct Nothing;

impl tvmspec::module::ModuleKind for Nothing {
    fn kind(&self) -> &str {
        "nothing"
    }

    fn function(&self, _: &Module, _: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }
}

#[test]
fn imports_are_changed_by_the_class_of_the_module() {
    let Some(runtime) = Runtime::open() else {
        return;
    };
    let code = |name: &str| {
        let names = Array::new([Any::from(name)]);
        let args = [
            "int x;".into(),
            "c".into(),
            names.into(),
            Array::new([]).into(),
        ];
        runtime.module("runtime.CSourceModuleCreate", &args)
    };
    let [first, second, third] = ["f", "g", "h"].map(code);
    first.import(second.clone()).unwrap();
    first.import(third.clone()).unwrap();
    assert_eq!(first.imports(), [second.clone(), third.clone()]);
    assert!(first.implements("h", true).unwrap());
    says(second.import(first.clone()), "RuntimeError", "Cyclic");
    // The C++ runtime sees the same array.
    let names = runtime.call(
        "ffi.ModuleImplementsFunction",
        &[first.clone().into(), "g".into(), true.into()],
    );
    assert!(cast::<bool>(names.view()).unwrap());
    first.clear_imports().unwrap();
    assert_eq!(first.imports(), []);
}
