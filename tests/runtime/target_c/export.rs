//! Exports, and the replacement of library binaries.

use super::{answer, c};
use crate::support::skip::skipped;
use serde_json::{Value, json};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use tvmspec::blob::container;
use tvmspec::capi::export::*;

fn export(job: &Value, compile: Option<CompileLibrary>) -> (c_int, String) {
    let job = c(&job.to_string());
    // SAFETY: the arguments are a C string, a compiler without a context, and a place.
    answer(|text| unsafe { tvmspec_export(job.as_ptr(), compile, null_mut(), text) })
}

/// Compiles nothing, but writes the paths of its inputs and its arguments, one per line.
unsafe extern "C" fn list(
    _: *mut c_void,
    output: *const c_char,
    inputs: *const *const c_char,
    input_count: usize,
    options: *const *const c_char,
    option_count: usize,
) -> c_int {
    let text = |text: *const c_char| {
        // SAFETY: the argument is a C string, by the contract of compilers.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    };
    // SAFETY: there are `input_count` inputs, by the contract of compilers.
    let inputs = unsafe { std::slice::from_raw_parts(inputs, input_count) };
    let names: Vec<String> = inputs.iter().map(|input| text(*input)).collect();
    let names = names
        .iter()
        .map(|name| Path::new(name).file_name().unwrap().to_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["lib0.c", "devc.c"]);
    // SAFETY: there are `option_count` options, by the contract of compilers.
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
            "unknown member `import`",
        ),
        (
            "modules",
            json!([{"kind": "_lib", "format": "c", "code": "", "imports": [-1]}]),
            "is not a position",
        ),
        ("modules", json!([{"kind": "mine"}]), "no `payload`"),
        ("modules", json!([{"payload": ""}]), "no `kind`"),
        ("system_lib", json!(1), "is not a text"),
        ("system_lib", json!("1 x"), "BLOB-61"),
        ("options", json!([1]), "a list of texts"),
        ("order", json!("0.9"), "0.9"),
        ("triple", json!("z80-none"), "z80"),
        ("extra", json!(1), "unknown member `extra`"),
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
        // SAFETY: the arguments are two C strings, bytes that outlive the call, and a place.
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
