//! Library binaries, import trees, payloads and lookups, tested by loading libraries.

use super::super::view;
use super::{Reply, bytes, unsupported};
use crate::blob::pack::SymbolNaming;
use crate::conformance::module::lookup::pairs;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_library;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::legacy::{LegacyApi, LegacyArg, LegacyValue, c_text, int_arg};
use crate::examine::loading::context_symbol;
use crate::release::Layout;
use crate::value::legacy::{TVMValue, code};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::c_int;
use std::path::Path;

/// A kind whose payload has no bytes in any release. While a tree is loaded, this crate provides its loader.
const ROW: &str = "metadata_module";

/// The kind used instead where a registered loader cannot be removed, as in 0.7. No case uses this kind.
const ROW_FOR_GOOD: &str = "tvmspec_row";

/// Runs `blob.decode` and `module.load`.
pub(super) fn walk(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    let symbol = args.get("symbol").and_then(Value::as_str);
    let naming = naming(api);
    if symbol.is_some_and(|symbol| symbol != naming.symbol()) {
        return Err(unsupported(format!(
            "this runtime looks for the blob under `{}`",
            naming.symbol()
        )));
    }
    of_this_layout(api, args)?;
    let root = own_version(load_blob(api, &bytes(args)?))?;
    Ok(Reply::Shown {
        view: "kinds".to_owned(),
        value: kinds_below(api, &root)?,
    })
}

/// Returns the kinds and imports of a module and of all below it, in the order of a walk.
pub(in crate::conformance) fn kinds_below(
    api: &'static LegacyApi,
    root: &LegacyValue,
) -> Result<Value, Reply> {
    // The modules after the root, which has position 0.
    let mut below: Vec<LegacyValue> = Vec::new();
    let mut shown = Vec::new();
    loop {
        let module = match shown.len() {
            0 => Some(root),
            at => below.get(at - 1),
        };
        let Some(module) = module else { break };
        let kind = kind_of(api, module)?;
        let mut places = Vec::new();
        for import in imports(api, module)? {
            let known = module_position(&below, &import).map(|at| at + 1);
            let known = known.or((import.handle() == root.handle()).then_some(0));
            places.push(known.unwrap_or_else(|| {
                below.push(import);
                below.len()
            }));
        }
        shown.push((kind, places));
    }
    Ok(view::kinds_of(&shown))
}

/// Runs `import_tree.decode`. As many small modules precede the tree as it has rows, or as the case states. This crate provides
/// their loader, which reads nothing, so that the entry of a module is only its kind.
pub(super) fn import_tree(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    let tree = bytes(args)?;
    let word = tree
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word));
    // A count that exceeds the bytes must be rejected by the reader, with any number of modules.
    let rows = word.saturating_sub(1).min(tree.len() as u64 / 8);
    let modules = args.get("modules").and_then(Value::as_u64).unwrap_or(rows);
    // The tree itself counts as an entry in this layout.
    let mut body = (modules + 1).to_le_bytes().to_vec();
    let row = if api.can_remove() { ROW } else { ROW_FOR_GOOD };
    let keys = (0..modules).map(|_| row).chain(["_import_tree"]);
    for key in keys {
        body.extend_from_slice(&(key.len() as u64).to_le_bytes());
        body.extend_from_slice(key.as_bytes());
    }
    body.extend_from_slice(&tree);

    // An earlier case that failed may have left rows.
    ROWS.take();
    let before = api.global(&loader_of(row))?;
    let loader = api.function(load_row, api)?;
    api.register(&loader_of(row), &loader, true)?;
    let root = load_blob(api, &framed(&body));
    // Restored before anything can fail, because the loader is shared by the process.
    match before {
        Some(before) => api.register(&loader_of(row), &before, true)?,
        None if api.can_remove() => api.remove(&loader_of(row))?,
        None => {}
    }
    let rows = ROWS.take();
    drop(root?);
    let shown = rows.iter().map(|row| {
        let imports = imports(api, row)?;
        Ok(imports
            .iter()
            .map(|import| module_position(&rows, import))
            .collect::<Vec<_>>())
    });
    Ok(Reply::Shown {
        view: "rows".to_owned(),
        value: json!(shown.collect::<Result<Vec<_>, Reply>>()?),
    })
}

thread_local! {
    /// The modules of the present case's rows, in order.
    static ROWS: RefCell<Vec<LegacyValue>> = const { RefCell::new(Vec::new()) };
}

/// Loads an empty library instead of a module, and records it.
unsafe extern "C-unwind" fn load_row(
    _: *mut TVMValue,
    _: *mut c_int,
    _: c_int,
    result: RawHandle,
    this: RawHandle,
) -> c_int {
    // SAFETY: it was made with the interface, which is never freed.
    let api: &'static LegacyApi = unsafe { &*this.cast::<LegacyApi>() };
    let Ok(module) = empty(api) else { return -1 };
    // SAFETY: the result of this callback.
    let code = unsafe { api.set_result(result, module.arg()) };
    ROWS.with_borrow_mut(|rows| rows.push(module));
    code
}

/// Runs `payload.decode` with the payload as the only entry of a blob. A loader stops when it has read enough, so surplus bytes are
/// not noticed.
pub(super) fn payload(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    of_this_layout(api, args)?;
    let kind = args.get("kind").and_then(Value::as_str).unwrap_or_default();
    let has_loader = api.global(&loader_of(kind))?.is_some();
    // BLOB-04: the runtime must reject an empty kind. A missing loader for it proves nothing.
    if !has_loader && !kind.is_empty() {
        return Err(unsupported(format!(
            "none of the libraries loads modules of kind `{kind}`"
        )));
    }
    let module = &stored(api, kind, &bytes(args)?)?;
    let made = kind_of(api, module)?;
    let renamed = RENAMED.contains(&(kind, &made));
    Ok(Reply::Shown {
        view: "kind".to_owned(),
        value: json!(if renamed { kind } else { &made }),
    })
}

/// Returns the module of kind `kind` from a library that has no other module.
pub(in crate::conformance) fn stored(
    api: &'static LegacyApi,
    kind: &str,
    payload: &[u8],
) -> Result<LegacyValue, Reply> {
    let mut body = 1u64.to_le_bytes().to_vec();
    body.extend_from_slice(&(kind.len() as u64).to_le_bytes());
    body.extend_from_slice(kind.as_bytes());
    body.extend_from_slice(payload);
    let root = own_version(load_blob(api, &framed(&body)))?;
    let mut list = imports(api, &root)?;
    match (list.pop(), list.len()) {
        (Some(module), 0) => Ok(module),
        (_, more) => Err(unsupported(format!(
            "not one module, but {more} more or none, were made of one payload"
        ))),
    }
}

/// Converts the rejection of an executable of another release, which is rejected for its version before its content is read.
fn own_version(root: Result<LegacyValue, Reply>) -> Result<LegacyValue, Reply> {
    root.map_err(|reply| match reply {
        Reply::Reject(rejection) if rejection.message.contains("in the version section") => {
            unsupported("this runtime reads only executables of the same release")
        }
        other => other,
    })
}

/// Loaders that remained under an old name and create modules of the new one.
const RENAMED: [(&str, &str); 2] = [
    ("GraphRuntimeFactory", "GraphExecutorFactory"),
    ("metadata", "const_loader"),
];

/// Runs `module.import` with pairs of importer and imported module.
pub(super) fn import(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    let (pairs, count) =
        pairs(args).ok_or_else(|| unsupported("`value` is not a list of pairs"))?;
    let modules = (0..count).map(|_| empty(api));
    let modules: Vec<LegacyValue> = modules.collect::<Result<_, _>>()?;
    for (from, to) in pairs {
        api.import(&modules[from], &modules[to])?;
    }
    let rows = modules.iter().map(|module| {
        let imports = imports(api, module)?;
        Ok(imports
            .iter()
            .map(|import| module_position(&modules, import))
            .collect::<Vec<_>>())
    });
    Ok(Reply::Ok {
        value: json!(rows.collect::<Result<Vec<_>, Reply>>()?),
        findings: None,
    })
}

/// Runs `module.find`. Every module is a library whose functions return its number. It cannot be seen which modules were searched.
pub(super) fn find(api: &'static LegacyApi, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let list = value.get("modules").and_then(Value::as_array);
    let list = list.ok_or_else(|| unsupported("`value` has no list `modules`"))?;
    let mut modules = Vec::new();
    for (number, module) in (0..).zip(list) {
        let names = module.get("functions").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<&str> = names.collect();
        modules.push(library(api, |path| {
            case_library::write_functions(&names, number, path)
        })?);
    }
    for (module, described) in modules.iter().zip(list) {
        let list = described.get("imports").and_then(Value::as_array);
        for import in list.into_iter().flatten() {
            let import = modules.get(number_of::<usize>(import)?);
            api.import(
                module,
                import.ok_or_else(|| unsupported("there is no module of that number"))?,
            )?;
        }
    }
    let root = modules.first();
    let root = root.ok_or_else(|| unsupported("there are no modules"))?;
    let name = value.get("name").and_then(Value::as_str).unwrap_or("f");
    let deep = value.get("query_imports").and_then(Value::as_bool);
    let found = api.function_of(root, name, deep.unwrap_or(true))?;
    let found_in = match found {
        None => Value::Null,
        Some(function) => json!(api.call(&function, &[])?.int()),
    };
    Ok(Reply::Shown {
        view: "found".to_owned(),
        value: found_in,
    })
}

/// Returns the layout that the runtime loads: that of 0.7, which goes up to 0.20, or that of 0.21.
fn layout(api: &LegacyApi) -> Layout {
    let loads = |layout| api.runtime.loads(layout);
    if loads(Layout::V0_21) && !loads(Layout::V0_7) {
        Layout::V0_21
    } else {
        Layout::V0_7
    }
}

/// Returns the symbols of a library of these releases.
fn naming(api: &LegacyApi) -> SymbolNaming {
    SymbolNaming::library(layout(api).releases().until)
}

/// Rejects cases of another layout, because the loader would read their bytes in its own layout.
fn of_this_layout(api: &LegacyApi, args: &Value) -> Result<(), Reply> {
    let own = layout(api).name();
    match args.get("layout").and_then(Value::as_str) {
        None => Ok(()),
        Some(layout) if layout == own => Ok(()),
        Some(other) => Err(unsupported(format!(
            "the library is packed in layout {own}, not in {other}"
        ))),
    }
}

/// Returns the global function that loads modules of a kind.
pub(in crate::conformance) fn loader_of(kind: &str) -> String {
    format!("runtime.module.loadbinary_{kind}")
}

/// Returns a blob of the length and `body`.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut blob = (body.len() as u64).to_le_bytes().to_vec();
    blob.extend_from_slice(body);
    blob
}

/// Loads a library that contains `blob`, and returns its module.
fn load_blob(api: &'static LegacyApi, blob: &[u8]) -> Result<LegacyValue, Reply> {
    let naming = naming(api);
    let context = context_symbol(layout(api));
    library(api, |path| {
        case_library::write(blob, naming.symbol(), context, &naming, path)
    })
}

/// Loads an empty library, and returns its module.
pub(in crate::conformance) fn empty(api: &'static LegacyApi) -> Result<LegacyValue, Reply> {
    library(api, |path| {
        case_library::write(
            &[],
            "nothing",
            context_symbol(layout(api)),
            &naming(api),
            path,
        )
    })
}

/// Loads the library that `write` writes, and returns its module.
pub(in crate::conformance) fn library(
    api: &'static LegacyApi,
    write: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<LegacyValue, Reply> {
    let folder = tempfile::tempdir().map_err(|error| Reply::Skipped(error.to_string()))?;
    let path = folder.path().join("case.so");
    write(&path).map_err(|error| unsupported(format!("no library can be made here: {error}")))?;
    api.load(&c_text(&path.to_string_lossy()))
}

/// Returns the imports of a module, in order, through functions of the registry, because the C interface has none.
fn imports(api: &'static LegacyApi, module: &LegacyValue) -> Result<Vec<LegacyValue>, Reply> {
    let size = api.call_global("runtime.ModuleImportsSize", &[module.arg()])?;
    let imports = (0..size.int()).map(|at| {
        let args: [LegacyArg; 2] = [module.arg(), int_arg(at)];
        let import = api.call_global("runtime.ModuleGetImport", &args)?;
        match import.code {
            code::MODULE => Ok(import),
            other => Err(unsupported(format!("an import has the type code {other}"))),
        }
    });
    imports.collect()
}

/// Returns the position of a module in a list. Two handles mean the same module if they are equal.
fn module_position(modules: &[LegacyValue], module: &LegacyValue) -> Option<usize> {
    let mut known = modules.iter();
    known.position(|known| known.handle() == module.handle())
}

/// Returns the runtime's name for the kind of a module.
pub(in crate::conformance) fn kind_of(
    api: &'static LegacyApi,
    module: &LegacyValue,
) -> Result<String, Reply> {
    api.call_global("runtime.ModuleGetTypeKey", &[module.arg()])?
        .text()
}
