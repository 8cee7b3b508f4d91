//! Looking into files from C, declared in `include/tvmspec.h`. There with the feature `inspect`.
//!
//! Nothing here executes the file that it looks at. Texts are JSON; give them back with
//! [`tvmspec_free`](super::extras::tvmspec_free).

use crate::blob::container::{self, File, Part};
use crate::blob::{Blob, detect};
use crate::document::{self, objects};
use crate::rule::{Finding, Findings, Strictness, Violation};
use crate::wire::json::object;
use serde_json::Value;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;

/// What the file at `path` holds, as JSON: its form, its symbols and its library binaries; null when it cannot be read.
///
/// # Safety
///
/// `path` must be null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_inspect(path: *const c_char) -> *mut c_char {
    // SAFETY: `path` is null or a C string, by this contract.
    let Some(bytes) = (unsafe { read(path) }) else {
        return std::ptr::null_mut();
    };
    catch_unwind(|| give(&inspect(&bytes))).unwrap_or(std::ptr::null_mut())
}

/// Holds the file at `path` to every rule. Returns how many violations and findings there are; with `strict` the first finding
/// is a violation. -1 when the file cannot be read, and when nothing in it has rules: then the report says so. The report, as
/// JSON, goes to `report`, which may be null.
///
/// # Safety
///
/// `path` must be null or a C string, `report` null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_verify(
    path: *const c_char,
    strict: c_int,
    report: *mut *mut c_char,
) -> c_int {
    // SAFETY: `path` is null or a C string, by this contract.
    let Some(bytes) = (unsafe { read(path) }) else {
        return -1;
    };
    let strictness = if strict == 0 {
        Strictness::Lenient
    } else {
        Strictness::Strict
    };
    let Ok(found) = catch_unwind(|| verify(&bytes, strictness)) else {
        return -1;
    };
    let (list, count) = match found {
        Ok(list) => {
            let count = c_int::try_from(list.len()).unwrap_or(c_int::MAX);
            (list, count)
        }
        Err(nothing) => (vec![nothing], -1),
    };
    if !report.is_null() {
        // SAFETY: `report` is not null, so a place for a text, by this contract.
        unsafe { report.write(give(&Value::Array(list))) };
    }
    count
}

/// # Safety
/// `path` is null or a C string.
unsafe fn read(path: *const c_char) -> Option<Vec<u8>> {
    if path.is_null() {
        return None;
    }
    // SAFETY: `path` is not null, so a C string, by this contract.
    let path = unsafe { CStr::from_ptr(path) };
    std::fs::read(path.to_str().ok()?).ok()
}

fn give(value: &Value) -> *mut c_char {
    CString::new(value.to_string()).map_or(std::ptr::null_mut(), CString::into_raw)
}

fn inspect(bytes: &[u8]) -> Value {
    let file = match container::open(bytes) {
        Ok(file) => file,
        Err(broken) => return object([("error", violation(&broken))]),
    };
    let (mut functions, mut blobs) = (Vec::new(), Vec::new());
    for part in &file.parts {
        functions.extend(part.functions().map(Value::from));
        for found in &part.blobs {
            let layout = detect::detect(&found.bytes, symbol(found));
            let read = Blob::read_partial(&found.bytes, layout, Findings::default());
            let findings: Vec<Value> = read.findings.as_slice().iter().map(finding).collect();
            blobs.push(object([
                ("member", part.member.as_str().into()),
                ("symbol", found.symbol.as_str().into()),
                ("blob", read.blob.to_json()),
                ("error", read.broken.as_ref().map(violation).into()),
                ("findings", findings.into()),
            ]));
        }
    }
    let mut whole = object([
        ("form", file.form.name().into()),
        ("functions", functions.into()),
        ("blobs", blobs.into()),
    ]);
    let summary = objects::summary(bytes, file.form);
    if let (Value::Object(whole), Some(summary)) = (&mut whole, summary) {
        whole.insert("objects".to_owned(), summary);
    }
    whole
}

fn symbol<'a>(found: &'a container::Blob<'_>) -> Option<&'a str> {
    Some(found.symbol.as_str()).filter(|symbol| !symbol.is_empty())
}

/// The error says that nothing in the file has rules.
fn verify(bytes: &[u8], strictness: Strictness) -> Result<Vec<Value>, Value> {
    let file: File<'_> = match container::open_with(bytes, strictness) {
        Ok(file) => file,
        Err(broken) => return Ok(vec![violation(&broken)]),
    };
    let mut findings = Findings::new(strictness);
    let whole = document::read(file.form, bytes, &mut findings);
    let of_tvm = file.parts.iter().any(Part::is_compiled);
    if whole.is_none() && file.blobs().next().is_none() && !of_tvm {
        let message = format!("nothing in it has rules: its form is {}", file.form.name());
        return Err(object([
            ("rule", Value::Null),
            ("kind", "unsupported".into()),
            ("offset", Value::Null),
            ("field", "".into()),
            ("message", message.into()),
        ]));
    }
    let mut list: Vec<Value> = file.findings.as_slice().iter().map(finding).collect();
    for (_, found) in file.blobs() {
        let layout = detect::detect(&found.bytes, symbol(found));
        let read = Blob::read_partial(&found.bytes, layout, Findings::new(strictness));
        list.extend(read.findings.as_slice().iter().map(finding));
        list.extend(read.broken.as_ref().map(violation));
    }
    list.extend(findings.as_slice().iter().map(finding));
    if let Some(Err(broken)) = &whole {
        list.push(violation(broken));
    }
    Ok(list)
}

fn violation(broken: &Violation) -> Value {
    object([
        ("rule", broken.rule().id().into()),
        ("kind", broken.kind().name().into()),
        ("offset", broken.offset().into()),
        ("field", broken.field().into()),
        ("message", broken.message().into()),
    ])
}

fn finding(found: &Finding) -> Value {
    object([
        ("rule", found.rule.id().into()),
        ("kind", "finding".into()),
        ("offset", found.offset.into()),
        ("message", found.message.as_str().into()),
    ])
}
