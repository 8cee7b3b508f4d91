//! The common part of the adapters for foreign runtimes: loading libraries into this process for its whole life, and the operations
//! that no runtime offers.

use libloading::Library;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Loads the libraries in order. The symbols of each are visible to the later ones. There must be at least one.
pub(super) fn open_all(scheme: &str, paths: &[&Path]) -> Result<Vec<&'static Library>, String> {
    if paths.is_empty() {
        return Err(format!("{scheme}: needs the path of a library"));
    }
    paths.iter().map(|path| open_one(path)).collect()
}

/// Splits the libraries from the target after the `#`, whose code generator is to be tested. A `#` in a path belongs to the path.
pub(super) fn with_generator(libraries: &str) -> (&str, Option<&str>) {
    match libraries.rsplit_once('#') {
        Some((before, target)) if !target.contains('/') && !target.is_empty() => {
            (before, Some(target))
        }
        _ => (libraries, None),
    }
}

/// Returns the names of the libraries for reports, with the code generator that is tested.
pub(super) fn names(paths: &[&Path], generator: Option<&str>) -> String {
    let names = paths.iter().filter_map(|path| path.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    let names = names.join(" with ");
    match generator {
        Some(target) => format!("{names} for {target}"),
        None => names,
    }
}

/// Explains why no C interface of a runtime reaches `op`.
pub(super) fn why_not(op: &str) -> Option<&'static str> {
    let chapter = op.split('.').next().unwrap_or_default();
    Some(match (chapter, op) {
        ("wire", _) => "the serializers of the runtime are not in its C interface",
        (_, "blob.find" | "blob.form" | "blob.linkage" | "blob.symbols") => {
            "files of other systems are not opened by the loader, which calls the dynamic linker"
        }
        (_, "blob.detect" | "blob.convert") => "the runtime reads one layout",
        (
            _,
            "blob.encode" | "blob.pack_c" | "blob.pack_object" | "blob.pack_shared"
            | "import_tree.encode" | "import_tree.order",
        ) => "packing is done by the compiler, not by the runtime",
        (_, "payload.encode") => {
            "a runtime writes a payload from a module, and no function creates a module from fields"
        }
        ("vm", _) => "bytecode is run by the runtime, and not shown",
        ("device", _) => "devices are reached through `device:`, not through this interface",
        _ => return None,
    })
}

/// Returns the tensors that `tensor.encode` asks a runtime to write, or the reason why it cannot.
pub(in crate::conformance) fn tensors(args: &Value) -> Result<&[Value], &'static str> {
    let more = args.get("value").and_then(Value::as_object);
    // TEN-42: a runtime cannot be made to write another reserved word, as the case needs.
    if more.is_some_and(|value| value.keys().any(|key| key != "tensors")) {
        return Err("the runtime itself chooses the words around the tensors");
    }
    let list = args.pointer("/value/tensors").and_then(Value::as_array);
    let list = list.ok_or("`value` has no list `tensors`")?;
    let mut names = BTreeSet::new();
    let once = |tensor: &Value| names.insert(name(tensor).map(str::to_owned));
    // TEN-44: upstream's writers use a map, so a case with a repeated name cannot be run.
    if !list.iter().all(once) {
        return Err("the runtime writes a map, in which each name occurs once");
    }
    Ok(list)
}

/// Returns the name of that tensor.
pub(in crate::conformance) fn name(tensor: &Value) -> Option<&str> {
    tensor.get("name").and_then(Value::as_str)
}

/// Loads a library for the life of the process, with its symbols visible to later ones.
#[cfg(unix)]
fn open_one(path: &Path) -> Result<&'static libloading::Library, String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // This program exports the same interface for the libraries that it loads. A runtime under test must find its own functions
    // first. Systems that give each library a separate namespace need no flag for that.
    let own_first = if cfg!(all(target_os = "linux", target_env = "gnu")) {
        0x8 // RTLD_DEEPBIND
    } else {
        0
    };
    // SAFETY: this process was started to run the code that the library runs when it is loaded.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL | own_first) };
    let library = library.map_err(|error| cannot_load(path, &error))?;
    Ok(Box::leak(Box::new(library.into())))
}

/// Creates the error with the message of the dynamic linker, which is its cause.
fn cannot_load(path: &Path, error: &libloading::Error) -> String {
    use std::error::Error as _;
    let cause = error
        .source()
        .map_or(String::new(), |cause| format!(": {cause}"));
    format!("cannot load {}: {error}{cause}", path.display())
}

/// Loads a library by its path, for the life of the process.
#[cfg(not(unix))]
fn open_one(path: &Path) -> Result<&'static libloading::Library, String> {
    // SAFETY: this process was started to run the code that the library runs when it is loaded.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.map_err(|error| cannot_load(path, &error))?;
    Ok(Box::leak(Box::new(library)))
}
