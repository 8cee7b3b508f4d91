//! Imports, lookup and properties of a runtime's modules, with system libraries that no other code uses.

use super::loading::{imports, stored};
use crate::conformance::golden::golden;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, bool_arg, int_arg, text_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, accepted, c_text, fresh_prefix, system_library, unsupported, view_reply,
};
use crate::value::{AnyPayload, RawAny, index};
use serde_json::{Value, json};
use std::ffi::{CString, c_void};

/// Runs `module.import`. `value` contains pairs of importer and imported module.
///
/// MOD-10: returns the imports of each module after the last pair, or the rejection of the pair that closes a cycle. System libraries with
/// separate prefixes are modules that every runtime creates without a file.
pub(super) fn import(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let (pairs, count) =
        pairs(args).ok_or_else(|| unsupported("`value` is not a list of pairs"))?;
    // MOD-17: there is one system library for each prefix, so that every module needs its own prefix.
    let modules = (0..count).map(|_| system_library(api, &fresh_prefix()));
    let modules: Vec<OwnedValue> = modules.collect::<Result<_, Raised>>()?;
    for (from, to) in pairs {
        let both = [modules[from].raw, modules[to].raw];
        api.call_global("ffi.ModuleImportModule", &both)?;
    }
    let rows = modules.iter().map(|module| {
        let imports = imports(api, module)?;
        let place = |import: &OwnedValue| {
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

/// Runs `module.find`. `value` contains modules with functions and imports, and the name to look up. The result also contains the searched
/// modules, if the runtime provides modules that record searches.
///
/// MOD-08, MOD-09: each module has functions that return its number, so that the result shows which one was found.
pub(super) fn find(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let list = value.get("modules").and_then(Value::as_array);
    let list = list.ok_or_else(|| unsupported("`value` has no list `modules`"))?;
    if list.len() > NUMBERS.len() {
        return Err(unsupported(
            "more modules than there are functions to distinguish them by",
        ));
    }
    let modules = (0..).zip(list).map(|(number, module)| {
        let names = module.get("functions").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        numbers(api, number, &names.collect::<Vec<_>>())
    });
    let modules: Vec<OwnedValue> = modules.collect::<Result<_, Raised>>()?;
    // After all modules were created, because a module may import one that the case lists later.
    for (module, described) in modules.iter().zip(list) {
        let list = described.get("imports").and_then(Value::as_array);
        for import in list.into_iter().flatten() {
            let import = to_index(import)
                .and_then(|import| modules.get(import))
                .ok_or_else(|| unsupported("there is no module of that number"))?;
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
    let searched = api.suite_function("module.asked");
    if let Some(searched) = &searched {
        // Empties the list of searches before this lookup.
        api.call(searched, &[])?;
    }
    let found = api.call_global("ffi.ModuleGetFunction", &args)?;
    let searched = searched
        .map(|searched| api.call(&searched, &[]))
        .transpose()?;
    let found_in = match found.raw.type_index {
        index::NONE => Value::Null,
        _ => json!(api.call(&found, &[])?.raw.int()),
    };
    let Some(searched) = searched.and_then(|searched| searched.text()) else {
        return view_reply("found", found_in);
    };
    let searched: Value =
        serde_json::from_str(&searched).map_err(|wrong| unsupported(wrong.to_string()))?;
    accepted(json!({"found_in": found_in, "asked": searched}))
}

/// Creates a module with functions that return `number`, which must be less than the length of [`NUMBERS`].
fn numbers(api: &'static FfiApi, number: usize, names: &[&str]) -> Result<OwnedValue, Raised> {
    if let Some(make) = api.suite_function("module.numbers") {
        let texts: Vec<CString> = names.iter().map(|name| c_text(name)).collect();
        let mut args = vec![int_arg(number as i64)];
        args.extend(texts.iter().map(|text| text_arg(text)));
        return api.call(&make, &args);
    }
    let prefix = fresh_prefix();
    // MOD-16: from 0.22 on the prefix of the library is between `__tvm_ffi_` and the name.
    for name in names {
        api.system_symbol(
            &c_text(&format!("__tvm_ffi_{prefix}{name}")),
            NUMBERS[number],
        )?;
    }
    system_library(api, &prefix)
}

/// Runs `module.properties`: returns the mask of a library, and of kinds that a runtime loads from a payload without a device.
///
/// MOD-15: for a kind whose loader needs a device or another release, the mask is taken from the runtime's own table. Without such a table
/// the case is unsupported.
pub(super) fn properties(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let text = |key: &str| {
        args.pointer(&format!("/value/{key}"))
            .and_then(Value::as_str)
    };
    let kind = text("kind").unwrap_or_default();
    let release = text("release").unwrap_or("0.27");
    let runs = args.pointer("/value/runs") != Some(&Value::Bool(false));
    // A module that cannot be created here is looked up in the runtime's table.
    let known = || -> Result<Reply, Reply> {
        let why = match (release, runs) {
            ("0.26" | "0.27", true) => {
                format!("a module of kind `{kind}` needs a compiler or a device")
            }
            (_, true) => "the case needs a module of another release".to_owned(),
            (_, false) => "the case needs a module without its runtime".to_owned(),
        };
        let mask = api
            .suite_function("module.mask")
            .ok_or_else(|| unsupported(why))?;
        let (kind, release) = (c_text(kind), c_text(release));
        let args = [text_arg(&kind), text_arg(&release), bool_arg(runs)];
        accepted(json!(api.call(&mask, &args)?.raw.int()))
    };
    if !matches!(release, "0.26" | "0.27") || !runs {
        return known();
    }
    let golden = |name: &str| {
        golden(name).ok_or_else(|| unsupported(format!("the payload {name} is not there")))
    };
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
        _ => return known(),
    };
    let mask = api.call_global("ffi.ModuleGetPropertyMask", &[module.raw])?;
    accepted(json!(mask.raw.int()))
}

/// The smallest executable of the goldens that creates a virtual machine.
const EXECUTABLE: &str = "payload/relax-vm-0.27.bin";

/// Runs `module.system`. `value` contains symbols of the system library, the prefix of a module, and a name. Symbols stay registered for
/// the life of the process, so that they get a name that no other case has. If a runtime shows its table only through functions, all
/// symbols are functions.
///
/// MOD-16, MOD-17: a second registration of a symbol replaces the first, which only our runtime reports.
pub(super) fn system(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let text = |name: &str| {
        let text = args.pointer(&format!("/value/{name}"));
        text.and_then(Value::as_str)
    };
    let prefix = text("prefix").unwrap_or_default();
    let before = text("before").unwrap_or_default();
    let address = api.suite_function("module.address");
    let address = address.filter(|_| text("before").is_none());
    let lead = match address {
        Some(_) => "",
        None => "__tvm_ffi_",
    };
    let fresh = fresh_prefix();
    let mut known: Vec<&str> = Vec::new();
    let mut replaced = Vec::new();
    let list = args.pointer("/value/register").and_then(Value::as_array);
    for pair in list.into_iter().flatten() {
        let part = |at: usize| pair.get(at).and_then(Value::as_str);
        let (Some(symbol), Some(code)) = (part(0), part(1)) else {
            return Err(unsupported("`register` is not a list of pairs of names"));
        };
        let symbol = symbol.strip_prefix(before).unwrap_or(symbol);
        // MOD-16: the unique part follows the prefix of the case, by which the library looks for its symbols.
        let (behind, rest) = match symbol.strip_prefix(prefix) {
            Some(rest) => (prefix, rest),
            None => ("", symbol),
        };
        let number = known.iter().position(|known| *known == code);
        let number = number.unwrap_or_else(|| {
            known.push(code);
            known.len() - 1
        });
        let body = NUMBERS.get(number).copied();
        let body = body.ok_or_else(|| unsupported("more functions than can be distinguished"))?;
        let symbol = c_text(&format!("{lead}{behind}{fresh}{rest}"));
        match api.suite_function("module.register") {
            Some(register) => {
                let ptr = body as *mut c_void;
                let body = RawAny::of(index::OPAQUE, AnyPayload { ptr });
                let other = api.call(&register, &[text_arg(&symbol), body])?;
                replaced.push(other.raw.int() != 0);
            }
            None => api.system_symbol(&symbol, body)?,
        }
    }
    let name = c_text(&format!("{fresh}{}", text("name").unwrap_or_default()));
    let number = match address {
        Some(address) => {
            let found = api.call(&address, &[text_arg(&c_text(prefix)), text_arg(&name)])?;
            let mut bodies = NUMBERS.iter();
            bodies.position(|body| *body as *mut c_void == found.pointer())
        }
        None => {
            let module = system_library(api, prefix)?;
            let args = [module.raw, text_arg(&name), bool_arg(false)];
            let found = api.call_global("ffi.ModuleGetFunction", &args)?;
            match found.raw.type_index {
                index::NONE => None,
                _ => usize::try_from(api.call(&found, &[])?.raw.int()).ok(),
            }
        }
    };
    let found = number.and_then(|number| known.get(number));
    match api.suite_function("module.register") {
        Some(_) => accepted(json!({"found": found, "replaced": replaced})),
        None => view_reply("entry", json!(found)),
    }
}

/// Returns the pairs of importer and imported module in `value`, and the number of modules.
pub(in crate::conformance) fn pairs(args: &Value) -> Option<(Vec<(usize, usize)>, usize)> {
    let pairs = args.get("value")?.as_array()?.iter();
    let pairs = pairs.map(|pair| Some((to_index(pair.get(0)?)?, to_index(pair.get(1)?)?)));
    let pairs: Vec<(usize, usize)> = pairs.collect::<Option<_>>()?;
    let last = pairs.iter().map(|(from, to)| *from.max(to)).max();
    let count = last.map_or(0, |last| last + 1);
    Some((pairs, count))
}

/// Returns the number in a form as an index.
fn to_index(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
