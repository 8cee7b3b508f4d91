//! Imports, lookup and properties of modules, on system libraries that nobody else uses.

use super::api::{Api, Held, Raised, SafeCall, bool_arg, text_arg};
use super::modules::{c_text, fresh_prefix, imports};
use super::{Reply, unsupported};
use crate::value::{Payload, RawAny, index};
use serde_json::{Value, json};
use std::ffi::c_void;

/// `value`: pairs of importer and imported.
pub(super) fn import(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let pairs = args.get("value").and_then(Value::as_array);
    let pairs = pairs.ok_or_else(|| unsupported("`value` is not a list of pairs"))?;
    let pairs = pairs
        .iter()
        .filter_map(|pair| Some((place(pair.get(0)?)?, place(pair.get(1)?)?)));
    let pairs: Vec<(usize, usize)> = pairs.collect();
    let count = pairs
        .iter()
        .map(|(from, to)| from.max(to) + 1)
        .max()
        .unwrap_or(0);
    let modules = (0..count).map(|_| library(api, &fresh_prefix()));
    let modules: Vec<Held> = modules.collect::<Result<_, Raised>>()?;
    for (from, to) in pairs {
        let both = [modules[from].raw, modules[to].raw];
        api.call_global("ffi.ModuleImportModule", &both)?;
    }
    let rows = modules.iter().map(|module| {
        let imports = imports(api, module)?;
        let place = |import: &Held| {
            let mut known = modules.iter();
            known.position(|known| known.pointer() == import.pointer())
        };
        Ok(imports.iter().map(place).collect::<Vec<_>>())
    });
    let rows: Vec<_> = rows.collect::<Result<_, Reply>>()?;
    Ok(Reply::Ok {
        value: json!(rows),
        findings: None,
    })
}

/// `value`: modules with functions and imports, the name to look for. Which modules were asked does not show.
pub(super) fn find(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let list = value.get("modules").and_then(Value::as_array);
    let list = list.ok_or_else(|| unsupported("`value` has no list `modules`"))?;
    if list.len() > NUMBERS.len() {
        return Err(unsupported(
            "more modules than there are functions to tell them apart",
        ));
    }
    let mut modules = Vec::new();
    for (module, number) in list.iter().zip(NUMBERS) {
        let prefix = fresh_prefix();
        let names = module.get("functions").and_then(Value::as_array);
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            api.system_symbol(&c_text(&format!("__tvm_ffi_{prefix}{name}")), number)?;
        }
        modules.push(library(api, &prefix)?);
    }
    for (module, described) in modules.iter().zip(list) {
        let list = described.get("imports").and_then(Value::as_array);
        for import in list.into_iter().flatten().filter_map(place) {
            let import = modules
                .get(import)
                .ok_or_else(|| unsupported("there is no such module"))?;
            api.call_global("ffi.ModuleImportModule", &[module.raw, import.raw])?;
        }
    }
    let root = modules
        .first()
        .ok_or_else(|| unsupported("there are no modules"))?;
    let name = value.get("name").and_then(Value::as_str).unwrap_or("f");
    let deep = value
        .get("query_imports")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    let name = c_text(name);
    let args = [root.raw, text_arg(&name), bool_arg(deep)];
    let found = api.call_global("ffi.ModuleGetFunction", &args)?;
    let found_in = match found.raw.type_index {
        index::NONE => Value::Null,
        _ => json!(api.call(&found, &[])?.raw.int()),
    };
    Ok(Reply::Seen {
        view: "found".to_owned(),
        value: found_in,
    })
}

/// The mask of a library; modules of other kinds come from their loaders only.
pub(super) fn properties(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let text = |key: &str| {
        args.pointer(&format!("/value/{key}"))
            .and_then(Value::as_str)
    };
    let current = text("release").is_none_or(|release| matches!(release, "0.26" | "0.27"));
    if text("kind") != Some("library") || !current {
        return Err(unsupported(
            "only a library of the runtime's own release can be made from nothing",
        ));
    }
    let module = library(api, &fresh_prefix())?;
    let mask = api.call_global("ffi.ModuleGetPropertyMask", &[module.raw])?;
    Ok(Reply::Ok {
        value: json!(mask.raw.int()),
        findings: None,
    })
}

fn library(api: &'static Api, prefix: &str) -> Result<Held, Raised> {
    api.call_global("ffi.SystemLib", &[text_arg(&c_text(prefix))])
}

fn place(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// Functions that give their own number.
const NUMBERS: [SafeCall; 8] = [
    number::<0>,
    number::<1>,
    number::<2>,
    number::<3>,
    number::<4>,
    number::<5>,
    number::<6>,
    number::<7>,
];

unsafe extern "C" fn number<const N: i64>(
    _: *mut c_void,
    _: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: a place for the result.
    unsafe { out.write(RawAny::of(index::INT, Payload { int: N })) };
    0
}
