//! Opens a shared library with the dynamic linker, and finds its symbols.

use super::segment::{MappedSegment, executable, segment, writable};
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
use super::symbol_info::size_in_file;
use super::symbol_info::symbol_at;
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
use super::symbol_info::{KnownSymbol, list_in_file};
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
use super::table::SymbolTable;
#[cfg(unix)]
use super::trampolines::{self, ShownExports};
use crate::blob::BLOB_55;
use crate::module::symbols::{Data, Symbols};
use crate::module::{MOD_01, MOD_18, MOD_26, SymbolName, symbol_names};
use crate::rule::{Kind, Violation};
// On other systems, a library states which library it imports a function from, so our functions need not be visible.
#[cfg(not(unix))]
use std::convert::Infallible as ShownExports;
use std::ffi::{CString, c_void};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// A shared library that this process has opened. It stays mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct Dso {
    // Declared before `library`, because it reads the library's memory.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    table: Option<SymbolTable>,
    library: libloading::Library,
    // Declared after `library`, whose functions may be bound when they are first called.
    _shown: Option<ShownExports>,
    path: PathBuf,
}

impl Dso {
    /// Checks that the file at `path` has all bytes of its segments. The dynamic linker maps a truncated file without an error, and the
    /// process then crashes on the first missing page.
    ///
    /// [`Dso::open`] does not call this, because it takes as long as opening a small library.
    pub(crate) fn check_length(path: &Path) -> Result<(), Violation> {
        let cut = FileHead::read(path)
            .and_then(|(head, length)| crate::blob::container::cut_segment(head.bytes(), length));
        match cut {
            Some(why) => {
                let message = format!("{} is cut: {why}", path.display());
                Err(BLOB_55.rejected(Kind::Truncated, message))
            }
            None => Ok(()),
        }
    }

    /// Opens `path` with symbols that no other library can use. The library finds the C interface in any case, independent of how this
    /// crate was loaded into the process.
    ///
    /// # Safety
    ///
    /// It must be sound to run the initializers of the library, and its finalizers on drop.
    pub(crate) unsafe fn open(path: &Path) -> Result<Dso, Violation> {
        // SAFETY: as for this function.
        unsafe { Dso::open_as(path, true) }
    }

    /// Opens a library like [`Dso::open`]. A path without a folder is a name that the dynamic linker searches for in its own folders.
    /// As in every release, it is not a file in the current folder.
    ///
    /// # Safety
    ///
    /// As for [`Dso::open`].
    pub(crate) unsafe fn open_named(path: &Path) -> Result<Dso, Violation> {
        // SAFETY: as for this function.
        unsafe { Dso::open_as(path, false) }
    }

    /// # Safety
    ///
    /// As for [`Dso::open`].
    unsafe fn open_as(path: &Path, bare_is_file: bool) -> Result<Dso, Violation> {
        // SAFETY: the initializers of the library are sound to run, by the contract of `Dso::open`.
        let opened = unsafe { open(path, bare_is_file) };
        let (library, shown, path) = opened.map_err(|error| not_opened(path, &error))?;
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        let (library, table) = {
            let raw = libloading::os::unix::Library::from(library).into_raw();
            // SAFETY: `raw` is the handle of the library that was just taken apart, which is open.
            let library = unsafe { libloading::os::unix::Library::from_raw(raw) };
            // SAFETY: the handle is open, and the fields of `Dso` drop the table before the library.
            let table = unsafe { SymbolTable::of(raw) };
            (library.into(), table)
        };
        Ok(Dso {
            #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
            table,
            library,
            _shown: shown,
            path,
        })
    }
}

/// Explains why an existing file cannot run on this machine.
fn file_incompatibility(path: &Path) -> Option<String> {
    let (head, _) = FileHead::read(path)?;
    crate::blob::container::incompatibility(head.bytes())
}

/// The beginning of a file: the headers of an image, with up to 35 program headers.
struct FileHead {
    buffer: [u8; 2048],
    length: usize,
}

impl FileHead {
    /// Reads the beginning of a regular file, and returns it with the length of the file.
    fn read(path: &Path) -> Option<(FileHead, u64)> {
        // Before it is opened, because opening a pipe that no process writes to waits.
        let metadata = std::fs::metadata(path).ok().filter(|file| file.is_file())?;
        let mut head = FileHead {
            buffer: [0; 2048],
            length: 0,
        };
        head.length = std::fs::File::open(path)
            .ok()?
            .read(&mut head.buffer)
            .ok()?;
        Some((head, metadata.len()))
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }
}

impl Dso {
    /// Looks up `name` in the library's own table. Returns `Err` if `dlsym` must search for it.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    fn find_in_table(&self, name: SymbolName<'_>) -> Result<Option<(NonNull<c_void>, usize)>, ()> {
        let table = self.table.as_ref().ok_or(())?;
        match table.find(name) {
            Some(found) => Ok(Some((found.address.ok_or(())?, found.size))),
            None if table.is_alone() => Ok(None),
            // A library that this one is linked with may define the symbol, which `dlsym` finds in every release.
            None => Err(()),
        }
    }

    #[inline(never)]
    fn look_up(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>> {
        match self.find_in_table(name) {
            Ok(known) => known.map(|(address, _)| address),
            Err(()) => {
                let name = CString::new(name.text()).ok()?;
                // SAFETY: every symbol can be read as a pointer, which is not dereferenced here.
                let symbol = unsafe { self.library.get::<*mut c_void>(name.as_c_str()) };
                // SAFETY: the address is not kept longer than the library, because the caller has a reference to `self`.
                NonNull::new(unsafe { symbol.ok()?.try_as_raw_ptr() }?)
            }
        }
    }

    #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
    fn find_in_table(&self, _name: SymbolName<'_>) -> Result<Option<(NonNull<c_void>, usize)>, ()> {
        Err(())
    }

    /// Returns whether the symbol table marks `name` at `address` as data.
    fn is_data(&self, name: SymbolName<'_>, address: NonNull<c_void>) -> bool {
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        let own = self.table.as_ref().and_then(|table| table.find(name));
        #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
        let own: Option<KnownSymbol> = {
            let _ = name;
            None
        };
        match own {
            Some(own) => own.is_data,
            None => symbol_at(address).is_some_and(|symbol| symbol.is_data),
        }
    }

    /// Returns the segment that contains `address`: one of this library, if its table is known, or of any library.
    fn segment(&self, address: usize) -> Option<MappedSegment> {
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        if let Some(own) = self.table.as_ref().and_then(|table| table.segment(address)) {
            return Some(own);
        }
        segment(address)
    }
}

impl Symbols for Dso {
    fn address(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>> {
        // Most names that a loader looks up do not exist: one test of a bit mask shows this.
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        if let Some(table) = &self.table
            && table.is_alone()
            && !table.may_have(name.hash())
        {
            return None;
        }
        self.look_up(name)
    }

    fn data(&self, name: SymbolName<'_>) -> Result<Option<Data<'_>>, Violation> {
        let own = self.find_in_table(name);
        let address = match own {
            Ok(known) => known.map(|(address, _)| address),
            Err(()) => self.address(name),
        };
        let Some(address) = address else {
            return Ok(None);
        };
        let start = address.as_ptr() as usize;
        let mapped = self.segment(start).map(|segment| segment.end - start);
        let symbol = match own {
            Ok(Some((_, size))) => Some(size),
            _ => symbol_at(address).map(|symbol| symbol.size),
        };
        let symbol = symbol.filter(|size| *size > 0);
        // MOD-18: a symbol outside of every segment has no end, even if it states a size.
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        let symbol = mapped.and(symbol);
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        let symbol =
            symbol.or_else(|| size_in_file(&self.path, name.text()).filter(|_| mapped.is_none()));
        let room = [symbol, mapped].into_iter().flatten().min();
        let room = room.ok_or_else(|| {
            let (name, path) = (name.text(), self.path.to_string_lossy());
            let text = format!("it is not known where `{name}` of {path} ends");
            MOD_18.rejected(Kind::Unsupported, text)
        })?;
        // SAFETY: the segment that contains `start` is mapped and readable for at least `room` bytes, as long as `self` lives.
        let bytes = unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), room) };
        let exact = symbol == Some(room);
        Ok(Some(Data { bytes, exact }))
    }

    /// Returns the function `name`. If a linker puts constants next to the code, only the symbol table distinguishes the two, not the
    /// segment (MOD-02).
    fn function(&self, prefix: &str, name: &str) -> Option<NonNull<c_void>> {
        let name = format!("{prefix}{name}");
        let address = self.address(SymbolName::of(&name))?;
        let is_function = self.is_code(address) && !self.is_data(SymbolName::of(&name), address);
        is_function.then_some(address)
    }

    fn is_code(&self, address: NonNull<c_void>) -> bool {
        executable(self.segment(address.as_ptr() as usize))
    }

    fn is_writable(&self, address: NonNull<c_void>, bytes: usize) -> bool {
        let start = address.as_ptr() as usize;
        writable(self.segment(start), start, bytes)
    }

    fn list(&self) -> Vec<(String, bool)> {
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        let list = self.table.as_ref().map(SymbolTable::names);
        #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
        let list = list_in_file(&self.path);
        list.unwrap_or_default()
    }

    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    fn missing_functions(&self) -> Vec<String> {
        use crate::module::exports;
        let Some(table) = &self.table else {
            return Vec::new();
        };
        let needed = table.needed(symbol_names::INITIALS);
        let needed = needed.filter(|name| symbol_names::is_of_runtime(name.to_bytes()));
        let needed = needed.filter_map(|name| name.to_str().ok());
        let unmet = needed.filter(|name| {
            let is_ours = exports::find(name).is_some() && trampolines::is_reachable();
            !is_ours && !self.can_resolve(name)
        });
        unmet.map(str::to_owned).collect()
    }

    fn describe(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
impl Dso {
    /// Returns whether the dynamic linker finds `name` for this library.
    #[cold]
    fn can_resolve(&self, name: &str) -> bool {
        // SAFETY: the address is not used.
        let among_its_own = unsafe { self.library.get::<*const ()>(name) };
        among_its_own.is_ok() || trampolines::address_in_process(name).is_some()
    }
}

/// Explains why the dynamic linker rejected the library at `path`: MOD-26 if a function of a runtime is missing, otherwise MOD-01.
#[cold]
fn not_opened(path: &Path, error: &libloading::Error) -> Violation {
    // For a file of another machine, glibc reports "no such file", although the file exists.
    if let Some(foreign) = file_incompatibility(path) {
        let text = format!("cannot open {}: {foreign}", path.to_string_lossy());
        return MOD_01.rejected(Kind::Unsupported, text);
    }
    let path = path.to_string_lossy();
    let source = match error {
        libloading::Error::DlOpen { source } => source.to_string(),
        libloading::Error::LoadLibraryExW { source } => source.to_string(),
        _ => String::new(),
    };
    // glibc names the missing symbol after "undefined symbol: ", musl between two colons.
    let words = || source.split([' ', ':', ',']);
    if words().any(|word| word == "symbol")
        && let Some(missing) = words().find(|word| symbol_names::is_of_runtime(word.as_bytes()))
    {
        let text = symbol_names::explain_missing_symbols(&path, &[missing.to_owned()]);
        // MOD-26: a library that is bound at once is rejected by the dynamic linker, as in releases.
        return MOD_26.rejected(Kind::Missing, text);
    }
    let colon = if source.is_empty() { "" } else { ": " };
    MOD_01.rejected(
        Kind::Missing,
        format!("cannot open {path}: {error}{colon}{source}"),
    )
}

/// An open library, its access to the C interface, and the path with which it was opened.
type OpenedLibrary = (libloading::Library, Option<ShownExports>, PathBuf);

/// # Safety
///
/// As for [`Dso::open`].
#[cfg(unix)]
unsafe fn open(path: &Path, bare_is_file: bool) -> Result<OpenedLibrary, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    // Without a folder, a name would be searched for in the library path of the system.
    let is_file = bare_is_file && !bytes.contains(&b'/');
    let mut text = Vec::with_capacity(bytes.len() + 3);
    if is_file {
        text.extend_from_slice(b"./");
    }
    text.extend_from_slice(bytes);
    text.push(0);
    // With its terminating NUL the text is not copied again; a NUL inside is an error.
    let file = Some(OsStr::from_bytes(&text));
    let mut shown = trampolines::show();
    let mut library = Err(libloading::Error::DlOpenUnknown);
    if shown.is_some() {
        // Bound now, while the C interface is shown, so that all symbols are resolved.
        // SAFETY: the initializers and finalizers of the library are sound to run, by the contract of `Dso::open`.
        library = unsafe { Library::open(file, RTLD_NOW | RTLD_LOCAL) };
    }
    if library.is_ok() {
        shown = None;
    } else {
        // Other missing functions may never be called. With lazy binding, a function is resolved when it is first called.
        // SAFETY: the initializers and finalizers of the library are sound to run, by the contract of `Dso::open`.
        library = unsafe { Library::open(file, RTLD_LAZY | RTLD_LOCAL) };
    }
    let library = library?;
    // Reuses the text if the path was not changed.
    let path = if !is_file {
        text.pop();
        OsString::from_vec(text).into()
    } else {
        path.to_owned()
    };
    Ok((library.into(), shown, path))
}

/// # Safety
///
/// As for [`Dso::open`].
#[cfg(not(unix))]
unsafe fn open(path: &Path, _bare_is_file: bool) -> Result<OpenedLibrary, libloading::Error> {
    // SAFETY: the initializers and finalizers of the library are sound to run, by the contract of `Dso::open`.
    let library = unsafe { libloading::Library::new(path) }?;
    Ok((library, None, path.to_owned()))
}
