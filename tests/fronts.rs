//! The command line and the C interface say the same about every golden file, in JSON of the published form.
#![cfg(all(feature = "cli", feature = "inspect"))]

mod folder;
mod schema;

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;
use std::process::Command;
use tvmspec::capi::examine::tvmspec_examine;
use tvmspec::capi::extras::tvmspec_free;

/// What is asked, and the schema of the answer. The C interface looks for no library on this machine.
const COMMANDS: [(&str, &[&str], &str); 5] = [
    ("inspect", &[], include_str!("../spec/schema/inspect.json")),
    ("verify", &[], include_str!("../spec/schema/verify.json")),
    (
        "verify --strict",
        &[],
        include_str!("../spec/schema/verify.json"),
    ),
    (
        "explain",
        &["--elsewhere"],
        include_str!("../spec/schema/explain.json"),
    ),
    ("dump", &[], include_str!("../spec/schema/dump.json")),
];

#[test]
fn all_fronts_say_the_same_about_every_golden() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = COMMANDS.map(|(command, _, text)| (command, schema::schema(text)));
    let schemas: BTreeMap<_, _> = schemas.into_iter().collect();
    let mut counts = BTreeMap::<(&str, i32), usize>::new();
    for path in folder::files(&root.join("golden")) {
        // What is said about a golden, its dump and its origin, is none.
        if path
            .extension()
            .is_some_and(|end| end == "txt" || end == "md")
        {
            continue;
        }
        let name = path.to_str().expect("a golden has a plain name");
        let bytes = fs::read(&path).expect(name);
        for (command, besides, _) in COMMANDS {
            let place = format!("{command} {name}");
            let (code, said) = from_c(command, name, &bytes);
            let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
                .args(command.split(' '))
                .args(["--json"])
                .args(besides)
                .arg(&path)
                .output()
                .expect("tvmspec runs");
            assert_eq!(output.status.code(), Some(code), "{place}: {said}");
            *counts.entry((command, code)).or_default() += 1;
            if code == 2 {
                let message = String::from_utf8_lossy(&output.stderr);
                assert_eq!(message.trim_end(), format!("error: {said}"), "{place}");
                continue;
            }
            let ours: Value = serde_json::from_str(&said).expect(&place);
            let theirs: Value = serde_json::from_slice(&output.stdout).expect(&place);
            assert_eq!(ours, theirs, "{place}");
            schema::conforms(&schemas[command], &ours, &place);
        }
    }
    println!("answers by command and exit code: {counts:?}");
    for (command, _, _) in COMMANDS {
        assert!(
            counts.contains_key(&(command, 0)),
            "{command} is good of nothing"
        );
        assert!(
            counts.contains_key(&(command, 2)),
            "{command} refuses nothing"
        );
    }
}

fn from_c(command: &str, name: &str, bytes: &[u8]) -> (i32, String) {
    let (command, name) = (CString::new(command), CString::new(name));
    let (command, name) = (command.expect("no zero"), name.expect("no zero"));
    let mut text = std::ptr::null_mut();
    // SAFETY: two C strings, `length` bytes that live on, and a place for a text.
    let code = unsafe {
        let start = bytes.as_ptr().cast();
        tvmspec_examine(
            command.as_ptr(),
            name.as_ptr(),
            start,
            bytes.len(),
            &raw mut text,
        )
    };
    // SAFETY: the library made the text, which ends with a zero.
    let said = unsafe { CStr::from_ptr(text) }
        .to_str()
        .expect("UTF-8")
        .to_owned();
    // SAFETY: the library made the text, and it is not used any more.
    unsafe { tvmspec_free(text) };
    (code, said)
}
