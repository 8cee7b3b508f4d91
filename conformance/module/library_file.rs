//! Library files of a case, whose symbols lead back into this process.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_library::{self, SymbolContent};
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::owned::{OwnedValue, bool_arg, text_arg};
use crate::conformance::runtime::ffi::{Reply, c_text, unsupported};
use crate::module::Dialect;
use crate::release::Layout;
use std::path::PathBuf;

/// The names that a compiler of the newest layout writes, which the libraries of these cases use.
pub(super) const NAMES: Dialect = Dialect::of(Layout::V0_22);
/// Slot into which a loader writes the context of the library (MOD-13).
pub(super) const CONTEXT: &str = NAMES.context.text();
/// Prefix of the symbol of each function (MOD-03).
pub(super) const PREFIX: &str = NAMES.prefix;

/// A library file, which exists until the end of the case.
pub(super) struct LibraryFile {
    /// Folder of the library, which is removed on drop, after the library was loaded.
    _folder: tempfile::TempDir,
    /// Path of the library.
    pub(super) path: PathBuf,
}

impl LibraryFile {
    /// Writes a library with symbols that lead into this process, and symbols of data.
    pub(super) fn from_symbols(
        symbols: &[(&str, SymbolContent)],
        data: &[(&str, &[u8])],
    ) -> Result<LibraryFile, Reply> {
        let written = LibraryFile::in_folder()?;
        case_library::write_symbols(symbols, data, &written.path)
            .map_err(|error| unsupported(format!("no library can be made here: {error}")))?;
        Ok(written)
    }

    /// Writes a library from its bytes.
    pub(super) fn from(library: &[u8]) -> Result<LibraryFile, Reply> {
        let written = LibraryFile::in_folder()?;
        let skipped = |error: std::io::Error| Reply::Skipped(error.to_string());
        std::fs::write(&written.path, library).map_err(skipped)?;
        Ok(written)
    }

    /// Creates a folder for a library that does not exist yet.
    pub(super) fn in_folder() -> Result<LibraryFile, Reply> {
        let folder = tempfile::tempdir().map_err(|error| Reply::Skipped(error.to_string()))?;
        let path = folder.path().join("case.so");
        Ok(LibraryFile {
            _folder: folder,
            path,
        })
    }

    /// Loads the library with the runtime, and returns its module.
    pub(super) fn module(&self, api: &'static FfiApi) -> Result<OwnedValue, Reply> {
        let path = c_text(&self.path.to_string_lossy());
        Ok(api.call_global("ffi.ModuleLoadFromFile", &[text_arg(&path)])?)
    }

    /// Returns the value of a slot in the library, which must be loaded.
    pub(super) fn slot(&self, name: &str) -> Result<RawHandle, Reply> {
        // SAFETY: the library is already loaded, and runs no code on loading.
        let library = unsafe { libloading::Library::new(&self.path) };
        let library = library.map_err(|error| unsupported(error.to_string()))?;
        // SAFETY: a slot is a pointer.
        let slot = unsafe { library.get::<*const RawHandle>(name) };
        let slot = slot.map_err(|error| unsupported(error.to_string()))?;
        // SAFETY: the runtime wrote the context into this library, which is still loaded.
        Ok(unsafe { **slot })
    }

    /// Returns whether this process has mapped the library.
    #[cfg(target_os = "linux")]
    pub(super) fn is_mapped(&self) -> Result<bool, Reply> {
        let maps = std::fs::read_to_string("/proc/self/maps");
        let maps = maps.map_err(|error| Reply::Skipped(error.to_string()))?;
        Ok(maps.contains(&*self.path.to_string_lossy()))
    }

    /// Only Linux shows the mappings of a process.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_mapped(&self) -> Result<bool, Reply> {
        Err(unsupported("this system does not list the mapped files"))
    }
}

/// Creates a symbol that leads to a function of this process.
pub(super) fn address(body: FfiCallback) -> SymbolContent {
    SymbolContent::Jump(body as usize)
}

/// Looks up the function `name` of a module, with `deep` also in its imports (MOD-08); None if there is no such function.
pub(super) fn lookup(
    api: &'static FfiApi,
    module: &OwnedValue,
    name: &str,
    deep: bool,
) -> Result<OwnedValue, Reply> {
    let name = c_text(name);
    let args = [module.raw, text_arg(&name), bool_arg(deep)];
    Ok(api.call_global("ffi.ModuleGetFunction", &args)?)
}
