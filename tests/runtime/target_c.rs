//! Targets and exports through the C symbols, as `include/tvmspec.h` promises.
#![cfg(all(feature = "runtime", feature = "target"))]

mod export;

use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use tvmspec::capi::extras::tvmspec_free;
use tvmspec::capi::target::*;

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// Returns the return code and the text of a call.
fn answer(call: impl FnOnce(*mut *mut c_char) -> c_int) -> (c_int, String) {
    let mut text = null_mut();
    let code = call(&raw mut text);
    assert!(!text.is_null());
    // SAFETY: the library made the text, which ends with NUL.
    let answer = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // SAFETY: the library made the text, and it is not used any more.
    unsafe { tvmspec_free(text) };
    (code, answer)
}

fn read(release: &str, named: &str) -> (c_int, String) {
    let (release, named) = (c(release), c(named));
    // SAFETY: the arguments are two C strings and a place.
    answer(|text| unsafe { tvmspec_target_read(release.as_ptr(), named.as_ptr(), text) })
}

fn json_of((code, text): (c_int, String)) -> Value {
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// TGT-74: a kind that C registers is in the list of a frontend, and no other name is.
#[test]
fn kinds_and_options_are_functions_of_the_registry() {
    use tvmspec::function::registry;
    use tvmspec::object::{Array, Map};
    use tvmspec::value::cast;
    let form = c(
        r#"{"name": "listed", "device_type": 12, "options": [{"name": "lanes", "type": "int"}]}"#,
    );
    // SAFETY: the arguments are a C string, no parser, and a place.
    let registered = answer(|text| unsafe {
        tvmspec_target_register_kind(form.as_ptr(), None, null_mut(), text)
    });
    assert_eq!(registered.0, 0, "{}", registered.1);
    let list = registry::lookup("target.ListTargetKinds").unwrap();
    let kinds: Array = cast(list.call(()).unwrap().view()).unwrap();
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
        let types: Map = cast(options.call((kind,)).unwrap().view()).unwrap();
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
    let unknown = options.call(("no such kind",)).unwrap_err();
    assert_eq!(
        unknown.violation().map(|broken| broken.rule().id()),
        Some("TGT-74")
    );
}

/// Parses a target: adds a model if none is stated, and rejects three lanes.
unsafe extern "C" fn parse(
    context: *mut c_void,
    config: *const c_char,
    answer: *mut *const c_char,
) -> c_int {
    // SAFETY: the context is a counter that is never freed.
    let calls = unsafe { &*context.cast::<AtomicUsize>() };
    calls.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `config` is a C string, by the contract of parsers.
    let config = unsafe { CStr::from_ptr(config) }.to_str().unwrap();
    let mut config: Value = serde_json::from_str(config).unwrap();
    let text = match config["lanes"].as_i64() {
        Some(3) => "three lanes are none".to_owned(),
        _ => {
            config["model"] = "foo-1".into();
            config.to_string()
        }
    };
    // The test leaks the text, because a parser must keep it until its thread calls again.
    let code = c_int::from(text.starts_with("three"));
    // SAFETY: `answer` is a place, by the contract of parsers.
    unsafe { answer.write(c(&text).into_raw()) };
    code
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

fn register_kind(form: &str, parser: Option<ParseTarget>) -> (c_int, String) {
    let form = c(form);
    let context = (&raw const CALLS).cast_mut().cast();
    // SAFETY: the arguments are a C string, a parser that any thread may call, its counter, and a place.
    answer(|text| unsafe { tvmspec_target_register_kind(form.as_ptr(), parser, context, text) })
}

#[test]
fn a_kind_of_c_is_read_with_its_parser() {
    let form = r#"{"name": "foo", "device_type": 12, "keys": ["foo"], "options": [{"name": "lanes", "type": "int", "default": 4}]}"#;
    assert_eq!(register_kind(form, Some(parse)), (0, String::new()));
    let mut target = json_of(read("0.27", "foo"));
    let releases = target.as_object_mut().unwrap().remove("releases").unwrap();
    // TGT-10: up to 0.6, only names that the release has are valid.
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
        // SAFETY: the arguments are three C strings and a place.
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
fn invalid_target_is_rejected() {
    assert_eq!(read("0.27", "cuda -arch=sm_80").0, 1);
    assert_eq!(read("0.28", "cuda").0, 2);
    assert_eq!(read("", "").0, 2);
    // SAFETY: null is allowed for the texts and the place, and is rejected.
    let code = unsafe { tvmspec_target_read(null(), null(), null_mut()) };
    assert_eq!(code, 2);
    // SAFETY: null is allowed for a text, and is rejected.
    let (code, _) = answer(|text| unsafe { tvmspec_target_from_device(null(), null(), text) });
    assert_eq!(code, 2);
    let of = |release: &str, device: &str| {
        let (release, device) = (c(release), c(device));
        // SAFETY: the arguments are two C strings and a place.
        answer(|text| unsafe {
            tvmspec_target_from_device(release.as_ptr(), device.as_ptr(), text)
        })
    };
    assert_eq!(json_of(of("0.27", "cpu:0"))["target"]["kind"], "llvm");
    assert_eq!(of("0.12", "cpu:0").0, 1);
    assert_eq!(of("0.27", "hexagon:0").0, 1);
}

#[test]
fn a_driver_that_is_missing_answers_nothing() {
    use tvmspec::device::{Manager, device_type};
    for kind in ["cuda", "rocm", "vulkan", "opencl"] {
        let number = device_type::number_of(kind).expect("a type");
        let Ok(Some(api)) = Manager::global().find(number) else {
            continue;
        };
        if !api.has_driver() {
            let (code, text) = read(
                "0.27",
                &format!(r#"{{"kind": "{kind}", "from_device": 0}}"#),
            );
            assert_eq!(code, 0, "{kind}: {text}");
        }
    }
}
