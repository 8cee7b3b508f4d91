//! An opened shared library: its symbols, and how far each may be read.
//!
//! A library can lie about the size of its data, and a loader that believes it reads its neighbours. So every access to
//! data goes through [`Symbols`], which knows two bounds that the blob's own header has no say in: the size that the
//! symbol table gives the symbol, and the end of the mapped segment.

#[cfg(unix)]
use super::forward::{self, Shown};
use super::{MOD_01, MOD_18, MOD_26, Name, names};
use crate::rule::{Kind, Violation};
use std::ffi::{CString, c_void};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Where symbols come from: an opened library, the system library's table, or the memory of a test.
pub trait Symbols: Send + Sync {
    /// The address of an exported symbol.
    fn address(&self, name: Name<'_>) -> Option<NonNull<c_void>>;

    /// Calls `found` for each of `names` that is exported: which it is, and its address.
    fn addresses(&self, names: &[Name<'_>], found: &mut dyn FnMut(usize, NonNull<c_void>)) {
        for (at, name) in names.iter().enumerate() {
            if let Some(address) = self.address(*name) {
                found(at, address);
            }
        }
    }

    /// The bytes of the data symbol `name`: no more than belong to it, as far as that can be known.
    ///
    /// # Errors
    ///
    /// MOD-18 for a symbol whose end cannot be found: neither the symbol table nor a segment has a size.
    fn data(&self, name: Name<'_>) -> Result<Option<Data<'_>>, Violation>;

    /// The function `name` whose symbols begin with `prefix`. Data is no function.
    fn function(&self, prefix: &str, name: &str) -> Option<NonNull<c_void>> {
        let address = self.address(Name::of(&format!("{prefix}{name}")))?;
        self.is_code(address).then_some(address)
    }

    /// Whether what stands at `address` can be executed.
    fn is_code(&self, address: NonNull<c_void>) -> bool;

    /// Whether `bytes` from `address` on may be written, for slots that a loader fills.
    fn is_writable(&self, address: NonNull<c_void>, bytes: usize) -> bool;

    /// Names that the library exports or needs, where they can be listed: exported first, `true` for needed.
    fn list(&self) -> Vec<(String, bool)>;

    /// Functions of a TVM runtime that it needs and that this process does not have (MOD-26).
    fn unmet(&self) -> Vec<String> {
        Vec::new()
    }

    /// For messages: the path, or what stands in its place.
    fn describe(&self) -> String;
}

/// The bytes of a data symbol.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// From the symbol on.
    pub bytes: &'a [u8],
    /// Whether they end where the symbol does; otherwise where the memory does, and other data may be among them.
    pub exact: bool,
}

/// A shared library that this process has opened. It stays mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct Dso {
    // Before `library`, which it reads.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    table: Option<super::table::Table>,
    library: libloading::Library,
    // After `library`, whose functions may be bound when they are first called.
    _shown: Option<Shown>,
    path: PathBuf,
}

impl Dso {
    /// Opens `path` with its symbols visible to no other library. What it needs of the C interface it finds here, however this
    /// library came into the process.
    ///
    /// # Errors
    ///
    /// MOD-01 when it cannot be opened.
    ///
    /// # Safety
    ///
    /// Opening runs the initializers of the library, and dropping its finalizers: both are sound to run.
    pub(crate) unsafe fn open(path: &Path) -> Result<Dso, Violation> {
        // SAFETY: as for this function.
        unsafe { Dso::open_as(path, true) }
    }

    /// [`Dso::open`], but a path without a folder is a name that the dynamic linker looks for in its own folders, as every
    /// release leaves it; it does not mean the current one.
    ///
    /// # Errors
    ///
    /// MOD-01 when it cannot be opened.
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
        // SAFETY: the initializers of the library are sound to run.
        let opened = unsafe { open(path, bare_is_file) };
        let (library, shown, path) = opened.map_err(|error| not_opened(path, &error))?;
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        let (library, table) = {
            let raw = libloading::os::unix::Library::from(library).into_raw();
            // SAFETY: the handle that was just taken apart.
            let library = unsafe { libloading::os::unix::Library::from_raw(raw) };
            // SAFETY: the handle is open, and the fields of `Dso` drop the table before the library.
            let table = unsafe { super::table::Table::of(raw) };
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

/// Why a file that is there is not for this machine.
fn foreign(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(4096).read_to_end(&mut head).ok()?;
    crate::blob::container::foreign(&head)
}

impl Dso {
    /// What the library's own table says of `name`: `Err` when `dlsym` has to be asked.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    fn own(&self, name: Name<'_>) -> Result<Option<(NonNull<c_void>, usize)>, ()> {
        let table = self.table.as_ref().ok_or(())?;
        match table.find(name) {
            Some(found) => Ok(Some((found.address.ok_or(())?, found.size))),
            None if table.is_alone() => Ok(None),
            None => Err(()),
        }
    }

    #[inline(never)]
    fn look_up(&self, name: Name<'_>) -> Option<NonNull<c_void>> {
        match self.own(name) {
            Ok(known) => known.map(|(address, _)| address),
            Err(()) => {
                let name = CString::new(name.text()).ok()?;
                // SAFETY: a pointer is what every symbol can be taken for; nothing follows it here.
                let symbol = unsafe { self.library.get::<*mut c_void>(name.as_c_str()) };
                // SAFETY: the address is not kept beyond the library: who asks holds `self`.
                NonNull::new(unsafe { symbol.ok()?.try_as_raw_ptr() }?)
            }
        }
    }

    #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
    fn own(&self, _name: Name<'_>) -> Result<Option<(NonNull<c_void>, usize)>, ()> {
        Err(())
    }

    /// Whether the table of symbols says that `name`, which is at `address`, is data.
    fn is_data(&self, name: Name<'_>, address: NonNull<c_void>) -> bool {
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        let own = self.table.as_ref().and_then(|table| table.find(name));
        #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
        let own: Option<Known> = {
            let _ = name;
            None
        };
        match own {
            Some(own) => own.is_data,
            None => known(address).is_some_and(|symbol| symbol.is_data),
        }
    }

    /// The segment that holds `address`: this library's own, of which it has a table, or another's.
    fn segment(&self, address: usize) -> Option<Segment> {
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        if let Some(own) = self.table.as_ref().and_then(|table| table.segment(address)) {
            return Some(own);
        }
        segment(address)
    }
}

impl Symbols for Dso {
    fn address(&self, name: Name<'_>) -> Option<NonNull<c_void>> {
        // Most of what a loader asks for is not there: that answer comes without more ado.
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        if let Some(table) = &self.table
            && table.is_alone()
            && !table.may_have(name.hash())
        {
            return None;
        }
        self.look_up(name)
    }

    fn data(&self, name: Name<'_>) -> Result<Option<Data<'_>>, Violation> {
        let own = self.own(name);
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
            _ => known(address).map(|symbol| symbol.size),
        };
        let symbol = symbol.filter(|size| *size > 0);
        // A symbol that no segment holds ends nowhere, whatever its size.
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        let symbol = mapped.and(symbol);
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        let symbol =
            symbol.or_else(|| size_in_file(&self.path, name.text()).filter(|_| mapped.is_none()));
        let room = [symbol, mapped].into_iter().flatten().min();
        let room = room.ok_or_else(|| {
            let (name, path) = (name.text(), self.path.to_string_lossy());
            let text = format!("cannot tell where `{name}` of {path} ends");
            MOD_18.refused(Kind::Unsupported, text)
        })?;
        // SAFETY: the segment that holds `start` is mapped and readable for at least `room` bytes, as long as `self` is.
        let bytes = unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), room) };
        let exact = symbol == Some(room);
        Ok(Some(Data { bytes, exact }))
    }

    /// Where a linker puts constants beside the code, the segment does not tell them apart: the table of symbols does (MOD-02).
    fn function(&self, prefix: &str, name: &str) -> Option<NonNull<c_void>> {
        let name = format!("{prefix}{name}");
        let address = self.address(Name::of(&name))?;
        let is_function = self.is_code(address) && !self.is_data(Name::of(&name), address);
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
        let list = self.table.as_ref().map(super::table::Table::names);
        #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
        let list = list_in_file(&self.path);
        list.unwrap_or_default()
    }

    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    fn unmet(&self) -> Vec<String> {
        use crate::capi::exports;
        let Some(table) = &self.table else {
            return Vec::new();
        };
        let needed = table.needed(names::INITIALS);
        let needed = needed.filter(|name| names::is_of_runtime(name.to_bytes()));
        let needed = needed.filter_map(|name| name.to_str().ok());
        let unmet = needed.filter(|name| {
            let is_ours = exports::find(name).is_some() && forward::is_reachable();
            !is_ours && !self.sees(name)
        });
        unmet.map(str::to_owned).collect()
    }

    fn describe(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
impl Dso {
    /// Whether the dynamic linker finds `name` for this library.
    #[cold]
    fn sees(&self, name: &str) -> bool {
        // SAFETY: the address is not used.
        let among_its_own = unsafe { self.library.get::<*const ()>(name) };
        among_its_own.is_ok() || forward::address_in_process(name).is_some()
    }
}

/// Why the dynamic linker refused the library at `path`: MOD-26 when it misses a function of a runtime, MOD-01 otherwise.
#[cold]
fn not_opened(path: &Path, error: &libloading::Error) -> Violation {
    // glibc says "no such file" of a file for another machine that is there.
    if let Some(foreign) = foreign(path) {
        let text = format!("cannot open {}: {foreign}", path.to_string_lossy());
        return MOD_01.refused(Kind::Unsupported, text);
    }
    let path = path.to_string_lossy();
    let source = match error {
        libloading::Error::DlOpen { source } => source.to_string(),
        libloading::Error::LoadLibraryExW { source } => source.to_string(),
        _ => String::new(),
    };
    // glibc names what is missing behind "undefined symbol: ", musl between two colons.
    let words = || source.split([' ', ':', ',']);
    if words().any(|word| word == "symbol")
        && let Some(missing) = words().find(|word| names::is_of_runtime(word.as_bytes()))
    {
        let text = names::not_met(&path, &[missing.to_owned()]);
        return MOD_26.refused(Kind::Missing, text);
    }
    let colon = if source.is_empty() { "" } else { ": " };
    MOD_01.refused(
        Kind::Missing,
        format!("cannot open {path}: {error}{colon}{source}"),
    )
}

/// Elsewhere a library names the library that it needs a function of.
#[cfg(not(unix))]
type Shown = std::convert::Infallible;

/// What opening gives: the library, what it finds the C interface by, and the path that it was opened with.
type Opened = (libloading::Library, Option<Shown>, PathBuf);

/// # Safety
///
/// As for [`Dso::open`].
#[cfg(unix)]
unsafe fn open(path: &Path, bare_is_file: bool) -> Result<Opened, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    // A bare name would be searched for along the system's library path.
    let is_file = bare_is_file && !bytes.contains(&b'/');
    let mut text = Vec::with_capacity(bytes.len() + 3);
    if is_file {
        text.extend_from_slice(b"./");
    }
    text.extend_from_slice(bytes);
    text.push(0);
    // With a NUL at its end it is not copied again; one inside is refused.
    let file = Some(OsStr::from_bytes(&text));
    let mut shown = forward::show();
    let mut library = Err(libloading::Error::DlOpenUnknown);
    if shown.is_some() {
        // Bound while the C interface is shown, and by everything that it needs.
        // SAFETY: the initializers and finalizers of the library are sound to run.
        library = unsafe { Library::open(file, RTLD_NOW | RTLD_LOCAL) };
    }
    if library.is_ok() {
        shown = None;
    } else {
        // What else is missing may never be called. Until the library is closed, what is called is bound then.
        // SAFETY: the initializers and finalizers of the library are sound to run.
        library = unsafe { Library::open(file, RTLD_LAZY | RTLD_LOCAL) };
    }
    let library = library?;
    // The path is here already, where it is as it was.
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
unsafe fn open(path: &Path, _bare_is_file: bool) -> Result<Opened, libloading::Error> {
    // SAFETY: the initializers and finalizers of the library are sound to run.
    let library = unsafe { libloading::Library::new(path) }?;
    Ok((library, None, path.to_owned()))
}

/// Readable bytes from `address` to the end of the segment that it lies in, where that can be known.
pub(super) fn room_behind(address: NonNull<c_void>) -> Option<usize> {
    let start = address.as_ptr() as usize;
    Some(segment(start)?.end - start)
}

/// Whether `bytes` from `address` on may be written. Where segments cannot be asked for, a slot is taken at its word, as
/// every release does.
pub(super) fn can_write(address: NonNull<c_void>, bytes: usize) -> bool {
    let start = address.as_ptr() as usize;
    writable(segment(start), start, bytes)
}

fn writable(segment: Option<Segment>, start: usize, bytes: usize) -> bool {
    match segment {
        Some(segment) => segment.writable && segment.end - start >= bytes,
        None => !cfg!(target_os = "linux"),
    }
}

/// Whether `address` lies in executable memory. Where segments cannot be asked for, it is taken at its word.
pub(super) fn can_execute(address: NonNull<c_void>) -> bool {
    executable(segment(address.as_ptr() as usize))
}

fn executable(segment: Option<Segment>) -> bool {
    match segment {
        Some(segment) => segment.executable,
        None => !cfg!(target_os = "linux"),
    }
}

/// A mapped segment of a library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) end: usize,
    pub(super) writable: bool,
    pub(super) executable: bool,
}

/// A program header of a 64-bit ELF file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[repr(C)]
pub(super) struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    alignment: u64,
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl ProgramHeader {
    /// The readable segment among `headers` of an object loaded at `base` that holds `address`.
    pub(super) fn holding(headers: &[Self], base: u64, address: u64) -> Option<Segment> {
        const LOAD: u32 = 1;
        const EXECUTE: u32 = 1;
        const WRITE: u32 = 2;
        const READ: u32 = 4;
        headers.iter().find_map(|header| {
            let start = base.wrapping_add(header.address);
            let end = start.wrapping_add(header.memory_size);
            let holds = start <= address && address < end;
            (header.kind == LOAD && header.flags & READ != 0 && holds).then_some(Segment {
                end: end as usize,
                writable: header.flags & WRITE != 0,
                executable: header.flags & EXECUTE != 0,
            })
        })
    }
}

/// The segment of a loaded library that holds `address` and can be read; asked of the dynamic linker, not of the file.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn segment(address: usize) -> Option<Segment> {
    use std::ffi::{c_char, c_int};

    #[repr(C)]
    struct Object {
        base: u64,
        name: *const c_char,
        headers: *const ProgramHeader,
        count: u16,
    }
    unsafe extern "C" {
        fn dl_iterate_phdr(
            callback: unsafe extern "C" fn(*mut Object, usize, *mut c_void) -> c_int,
            data: *mut c_void,
        ) -> c_int;
    }
    struct Search {
        address: u64,
        found: Option<Segment>,
    }

    unsafe extern "C" fn visit(object: *mut Object, _size: usize, data: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes an object that stays for the call.
        let object = unsafe { &*object };
        // SAFETY: `data` is the `Search` below, which only this call uses.
        let search = unsafe { &mut *data.cast::<Search>() };
        if object.headers.is_null() {
            return 0;
        }
        // SAFETY: an object of the dynamic linker has `count` headers at `headers`, not null as just seen.
        let headers = unsafe { std::slice::from_raw_parts(object.headers, object.count.into()) };
        search.found = ProgramHeader::holding(headers, object.base, search.address);
        search.found.is_some().into()
    }

    let mut search = Search {
        address: address as u64,
        found: None,
    };
    // SAFETY: `visit` has the signature that the linker calls, and `search` outlives the call.
    unsafe { dl_iterate_phdr(visit, (&raw mut search).cast()) };
    search.found
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn segment(_address: usize) -> Option<Segment> {
    None
}

/// What the symbol table says of a symbol.
struct Known {
    size: usize,
    is_data: bool,
}

/// What the symbol table says of the symbol at `address`.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
fn known(address: NonNull<c_void>) -> Option<Known> {
    use std::ffi::{c_char, c_int};

    #[repr(C)]
    struct Info {
        file: *const c_char,
        base: *mut c_void,
        name: *const c_char,
        symbol: *mut c_void,
    }
    #[repr(C)]
    struct Symbol {
        name: u32,
        info: u8,
        other: u8,
        section: u16,
        value: u64,
        size: u64,
    }
    unsafe extern "C" {
        fn dladdr1(
            address: *const c_void,
            info: *mut Info,
            extra: *mut *mut c_void,
            flags: c_int,
        ) -> c_int;
    }
    const SYMBOL_ENTRY: c_int = 1;

    let mut info = Info {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        name: std::ptr::null(),
        symbol: std::ptr::null_mut(),
    };
    let mut entry: *mut c_void = std::ptr::null_mut();
    // SAFETY: both out-pointers are valid; the linker only writes them.
    unsafe {
        dladdr1(
            address.as_ptr(),
            &raw mut info,
            &raw mut entry,
            SYMBOL_ENTRY,
        );
    }
    // What is not found leaves no entry.
    // SAFETY: the entry lies in the symbol table of a library that is open.
    let symbol = unsafe { entry.cast::<Symbol>().as_ref() };
    let symbol = symbol.filter(|_| info.symbol == address.as_ptr())?;
    Some(Known {
        size: usize::try_from(symbol.size).ok()?,
        is_data: super::table::is_data(symbol.info),
    })
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn known(_address: NonNull<c_void>) -> Option<Known> {
    None
}

/// Without segments to ask for: bytes from the symbol to its own end, or to the end of its section where the format keeps no sizes.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn size_in_file(path: &Path, name: &str) -> Option<usize> {
    use object::{Object, ObjectSection, ObjectSymbol};
    let file = std::fs::read(path).ok()?;
    let file = object::File::parse(&*file).ok()?;
    let decorated = format!("_{name}");
    let symbol = file
        .dynamic_symbols()
        .chain(file.symbols())
        .find(|symbol| {
            symbol
                .name()
                .is_ok_and(|text| text == name || text == decorated)
        })?;
    if symbol.size() > 0 {
        return usize::try_from(symbol.size()).ok();
    }
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let end = section.address().checked_add(section.size())?;
    usize::try_from(end.checked_sub(symbol.address())?).ok()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
fn list_in_file(path: &Path) -> Option<Vec<(String, bool)>> {
    use object::{BinaryFormat, Object, ObjectSymbol};
    let file = std::fs::read(path).ok()?;
    let file = object::File::parse(&*file).ok()?;
    let decorated = file.format() == BinaryFormat::MachO;
    let symbols = match file.format() {
        BinaryFormat::Elf => file.dynamic_symbols(),
        _ => file.symbols(),
    };
    let mut list: Vec<(String, bool)> = symbols
        .filter(|symbol| symbol.is_global() || symbol.is_undefined())
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            let name = if decorated {
                name.strip_prefix('_')?
            } else {
                name
            };
            (!name.is_empty()).then(|| (name.to_owned(), symbol.is_undefined()))
        })
        .collect();
    list.sort_by_key(|(_, needed)| *needed);
    Some(list)
}
