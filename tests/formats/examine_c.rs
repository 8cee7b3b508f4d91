//! Examination of files through the C symbols, as `include/tvmspec.h` describes.
#![cfg(all(feature = "inspect", feature = "runtime"))]

use serde_json::Value;
use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};
use tvmspec::capi::examine::{tvmspec_examine, tvmspec_examine_file};
use tvmspec::capi::extras::{tvmspec_abi, tvmspec_free};

/// Returns the answer of the library to `command`, for the file of this name or for `bytes`.
fn examine(command: &str, name: &str, bytes: Option<&[u8]>) -> (i32, String) {
    let command = CString::new(command).unwrap();
    let name = CString::new(name).unwrap();
    let (command, name) = (command.as_ptr(), name.as_ptr());
    answer(|text| match bytes {
        // SAFETY: two C strings and a place for a text.
        None => unsafe { tvmspec_examine_file(command, name, text) },
        Some(bytes) => {
            let (start, length) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: two C strings, `length` bytes that live on, and a place for a text.
            unsafe { tvmspec_examine(command, name, start, length, text) }
        }
    })
}

fn answer(ask: impl FnOnce(*mut *mut c_char) -> i32) -> (i32, String) {
    let mut text = null_mut();
    let code = ask(&raw mut text);
    assert!(!text.is_null());
    // SAFETY: the library made the text, which ends with a zero.
    let answer = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // SAFETY: the library made the text, and it is not used any more.
    unsafe { tvmspec_free(text) };
    (code, answer)
}

#[test]
fn null_is_no_name_no_bytes_and_no_place() {
    let verify = c"verify".as_ptr();
    let good = std::fs::read(golden("blob/opencl-0.6.bin")).unwrap();
    let (start, length) = (good.as_ptr().cast(), good.len());
    // SAFETY: null or what each parameter has to be, here and in all of this test.
    let (code, report) = json(answer(|text| unsafe {
        tvmspec_examine(verify, null(), start, length, text)
    }));
    assert_eq!((code, &report["file"]), (0, &Value::from("<memory>")));
    // SAFETY: see above.
    let code = unsafe { tvmspec_examine(verify, null(), start, length, null_mut()) };
    assert_eq!(code, 0);
    // SAFETY: see above.
    let of = |ask: &dyn Fn(*mut *mut c_char) -> i32| answer(ask);
    // A buffer without bytes is an empty file. The file of this name is not read.
    let there = CString::new(golden("blob/opencl-0.6.bin")).unwrap();
    // SAFETY: see above.
    let empty = of(&|text| unsafe { tvmspec_examine(verify, there.as_ptr(), null(), 0, text) });
    assert_eq!(empty.0, 2);
    assert!(empty.1.contains("it is empty"), "{}", empty.1);
    // SAFETY: see above.
    let none = of(&|text| unsafe { tvmspec_examine(verify, null(), null(), 8, text) });
    let message = "the bytes are null, and their length is not 0";
    assert_eq!(none, (2, message.to_owned()));
    // SAFETY: see above; so many bytes are never read.
    let many = of(&|text| unsafe { tvmspec_examine(verify, null(), start, usize::MAX, text) });
    assert_eq!(many, (2, "no memory has so many bytes".to_owned()));
    // SAFETY: see above.
    let command = of(&|text| unsafe { tvmspec_examine(null(), null(), start, length, text) });
    assert_eq!(command.0, 2);
    assert!(command.1.contains("there is no command"), "{}", command.1);
    // SAFETY: see above.
    let path = of(&|text| unsafe { tvmspec_examine_file(verify, null(), text) });
    assert_eq!(path, (2, "the path is null".to_owned()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_is_bytes_and_a_device_has_an_end() {
    let (code, message) = answer(|text| {
        // SAFETY: two C strings and a place for a text.
        unsafe { tvmspec_examine_file(c"verify".as_ptr(), c"/no\xff/such".as_ptr(), text) }
    });
    assert_eq!(code, 2);
    assert!(
        message.starts_with("cannot read /no\u{fffd}/such: "),
        "{message}"
    );
    let (code, message) = examine("verify", "/dev/zero", None);
    assert_eq!(code, 2);
    assert!(message.contains("has no end within 256 MiB"), "{message}");
}

fn json((code, reply): (i32, String)) -> (i32, Value) {
    (code, serde_json::from_str(&reply).expect(&reply))
}

fn golden(name: &str) -> String {
    format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn unexaminable_file_returns_code_2() {
    let reply = |command: &str, bytes: Option<&[u8]>| {
        let (code, message) = examine(command, "no/such.so", bytes);
        assert_eq!(code, 2, "{message}");
        message
    };
    assert!(reply("inspect", None).starts_with("cannot read no/such.so: "));
    for command in ["inspect", "verify", "explain", "dump"] {
        let message = reply(command, Some(b"just a text\n"));
        assert!(
            message.contains("it is of no form that TVM writes"),
            "{command}: {message}"
        );
        assert!(
            reply(command, Some(b"")).contains("it is empty"),
            "{command}"
        );
    }
    assert!(reply("look", Some(b"")).contains("there is no command `look`"));
    assert!(reply("verify --strict=yes", Some(b"")).contains("--strict takes no value"));
    assert!(reply("dump --from here", Some(b"")).contains("`here` is not an offset"));
    assert!(reply("inspect --strict", Some(b"")).contains("no option `--strict`"));
    assert!(reply("verify --layout", Some(b"")).contains("--layout has no value"));
    assert!(reply("verify --layout 9", Some(b"")).contains('9'));
    assert!(reply("explain --release 1.0", Some(b"")).contains("not a TVM release"));
    assert_eq!(tvmspec_abi(), 2);
}

#[test]
fn the_exit_code_is_that_of_the_command_line() {
    let good = std::fs::read(golden("blob/opencl-0.6.bin")).unwrap();
    let code = |command: &str, bytes: &[u8]| json(examine(command, "a.bin", Some(bytes))).0;
    assert_eq!(code("verify", &good), 0);
    assert_eq!(code("verify --strict --layout 0.2", &good), 0);
    assert_eq!(code("verify", &good[..good.len() - 1]), 1);
    assert_eq!(code("inspect", &good[..good.len() - 1]), 1);
    assert_eq!(code("dump", &good[..good.len() - 1]), 1);
    assert_eq!(code("explain", &good), 0);
    assert_eq!(code("explain --release 0.6", &good), 0);
    assert_eq!(code("explain --release 0.27", &good), 1);
}

fn verify_text(text: &str) -> (i32, Value) {
    json(examine("verify", "objects.json", Some(text.as_bytes())))
}

#[test]
fn saved_objects_are_held_to_their_rules() {
    let legacy = |nodes: &str| {
        format!(r#"{{"root": 1, "nodes": [{{"type_key": ""}}, {nodes}], "b64ndarrays": []}}"#)
    };
    let ffi = |root: &str, nodes: &str| format!(r#"{{"root_index":{root},"nodes":[{nodes}]}}"#);
    let array = r#"{"type_key": "Array", "data": [2]}"#;
    let cases = [
        (legacy(r#"{"type_key": "Array", "data": [0]}"#), None),
        (legacy(&format!("{array}, {array}")), Some("OBJ-27")),
        (legacy(r#"{"type_key": "a\/b"}"#), Some("OBJ-21")),
        (
            legacy(r#"{"type_key": "Array", "data": [99999999999999999999999]}"#),
            Some("OBJ-23"),
        ),
        (ffi("0", r#"{"type":"ffi.Array","data":[]}"#), None),
        (ffi("0", r#"{"type":"None"}"#), None),
        (ffi("1", r#"{"type":"None"}"#), Some("OBJ-20")),
        (ffi("-1", r#"{"type":"None"}"#), Some("OBJ-20")),
        (
            ffi("0", r#"{"type":"ffi.Array","data":[5]}"#),
            Some("OBJ-20"),
        ),
        (
            ffi("0", r#"{"type":"ffi.List","data":[0]}"#),
            Some("OBJ-19"),
        ),
        (
            ffi("0", r#"{"type":"ffi.Map","data":[1]},{"type":"None"}"#),
            Some("OBJ-18"),
        ),
        (ffi("0", r#"{"data":1}"#), Some("OBJ-18")),
        // No node refers to the second one.
        (
            ffi("0", r#"{"type":"None"},{"type":"ffi.Array","data":[9]}"#),
            None,
        ),
    ];
    for (text, rule) in cases {
        let (count, report) = verify_text(&text);
        match rule {
            Some(rule) => {
                assert_eq!(count, 1, "{text}: {report}");
                assert_eq!(report["violations"][0]["rule"], rule, "{text}");
            }
            None => assert_eq!(count, 0, "{text}: {report}"),
        }
    }
}

#[test]
fn forms_have_the_names_of_the_command_line() {
    let (code, value) = json(examine("inspect", &golden("object/0.8/map-str.json"), None));
    assert_eq!(code, 0);
    assert_eq!(value["form"], "object-json");
    assert_eq!(value["objects"]["root"], "Map");
}
