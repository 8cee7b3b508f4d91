//! `module.environment` with the C interface of 0.7 to 0.20.

use super::super::library_file::LibraryFile;
use super::{CONTEXT, NUMBERS, jump, load, numbered, numbers};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_library::SymbolContent;
use crate::conformance::runtime::ffi::{Reply, accepted, c_text, fresh_prefix, unsupported};
use crate::conformance::runtime::legacy::{LegacyApi, int_arg};
use crate::value::legacy::TVMValue;
use serde_json::{Value, json};
use std::ffi::c_int;

/// Runs `module.environment`: returns the functions that a library finds when it looks them up like compiled code.
pub(in crate::conformance) fn environment(
    api: &'static LegacyApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let prefix = fresh_prefix();
    let mut registered = Vec::new();
    let found = environment_steps(api, &prefix, args, &mut registered);
    // Also after a failed step, because the registry belongs to the process.
    if api.can_remove() {
        for name in registered {
            api.remove(&name)?;
        }
    }
    accepted(found?)
}

/// Plays the steps of the case. `registered` receives the names that were added to the registry, even if a step fails.
fn environment_steps(
    api: &'static LegacyApi,
    prefix: &str,
    args: &Value,
    registered: &mut Vec<String>,
) -> Result<Value, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let own = numbered(value.get("own"), prefix)?;
    let mut symbols = vec![(CONTEXT, SymbolContent::Slot)];
    for (name, number) in &own {
        let body = NUMBERS.get(*number);
        let body = body.ok_or_else(|| unsupported("functions here return numbers up to 7"))?;
        symbols.push((name, jump(*body)));
    }
    let written = LibraryFile::from_symbols(&symbols, &[])?;
    let root = load(api, &written)?;
    let context = written.slot(CONTEXT)?;
    let mut found = Vec::new();
    let steps = value.get("steps").and_then(Value::as_array);
    for step in steps.into_iter().flatten() {
        if step.get("import").is_some() {
            let module = numbers(api, &numbered(step.get("import"), prefix)?)?;
            api.import(&root, &module)?;
        }
        if step.get("import_below").is_some() {
            let between = numbers(api, &[])?;
            let module = numbers(api, &numbered(step.get("import_below"), prefix)?)?;
            api.import(&between, &module)?;
            api.import(&root, &between)?;
        }
        if step.get("clear").is_some() {
            api.call_global("runtime.ModuleClearImports", &[root.arg()])?;
        }
        for (name, number) in numbered(step.get("register"), prefix)? {
            // Leaked: a few bytes for the life of a worker.
            let this: &'static NumberFunction = Box::leak(Box::new(NumberFunction { api, number }));
            let function = api.function(give_number, this)?;
            api.register(&name, &function, true)?;
            registered.push(name);
        }
        if let Some(name) = step.get("lookup").and_then(Value::as_str) {
            let name = c_text(&format!("{prefix}{name}"));
            // SAFETY: `root` keeps the library, and the runtime wrote its context there.
            found.push(match unsafe { api.look_up_import(context, &name) } {
                Ok(function) => json!(api.call(&function, &[])?.int()),
                Err(Reply::Reject(_)) => json!("missing"),
                Err(other) => return Err(other),
            });
        }
    }
    Ok(json!(found))
}

/// The data of a function in the registry.
struct NumberFunction {
    api: &'static LegacyApi,
    /// Number that it returns.
    number: usize,
}

/// Returns the number in its data.
unsafe extern "C-unwind" fn give_number(
    _: *mut TVMValue,
    _: *mut c_int,
    _: c_int,
    result: RawHandle,
    this: RawHandle,
) -> c_int {
    // SAFETY: it was created with a `NumberFunction`, which is never freed.
    let this = unsafe { &*this.cast::<NumberFunction>() };
    // SAFETY: the result belongs to this callback.
    unsafe { this.api.set_result(result, int_arg(this.number as i64)) }
}
