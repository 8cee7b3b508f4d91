//! Generators of C.

use super::{answer, c, json_of, register_kind};
use serde_json::json;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use tvmspec::capi::target::*;

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
