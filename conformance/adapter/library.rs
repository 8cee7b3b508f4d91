//! Loading the libraries of a foreign runtime into this process, for as long as it lives.

use libloading::Library;
use std::path::Path;

/// Loads the libraries in order, each open to those after it; there is at least one.
pub(super) fn open_all(scheme: &str, paths: &[&Path]) -> Result<Vec<&'static Library>, String> {
    if paths.is_empty() {
        return Err(format!("{scheme}: needs the path of a library"));
    }
    paths.iter().map(|path| open_one(path)).collect()
}

/// What the libraries are called, for reports.
pub(super) fn names(paths: &[&Path]) -> String {
    let names = paths.iter().filter_map(|path| path.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    names.join(" with ")
}

/// Loads a library for the life of the process, its symbols open to those after it.
#[cfg(unix)]
fn open_one(path: &Path) -> Result<&'static libloading::Library, String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // This program exports the same interface for the libraries that it loads. A runtime that is judged must find its own
    // functions before ours; where two libraries do not share names in the first place there is no such flag.
    let own_first = if cfg!(all(target_os = "linux", target_env = "gnu")) {
        0x8 // RTLD_DEEPBIND
    } else {
        0
    };
    // SAFETY: this process was started to run what the library runs when it is loaded.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL | own_first) };
    let library = library.map_err(|error| cannot_load(path, &error))?;
    Ok(Box::leak(Box::new(library.into())))
}

/// With what the dynamic linker said, which is the cause of the error.
fn cannot_load(path: &Path, error: &libloading::Error) -> String {
    use std::error::Error as _;
    let cause = error
        .source()
        .map_or(String::new(), |cause| format!(": {cause}"));
    format!("cannot load {}: {error}{cause}", path.display())
}

#[cfg(not(unix))]
fn open_one(path: &Path) -> Result<&'static libloading::Library, String> {
    // SAFETY: this process was started to run what the library runs when it is loaded.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.map_err(|error| cannot_load(path, &error))?;
    Ok(Box::leak(Box::new(library)))
}
