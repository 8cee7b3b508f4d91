//! Library files from a compiler and a linker, opened by the loader.

use super::backend;
use super::library_file::lookup;
use super::loading;
use super::ops::{broken, failed, imports, plain, texts, value};
use super::rust_interface::numbers;
use crate::conformance::op::{self, Answer, OpError};
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::owned::OwnedValue;
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, bytes, c_text, fresh_prefix, system_library, unsupported, view_reply,
};
use crate::function::Error;
use crate::module::{Library, Module, ModuleKind, load_library};
use crate::object::form::{from_json, to_json};
use crate::rule::Strictness;
use crate::value::{Any, AnyView, index};
use serde_json::{Value, json};
use std::fs;

/// Explains why the libraries of the cases cannot be opened here; `None` if they can.
pub(in crate::conformance) fn unsupported_reason() -> Option<&'static str> {
    let here = cfg!(all(target_os = "linux", target_arch = "x86_64", not(miri)));
    (!here).then_some("the libraries of the cases are machine code for Linux on x86-64")
}

/// Explains why code that needs symbols of the process cannot run here; `None` if it can.
pub(in crate::conformance) fn why_not_to_run(api: &'static FfiApi) -> Option<&'static str> {
    // The dynamic linker finds symbols of the program before those of a library that the program opened.
    let is_ours = api.suite_function("vm.text").is_some();
    let beside = "compiled code would find functions of this program, not those of the runtime";
    unsupported_reason().or((!is_ours).then_some(beside))
}

/// Runs `module.open` with our own loader, through the Rust interface, because only this shows layout, slots and functions.
///
/// MOD-01 to MOD-07: returns the layout of the symbol, the filled slots, the modules, and the results of calls. Calls run machine code of
/// the case, so that the file is a golden, never an input of a fuzzer.
pub(super) fn open(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let value = value(args);
    if let Some(why) = unsupported_reason() {
        return Err(OpError::Unsupported(why.to_owned()));
    }
    let no_file = |error: std::io::Error| OpError::Unsupported(format!("no file: {error}"));
    let folder = tempfile::tempdir().map_err(no_file)?;
    let path = folder.path().join("case.so");
    fs::write(&path, data).map_err(no_file)?;
    // SAFETY: the libraries of the cases keep the contract of `load`; no code runs when they are opened or closed.
    let loaded = unsafe { load_library(&path, Strictness::Lenient) }.map_err(broken)?;
    let all = loaded.module.walk();
    let modules: Vec<Value> = all
        .iter()
        .map(|module| json!({"kind": module.kind(), "imports": imports(&all, module)}))
        .collect();
    let own = all.iter().find_map(Library::of);
    let mut functions = own.and_then(ModuleKind::functions).unwrap_or_default();
    // No rule orders the symbols of a library.
    functions.sort();
    let mut slots = loaded.slots;
    slots.sort();

    let root = &loaded.module;
    if let Some(functions) = value["import"].as_object() {
        let functions = functions.iter().map(|(name, number)| {
            let wrong = || OpError::Unsupported(format!("`{name}` has no number"));
            Ok((name.clone(), number.as_i64().ok_or_else(wrong)?))
        });
        let functions = functions.collect::<Result<_, OpError>>()?;
        root.import(numbers(0, functions)).map_err(failed)?;
    }
    let mut found = Vec::new();
    for name in texts(&value["lookups"]) {
        found.push(root.function(name, true).map_err(failed)?.is_some());
    }
    let calls = value["calls"].as_array().into_iter().flatten();
    let results: Result<Vec<Value>, OpError> = calls.map(|call| result(root, call)).collect();
    Ok(plain(json!({
        "layout": loaded.layout.name(),
        "modules": modules,
        "slots": slots,
        "functions": functions,
        "found": found,
        "results": results?,
    })))
}

/// Returns the result of a function of the library, or its error.
fn result(root: &Module, call: &Value) -> Result<Value, OpError> {
    let name = call["function"].as_str().unwrap_or_default();
    let function = root.require(name).map_err(failed)?;
    let args = call["args"].as_array().into_iter().flatten();
    let args: Vec<Any> = args
        .map(|form| Ok(from_json(form)?))
        .collect::<Result<_, OpError>>()?;
    let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
    Ok(match function.call_packed(&views) {
        Ok(result) => to_json(result.view()),
        Err(error) => shown(&error),
    })
}

/// Shows an error in the form of a result.
fn shown(error: &Error) -> Value {
    json!({"error": [error.kind().as_str(), error.message()]})
}

/// Runs `module.open` with another runtime, through its C functions.
///
/// It shows less, because slots and layout are internal to the loader. Only the part of the answer that it has is compared.
pub(super) fn drive(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    if let Some(why) = unsupported_reason() {
        return Err(unsupported(why));
    }
    let data = bytes(args)?;
    let value = args.get("value").unwrap_or(&Value::Null);
    // The runtime fills slots with functions of another library than the interface, and compiled code would call through an empty slot.
    let has_slots = data.windows(5).any(|name| name == b"__TVM");
    let has_calls = value
        .get("calls")
        .and_then(Value::as_array)
        .is_some_and(|calls| !calls.is_empty());
    if has_slots && has_calls && !backend::is_there(api) {
        return Err(unsupported(
            "none of the libraries is the runtime that compiled code calls",
        ));
    }
    let skipped = |error: std::io::Error| Reply::Skipped(error.to_string());
    let folder = tempfile::tempdir().map_err(skipped)?;
    let path = folder.path().join("case.so");
    fs::write(&path, &data).map_err(skipped)?;
    let (root, shown) = loading::load_file(api, &c_text(&path.to_string_lossy()), &data)?;
    let shown = loading::kinds_and_imports(shown);

    if let Some(functions) = value.get("import").and_then(Value::as_object) {
        let behind = fresh_prefix();
        for (name, number) in functions {
            let number = number
                .as_u64()
                .and_then(|number| usize::try_from(number).ok());
            let body = number.and_then(|number| NUMBERS.get(number));
            let body = body.ok_or_else(|| unsupported("functions here give numbers up to 7"))?;
            api.system_symbol(&c_text(&format!("__tvm_ffi_{behind}{name}")), *body)?;
        }
        let import = system_library(api, &behind)?;
        api.call_global("ffi.ModuleImportModule", &[root.raw, import.raw])?;
    }
    let names = value
        .get("lookups")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let found = names
        .filter_map(Value::as_str)
        .map(|name| Ok(lookup(api, &root, name, true)?.raw.type_index == index::FUNCTION));
    let found: Vec<bool> = found.collect::<Result<_, Reply>>()?;
    let calls = value
        .get("calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let results: Vec<Value> = calls
        .map(|call| returned(api, &root, call))
        .collect::<Result<_, Reply>>()?;
    view_reply(
        "opened",
        json!({"modules": shown, "found": found, "results": results}),
    )
}

/// Returns the result of a function of the library, or its error, in the forms of spec/values.md.
fn returned(api: &'static FfiApi, root: &OwnedValue, call: &Value) -> Result<Value, Reply> {
    let name = call
        .get("function")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let function = lookup(api, root, name, true)?;
    let args = call
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let args: Vec<OwnedValue> = args
        .map(|form| make(api, form))
        .collect::<Result<_, Reply>>()?;
    let raw: Vec<_> = args.iter().map(|held| held.raw).collect();
    match api.call(&function, &raw) {
        Ok(result) => show(api, &result),
        Err(raised) => Ok(json!({"error": [raised.kind, raised.message]})),
    }
}
