//! Properties of a symbol, from the dynamic linker or, if it does not provide them, from the file of the library.

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
use super::table::{ElfSymbol, is_data};
use std::ffi::c_void;
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
use std::path::Path;
use std::ptr::NonNull;

/// The properties of a symbol in the symbol table.
pub(super) struct KnownSymbol {
    pub(super) size: usize,
    pub(super) is_data: bool,
}

/// Returns the properties of the symbol at `address`.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub(super) fn symbol_at(address: NonNull<c_void>) -> Option<KnownSymbol> {
    use std::ffi::{c_char, c_int};

    #[repr(C)]
    struct DlInfo {
        file: *const c_char,
        base: *mut c_void,
        name: *const c_char,
        symbol: *mut c_void,
    }
    unsafe extern "C" {
        fn dladdr1(
            address: *const c_void,
            info: *mut DlInfo,
            extra: *mut *mut c_void,
            flags: c_int,
        ) -> c_int;
    }
    const SYMBOL_ENTRY: c_int = 1;

    let mut info = DlInfo {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        name: std::ptr::null(),
        symbol: std::ptr::null_mut(),
    };
    let mut entry: *mut c_void = std::ptr::null_mut();
    // SAFETY: both out-pointers are valid, and the linker only writes to them.
    unsafe {
        dladdr1(
            address.as_ptr(),
            &raw mut info,
            &raw mut entry,
            SYMBOL_ENTRY,
        );
    }
    // Without a result the entry stays null.
    // SAFETY: the entry is null, or in the symbol table of a library that is open.
    let symbol = unsafe { entry.cast::<ElfSymbol>().as_ref() };
    // The dynamic linker returns the nearest symbol at or before the address, which may be an unrelated one.
    let symbol = symbol.filter(|_| info.symbol == address.as_ptr())?;
    Some(KnownSymbol {
        size: symbol.size,
        is_data: is_data(symbol.info),
    })
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
pub(super) fn symbol_at(_address: NonNull<c_void>) -> Option<KnownSymbol> {
    None
}

/// Returns the number of bytes from the symbol to its end, or to the end of its section if the format stores no sizes. Used if the
/// segments are unknown.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(super) fn size_in_file(path: &Path, name: &str) -> Option<usize> {
    use object::{Object, ObjectSection, ObjectSymbol};
    let file = std::fs::read(path).ok()?;
    let file = object::File::parse(&*file).ok()?;
    // Mach-O adds an underscore before every C name.
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

/// Lists the names in the file, and for each `true` if the library needs it. Used if the dynamic linker does not show its tables.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
pub(super) fn list_in_file(path: &Path) -> Option<Vec<(String, bool)>> {
    use object::{BinaryFormat, Object, ObjectSymbol};
    let file = std::fs::read(path).ok()?;
    let file = object::File::parse(&*file).ok()?;
    let decorated = file.format() == BinaryFormat::MachO;
    let symbols = match file.format() {
        // The other table of an ELF file contains names that are not exported, and may be stripped.
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
    // Exported names come first, as `Symbols::list` requires. The sort is stable.
    list.sort_by_key(|(_, needed)| *needed);
    Some(list)
}
