//! Looking into files through the C symbols, as `include/tvmspec.h` promises.
#![cfg(feature = "inspect")]

use serde_json::Value;
use std::ffi::{CStr, CString, c_char};
use tvmspec::capi::extras::tvmspec_free;
use tvmspec::capi::inspect::{tvmspec_inspect, tvmspec_verify};

fn taken(text: *mut c_char) -> Value {
    assert!(!text.is_null());
    // SAFETY: the library made the text, which ends with a zero.
    let value = serde_json::from_slice(unsafe { CStr::from_ptr(text) }.to_bytes()).unwrap();
    // SAFETY: the library made the text, and it is not used any more.
    unsafe { tvmspec_free(text) };
    value
}

fn path(name: &str) -> CString {
    CString::new(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn verify_path(path: &CStr) -> (i32, Value) {
    let mut report = std::ptr::null_mut();
    // SAFETY: a C string and a place for a text.
    let count = unsafe { tvmspec_verify(path.as_ptr(), 0, &raw mut report) };
    (count, taken(report))
}

fn verify_text(text: &str) -> (i32, Value) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    verify_path(&CString::new(file.path().to_str().unwrap()).unwrap())
}

#[test]
fn a_file_without_rules_is_an_error() {
    let (count, report) = verify_path(&path("README.md"));
    assert_eq!(count, -1, "{report}");
    assert!(report[0]["rule"].is_null());
    let message = report[0]["message"].as_str().unwrap();
    assert!(message.contains("unknown"), "{message}");
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
        // Nobody follows the second node.
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
                assert_eq!(report[0]["rule"], rule, "{text}");
            }
            None => assert_eq!(count, 0, "{text}: {report}"),
        }
    }
}

#[test]
fn forms_have_the_names_of_the_command_line() {
    let path = path("golden/object/0.8/map-str.json");
    // SAFETY: a C string.
    let value = taken(unsafe { tvmspec_inspect(path.as_ptr()) });
    assert_eq!(value["form"], "object-json");
    assert_eq!(value["objects"]["root"], "Map");
}
