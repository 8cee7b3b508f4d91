//! Targets, generators and exports through the C symbols, as `include/tvmspec.h` promises.
#![cfg(all(feature = "runtime", feature = "target"))]

#[path = "../support/skip.rs"]
mod skip;

use serde_json::{Value, json};
use skip::skipped;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use tvmspec::blob::container;
use tvmspec::capi::export::*;
use tvmspec::capi::extras::tvmspec_free;
use tvmspec::capi::target::*;

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// The return code and the text that a call leaves.
fn answer(call: impl FnOnce(*mut *mut c_char) -> c_int) -> (c_int, String) {
    let mut text = null_mut();
    let code = call(&raw mut text);
    assert!(!text.is_null());
    // SAFETY: the library made the text, which ends with a zero.
    let answer = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // SAFETY: the library made the text, and it is not used any more.
    unsafe { tvmspec_free(text) };
    (code, answer)
}

fn read(release: &str, named: &str) -> (c_int, String) {
    let (release, named) = (c(release), c(named));
    // SAFETY: two C strings and a place.
    answer(|text| unsafe { tvmspec_target_read(release.as_ptr(), named.as_ptr(), text) })
}

fn json_of((code, text): (c_int, String)) -> Value {
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// TGT-74: a kind that C registers is one of those that a frontend lists, and no other name is.
#[test]
fn kinds_and_options_are_functions_of_the_registry() {
    use tvmspec::function::registry;
    use tvmspec::object::{Array, Map};
    use tvmspec::value::cast;
    let form = c(
        r#"{"name": "listed", "device_type": 12, "options": [{"name": "lanes", "type": "int"}]}"#,
    );
    // SAFETY: a C string, no parser, and a place.
    let registered = answer(|text| unsafe {
        tvmspec_target_register_kind(form.as_ptr(), None, null_mut(), text)
    });
    assert_eq!(registered.0, 0, "{}", registered.1);
    let list = registry::lookup("target.ListTargetKinds").unwrap();
    let kinds: Array = cast(list.call_with([]).unwrap().view()).unwrap();
    let kinds: Vec<String> = kinds
        .as_slice()
        .iter()
        .map(|name| cast(name.view()).unwrap())
        .collect();
    for known in ["listed", "llvm", "cuda", "opencl"] {
        let count = kinds.iter().filter(|name| *name == known).count();
        assert_eq!(count, 1, "{known} in {kinds:?}");
    }
    let options = registry::lookup("target.ListTargetKindOptionsFromName").unwrap();
    let types = |kind: &str| -> Vec<(String, String)> {
        let types: Map = cast(options.call_with([kind.into()]).unwrap().view()).unwrap();
        types
            .iter()
            .map(|(name, of)| (cast(name.view()).unwrap(), cast(of.view()).unwrap()))
            .collect()
    };
    let has = |kind: &str, name: &str, of: &str| {
        let types = types(kind);
        assert!(
            types.contains(&(name.into(), of.into())),
            "{kind}: {types:?}"
        );
    };
    has("listed", "lanes", "int");
    has("listed", "libs", "Array<str>");
    has("llvm", "host", "target.Target");
    let unknown = options.call_with(["no such kind".into()]).unwrap_err();
    assert_eq!(
        unknown.violation().map(|broken| broken.rule().id()),
        Some("TGT-74")
    );
}

/// A parser that adds a model where none is stated, and rejects lanes of 3.
unsafe extern "C" fn parse(
    context: *mut c_void,
    config: *const c_char,
    answer: *mut *const c_char,
) -> c_int {
    // SAFETY: the context is a counter, for ever.
    let calls = unsafe { &*context.cast::<AtomicUsize>() };
    calls.fetch_add(1, Ordering::Relaxed);
    // SAFETY: a C string, by the contract of parsers.
    let config = unsafe { CStr::from_ptr(config) }.to_str().unwrap();
    let mut config: Value = serde_json::from_str(config).unwrap();
    let text = match config["lanes"].as_i64() {
        Some(3) => "three lanes are none".to_owned(),
        _ => {
            config["model"] = "foo-1".into();
            config.to_string()
        }
    };
    // The test leaks it: a parser keeps its text until its thread calls again.
    let code = c_int::from(text.starts_with("three"));
    // SAFETY: a place, by the contract of parsers.
    unsafe { answer.write(c(&text).into_raw()) };
    code
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

fn register_kind(form: &str, parser: Option<ParseTarget>) -> (c_int, String) {
    let form = c(form);
    let context = (&raw const CALLS).cast_mut().cast();
    // SAFETY: a C string, a parser of any thread with its counter, and a place.
    answer(|text| unsafe { tvmspec_target_register_kind(form.as_ptr(), parser, context, text) })
}

#[test]
fn a_kind_of_c_is_read_with_its_parser() {
    let form = r#"{"name": "foo", "device_type": 12, "keys": ["foo"], "options": [{"name": "lanes", "type": "int", "default": 4}]}"#;
    assert_eq!(register_kind(form, Some(parse)), (0, String::new()));
    let mut target = json_of(read("0.27", "foo"));
    let releases = target.as_object_mut().unwrap().remove("releases").unwrap();
    // TGT-10: up to 0.6 a name is one of those that the release has.
    assert_eq!(releases[0]["rejected"]["rule"], "TGT-10");
    assert_eq!(
        releases[1],
        json!({"releases": "0.7..", "target": target["target"]})
    );
    assert_eq!(
        target,
        json!({
            "release": "0.27",
            "target": {"kind": "foo", "tag": "", "keys": ["foo"], "lanes": 4, "model": "foo-1"},
            "device_type": 12,
            "text": r#"{"kind":"foo","tag":"","keys":["foo"],"lanes":4,"model":"foo-1"}"#,
        })
    );
    assert!(CALLS.load(Ordering::Relaxed) > 0);
    let (code, why) = read("0.16", "foo -lanes=3");
    assert_eq!(code, 1);
    assert!(why.contains("three lanes are none"), "{why}");
    let (code, why) = register_kind(r#"{"name": "bar"}"#, None);
    assert_eq!(code, 1);
    assert!(why.contains("TGT-15"), "{why}");
    assert_eq!(register_kind("[", None).0, 2);
    assert_eq!(
        register_kind(r#"{"name": "plain", "device_type": 1}"#, None).0,
        0
    );
    assert_eq!(json_of(read("0.27", "plain"))["target"]["keys"], json!([]));
}

#[test]
fn a_tag_of_c_is_defined_once() {
    let define = |name: &str, config: &str, replace: c_int| {
        let (release, name, config) = (c("0.27"), c(name), c(config));
        // SAFETY: three C strings and a place.
        answer(|text| unsafe {
            tvmspec_target_register_tag(
                release.as_ptr(),
                name.as_ptr(),
                config.as_ptr(),
                replace,
                text,
            )
        })
    };
    let target = json_of(define("mine/c", r#"{"kind": "c", "mcpu": "x"}"#, 0));
    assert_eq!(target["target"]["mcpu"], "x");
    assert_eq!(json_of(read("0.27", "mine/c"))["target"]["mcpu"], "x");
    let (code, why) = define("mine/c", r#"{"kind": "c"}"#, 0);
    assert_eq!(code, 1);
    assert!(why.contains("TGT-71"), "{why}");
    json_of(define("mine/c", r#"{"kind": "c", "mcpu": "y"}"#, 1));
    assert_eq!(json_of(read("0.16", "mine/c"))["target"]["mcpu"], "y");
}

#[test]
fn what_is_no_target_is_rejected() {
    assert_eq!(read("0.27", "cuda -arch=sm_80").0, 1);
    assert_eq!(read("0.28", "cuda").0, 2);
    assert_eq!(read("", "").0, 2);
    // SAFETY: null is no text, and no place.
    let code = unsafe { tvmspec_target_read(null(), null(), null_mut()) };
    assert_eq!(code, 2);
    // SAFETY: null is no text.
    let (code, _) = answer(|text| unsafe { tvmspec_target_from_device(null(), null(), text) });
    assert_eq!(code, 2);
    let of = |release: &str, device: &str| {
        let (release, device) = (c(release), c(device));
        // SAFETY: two C strings and a place.
        answer(|text| unsafe {
            tvmspec_target_from_device(release.as_ptr(), device.as_ptr(), text)
        })
    };
    assert_eq!(json_of(of("0.27", "cpu:0"))["target"]["kind"], "llvm");
    assert_eq!(of("0.12", "cpu:0").0, 1);
    assert_eq!(of("0.27", "hexagon:0").0, 1);
}

/// A generator that returns what its context says, and rejects where that is a sentence.
unsafe extern "C" fn generate(
    context: *mut c_void,
    module: *const c_char,
    target: *const c_char,
    answer: *mut *const c_char,
) -> c_int {
    // SAFETY: a C string, by the contract of generators.
    let module = unsafe { CStr::from_ptr(module) };
    // SAFETY: a C string, by the contract of generators.
    let target = unsafe { CStr::from_ptr(target) };
    assert!(module.to_str().unwrap().contains("IRModule"));
    assert!(target.to_str().unwrap().contains("\"kind\":\"gen"));
    let text: *const c_char = context.cast();
    // SAFETY: the context is a C string, for ever.
    let rejects = !unsafe { CStr::from_ptr(text) }
        .to_str()
        .unwrap()
        .starts_with('{');
    // SAFETY: a place, by the contract of generators.
    unsafe { answer.write(text) };
    c_int::from(rejects)
}

#[test]
fn a_generator_of_c_is_held_to_the_contract() {
    let graph = fs::read_to_string("golden/target/kernels/0.27/add1_ext.device.json").unwrap();
    let graph = c(&graph);
    let compile = |kind: &str, answers: &str| {
        assert_eq!(
            register_kind(&json!({"name": kind, "device_type": 12}).to_string(), None).0,
            0
        );
        let (release, kind) = (c("0.27"), c(kind));
        // SAFETY: a C string, and a generator of any thread whose context lives for ever.
        let code = unsafe {
            tvmspec_target_register_generator(kind.as_ptr(), generate, c(answers).into_raw().cast())
        };
        assert_eq!(code, 0);
        // SAFETY: three C strings and a place.
        answer(|text| unsafe {
            tvmspec_target_generate(release.as_ptr(), kind.as_ptr(), graph.as_ptr(), text)
        })
    };
    // What this library's own generator makes of the module, as a generator of C would describe it.
    let (release, opencl) = (c("0.27"), c("opencl"));
    // SAFETY: three C strings and a place.
    let own = json_of(answer(|text| unsafe {
        tvmspec_target_generate(release.as_ptr(), opencl.as_ptr(), graph.as_ptr(), text)
    }));
    assert_eq!(own["functions"], json!(["add1_ext_kernel"]));
    let good = json!({"kind": "gen", "functions": own["functions"], "source": "code", "kernels": own["kernels"]});
    let made = json_of(compile("gen", &good.to_string()));
    assert_eq!(
        (&made["kind"], &made["source"]),
        (&json!("gen"), &json!("code"))
    );
    let payload =
        json!({"kind": "opencl", "functions": own["functions"], "payload": own["payload"]});
    assert_eq!(
        json_of(compile("gen_payload", &payload.to_string()))["kernels"],
        own["kernels"]
    );
    let data = json!({"kind": "gen", "functions": own["functions"], "data": "Y29kZQ==", "kernels": own["kernels"]});
    assert_eq!(
        json_of(compile("gen_data", &data.to_string()))["source"],
        "code"
    );
    let mut without = good.clone();
    without["functions"] = json!([]);
    let mut undescribed = good.clone();
    undescribed["kernels"] = json!([]);
    let mut empty = good.clone();
    empty.as_object_mut().unwrap().remove("source");
    for (answers, rule) in [
        (without.to_string(), "TGT-81"),
        (undescribed.to_string(), "TGT-85"),
        (empty.to_string(), "neither `payload`"),
        ("{".to_owned(), "a generator of C"),
        ("{\"functions\": []}".to_owned(), "no `kind`"),
        (
            "no kernels of this size".to_owned(),
            "no kernels of this size",
        ),
    ] {
        let (code, why) = compile("gen_wrong", &answers);
        assert_eq!(code, 1, "{why}");
        assert!(why.contains(rule), "{why}");
    }
    let (none, graph) = (c("metal"), c("[]"));
    // SAFETY: three C strings and a place.
    let (code, _) = answer(|text| unsafe {
        tvmspec_target_generate(release.as_ptr(), none.as_ptr(), graph.as_ptr(), text)
    });
    assert_eq!(code, 1, "no module");
}

/// TGT-80: one registry, whichever front a generator comes from.
#[test]
fn a_generator_of_one_front_is_found_from_the_other() {
    use tvmspec::release::Release;
    use tvmspec::target::{
        Generators, LoweredModule, register_generator, registered_generators, registered_targets,
    };
    let graph = fs::read_to_string("golden/target/kernels/0.27/add1_ext.device.json").unwrap();
    let module = LoweredModule::read(graph.as_bytes()).unwrap();
    for kind in ["gen_rust", "gen_c"] {
        let form = json!({"name": kind, "device_type": 12}).to_string();
        assert_eq!(register_kind(&form, None).0, 0);
    }
    let opencl = |module: &_, _: &_| {
        let opencl = registered_targets(Release::of(27), false).read("opencl")?;
        Generators::new().generate(module, &opencl)
    };
    register_generator("gen_rust", Box::new(opencl));
    let (release, kind, graph) = (c("0.27"), c("gen_rust"), c(&graph));
    // SAFETY: three C strings and a place.
    let of_rust = json_of(answer(|text| unsafe {
        tvmspec_target_generate(release.as_ptr(), kind.as_ptr(), graph.as_ptr(), text)
    }));
    let (kind, context) = (c("gen_c"), c(&of_rust.to_string()).into_raw());
    // SAFETY: a C string, and a generator of any thread whose context lives for ever.
    let code =
        unsafe { tvmspec_target_register_generator(kind.as_ptr(), generate, context.cast()) };
    assert_eq!(code, 0);
    let target = registered_targets(Release::of(27), false)
        .read("gen_c")
        .unwrap();
    let of_c = registered_generators().generate(&module, &target).unwrap();
    assert_eq!(of_c.to_json(), of_rust);
}

fn export(job: &Value, compile: Option<CompileLibrary>) -> (c_int, String) {
    let job = c(&job.to_string());
    // SAFETY: a C string, a compiler without a context, and a place.
    answer(|text| unsafe { tvmspec_export(job.as_ptr(), compile, null_mut(), text) })
}

/// Concatenates nothing: writes the paths of its inputs and its arguments, one a line.
unsafe extern "C" fn list(
    _: *mut c_void,
    output: *const c_char,
    inputs: *const *const c_char,
    input_count: usize,
    options: *const *const c_char,
    option_count: usize,
) -> c_int {
    let text = |text: *const c_char| {
        // SAFETY: a C string, by the contract of compilers.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    };
    // SAFETY: as many as are counted, by the contract of compilers.
    let inputs = unsafe { std::slice::from_raw_parts(inputs, input_count) };
    let names: Vec<String> = inputs.iter().map(|input| text(*input)).collect();
    let names = names
        .iter()
        .map(|name| Path::new(name).file_name().unwrap().to_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["lib0.c", "devc.c"]);
    // SAFETY: as many as are counted, by the contract of compilers.
    let options = unsafe { std::slice::from_raw_parts(options, option_count) };
    if options.iter().any(|option| text(*option) == "-fail") {
        return 7;
    }
    // The library binary is found in its C text, as in any file.
    fs::copy(text(inputs[1]), text(output)).unwrap();
    0
}

#[test]
fn a_job_of_c_is_exported_and_a_library_binary_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let job = |output: &str| {
        json!({
            "output": output,
            "release": "0.27",
            "modules": [
                {"kind": "_lib", "format": "c", "code": "int __tvm_ffi_f(void) { return 0; }\n", "imports": [1]},
                {"kind": "mine", "payload": "Y29kZQ=="},
            ],
        })
    };
    for name in ["lib.tar", "lib.c"] {
        assert_eq!(
            export(&job(&path(name)), None),
            (0, String::new()),
            "{name}"
        );
        let file = fs::read(path(name)).unwrap();
        assert_eq!(container::open(&file).unwrap().blobs().count(), 1, "{name}");
    }
    let mut hooked = job(&path("hooked.so"));
    assert_eq!(export(&hooked, Some(list)).0, 0);
    hooked["options"] = json!(["-fail"]);
    let (code, why) = export(&hooked, Some(list));
    assert_eq!(code, 2);
    assert!(why.contains("returns 7"), "{why}");
    for (member, value, says) in [
        ("output", json!(null), "no `output`"),
        ("release", json!(null), "no `release`"),
        ("release", json!("0.28"), "0.28"),
        (
            "modules",
            json!([]),
            "module 0 is imported, and there are 0",
        ),
        ("modules", json!({}), "is not a list"),
        (
            "modules",
            json!([{"kind": "_lib", "format": "rs", "code": ""}]),
            "`rs` is not a format",
        ),
        (
            "modules",
            json!([{"kind": "_lib", "format": "c"}]),
            "no `code`",
        ),
        (
            "modules",
            json!([{"kind": "_lib", "format": "c", "code": "", "import": []}]),
            "no member `import`",
        ),
        (
            "modules",
            json!([{"kind": "_lib", "format": "c", "code": "", "imports": [-1]}]),
            "no position",
        ),
        ("modules", json!([{"kind": "mine"}]), "no `payload`"),
        ("modules", json!([{"payload": ""}]), "no `kind`"),
        ("system_lib", json!(1), "is not a text"),
        ("system_lib", json!("1 x"), "BLOB-61"),
        ("options", json!([1]), "a list of texts"),
        ("order", json!("0.9"), "0.9"),
        ("triple", json!("z80-none"), "z80"),
        ("extra", json!(1), "no member `extra`"),
    ] {
        let mut wrong = job(&path("wrong.c"));
        wrong[member] = value;
        let (code, why) = export(&wrong, None);
        assert_eq!(code, 2, "{member}: {why}");
        assert!(why.contains(says), "{member}: {why}");
        assert!(!Path::new(&path("wrong.c")).exists());
    }

    let replace = |input: &str, index: usize, blob: &[u8], output: &str| {
        let (input, output) = (c(input), c(output));
        // SAFETY: two C strings, bytes that live on, and a place.
        answer(|text| unsafe {
            tvmspec_replace(
                input.as_ptr(),
                index,
                blob.as_ptr().cast(),
                blob.len(),
                output.as_ptr(),
                text,
            )
        })
    };
    let empty = [&8_u64.to_le_bytes()[..], &[0; 8]].concat();
    let library = "golden/blob/containers/tree3-0.8.so";
    assert_eq!(
        replace(library, 0, &empty, &path("tree3.so")),
        (0, String::new())
    );
    let made = fs::read(path("tree3.so")).unwrap();
    assert_eq!(
        container::open(&made)
            .unwrap()
            .blobs()
            .next()
            .unwrap()
            .1
            .bytes,
        &*empty
    );
    assert_eq!(replace(library, 1, &empty, &path("none.so")).0, 1);
    assert_eq!(replace("nowhere.so", 0, &empty, &path("none.so")).0, 2);
    assert_eq!(
        replace(library, 0, &[], &path("none.so")).0,
        1,
        "no library binary is empty"
    );
    assert!(!Path::new(&path("none.so")).exists());

    let linked = export(&job(&path("lib.so")), None);
    if Command::new("cc").arg("--version").output().is_err() {
        return skipped("there is no C compiler");
    }
    assert_eq!(linked.0, 0, "{}", linked.1);
    let mut broken = job(&path("broken.so"));
    broken["modules"][0]["code"] = "int f( {".into();
    let (code, why) = export(&broken, None);
    assert_eq!(code, 2);
    assert!(why.contains("error"), "the compiler's own words: {why}");
    assert!(!Path::new(&path("broken.so")).exists());
}
