//! Loading of a file, or of any source of symbols, into a tree of modules.

use super::loader_entry::LoaderEntry;
use super::loaders::Loaders;
use super::{
    Dialect, Dso, Library, MOD_07, MOD_17, MOD_18, MOD_26, Module, Symbols, context, symbol_names,
};
use crate::blob::{Blob, LibraryModule, detect};
use crate::function::{Error, ErrorKind, registry};
use crate::release::Layout;
use crate::rule::{Finding, Findings, Kind, Strictness, Violation};
use std::path::Path;
use std::sync::Arc;

/// The result of loading a library.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedLibrary {
    /// Root of the tree: module 0 of the blob, or the library itself.
    pub module: Module,
    /// Layout of the blob; without a blob, the dialect of the symbols.
    pub layout: Layout,
    /// True if the library contains a blob.
    pub has_blob: bool,
    /// Names of the slots that were filled (MOD-05).
    pub slots: Vec<String>,
    /// Oddities that were tolerated (SHOULD rules of blob and import_tree).
    pub findings: Vec<Finding>,
}

/// The internal error of this file: a rule that bytes or symbols break, or an error of a loader.
enum LoadFailure {
    Broken(Violation),
    Failed(Error),
}

impl From<Violation> for LoadFailure {
    fn from(broken: Violation) -> LoadFailure {
        LoadFailure::Broken(broken)
    }
}

impl From<Error> for LoadFailure {
    fn from(failed: Error) -> LoadFailure {
        LoadFailure::Failed(failed)
    }
}

impl From<LoadFailure> for Error {
    /// Adds the rule to the text, because a caller in another language sees only the text.
    fn from(failure: LoadFailure) -> Error {
        match failure {
            LoadFailure::Broken(broken) => {
                Error::with_violation(ErrorKind::Runtime, &broken.to_string(), broken)
            }
            LoadFailure::Failed(error) => error,
        }
    }
}

/// Loads the file at `path`: a shared library of any release, or a file whose extension has a registered loader (MOD-01).
///
/// ```
/// # #[cfg(all(target_arch = "x86_64", target_os = "linux"))] {
/// // SAFETY: the file is the work of a compiler that we trust, and it is called with the arguments that it was compiled for.
/// let module = unsafe { tvmspec::module::load("golden/module/host-0.27.so") }?;
/// assert_eq!(module.kind(), "library");
/// # }
/// # Ok::<(), tvmspec::Error>(())
/// ```
///
/// A path without a folder is a file in the current folder; [`load_named`] leaves it to the dynamic linker. The extension is the text
/// after the last dot of the path. `dll`, `dylib` and `dso` mean `so`. A version after `so`, as in `libm.so.6`, also means `so`. The
/// releases look for a loader of `.6` files instead.
///
/// # Errors
///
/// Returns the errors of [`load_library`], and a RuntimeError for a path without an extension or without a loader for it. Also returns
/// the errors of that loader, and a TypeError if it returns no module.
///
/// # Safety
///
/// The file is trusted code. Its initializers run when it is opened, and its functions run with the rights of the process. A compiled
/// function checks only the arguments that its compiler made it check: none up to 0.6, and most but not all in a library of TVM's
/// compilers. After loading, its functions are safe to call ([`Function::call`]), by safe code of this process and by code that it
/// registers and returns. The caller therefore promises, for all code that the modules, the functions and the registry reach, that
///
/// * opening it is sound, and so is dropping it while none of its functions runs;
/// * its symbols are of the kind that their names state (MOD-01 to MOD-06): the symbol of a function is a function with the convention of
///   its release;
/// * its functions are called with the number, types, shapes and devices of arguments that they were compiled for, or reject others;
/// * the same is true for the device code that it contains, and for everything that it registers with this process.
///
/// # Wrong arguments
///
/// What compiled code checks depends on the release that wrote it (FUN-26 to FUN-30). Tried with code of 0.8, 0.19, 0.21 and 0.27:
///
/// * A wrong number of arguments, and a tensor of another type, shape or device, fail with an error in all four.
/// * A number or None instead of a tensor fails with an error from 0.19 on. Code of 0.8 does not check type codes, and ends the process.
/// * A null description or null data is checked from 0.16 on. Older code ends the process.
/// * No code checks the alignment of `data`. Tensors of this crate are aligned.
///
/// Read a file that is not trusted with [`crate::blob`] instead, which runs none of its code. Without `unsafe` a call does not compile:
///
/// ```compile_fail,E0133
/// let module = tvmspec::module::load("model.so");
/// ```
///
/// [`Function::call`]: crate::function::Function::call
pub unsafe fn load(path: impl AsRef<Path>) -> Result<Module, Error> {
    let path = path.as_ref();
    // SAFETY: as for this function.
    unsafe { load_by(path, &path.to_string_lossy(), "", Dso::open) }
}

/// Loads a file like [`load`], in the way of the releases' interfaces. A path without a folder is left to the dynamic linker. The linker
/// searches its own folders, and not the current one.
///
/// # Errors
///
/// Returns the errors of [`load`].
///
/// # Safety
///
/// As for [`load`], for the file that the dynamic linker finds.
pub unsafe fn load_named(path: &str) -> Result<Module, Error> {
    // SAFETY: as for this function.
    unsafe { load_as(path, "") }
}

/// Loads a file like [`load_named`], in the given format. An empty `format` means the format that the file name shows (MOD-32).
///
/// # Errors
///
/// Returns the errors of [`load`].
///
/// # Safety
///
/// As for [`load_named`].
pub unsafe fn load_as(path: &str, format: &str) -> Result<Module, Error> {
    // SAFETY: as for this function.
    unsafe { load_by(path.as_ref(), path, format, Dso::open_named) }
}

/// Loads a shared library like [`load_named`], with any extension. This is the loader of `so` files, to which a loader of another
/// extension may pass its path.
///
/// # Safety
///
/// As for [`load_named`].
pub(crate) unsafe fn load_shared(path: &str) -> Result<Module, Error> {
    // SAFETY: as for this function.
    unsafe { load_symbols_at(path.as_ref(), Dso::open_named) }
}

/// # Safety
///
/// As for [`load`].
unsafe fn load_symbols_at(path: &Path, open: Opener) -> Result<Module, Error> {
    // SAFETY: the file is trusted to be opened and closed, by the first clause of `load`.
    let dso = unsafe { open(path) }?;
    // SAFETY: its symbols and functions obey the other clauses of `load`.
    let loaded = unsafe { load_symbols(Arc::new(dso), Strictness::Lenient) }?;
    Ok(loaded.module)
}

type Opener = unsafe fn(&Path) -> Result<Dso, Violation>;

/// # Safety
///
/// As for [`load`].
unsafe fn load_by(path: &Path, text: &str, format: &str, open: Opener) -> Result<Module, Error> {
    let extension = match (format, around_last_dot(unversioned(text))) {
        ("", Some((_, extension))) => extension,
        ("", None) => {
            let message = format!(
                "`{text}` has no extension: the text behind the last dot says what it holds"
            );
            return Err(Error::new(ErrorKind::Runtime, message));
        }
        (format, _) => format,
    };
    // MOD-01: one loader reads shared libraries, for the extensions of every system.
    let extension = match extension {
        "dll" | "dylib" | "dso" => "so",
        other => other,
    };
    if extension == "so" {
        // SAFETY: as for this function.
        return unsafe { load_symbols_at(path, open) };
    }
    let name = format!("ffi.Module.load_from_file.{extension}");
    // SAFETY: the loader loads the file at `path`, which the contract of `load` covers.
    let loader = unsafe { registry::lookup_raw(name.as_bytes()) }.ok_or_else(|| {
        let message = format!("Loader for `.{extension}` files is not registered: there is no global function `{name}`");
        Error::new(ErrorKind::Runtime, message)
    })?;
    let made = loader.call((text, extension))?;
    let module = made
        .into_object()
        .ok()
        .and_then(|object| Module::from_object(object).ok());
    module.ok_or_else(|| Error::new(ErrorKind::Type, format!("`{name}` returned no module")))
}

/// Splits at the last dot. Avoids the code of `str::rsplit_once` for characters of several bytes.
fn around_last_dot(text: &str) -> Option<(&str, &str)> {
    let dot = text.bytes().rposition(|byte| byte == b'.')?;
    Some((text.get(..dot)?, text.get(dot + 1..)?))
}

/// Returns the path without the version after `.so`, which consists of numbers and dots.
fn unversioned(path: &str) -> &str {
    let mut rest = path;
    while let Some((before, last)) = around_last_dot(rest) {
        if last == "so" {
            return rest;
        }
        if last.is_empty() || !last.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        rest = before;
    }
    path
}

/// Opens the shared library at `path`, of any release, and creates the modules in it.
///
/// # Errors
///
/// * MOD-01: missing if the dynamic linker cannot open it, unsupported if it is for another machine.
/// * BLOB-55 (truncated) for an ELF image that ends before its segments do.
/// * MOD-26 (missing) if it needs a function that no runtime in this process has.
/// * MOD-18: truncated if its blob exceeds its symbol, unsupported if the end of the symbol is unknown.
/// * MOD-07 (missing) for a tree without a module; the rules of blob and import_tree. [`Strictness::Strict`] turns findings into errors.
/// * Errors of the loader of a kind, and an error without a rule for a loader that returns no module.
///
/// # Safety
///
/// As for [`load`].
pub unsafe fn load_library(
    path: impl AsRef<Path>,
    strictness: Strictness,
) -> Result<LoadedLibrary, Error> {
    Dso::check_length(path.as_ref()).map_err(LoadFailure::from)?;
    // SAFETY: the file is trusted to be opened and closed, by the first clause of `load`.
    let dso = unsafe { Dso::open(path.as_ref()) }.map_err(LoadFailure::from)?;
    // SAFETY: its symbols and functions obey the other clauses of `load`.
    unsafe { load_symbols(Arc::new(dso), strictness) }
}

/// Loads a library like [`load_library`], from any source of symbols.
///
/// # Errors
///
/// Returns the errors of [`load_library`], except those of opening.
///
/// # Safety
///
/// As for [`load`], for everything that `symbols` returns. An address remains valid, and has the type that its name states, for as long
/// as `symbols` lives.
pub unsafe fn load_symbols(
    symbols: Arc<dyn Symbols>,
    strictness: Strictness,
) -> Result<LoadedLibrary, Error> {
    // Compiled code allocates workspace without a lookup by name, which would otherwise install the defaults.
    crate::install();
    Ok(read(&symbols, strictness)?)
}

/// Loads a library in the order of the rules: missing functions (MOD-26), the layout (MOD-01), the slots (MOD-05), and then the blob with
/// its modules (MOD-07, MOD-18). The blob comes last, because loaders of modules may call functions through the slots.
fn read(symbols: &Arc<dyn Symbols>, strictness: Strictness) -> Result<LoadedLibrary, LoadFailure> {
    // MOD-26: checked before a slot is filled or a loader runs. Releases bind functions on first use, so that the process ends at the first
    // call of a missing one. For a failed check that is the function that reports errors.
    let unmet = symbols.missing_functions();
    MOD_26.demand(Kind::Missing, unmet.is_empty(), || {
        symbol_names::explain_missing_symbols(&symbols.describe(), &unmet)
    })?;
    let blob = symbol_names::blob(&**symbols)?;
    let dialect = blob.map_or_else(|| symbol_names::dialect(&**symbols), |(dialect, _)| dialect);
    let names = Dialect::of(dialect);
    // MOD-05: before the blob is read, because its loaders may run code of the library.
    let slots = context::fill_slots(&**symbols, names.convention);
    let mut findings = Findings::new(strictness);
    let done = |module, layout, has_blob, findings: Findings| LoadedLibrary {
        module,
        layout,
        has_blob,
        slots,
        findings: findings.into_iter().collect(),
    };
    let Some((_, data)) = blob else {
        let module = library(symbols, names);
        return Ok(done(module, dialect, false, findings));
    };
    // MOD-18: a symbol with a size bounds the blob. Without a size its header does, because other data may follow.
    let bytes = if data.exact {
        data.bytes
    } else {
        declared(data.bytes)?
    };
    check_bounds(bytes)?;
    let layout = detect::detect(bytes, Some(names.blob.text()));
    let blob = Blob::read_with(bytes, layout, &mut findings)?;
    // MOD-01: 0.2 and 0.7 use the same symbol, and only the blob distinguishes them.
    let module = build(&blob, symbols, Dialect::of(layout))?;
    Ok(done(module, layout, true, findings))
}

/// Checks that the length in the header fits into the symbol (MOD-18). Releases trust the length, and read the memory after the symbol.
fn check_bounds(bytes: &[u8]) -> Result<(), Violation> {
    let nbytes = nbytes(bytes)?;
    let room = bytes.len() as u64;
    MOD_18.require_as(Kind::Truncated, nbytes <= room.saturating_sub(8), 0, || {
        format!("the header of the blob counts {nbytes} bytes, its symbol has room for {room} with the header")
    })
}

/// Returns the blob up to the length in its header, for a symbol of unknown size that other data may follow (MOD-18).
fn declared(bytes: &[u8]) -> Result<&[u8], Violation> {
    let end = usize::try_from(nbytes(bytes)?)
        .ok()
        .and_then(|nbytes| nbytes.checked_add(8));
    // `check_bounds` rejects too large a length in the header as truncated.
    Ok(end.and_then(|end| bytes.get(..end)).unwrap_or(bytes))
}

/// Returns the number of bytes after the header (BLOB-01), for a symbol without a size.
fn nbytes(bytes: &[u8]) -> Result<u64, Violation> {
    let header = bytes.first_chunk::<8>().ok_or_else(|| {
        MOD_18.broken(
            Kind::Truncated,
            0,
            "the symbol of the blob is shorter than the blob's header",
        )
    })?;
    Ok(u64::from_le_bytes(*header))
}

/// Creates the module of the library itself, and writes it into the library's context symbol (MOD-06).
fn library(symbols: &Arc<dyn Symbols>, names: Dialect) -> Module {
    let module = Module::new(Library::new(Arc::clone(symbols), names));
    let written = context::set(&**symbols, names.context, Some(&module));
    if let (Some(library), Some(written)) = (Library::of(&module), written) {
        library.keep(written);
    }
    module
}

/// Creates one module for each entry, with the imports of the tree (MOD-07).
fn build(
    blob: &Blob<'_>,
    symbols: &Arc<dyn Symbols>,
    names: Dialect,
) -> Result<Module, LoadFailure> {
    let mut modules = Vec::with_capacity(blob.modules.len());
    let mut has_own = false;
    let mut loaders = Loaders::default();
    for stored in &blob.modules {
        let module = match stored {
            LibraryModule::Host => {
                has_own = true;
                library(symbols, names)
            }
            LibraryModule::Stored(stored) => loaders.load(&LoaderEntry {
                kind: &stored.kind,
                payload: &stored.payload,
                layout: blob.layout,
                library: symbols,
            })?,
        };
        modules.push(module);
    }
    let Some(tree) = &blob.tree else {
        // MOD-07: blobs of 0.2 have no tree. Neither do blobs of 0.7 that embed no modules.
        let module = library(symbols, names);
        module.add_imports(modules)?;
        return Ok(module);
    };
    // MOD-06: without `_lib`, up to 0.21 the context is set to null; from 0.22 on it is not changed.
    if !has_own && blob.layout < Layout::V0_22 {
        context::set(&**symbols, names.context, None);
    }
    for (parent, module) in modules.iter().enumerate() {
        let imports = tree.children(parent);
        let imports =
            imports.filter_map(|child| modules.get(usize::try_from(child).ok()?).cloned());
        let imports: Vec<Module> = imports.collect();
        // Most modules import nothing, and share the empty array.
        if !imports.is_empty() {
            module.add_imports(imports)?;
        }
    }
    let root = modules.into_iter().next();
    Ok(root.ok_or_else(|| MOD_07.rejected(Kind::Missing, "the tree of the blob has no module"))?)
}

/// Returns the system library with `prefix`, which is the same module for every call (MOD-17).
///
/// # Errors
///
/// Returns MOD-17 (cycle) if one of its loaders calls this function, and the errors of [`load_symbols`].
pub fn system_library(prefix: &str) -> Result<Module, Error> {
    use super::keyed_lock::KeyedLock;
    use super::system::SystemSymbols;
    use crate::value::SmallMap;
    use std::sync::{Mutex, PoisonError};
    static KNOWN: Mutex<SmallMap<String, Module>> = Mutex::new(SmallMap::new());
    static RUNNING: KeyedLock<String> = KeyedLock::new();
    // No lock is held while modules are loaded, because a loader may request a system library.
    let Some(_turn) = RUNNING.take(&prefix.to_owned()) else {
        let text = format!("a loader of the system library `{prefix}` looks that library up");
        return Err(MOD_17.rejected(Kind::Cycle, text).into());
    };
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Looked up after taking the turn: another thread may have loaded it while this one waited (MOD-17).
    let there = known().find(prefix).cloned();
    if let Some(module) = there {
        return Ok(module);
    }
    let symbols = Arc::new(SystemSymbols::new(prefix));
    // SAFETY: every address of the system library was registered with `system::register`, whose contract includes that of `load`.
    let module = unsafe { load_symbols(symbols, Strictness::Lenient) }?.module;
    known().put(prefix.to_owned(), module.clone());
    Ok(module)
}
