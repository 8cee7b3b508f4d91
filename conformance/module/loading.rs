//! Tests of library binaries, import trees and payloads by loading them.

use crate::blob::pack::SymbolNaming;
use crate::conformance::adapter::view::{self, ShownModule};
use crate::conformance::runtime::case_library;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{
    OwnedValue, Raised, bytes_arg, int_arg, read_bytes, text_arg,
};
use crate::conformance::runtime::ffi::{
    Reply, bytes, c_text, fresh_prefix, lock_process_state, unsupported,
};
use crate::release::Release;
use crate::value::ByteArray;
use crate::value::RawAny;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_void};

/// Kind of the library's own entry in a blob.
const LIBRARY: &str = "_lib";
/// Longest kind that gets a loader of ours, in bytes.
const LONGEST_KIND: usize = 64;

/// Runs `blob.decode`: returns the modules that the loader of the runtime creates from a library binary.
pub(in crate::conformance) fn blob(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    require_current_layout(args)?;
    let loaded = load(api, &bytes(args)?)?;
    Ok(Reply::Shown {
        view: "modules".to_owned(),
        value: view::modules_of(&loaded),
    })
}

/// Runs `module.load`: loads a library around the blob, and describes the modules. Kinds without a loader get one of ours.
pub(super) fn walk(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let named = args.get("symbol").and_then(Value::as_str);
    if named.is_some_and(|named| named != SymbolNaming::library(Release::LAST).symbol()) {
        return Err(unsupported(
            "this runtime looks for the blob under the name of 0.22",
        ));
    }
    let loaded = load(api, &bytes(args)?)?;
    Ok(Reply::Shown {
        view: "kinds".to_owned(),
        value: kinds_and_imports(loaded),
    })
}

/// Runs a case of an import tree. As many small modules follow the tree as it has rows, or as the case states.
pub(in crate::conformance) fn import_tree(
    api: &'static FfiApi,
    args: &Value,
) -> Result<Reply, Reply> {
    let tree = bytes(args)?;
    let rows = rows(&tree);
    if rows.as_ref().is_some_and(|(_, end)| *end < tree.len()) {
        return Err(unsupported(
            "a loader would read the bytes after the tree as modules",
        ));
    }
    // A truncated tree also truncates the binary.
    let rows = rows.map_or(0, |(rows, _)| rows);
    let modules = args.get("modules").and_then(Value::as_u64).unwrap_or(rows);
    let mut body = tree;
    for place in 0..modules {
        for part in [&b"row"[..], place.to_string().as_bytes()] {
            body.extend_from_slice(&(part.len() as u64).to_le_bytes());
            body.extend_from_slice(part);
        }
    }
    let mut blob = (body.len() as u64).to_le_bytes().to_vec();
    blob.append(&mut body);
    let loaded = load(api, &blob)?;
    let rows: Vec<&Vec<usize>> = loaded.iter().map(|shown| &shown.imports).collect();
    Ok(Reply::Shown {
        view: "rows".to_owned(),
        value: json!(rows),
    })
}

/// Returns the number of rows of the tree and its end; `None` if it is truncated.
fn rows(tree: &[u8]) -> Option<(u64, usize)> {
    let word = |at: usize| -> Option<u64> {
        let bytes = tree.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let behind = |at: usize, words: u64| -> Option<usize> {
        let end = usize::try_from(words.checked_mul(8)?)
            .ok()?
            .checked_add(at)?
            .checked_add(8)?;
        (end <= tree.len()).then_some(end)
    };
    let indptr = word(0)?;
    let indices = behind(0, indptr)?;
    Some((indptr.saturating_sub(1), behind(indices, word(indices)?)?))
}

/// Runs `payload.decode`: returns the kind of the module that the loader of the runtime creates from a payload.
pub(in crate::conformance) fn payload(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    require_current_layout(args)?;
    let kind = args.get("kind").and_then(Value::as_str).unwrap_or_default();
    let payload = bytes(args)?;
    api.reads_code(&payload)?;
    let Some(loader) = api.global(&loader_of(kind)) else {
        return Err(unsupported(format!(
            "none of the libraries loads modules of kind `{kind}`"
        )));
    };
    let payload = ByteArray::of(&payload);
    let module = api.call(&loader, &[bytes_arg(&payload)])?;
    let kind = api.call_global("ffi.ModuleGetKind", &[module.raw])?;
    Ok(Reply::Shown {
        view: "kind".to_owned(),
        value: json!(kind.text()),
    })
}

/// Skips cases of other layouts, because the loader would read their bytes as its own layout.
fn require_current_layout(args: &Value) -> Result<(), Reply> {
    match args.get("layout").and_then(Value::as_str) {
        None | Some("0.22") => Ok(()),
        Some(other) => Err(unsupported(format!(
            "this runtime reads layout 0.22, not {other}"
        ))),
    }
}

/// Returns the name of the global function that loads modules of a kind.
fn loader_of(kind: &str) -> String {
    format!("ffi.Module.load_from_bytes.{kind}")
}

/// Returns a module of `kind`, from a library that contains nothing else.
pub(super) fn stored(
    api: &'static FfiApi,
    kind: &str,
    payload: &[u8],
) -> Result<OwnedValue, Reply> {
    api.reads_code(payload)?;
    let mut body = Vec::new();
    // The words are the two ends of one row without imports.
    for word in [2u64, 0, 0, 0, kind.len() as u64] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(kind.as_bytes());
    body.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    body.extend_from_slice(payload);
    let blob = [&(body.len() as u64).to_le_bytes()[..], &body].concat();
    let library = BlobLibrary::from_blob(&blob)?;
    // Uses the loader of the runtime, not the stand-in of another case.
    let _alone = lock_process_state();
    match api.call_global("ffi.ModuleLoadFromFile", &[text_arg(&library.path)]) {
        // A kind without a loader is not malformed.
        Err(raised) if api.global(&loader_of(kind)).is_none() => Err(unsupported(format!(
            "none of the libraries loads modules of kind `{kind}`: {raised}"
        ))),
        module => Ok(module?),
    }
}

/// A library file around a blob, which exists as long as this value.
struct BlobLibrary {
    /// Folder of the library, which is removed on drop, after the library was loaded.
    _folder: tempfile::TempDir,
    /// Path of the library.
    path: CString,
}

impl BlobLibrary {
    /// Writes a library that contains only the blob and the slot of its context.
    fn from_blob(blob: &[u8]) -> Result<BlobLibrary, Reply> {
        let naming = SymbolNaming::library(Release::LAST);
        let folder = tempfile::tempdir().map_err(|error| Reply::Skipped(error.to_string()))?;
        let path = folder.path().join("case.so");
        let context = "__tvm_ffi__library_ctx";
        case_library::write(blob, naming.symbol(), context, &naming, &path)
            .map_err(|error| unsupported(format!("no library can be made here: {error}")))?;
        let path = CString::new(path.to_string_lossy().as_bytes())
            .map_err(|error| Reply::Skipped(error.to_string()))?;
        Ok(BlobLibrary {
            _folder: folder,
            path,
        })
    }
}

thread_local! {
    /// Modules that our loaders returned for the present case.
    static LOADED: RefCell<Vec<StandInModule>> = const { RefCell::new(Vec::new()) };
}

/// A module that a loader of ours returned, and the arguments of that loader.
struct StandInModule {
    /// An empty module of the runtime.
    module: OwnedValue,
    /// Kind of the loader.
    kind: String,
    /// Bytes that the runtime passed to the loader.
    payload: Vec<u8>,
}

/// Loads `blob` as a library and describes the result: the root, then the modules that our loaders returned, in order, then all other
/// imports.
fn load(api: &'static FfiApi, blob: &[u8]) -> Result<Vec<ShownModule>, Reply> {
    let library = BlobLibrary::from_blob(blob)?;
    Ok(load_file(api, &library.path, blob)?.1)
}

/// Loads the library at `path`, which contains `bytes`, and describes it like [`load`]. Also returns its module.
pub(super) fn load_file(
    api: &'static FfiApi,
    path: &CStr,
    bytes: &[u8],
) -> Result<(OwnedValue, Vec<ShownModule>), Reply> {
    // The names of loaders contain kinds, and belong to the whole process.
    let _alone = lock_process_state();
    LOADED.take();
    let own = own_loaders(api, bytes)?;
    let root = api.call_global("ffi.ModuleLoadFromFile", &[text_arg(path)]);
    for (name, before) in own {
        match before {
            Some(before) => api.set_global(&name, &before, true)?,
            None => drop(api.call_global("ffi.FunctionRemoveGlobal", &[text_arg(&c_text(&name))])),
        }
    }
    let loaded = LOADED.take();
    let root = root?;
    let shown = show(api, api.share(root.raw), loaded)?;
    Ok((root, shown))
}

/// Returns kinds and imports of loaded modules, in the order of a walk.
pub(super) fn kinds_and_imports(shown: Vec<ShownModule>) -> Value {
    let modules = shown.into_iter().map(|shown| {
        let kind = shown.stored.map_or(LIBRARY.to_owned(), |(kind, _)| kind);
        (kind, shown.imports)
    });
    view::kinds_of(&modules.collect::<Vec<_>>())
}

/// Registers a loader of ours for every kind that may be in the bytes, and returns each with the loader that it replaces. Only the runtime
/// decides which bytes are kinds, so that every printable text with a length may be one.
fn own_loaders(
    api: &'static FfiApi,
    blob: &[u8],
) -> Result<Vec<(String, Option<OwnedValue>)>, Reply> {
    let mut kinds = BTreeSet::new();
    for (at, window) in blob.windows(8).enumerate() {
        let length = window.try_into().map_or(u64::MAX, u64::from_le_bytes);
        let Ok(length @ 1..=LONGEST_KIND) = usize::try_from(length) else {
            continue;
        };
        let Some(kind) = blob.get(at + 8..at + 8 + length) else {
            continue;
        };
        if kind.iter().all(u8::is_ascii_graphic) && kind != LIBRARY.as_bytes() {
            kinds.insert(String::from_utf8_lossy(kind).into_owned());
        }
    }
    let own = kinds.into_iter().map(|kind| {
        let name = loader_of(&kind);
        let before = api.global(&name);
        // Leaked: a few hundred bytes for the life of a worker.
        let own: &'static StandInLoader = Box::leak(Box::new(StandInLoader { api, kind }));
        let function = api.function(std::ptr::from_ref(own).cast_mut().cast(), stand_in)?;
        api.set_global(&name, &function, true)?;
        Ok((name, before))
    });
    own.collect::<Result<_, Raised>>().map_err(Reply::from)
}

/// The data of a loader of ours.
struct StandInLoader {
    api: &'static FfiApi,
    /// Kind of the loader.
    kind: String,
}

/// Records kind and payload, and returns an empty module. Replaces the loader of a kind during a case.
unsafe extern "C" fn stand_in(
    this: *mut c_void,
    args: *const RawAny,
    count: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: it was registered with a `StandInLoader` that is never freed.
    let own = unsafe { &*this.cast::<StandInLoader>() };
    if count != 1 {
        return -1;
    }
    // SAFETY: there is one argument.
    let Some(payload) = read_bytes(unsafe { &*args }) else {
        return -1;
    };
    let prefix = c_text(&fresh_prefix());
    // An empty module of the runtime itself. An error of the runtime stays set.
    let Ok(module) = own.api.call_global("ffi.SystemLib", &[text_arg(&prefix)]) else {
        return -1;
    };
    let shared = own.api.share(module.raw);
    // SAFETY: `out` is the place for the result, which takes over one reference.
    unsafe { out.write(shared.raw) };
    // The caller now holds this reference.
    std::mem::forget(shared);
    let kind = own.kind.clone();
    LOADED.with_borrow_mut(|loaded| {
        loaded.push(StandInModule {
            module,
            kind,
            payload,
        });
    });
    0
}

/// Walks the imports, which a module shows in its field `imports_`.
fn show(
    api: &'static FfiApi,
    root: OwnedValue,
    loaded: Vec<StandInModule>,
) -> Result<Vec<ShownModule>, Reply> {
    let mut modules: Vec<OwnedValue> = vec![root];
    let mut stored: Vec<Option<(String, String)>> = vec![None];
    let place = |modules: &[OwnedValue], module: &OwnedValue| {
        let mut known = modules.iter();
        known.position(|known| known.pointer() == module.pointer())
    };
    for loaded in loaded {
        let noted = Some((loaded.kind, BASE64_STANDARD.encode(&loaded.payload)));
        if loaded.module.pointer() == modules[0].pointer() {
            stored[0] = noted;
        } else {
            modules.push(loaded.module);
            stored.push(noted);
        }
    }
    let mut shown: Vec<ShownModule> = Vec::new();
    while let Some(module) = modules.get(shown.len()) {
        let at = shown.len();
        let list = imports(api, module)?;
        let mut imports = Vec::new();
        for import in list {
            imports.push(place(&modules, &import).unwrap_or_else(|| {
                modules.push(import);
                stored.push(None);
                modules.len() - 1
            }));
        }
        shown.push(ShownModule {
            stored: stored[at].take(),
            imports,
        });
    }
    Ok(shown)
}

/// Returns the imports of a module, in order.
pub(super) fn imports(api: &'static FfiApi, module: &OwnedValue) -> Result<Vec<OwnedValue>, Reply> {
    let list = api.field(module, "imports_");
    let list = list.ok_or_else(|| unsupported("modules do not show their imports"))?;
    let size = api.call_global("ffi.ArraySize", &[list.raw])?.raw.int();
    let items =
        (0..size).map(|item| api.call_global("ffi.ArrayGetItem", &[list.raw, int_arg(item)]));
    Ok(items.collect::<Result<_, Raised>>()?)
}
