//! Modules and libraries with rare properties: exceptions of other languages or without a text, errors and functions that must not outlive
//! their use, and threads that must not spin.
#![cfg(all(
    feature = "runtime",
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64"
))]

use crate::support::separate_process::alone;
use crate::support::skip::skipped;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{self, Module, ModuleKind, parallel};
use tvmspec::object::Array;
use tvmspec::rule::Strictness;
use tvmspec::value::cast;

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.join("golden/module").join(name)
}

fn open(path: &Path) -> Module {
    // SAFETY: the library belongs to this project, and its functions are called as their comments say.
    unsafe { module::load(path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compiles `module_edges.cc` to a library. Returns `None` if there is no compiler.
fn edges(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("edges.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runtime/module_edges.cc");
    let mut compiler = Command::new("g++");
    compiler
        .args([
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-O1",
            "-fvisibility=hidden",
        ])
        .args(["-Wno-delete-non-virtual-dtor", "-o"])
        .args([&library, &source]);
    is_built(compiler, "module_edges.cc").then_some(library)
}

/// Runs a compiler and checks its success. Returns false if there is no compiler.
fn is_built(mut compiler: Command, what: &str) -> bool {
    match compiler.status() {
        Ok(status) => assert!(status.success(), "{what} does not compile"),
        Err(why) => {
            let name = compiler.get_program().display();
            skipped(format_args!("there is no {name}: {why}"));
            return false;
        }
    }
    true
}

fn edge(library: &Module) -> Module {
    let make = library.require("edge").unwrap();
    let made = make.call((Array::new([]),)).unwrap();
    cast(made.view()).unwrap()
}

#[test]
fn an_exception_whose_what_is_null_is_named_by_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = edges(folder.path()) else {
        return;
    };
    // The library holds the code of the module, and the module does not keep the library.
    let library = open(&path);
    let module = edge(&library);
    let error = module.function("silent", false).unwrap_err();
    assert_eq!(error.kind(), "InternalError");
    let words = "an exception of the C++ type `6Silent`";
    assert_eq!(error.message(), words);
    // The next exception is caught like the first one.
    assert!(module.function("silent", false).is_err());
    let error = module.function("runtime", false).unwrap_err();
    assert_eq!(error.message(), "runtime says so");
}

/// Looks up the function that raises an exception of another language.
extern "C-unwind" fn look_up(module: *mut c_void) {
    // SAFETY: the test below passes a module that outlives the call.
    let module = unsafe { &*module.cast::<Module>() };
    // The look-up must not return.
    let _ = module.function("other", false);
}

#[test]
fn an_exception_of_another_language_is_left_to_its_own_handler() {
    type Body = extern "C-unwind" fn(*mut c_void);
    type LetsThrough = unsafe extern "C-unwind" fn(Body, *mut c_void) -> c_int;
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = edges(folder.path()) else {
        return;
    };
    // The library holds the code of the module, and the module does not keep the library.
    let library = open(&path);
    let module = edge(&library);
    // SAFETY: the library is already loaded.
    let symbols = unsafe { libloading::Library::new(&path) }.unwrap();
    // SAFETY: the function has this type in the source.
    let lets_through = unsafe { symbols.get::<LetsThrough>("lets_through") }.unwrap();
    let data = (&raw const module).cast_mut().cast();
    // SAFETY: `look_up` takes a module, and this one outlives the call.
    assert_eq!(unsafe { lets_through(look_up, data) }, 1);
}

/// A module that fails with the same error every time.
struct Fails(Error);

impl ModuleKind for Fails {
    fn kind(&self) -> &str {
        "fails"
    }

    fn function(&self, _: &Module, _: &str) -> Result<Option<Function>, Error> {
        Ok(None)
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Err(self.0.clone())
    }
}

#[test]
fn an_error_that_was_thrown_to_cxx_ends_with_the_exception() {
    if let Err(why) = load_libstdcxx() {
        skipped(why);
        return;
    }
    let library = open(&golden("foreign.so"));
    let call = library.require("virtual").unwrap();
    let error = Error::new("KeyError", "nothing to save");
    let module = Module::new(Fails(error.clone()));
    let count = || error.as_object().header().strong_count();
    let before = count();
    for _ in 0..10 {
        let answer = call.call((module.clone(), "save"));
        // The handler in the library caught the error as the correct class.
        assert_eq!(cast::<i64>(answer.unwrap().view()).unwrap(), -1);
    }
    assert_eq!(count(), before);
}

fn load_libstdcxx() -> Result<(), String> {
    // SAFETY: this is a library of the system, which may be opened at any time.
    let found = unsafe { libloading::Library::new("libstdc++.so.6") };
    found.map(std::mem::forget).map_err(|why| why.to_string())
}

#[test]
fn a_global_that_compiled_code_finds_often_is_kept_once() {
    let function = Function::from_typed(|| 7_i64);
    registry::register("module_edges.often", function.clone(), false).unwrap();
    let library = open(&golden("open-0.8.so"));
    let count = || function.as_object().header().strong_count();
    let look_up = |name: &str| {
        let mut found = std::ptr::null_mut();
        let name = std::ffi::CString::new(name).unwrap();
        // SAFETY: the arguments are the address of a live module, a C string, and a place.
        let code = unsafe { backend()(library.context(), name.as_ptr(), &raw mut found) };
        (code, found)
    };
    let before = count();
    let own = function.as_object().as_ptr().cast();
    for _ in 0..20 {
        assert_eq!(look_up("module_edges.often"), (0, own));
    }
    // MOD-13: the handle is borrowed from the module, which holds one reference for it after any number of lookups.
    assert_eq!(count(), before + 1);
}

type GetFuncFromEnv =
    unsafe extern "C" fn(*mut c_void, *const std::ffi::c_char, *mut *mut c_void) -> c_int;

/// Returns the function by which compiled code of 0.2 to 0.25 looks up functions.
fn backend() -> GetFuncFromEnv {
    // SAFETY: this is the program itself, which is open and exports the C interface.
    let process = unsafe { libloading::os::unix::Library::open(None::<&Path>, 2) }.unwrap();
    // SAFETY: the C header declares this type.
    *unsafe { process.get::<GetFuncFromEnv>("TVMBackendGetFuncFromEnv") }.unwrap()
}

#[test]
fn a_library_says_whether_it_has_a_blob() {
    let has_blob = |name: &str| {
        // SAFETY: the library is a golden of a release, and nothing of it is called.
        let loaded = unsafe { module::load_library(golden(name), Strictness::Strict) };
        loaded.unwrap().has_blob
    };
    for name in ["host-0.27.so", "c-0.27.so", "host-0.8.so", "open-0.22.so"] {
        assert!(!has_blob(name), "{name}");
    }
    for name in ["opencl-0.27.so", "tree-0.21.so", "tree3-0.8.so"] {
        assert!(has_blob(name), "{name}");
    }
}

/// Environment variable of the process that launches. Its value says how often the pool spins.
const SPINS: &str = "TVM_THREAD_POOL_SPIN_COUNT";

/// Environment variable of the same process, which makes it run only the test below.
const LAUNCHES: &str = "TVMSPEC_LAUNCHES";

/// Time that the launching thread waits for the task of a worker.
const SLOW: Duration = Duration::from_secs(1);

/// Returns the time in nanoseconds that this thread has run on a processor.
fn ran() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

unsafe extern "C" fn task(number: c_int, _: *mut parallel::GroupEnv, _: *mut c_void) -> c_int {
    if number == 1 {
        std::thread::sleep(SLOW);
    }
    0
}

#[test]
fn launches_once() {
    if std::env::var_os(LAUNCHES).is_none() {
        return;
    }
    parallel::configure(2);
    if parallel::workers() < 2 {
        println!("\nOUTCOME alone");
        return;
    }
    let before = ran();
    // SAFETY: `task` takes any data, on any thread.
    unsafe { parallel::launch(task, std::ptr::null_mut(), 2) }.unwrap();
    println!("\nOUTCOME {}", (ran() - before) / 1_000_000);
}

/// Measures the milliseconds of processor time of a thread that waits for a task of one second. Returns `None` if it cannot be measured.
fn milliseconds(spins: &str) -> Option<u64> {
    let output = alone(module_path!(), "launches_once")
        .env(LAUNCHES, "1")
        .env(SPINS, spins)
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome = answer
        .lines()
        .find_map(|line| line.strip_prefix("OUTCOME "));
    outcome.expect(&answer).parse().ok()
}

#[test]
fn a_waiting_thread_spins_as_often_as_the_environment_says() {
    let (Some(never), Some(long)) = (milliseconds("0"), milliseconds("4000000000")) else {
        skipped("one task runs at once here");
        return;
    };
    if long == 0 {
        skipped("the system does not measure the running time of a thread");
        return;
    }
    assert!(never < 100, "{never} ms without a round");
    assert!(long > 100, "{long} ms with more rounds than a second has");
}

/// Compiles `source` to the library `name`, which needs another library. Returns `None` if there is no compiler.
fn compiled(folder: &Path, name: &str, source: &str, needs: Option<&Path>) -> Option<PathBuf> {
    let (library, text) = (folder.join(name), folder.join("own.c"));
    std::fs::write(&text, source).unwrap();
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=gnu"])
        .args([Path::new("-o"), &library, &text])
        .args(needs);
    is_built(compiler, source).then_some(library)
}

#[test]
fn a_library_that_exports_nothing_has_no_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compiled(folder.path(), "own.so", "static int nothing = 1;", None) else {
        return;
    };
    let module = open(&library);
    assert!(module.function("nothing", true).unwrap().is_none());
    assert_eq!(module.functions(), Some(Vec::new()));
}

/// The dynamic linker also searches the dependencies of a library, and so does a look-up in the library.
#[test]
fn symbols_of_needed_library_count() {
    let folder = tempfile::tempdir().unwrap();
    let body = |name: &str, number: &str| {
        format!(
            "int __tvm_ffi_{name}(void *h, void *a, int n, int *r) {{ r[0] = 1, r[1] = 0, *(long *)(r + 2) = {number}; return 0; }}"
        )
    };
    let behind = format!(
        "int TVMNoSuchFunction(void) {{ return 5; }} {}",
        body("behind", "6")
    );
    let source = format!(
        "void *__tvm_ffi__library_ctx; int TVMNoSuchFunction(void); {}",
        body("own", "TVMNoSuchFunction()")
    );
    let Some(behind) = compiled(folder.path(), "behind.so", &behind, None) else {
        return;
    };
    let Some(library) = compiled(folder.path(), "own.so", &source, Some(&behind)) else {
        return;
    };
    let module = open(&library);
    for (name, number) in [("own", 5), ("behind", 6)] {
        let answer = module.require(name).unwrap().call(()).unwrap();
        assert_eq!(i64::try_from(&answer).unwrap(), number, "{name}");
    }
}

/// Up to 0.21, a function with the name of documentation is an ordinary function.
#[test]
fn an_old_library_has_no_documentation() {
    let source = "void *__tvm_module_ctx; \
        int f(void *a, int *c, int n, long *r, int *t, void *h) { *r = 1, *t = 0; return 0; } \
        int _doc_f(void *a, int *c, int n, long *r, int *t, void *h) { return f(a, c, n, r, t, h); }";
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compiled(folder.path(), "own.so", source, None) else {
        return;
    };
    let module = open(&library);
    let one = module.require("f").unwrap().call(()).unwrap();
    assert_eq!(i64::try_from(&one).unwrap(), 1);
    assert_eq!(module.doc("f", false).unwrap(), None);
}

#[test]
fn workers_once() {
    if std::env::var_os(LAUNCHES).is_some() {
        println!("\nOUTCOME {}", parallel::workers());
    }
}

#[test]
fn the_environment_says_how_many_workers_there_are() {
    let workers = |name: &str, number: &str| -> usize {
        let output = alone(module_path!(), "workers_once")
            .env(LAUNCHES, "1")
            .env_remove("TVM_NUM_THREADS")
            .env_remove("OMP_NUM_THREADS")
            .env(name, number)
            .output()
            .unwrap();
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let outcome = answer
            .lines()
            .find_map(|line| line.strip_prefix("OUTCOME "));
        outcome.expect(&answer).parse().unwrap()
    };
    let all = workers("TVM_NUM_THREADS", "100000");
    assert_eq!(workers("OMP_NUM_THREADS", "100000"), all);
    for name in ["TVM_NUM_THREADS", "OMP_NUM_THREADS"] {
        // The value is parsed as `atoi` of C parses it.
        for one in ["1", " 1", "1 threads"] {
            assert_eq!(workers(name, one), 1, "{name}={one}");
        }
        assert_eq!(workers(name, "many"), workers(name, "0"), "{name}");
    }
}
