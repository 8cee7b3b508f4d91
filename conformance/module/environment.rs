//! `module.environment`: the functions that a library finds when it looks them up like compiled code.

use super::library_file::{CONTEXT, LibraryFile, PREFIX, address};
use crate::conformance::function::registry_steps::{numbered, remove};
use crate::conformance::runtime::case_library::SymbolContent;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::show;
use crate::conformance::runtime::ffi::owned::{OwnedValue, text_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, accepted, c_text, fresh_prefix, system_library, unsupported,
};
use crate::release::{ParseError, Release};
use crate::rule::{Kind, Violation};
use serde_json::{Value, json};
use std::ffi::CStr;

/// Runs `module.environment`: returns the functions that a library finds when it looks them up like compiled code.
///
/// MOD-13, MOD-14: a library with a context symbol is written to a file, the loader fills that symbol, and lookups use it like compiled
/// code. Names are new for each run, because found functions are cached.
pub(super) fn environment(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let prefix = fresh_prefix();
    let mut registered = Vec::new();
    let found = environment_steps(api, &prefix, args, &mut registered);
    // Also after a failed step, because the registry belongs to the process.
    for name in registered {
        remove(api, &name)?;
    }
    accepted(found?)
}

/// Plays the steps of the case. `registered` receives the names that were added to the registry, even if a step fails.
fn environment_steps(
    api: &'static FfiApi,
    prefix: &str,
    args: &Value,
    registered: &mut Vec<String>,
) -> Result<Value, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let functions = |list: Option<&Value>| -> Result<Vec<(String, i64)>, Reply> {
        let list = list.and_then(Value::as_object).into_iter().flatten();
        list.map(|(name, number)| match number.as_i64() {
            Some(number @ 0..8) => Ok((format!("{prefix}{name}"), number)),
            _ => Err(unsupported("functions give numbers up to 7")),
        })
        .collect()
    };
    let own: Vec<(String, i64)> = functions(value.get("own"))?;
    let own: Vec<(String, i64)> = own
        .into_iter()
        .map(|(name, number)| (format!("{PREFIX}{name}"), number))
        .collect();
    let mut symbols = vec![(CONTEXT, SymbolContent::Slot)];
    symbols.extend(
        own.iter()
            .map(|(name, number)| (&**name, address(NUMBERS[*number as usize]))),
    );
    let written = LibraryFile::from_symbols(&symbols, &[])?;
    let root = written.module(api)?;
    let context = written.slot(CONTEXT)?;
    if context.is_null() {
        return Err(unsupported(
            "the runtime does not show the context of a library",
        ));
    }
    let module = |list: Option<&Value>| -> Result<OwnedValue, Reply> {
        let behind = fresh_prefix();
        for (name, number) in functions(list)? {
            let symbol = c_text(&format!("{PREFIX}{behind}{name}"));
            api.system_symbol(&symbol, NUMBERS[number as usize])?;
        }
        Ok(system_library(api, &behind)?)
    };
    let import = |into: &OwnedValue, what: &OwnedValue| {
        api.call_global("ffi.ModuleImportModule", &[into.raw, what.raw])
    };
    let release = value.get("release").and_then(Value::as_str);
    let release: Release = release
        .unwrap_or("0.27")
        .parse()
        .map_err(|wrong: ParseError| unsupported(wrong.to_string()))?;
    // Other runtimes have only one order of search, for every release of a case.
    let older = api.suite_function("module.environment");
    let older = older.filter(|_| release < Release::of(21));
    let look = |name: &CStr| match &older {
        Some(older) => {
            let release = c_text(&release.to_string());
            api.call(older, &[root.raw, text_arg(name), text_arg(&release)])
        }
        // SAFETY: `root` keeps the library, and the runtime wrote its context there.
        None => unsafe { api.look_up_import(context, name) },
    };
    let mut found = Vec::new();
    for step in value
        .get("steps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Some(list) = step.get("import") {
            import(&root, &module(Some(list))?)?;
        }
        if let Some(list) = step.get("import_below") {
            let between = module(None)?;
            import(&between, &module(Some(list))?)?;
            import(&root, &between)?;
        }
        if step.get("clear").is_some() {
            api.call_global("ffi.ModuleClearImports", &[root.raw])?;
        }
        for (name, number) in functions(step.get("register"))? {
            api.set_global(&name, &numbered(api, number)?, true)?;
            registered.push(name);
        }
        if let Some(name) = step.get("lookup").and_then(Value::as_str) {
            let name = c_text(&format!("{prefix}{name}"));
            found.push(match look(&name) {
                Ok(function) => show(api, &api.call(&function, &[])?)?,
                Err(raised) => match &raised.broken {
                    // If the runtime states the broken rule, it must be MOD-13.
                    Some(broken) if !is_missing(broken) => return Err(raised.into()),
                    _ => json!("missing"),
                },
            });
        }
    }
    Ok(json!(found))
}

/// Returns whether an error is that of MOD-13 for an unknown name.
fn is_missing(broken: &Violation) -> bool {
    broken.rule().id() == "MOD-13" && broken.kind() == Kind::Missing
}
