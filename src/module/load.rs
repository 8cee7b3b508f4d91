//! From a file, or from any source of symbols, to a tree of modules.

use super::entry::LoaderEntry;
use super::loaders::Loaders;
use super::{
    Dialect, Dso, Library, MOD_07, MOD_17, MOD_18, MOD_26, Module, Symbols, context, names,
};
use crate::blob::{Blob, LIBRARY, detect};
use crate::function::{Error, ErrorKind, registry};
use crate::release::Layout;
use crate::rule::{Finding, Findings, Kind, Strictness, Violation};
use std::path::Path;
use std::sync::Arc;

/// What came of loading a library.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedLibrary {
    /// The root: module 0 of the blob, or the library itself.
    pub module: Module,
    /// The layout of the blob; without one, the dialect that the symbols speak.
    pub layout: Layout,
    /// Whether there was a blob.
    pub has_blob: bool,
    /// Names of the slots that were filled (MOD-05).
    pub slots: Vec<String>,
    /// Oddities that were tolerated (SHOULD rules of blob and import_tree).
    pub findings: Vec<Finding>,
}

/// Why a library was not loaded, on the way out of this file: a rule that its bytes or symbols break, or what a loader raised.
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
    /// A caller of another language has the text alone: it names the rule.
    fn from(failure: LoadFailure) -> Error {
        match failure {
            LoadFailure::Broken(broken) => {
                Error::with_violation(ErrorKind::Runtime, &broken.to_string(), broken)
            }
            LoadFailure::Failed(error) => error,
        }
    }
}

/// Loads the file at `path`: a shared library of any release, or a file that a loader is registered for by its extension (MOD-01).
///
/// The extension is what follows the last dot of the path; `dll`, `dylib` and `dso` mean `so`, and so does a version behind it:
/// `libm.so.6`. The releases look for a loader of `.6` files.
///
/// # Errors
///
/// Those of [`load_library`]. A RuntimeError for a path without an extension, or with one that has no loader; what that loader
/// raises, and a TypeError where it returns no module.
///
/// # Safety
///
/// The file is trusted code. Its initializers run when it is opened, and its functions run with the rights of the process;
/// a compiled function checks of its arguments what its compiler made it check, which up to 0.6 is nothing and in a library
/// of TVM's compilers is most, but not all. From here on its functions are safe to call ([`Function::call`]), by the safe
/// code of this process as well as by what it registers and returns. So the caller promises, for all code that the
/// modules, the functions and the registry reach, that
///
/// * opening it, and dropping it while none of its functions runs, is sound;
/// * its symbols are what their names say (MOD-01 to MOD-06): a function is one, of the convention of its release;
/// * its functions are called with the number, types, shapes and devices of arguments that they were compiled for, or
///   reject others;
/// * the same holds for the device code that it brings, and for what it registers with this process.
///
/// A file that is not trusted is read with [`crate::blob`] instead, which runs nothing of it.
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

/// [`load`] as the interfaces of the releases have it: a path without a folder is left to the dynamic linker, which looks
/// in its own folders and not in the current one.
///
/// # Errors
///
/// As [`load`].
///
/// # Safety
///
/// As for [`load`], of whichever file the dynamic linker finds.
pub unsafe fn load_named(path: &str) -> Result<Module, Error> {
    // SAFETY: as for this function.
    unsafe { load_as(path, "") }
}

/// [`load_named`] of a file whose format is stated; the empty text stands for that of its name (MOD-32).
///
/// # Errors
///
/// As [`load`].
///
/// # Safety
///
/// As for [`load_named`].
pub unsafe fn load_as(path: &str, format: &str) -> Result<Module, Error> {
    // SAFETY: as for this function.
    unsafe { load_by(path.as_ref(), path, format, Dso::open_named) }
}

/// [`load_named`] of a shared library, whatever its name ends in: the loader of `so` files, which a loader of another extension may
/// hand its path to.
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
    // SAFETY: the file is trusted to be opened and closed, the first clause of `load`.
    let dso = unsafe { open(path) }?;
    // SAFETY: its symbols and functions are what the other clauses of `load` say.
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
    // MOD-01: whatever the system calls a shared library, one loader reads them all.
    let extension = match extension {
        "dll" | "dylib" | "dso" => "so",
        other => other,
    };
    if extension == "so" {
        // SAFETY: as for this function.
        return unsafe { load_symbols_at(path, open) };
    }
    let name = format!("ffi.Module.load_from_file.{extension}");
    // SAFETY: what it loads is the file at `path`, which the contract of `load` covers.
    let loader = unsafe { registry::lookup_raw(name.as_bytes()) }.ok_or_else(|| {
        let message = format!("Loader for `.{extension}` files is not registered: there is no global function `{name}`");
        Error::new(ErrorKind::Runtime, message)
    })?;
    let made = loader.call_with([text.into(), extension.into()])?;
    let module = made
        .into_object()
        .ok()
        .and_then(|object| Module::from_object(object).ok());
    module.ok_or_else(|| Error::new(ErrorKind::Type, format!("`{name}` returned no module")))
}

/// `str::rsplit_once` of a dot, without the code that looks for characters of several bytes.
fn around_last_dot(text: &str) -> Option<(&str, &str)> {
    let dot = text.bytes().rposition(|byte| byte == b'.')?;
    Some((text.get(..dot)?, text.get(dot + 1..)?))
}

/// The path without the version behind `.so`: numbers between dots.
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

/// Opens the shared library at `path`, of any release, and makes modules of what is in it.
///
/// # Errors
///
/// * MOD-01: missing where the dynamic linker cannot open it, unsupported where it is for another machine.
/// * BLOB-55 (truncated) for an ELF image that ends before its segments do.
/// * MOD-26 (missing) where it needs a function that no runtime in this process has.
/// * MOD-18: truncated where its blob does not lie inside its symbol, unsupported where the end of the symbol is not known.
/// * MOD-07 (missing) for a tree without a module; the rules of blob and import_tree. [`Strictness::Strict`] turns findings into
///   errors.
/// * What the loader of a kind raises, and an error without a rule for one that returns no module.
///
/// # Safety
///
/// As for [`load`].
pub unsafe fn load_library(
    path: impl AsRef<Path>,
    strictness: Strictness,
) -> Result<LoadedLibrary, Error> {
    // SAFETY: the file is trusted to be opened and closed, the first clause of `load`.
    let dso = unsafe { Dso::open(path.as_ref()) }.map_err(LoadFailure::from)?;
    // SAFETY: its symbols and functions are what the other clauses of `load` say.
    unsafe { load_symbols(Arc::new(dso), strictness) }
}

/// [`load_library`] for any source of symbols.
///
/// # Errors
///
/// As [`load_library`], but for opening.
///
/// # Safety
///
/// As for [`load`], of what `symbols` returns: an address stays what its name says for as long as `symbols` lives.
pub unsafe fn load_symbols(
    symbols: Arc<dyn Symbols>,
    strictness: Strictness,
) -> Result<LoadedLibrary, Error> {
    // Compiled code takes workspace without a lookup by name, which is what installs the defaults otherwise.
    crate::install();
    Ok(read(&symbols, strictness)?)
}

/// The order is that of the rules: what is missing (MOD-26), the layout (MOD-01), the slots (MOD-05), and then the blob with its modules
/// (MOD-07, MOD-18), whose loaders may call what the slots lead to.
fn read(symbols: &Arc<dyn Symbols>, strictness: Strictness) -> Result<LoadedLibrary, LoadFailure> {
    // MOD-26: before a slot is filled or a loader runs. Releases bind on first use, and the process ends at the first call of what is
    // missing, which for a failed check is the function that reports errors.
    let unmet = symbols.unmet();
    MOD_26.demand(Kind::Missing, unmet.is_empty(), || {
        names::not_met(&symbols.describe(), &unmet)
    })?;
    let blob = names::blob(&**symbols)?;
    let dialect = blob.map_or_else(|| names::dialect(&**symbols), |(dialect, _)| dialect);
    let names = Dialect::of(dialect);
    // MOD-05: before the blob is read, whose loaders may run code of the library.
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
    // MOD-18: a symbol with a size ends the blob. Without one the header does, since other data may follow.
    let bytes = if data.exact {
        data.bytes
    } else {
        declared(data.bytes)?
    };
    check_bounds(bytes)?;
    let layout = detect::detect(bytes, Some(names.blob.text()));
    let blob = Blob::read(bytes, layout, &mut findings)?;
    // MOD-01: 0.2 and 0.7 share the symbol, and only the blob distinguishes them.
    let module = build(&blob, symbols, Dialect::of(layout))?;
    Ok(done(module, layout, true, findings))
}

/// MOD-18: the length in the header is at most what the symbol has room for. Releases believe it, and read the neighbours.
fn check_bounds(bytes: &[u8]) -> Result<(), Violation> {
    let nbytes = nbytes(bytes)?;
    let room = bytes.len() as u64;
    MOD_18.require_as(Kind::Truncated, nbytes <= room.saturating_sub(8), 0, || {
        format!("the header of the blob counts {nbytes} bytes, its symbol has room for {room} with the header")
    })
}

/// The blob as its header bounds it, where the size of the symbol is not known and other data may follow (MOD-18).
fn declared(bytes: &[u8]) -> Result<&[u8], Violation> {
    let end = usize::try_from(nbytes(bytes)?)
        .ok()
        .and_then(|nbytes| nbytes.checked_add(8));
    // A header that counts more than there is goes to `check_bounds`, which rejects it as truncated.
    Ok(end.and_then(|end| bytes.get(..end)).unwrap_or(bytes))
}

/// How many bytes follow the header (BLOB-01), where the symbol has no size.
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

/// The module of the library itself, which is its own context from here on (MOD-06).
fn library(symbols: &Arc<dyn Symbols>, names: Dialect) -> Module {
    let module = Module::new(Library::new(Arc::clone(symbols), names));
    let written = context::set(&**symbols, names.context, Some(&module));
    if let (Some(library), Some(written)) = (Library::of(&module), written) {
        library.keep(written);
    }
    module
}

/// MOD-07: one module for each entry, imports as the tree says.
fn build(
    blob: &Blob<'_>,
    symbols: &Arc<dyn Symbols>,
    names: Dialect,
) -> Result<Module, LoadFailure> {
    let mut modules = Vec::with_capacity(blob.modules.len());
    let mut has_own = false;
    let mut loaders = Loaders::default();
    for stored in &blob.modules {
        let module = if stored.kind == LIBRARY {
            has_own = true;
            library(symbols, names)
        } else {
            loaders.load(&LoaderEntry {
                kind: &stored.kind,
                payload: stored.payload.as_deref().unwrap_or_default(),
                layout: blob.layout,
                library: symbols,
            })?
        };
        modules.push(module);
    }
    let Some(tree) = &blob.tree else {
        // MOD-07: blobs of 0.2 have no tree, nor have those of 0.7 that embed nothing.
        let module = library(symbols, names);
        module.add_imports(modules)?;
        return Ok(module);
    };
    // MOD-06: without `_lib` up to 0.21 the context is null; from 0.22 on it is left as it is.
    if !has_own && blob.layout < Layout::V0_22 {
        context::set(&**symbols, names.context, None);
    }
    for (parent, module) in modules.iter().enumerate() {
        let imports = tree.children(parent);
        let imports =
            imports.filter_map(|child| modules.get(usize::try_from(child).ok()?).cloned());
        let imports: Vec<Module> = imports.collect();
        // Most import nothing, and share the empty array.
        if !imports.is_empty() {
            module.add_imports(imports)?;
        }
    }
    let root = modules.into_iter().next();
    Ok(root.ok_or_else(|| MOD_07.rejected(Kind::Missing, "the tree of the blob has no module"))?)
}

/// The system library with `prefix`, the same module every time (MOD-17).
///
/// # Errors
///
/// MOD-17 (cycle) where one of its own loaders calls this; as [`load_symbols`].
pub fn system_library(prefix: &str) -> Result<Module, Error> {
    use super::system::SystemSymbols;
    use super::turns::Turns;
    use crate::value::SmallMap;
    use std::sync::{Mutex, PoisonError};
    static KNOWN: Mutex<SmallMap<String, Module>> = Mutex::new(SmallMap::new());
    static TURNS: Turns<String> = Turns::new();
    // No lock is held while modules are loaded: a loader may ask for a system library.
    let Some(_turn) = TURNS.take(&prefix.to_owned()) else {
        let text = format!("a loader of the system library `{prefix}` looks that library up");
        return Err(MOD_17.rejected(Kind::Cycle, text).into());
    };
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Looked up behind the turn: another thread may have loaded it while this one waited (MOD-17).
    let there = known().find(prefix).cloned();
    if let Some(module) = there {
        return Ok(module);
    }
    let symbols = Arc::new(SystemSymbols::new(prefix));
    // SAFETY: every address of the system library came through `system::register`, whose contract is that of `load`.
    let module = unsafe { load_symbols(symbols, Strictness::Lenient) }?.module;
    known().put(prefix.to_owned(), module.clone());
    Ok(module)
}
