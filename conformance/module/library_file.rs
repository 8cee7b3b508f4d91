//! Libraries of a case on disk, whose symbols lead back into this process.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::owned::{OwnedValue, bool_arg, text_arg};
use crate::conformance::runtime::ffi::{Reply, c_text, unsupported};
use crate::conformance::runtime::shell::{self, SymbolContent};
use crate::module::Dialect;
use crate::release::Layout;
use std::path::PathBuf;

/// The names that a compiler of the newest layout writes: what the libraries of these cases look like.
pub(super) const NAMES: Dialect = Dialect::of(Layout::V0_22);
/// The slot in which a loader leaves the context of the library (MOD-13).
pub(super) const CONTEXT: &str = NAMES.context.text();
/// What is in front of the symbol of each function (MOD-03).
pub(super) const PREFIX: &str = NAMES.prefix;

/// A library on disk, for as long as the case takes.
pub(super) struct LibraryFile {
    /// Removed with this, after the library was loaded from it.
    _folder: tempfile::TempDir,
    /// Where the library is.
    pub(super) path: PathBuf,
}

impl LibraryFile {
    /// With symbols that lead into this process, and symbols that name bytes.
    pub(super) fn of(
        symbols: &[(&str, SymbolContent)],
        data: &[(&str, &[u8])],
    ) -> Result<LibraryFile, Reply> {
        let written = LibraryFile::in_folder()?;
        shell::write_symbols(symbols, data, &written.path)
            .map_err(|error| unsupported(format!("no library can be made here: {error}")))?;
        Ok(written)
    }

    /// From its bytes.
    pub(super) fn from(library: &[u8]) -> Result<LibraryFile, Reply> {
        let written = LibraryFile::in_folder()?;
        let skipped = |error: std::io::Error| Reply::Skipped(error.to_string());
        std::fs::write(&written.path, library).map_err(skipped)?;
        Ok(written)
    }

    /// A place for a library, with nothing there yet.
    pub(super) fn in_folder() -> Result<LibraryFile, Reply> {
        let folder = tempfile::tempdir().map_err(|error| Reply::Skipped(error.to_string()))?;
        let path = folder.path().join("case.so");
        Ok(LibraryFile {
            _folder: folder,
            path,
        })
    }

    /// The module that the runtime makes of it.
    pub(super) fn module(&self, api: &'static FfiApi) -> Result<OwnedValue, Reply> {
        let path = c_text(&self.path.to_string_lossy());
        Ok(api.call_global("ffi.ModuleLoadFromFile", &[text_arg(&path)])?)
    }

    /// What is in a slot of the library, which is loaded.
    pub(super) fn slot(&self, name: &str) -> Result<RawHandle, Reply> {
        // SAFETY: it is loaded already, and has no code that runs on loading.
        let library = unsafe { libloading::Library::new(&self.path) };
        let library = library.map_err(|error| unsupported(error.to_string()))?;
        // SAFETY: a slot is an address.
        let slot = unsafe { library.get::<*const RawHandle>(name) };
        let slot = slot.map_err(|error| unsupported(error.to_string()))?;
        // SAFETY: the runtime wrote the context into this library, which is still loaded.
        Ok(unsafe { **slot })
    }

    /// Whether this process has it mapped.
    #[cfg(target_os = "linux")]
    pub(super) fn is_mapped(&self) -> Result<bool, Reply> {
        let maps = std::fs::read_to_string("/proc/self/maps");
        let maps = maps.map_err(|error| Reply::Skipped(error.to_string()))?;
        Ok(maps.contains(&*self.path.to_string_lossy()))
    }

    /// Only Linux shows what a process has mapped.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_mapped(&self) -> Result<bool, Reply> {
        Err(unsupported("what is mapped does not show on this system"))
    }
}

/// A symbol that leads to a function of this process.
pub(super) fn address(body: FfiCallback) -> SymbolContent {
    SymbolContent::Jump(body as usize)
}

/// The function `name` of a module, with `deep` in its imports too (MOD-08); None where there is none.
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
