//! Imports, lookup and properties of modules of a runtime, on system libraries that no other code uses.

use super::loading::{imports, stored};
use crate::conformance::case::golden;
use crate::conformance::runtime::ffi::api::Api;
use crate::conformance::runtime::ffi::held::{Held, Raised, bool_arg, text_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, c_text, fresh_prefix, seen, system_library, told, unsupported,
};
use crate::value::index;
use serde_json::{Value, json};

/// `value`: pairs of importer and imported.
pub(super) fn import(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let (pairs, count) =
        pairs(args).ok_or_else(|| unsupported("`value` is not a list of pairs"))?;
    let modules = (0..count).map(|_| system_library(api, &fresh_prefix()));
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
        modules.push(system_library(api, &prefix)?);
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

/// The mask of a library, and of the kinds that a runtime loads without a device, from a payload of theirs.
pub(super) fn properties(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let text = |key: &str| {
        args.pointer(&format!("/value/{key}"))
            .and_then(Value::as_str)
    };
    if !text("release").is_none_or(|release| matches!(release, "0.26" | "0.27")) {
        return Err(unsupported("the case asks for a module of another release"));
    }
    if args.pointer("/value/runs") == Some(&Value::Bool(false)) {
        return Err(unsupported(
            "the case asks for a module without its runtime",
        ));
    }
    let golden = |name: &str| {
        golden(name).ok_or_else(|| unsupported(format!("the payload {name} is not there")))
    };
    let kind = text("kind").unwrap_or_default();
    let module = match kind {
        "library" => system_library(api, &fresh_prefix())?,
        "const_loader" => stored(api, kind, golden("payload/const-loader-minimal.bin")?)?,
        "static_library" => stored(api, kind, golden("payload/static-library-minimal.bin")?)?,
        "relax.VMExecutable" => stored(api, kind, golden(EXECUTABLE)?)?,
        "relax.VirtualMachine" => {
            let executable = stored(api, "relax.VMExecutable", golden(EXECUTABLE)?)?;
            let name = text_arg(c"vm_load_executable");
            let make = [executable.raw, name, bool_arg(false)];
            let make = api.call_global("ffi.ModuleGetFunction", &make)?;
            if make.raw.type_index == index::NONE {
                return Err(unsupported("the executable makes no virtual machine"));
            }
            api.call(&make, &[])?
        }
        other => {
            return Err(unsupported(format!(
                "a module of kind `{other}` needs a compiler or a device"
            )));
        }
    };
    let mask = api.call_global("ffi.ModuleGetPropertyMask", &[module.raw])?;
    told(json!(mask.raw.int()))
}

const EXECUTABLE: &str = "payload/relax-vm-0.27.bin";

/// `value`: symbols of the system library, the prefix of a module, a name. The symbols stay for the life of the process,
/// so they get a name that no other case has; and as the table shows only through functions, all are symbols of functions.
pub(super) fn system(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let text = |name: &str| {
        let text = args.pointer(&format!("/value/{name}"));
        text.and_then(Value::as_str).unwrap_or_default()
    };
    let (prefix, before, name) = (text("prefix"), text("before"), text("name"));
    let fresh = fresh_prefix();
    let mut known: Vec<&str> = Vec::new();
    let list = args.pointer("/value/register").and_then(Value::as_array);
    for pair in list.into_iter().flatten() {
        let part = |at: usize| pair.get(at).and_then(Value::as_str).unwrap_or_default();
        let (symbol, code) = (part(0), part(1));
        let symbol = symbol.strip_prefix(before).unwrap_or(symbol);
        let (behind, rest) = match symbol.strip_prefix(prefix) {
            Some(rest) => (prefix, rest),
            None => ("", symbol),
        };
        let number = known
            .iter()
            .position(|known| *known == code)
            .unwrap_or_else(|| {
                known.push(code);
                known.len() - 1
            });
        let body = NUMBERS.get(number).copied();
        let body =
            body.ok_or_else(|| unsupported("more functions than there are to tell apart"))?;
        api.system_symbol(&c_text(&format!("__tvm_ffi_{behind}{fresh}{rest}")), body)?;
    }
    let module = system_library(api, prefix)?;
    let name = c_text(&format!("{fresh}{name}"));
    let found = api.call_global(
        "ffi.ModuleGetFunction",
        &[module.raw, text_arg(&name), bool_arg(false)],
    )?;
    let found = match found.raw.type_index {
        index::NONE => None,
        _ => known.get(api.call(&found, &[])?.raw.int() as usize),
    };
    seen("entry", json!(found))
}

/// The pairs of importer and imported under `value`, and how many modules they are of.
pub(in crate::conformance) fn pairs(args: &Value) -> Option<(Vec<(usize, usize)>, usize)> {
    let pairs = args.get("value")?.as_array()?.iter();
    let pairs = pairs.filter_map(|pair| Some((place(pair.get(0)?)?, place(pair.get(1)?)?)));
    let pairs: Vec<(usize, usize)> = pairs.collect();
    let last = pairs.iter().map(|(from, to)| *from.max(to)).max();
    let count = last.map_or(0, |last| last + 1);
    Some((pairs, count))
}

fn place(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
