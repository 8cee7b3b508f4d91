//! Looking into files from C, declared in `include/tvmspec.h`. There with the feature `inspect`.
//!
//! Nothing here executes the file that it looks at. Texts are JSON; give them back with
//! [`tvmspec_free`](super::extras::tvmspec_free).

use crate::blob::container::{self, File};
use crate::blob::{Blob, detect};
use crate::rule::{Finding, Findings, Strictness, Violation};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;

/// What the file at `path` holds, as JSON: its form, its symbols and its library binaries; null when it cannot be read.
///
/// # Safety
///
/// `path` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_inspect(path: *const c_char) -> *mut c_char {
    // SAFETY: says the caller.
    let Some(bytes) = (unsafe { read(path) }) else {
        return std::ptr::null_mut();
    };
    catch_unwind(|| give(&inspect(&bytes))).unwrap_or(std::ptr::null_mut())
}

/// Holds the file at `path` to every rule. Returns how many violations and findings there are, or -1 when the file cannot be
/// read; with `strict` the first finding is a violation. The report, as JSON, goes to `report`, which may be null.
///
/// # Safety
///
/// `path` must be a C string, `report` null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_verify(
    path: *const c_char,
    strict: c_int,
    report: *mut *mut c_char,
) -> c_int {
    // SAFETY: says the caller.
    let Some(bytes) = (unsafe { read(path) }) else {
        return -1;
    };
    let strictness = if strict == 0 {
        Strictness::Lenient
    } else {
        Strictness::Strict
    };
    let Ok(list) = catch_unwind(|| verify(&bytes, strictness)) else {
        return -1;
    };
    if !report.is_null() {
        // SAFETY: says the caller.
        unsafe { report.write(give(&Value::Array(list.clone()))) };
    }
    c_int::try_from(list.len()).unwrap_or(c_int::MAX)
}

unsafe fn read(path: *const c_char) -> Option<Vec<u8>> {
    if path.is_null() {
        return None;
    }
    // SAFETY: says the caller.
    let path = unsafe { CStr::from_ptr(path) };
    std::fs::read(path.to_str().ok()?).ok()
}

fn give(value: &Value) -> *mut c_char {
    CString::new(value.to_string()).map_or(std::ptr::null_mut(), CString::into_raw)
}

fn inspect(bytes: &[u8]) -> Value {
    let file = match container::open(bytes) {
        Ok(file) => file,
        Err(broken) => return json!({"error": violation(&broken)}),
    };
    let functions: Vec<&str> = file
        .parts
        .iter()
        .flat_map(container::Part::functions)
        .collect();
    let blobs: Vec<Value> = file
        .blobs()
        .map(|(part, found)| {
            let layout = detect::detect(&found.bytes, symbol(found));
            let read = Blob::read_partial(&found.bytes, layout, Findings::default());
            json!({
                "member": part.member,
                "symbol": found.symbol,
                "blob": read.blob.to_json(),
                "error": read.broken.as_ref().map(violation),
                "findings": read.findings.into_iter().map(|found| finding(&found)).collect::<Vec<Value>>(),
            })
        })
        .collect();
    json!({"form": format!("{:?}", file.form), "functions": functions, "blobs": blobs})
}

fn symbol<'a>(found: &'a container::Blob<'_>) -> Option<&'a str> {
    Some(found.symbol.as_str()).filter(|symbol| !symbol.is_empty())
}

fn verify(bytes: &[u8], strictness: Strictness) -> Vec<Value> {
    let file: File<'_> = match container::open_with(bytes, strictness) {
        Ok(file) => file,
        Err(broken) => return vec![violation(&broken)],
    };
    let mut list: Vec<Value> = file.findings.as_slice().iter().map(finding).collect();
    for (_, found) in file.blobs() {
        let layout = detect::detect(&found.bytes, symbol(found));
        let read = Blob::read_partial(&found.bytes, layout, Findings::new(strictness));
        list.extend(read.findings.as_slice().iter().map(finding));
        list.extend(read.broken.as_ref().map(violation));
    }
    list
}

fn violation(broken: &Violation) -> Value {
    json!({
        "rule": broken.rule().id(),
        "kind": broken.kind().name(),
        "offset": broken.offset(),
        "field": broken.field(),
        "message": broken.message(),
    })
}

fn finding(found: &Finding) -> Value {
    json!({"rule": found.rule.id(), "kind": "finding", "offset": found.offset, "message": found.message})
}
