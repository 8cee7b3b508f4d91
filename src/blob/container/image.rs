//! Object files of every format as common tables: areas that have bytes, and symbols in these areas.
//!
//! Only this file calls the `object` crate, and for each purpose in one place, because its code is compiled for every format and width.
//!
//! | form | tables that must lie inside the file (BLOB-55) | source of their place |
//! |---|---|---|
//! | ELF | segments, sections, symbol tables | header; section headers of kinds SYMTAB and DYNSYM |
//! | Mach-O | load commands, symbols, names | header; LC_SYMTAB |
//! | COFF | section headers, symbols | header |
//! | PE | exports | the `object` crate, whose errors are reported as BLOB-55 |
//!
//! A parser of ELF or Mach-O may treat a truncated table as empty. Then an incomplete download looks like a library without symbols, so
//! sizes are checked here first.

use super::allowance::Allowance;
use super::{FileForm, Machine};
use crate::blob::BLOB_55;
use crate::rule::{Kind, Violation};
use object::read::pe::ExportTarget;
use object::read::{ObjectSymbol as _, SymbolSection};
use object::{Architecture, Object as _, ObjectSection as _, ObjectSegment as _};
use std::collections::HashSet;

/// The tables of an object file.
pub(super) struct ObjectTables<'a> {
    pub(super) machine: Machine,
    /// The sections, at the indices that symbols use.
    pub(super) sections: Vec<Area>,
    /// The mapped segments of an image.
    pub(super) segments: Vec<Area>,
    /// The global symbols, each name once: those of the dynamic table first, then the static table, then the exports of PE.
    pub(super) symbols: Vec<ObjectSymbol<'a>>,
}

/// A section or a segment.
#[derive(Clone, Default)]
pub(super) struct Area {
    pub(super) address: u64,
    /// Size in memory, which may be larger than the size in the file.
    pub(super) size: u64,
    /// Offset and size in the file; `None` if the area has no bytes there (.bss).
    pub(super) file: Option<(u64, u64)>,
    /// True if the area contains code.
    text: bool,
}

/// One symbol of any table.
pub(super) struct ObjectSymbol<'a> {
    pub(super) name: &'a str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) place: Defined,
    /// True if the symbol is code.
    pub(super) text: bool,
}

/// The place where a symbol is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defined {
    /// Undefined: another file defines it.
    Nowhere,
    /// In the section of a relocatable object file.
    Section(usize),
    /// At an address of an image.
    Image,
    /// Defined, but without bytes: common, absolute.
    NoBytes,
}

/// Reads the tables of an object file of this form (BLOB-55), as far as `allowance` goes (BLOB-68).
pub(super) fn read<'a>(
    form: FileForm,
    bytes: &'a [u8],
    allowance: &mut Allowance,
) -> Result<ObjectTables<'a>, Violation> {
    match form {
        FileForm::ElfShared | FileForm::ElfExecutable | FileForm::ElfObject => elf_tables(bytes)?,
        FileForm::MachOShared | FileForm::MachOExecutable | FileForm::MachOObject => {
            mach_o_tables(bytes)?
        }
        FileForm::CoffObject => coff_tables(bytes)?,
        _ => {}
    }
    let file = object::File::parse(bytes)
        .map_err(|error| parser_error("cannot be read as an object file", error))?;
    let architecture = file.architecture();
    let mut image = ObjectTables {
        machine: Machine {
            architecture: format!("{architecture:?}").to_ascii_lowercase(),
            bits: bits(architecture, &file),
            little_endian: file.is_little_endian(),
        },
        sections: sections(&file),
        segments: segments(&file),
        symbols: Vec::new(),
    };
    // BLOB-50: the underscore is not part of the name that TVM looks up.
    // Mach-O adds an underscore before every name, and so does COFF on i386.
    let underscored = match form {
        FileForm::MachOShared | FileForm::MachOExecutable | FileForm::MachOObject => true,
        FileForm::CoffObject => architecture == Architecture::I386,
        _ => false,
    };
    let relocatable = matches!(
        form,
        FileForm::ElfObject | FileForm::MachOObject | FileForm::CoffObject
    );
    let mut names = SymbolNames {
        seen: HashSet::new(),
        unreadable: bytes.len() / 16,
        allowance,
    };
    image.symbols(&file, underscored, relocatable, &mut names)?;
    image.exports(&file, &mut names)?;
    Ok(image)
}

/// Creates the error for a file that the parser rejects: BLOB-55 at the start of the file. The parser's errors have no offset.
fn parser_error(what: &str, error: object::Error) -> Violation {
    BLOB_55.broken(Kind::Malformed, 0, format!("{what}: {error}"))
}

/// The names that were read. Each is counted before it is compared, because one string may contain the names of all symbols.
struct SymbolNames<'a, 'w> {
    seen: HashSet<&'a str>,
    /// The cost of a name without an end, which was searched up to the end of its table.
    unreadable: usize,
    allowance: &'w mut Allowance,
}

impl<'a> SymbolNames<'a, '_> {
    /// Returns the name if it is text and was not seen before.
    fn take(
        &mut self,
        name: Option<&'a [u8]>,
        underscored: bool,
    ) -> Result<Option<&'a str>, Violation> {
        let Some(name) = name else {
            self.allowance.name(self.unreadable, 0)?;
            return Ok(None);
        };
        // BLOB-68: the name is counted before it is compared, because all symbols of a file may name one long string.
        self.allowance.name(name.len(), 0)?;
        let Ok(name) = std::str::from_utf8(name) else {
            return Ok(None);
        };
        let name = if underscored {
            name.strip_prefix('_').unwrap_or(name)
        } else {
            name
        };
        Ok((!name.is_empty() && self.seen.insert(name)).then_some(name))
    }
}

/// Returns the width of the machine. COFF does not state its width, so the architecture decides.
fn bits(architecture: Architecture, file: &object::File<'_>) -> u8 {
    match architecture.address_size().map(|size| size.bytes()) {
        Some(4) => 32,
        Some(8) => 64,
        _ if file.is_64() => 64,
        _ => 32,
    }
}

/// Returns every section at its index, with empty entries for indices that a format leaves out.
fn sections(file: &object::File<'_>) -> Vec<Area> {
    let mut sections = Vec::new();
    for section in file.sections() {
        // Indices start at 1.
        sections.resize(section.index().0, Area::default());
        sections.push(Area {
            address: section.address(),
            size: section.size(),
            file: section.file_range(),
            text: section.kind() == object::SectionKind::Text,
        });
    }
    sections
}

/// Returns every mapped segment.
fn segments(file: &object::File<'_>) -> Vec<Area> {
    let area = |segment: object::Segment<'_, '_>| Area {
        address: segment.address(),
        size: segment.size(),
        file: Some(segment.file_range()),
        text: false,
    };
    file.segments().map(area).collect()
}

impl<'a> ObjectTables<'a> {
    /// Reads the global symbols of the dynamic table and of the static table.
    fn symbols(
        &mut self,
        file: &object::File<'a>,
        underscored: bool,
        relocatable: bool,
        names: &mut SymbolNames<'a, '_>,
    ) -> Result<(), Violation> {
        // The system's loader sees only the dynamic table, so its symbols come first. `strip` removes the static table.
        for table in [file.dynamic_symbols(), file.symbols()] {
            for symbol in table {
                // BLOB-50: only global symbols are found, by `dlsym`, by a linker and by TVM.
                if symbol.is_local() {
                    continue;
                }
                let name = names.take(symbol.name_bytes().ok(), underscored)?;
                let Some(name) = name else { continue };
                let section = symbol.section();
                let place = match section {
                    SymbolSection::Section(index) if relocatable => Defined::Section(index.0),
                    SymbolSection::Section(_) => Defined::Image,
                    // BLOB-65: the runtime functions that code calls are undefined, and are listed because of that.
                    SymbolSection::Undefined | SymbolSection::None => Defined::Nowhere,
                    _ => Defined::NoBytes,
                };
                let text = match symbol.kind() {
                    object::SymbolKind::Text => true,
                    // Mach-O and COFF do not always state the kind of a symbol; then the section decides.
                    object::SymbolKind::Unknown | object::SymbolKind::Label => section
                        .index()
                        .and_then(|index| self.sections.get(index.0))
                        .is_some_and(|section| section.text),
                    _ => false,
                };
                self.symbols.push(ObjectSymbol {
                    name,
                    address: symbol.address(),
                    size: symbol.size(),
                    place,
                    text,
                });
            }
        }
        Ok(())
    }

    /// Reads the symbols that a PE image exports by name.
    fn exports(
        &mut self,
        file: &object::File<'a>,
        names: &mut SymbolNames<'a, '_>,
    ) -> Result<(), Violation> {
        let damaged = |error| parser_error("the export table cannot be read", error);
        let (table, base) = match file {
            object::File::Pe32(file) => (file.export_table(), file.relative_address_base()),
            object::File::Pe64(file) => (file.export_table(), file.relative_address_base()),
            _ => return Ok(()),
        };
        let Some(table) = table.map_err(damaged)? else {
            return Ok(());
        };
        // Real images have one or two code sections. The limit keeps a hostile image from a long search for each export.
        let code = self.sections.iter().filter(|section| section.text).take(16);
        let code: Vec<_> = code
            .map(|section| section.address..section.address.saturating_add(section.size))
            .collect();
        for (name, index) in table.name_iter() {
            let target = table.target_by_index(index).map_err(damaged)?;
            let name = table.name_from_pointer(name).map_err(damaged)?;
            let name = names.take(Some(name), false)?;
            let (ExportTarget::Address(address), Some(name)) = (target, name) else {
                continue;
            };
            // The address may be any number; BLOB-52 is reported later if no segment contains it.
            let address = base.wrapping_add(address.into());
            self.symbols.push(ObjectSymbol {
                name,
                address,
                // An export has no size; the next symbol bounds its blob (BLOB-53).
                size: 0,
                place: Defined::Image,
                text: code.iter().any(|range| range.contains(&address)),
            });
        }
        Ok(())
    }
}

/// Checks that the tables of an ELF file lie inside it and that their entries have the size of the format (BLOB-55). In a truncated
/// download, the tables lie outside.
fn elf_tables(bytes: &[u8]) -> Result<(), Violation> {
    // Byte 4 of ELF is its width, where 2 means 64 bits. Byte 5 is the byte order, where 2 means big endian.
    let wide = bytes.get(4) == Some(&2);
    let little = bytes.get(5) != Some(&2);
    let number = |at: u64, size: usize| number(bytes, at, size, little);
    // A row of `tables` has the header offsets of a table's offset, entry size and count, and the entry size that the format requires.
    // `symbol` is the required size of a symbol.
    let word = if wide { 8 } else { 4 };
    let (segments, sections, symbol) = if wide { (56, 64, 24) } else { (32, 40, 16) };
    let tables = if wide {
        [(32, 54, 56, segments), (40, 58, 60, sections)]
    } else {
        [(28, 42, 44, segments), (32, 46, 48, sections)]
    };
    let length = bytes.len() as u64;
    let mut first = 0;
    let mut headers = 0;
    for (offset, size, count, entry) in tables {
        let table = number(offset, word).zip(number(size, 2));
        let Some(((offset, size), count)) = table.zip(number(count, 2)) else {
            return Err(BLOB_55.broken(
                Kind::Truncated,
                length,
                "the file ends inside its ELF header",
            ));
        };
        check_range(offset, size.saturating_mul(count), length, offset)?;
        // BLOB-55: without entries their size has no meaning, and writers store 0.
        BLOB_55.require(count == 0 || size == entry, offset, || {
            format!("the ELF header has a table with entries of {size} bytes, not {entry}")
        })?;
        // The sections come second in `tables`, so these values are theirs after the loop.
        (first, headers) = (offset, count);
    }
    let field = |header: u64, wide_at: u64, narrow_at: u64| {
        let at = if wide { wide_at } else { narrow_at };
        number(header.saturating_add(at), word)
    };
    // If 16 bits cannot count the sections, the size of the first section is their number.
    let many = (headers == 0 && first != 0).then(|| field(first, 32, 20));
    if let Some(all) = many.flatten() {
        headers = all;
    }
    const SHT_SYMTAB: u64 = 2;
    const SHT_DYNSYM: u64 = 11;
    for index in 0..headers {
        let header = first.saturating_add(index.saturating_mul(sections));
        let Some(kind) = number(header.saturating_add(4), 4) else {
            // The parser rejects a missing header.
            break;
        };
        // BLOB-55: only symbol tables are checked here. The range of another section is checked if a blob is in it (BLOB-52).
        if !matches!(kind, SHT_SYMTAB | SHT_DYNSYM) {
            continue;
        }
        let place = field(header, 24, 16).zip(field(header, 32, 20));
        let Some(((offset, size), entry)) = place.zip(field(header, 56, 36)) else {
            break;
        };
        check_range(offset, size, length, header)?;
        BLOB_55.require(entry == symbol, header, || {
            format!("a symbol table has entries of {entry} bytes, not {symbol}")
        })?;
    }
    Ok(())
}

/// Checks that `size` bytes from `offset` on lie inside a file of `length` bytes. `at` is the place in the file that stores offset and
/// size.
fn check_range(offset: u64, size: u64, length: u64, at: u64) -> Result<(), Violation> {
    let end = offset.saturating_add(size);
    BLOB_55.require_as(Kind::Truncated, size == 0 || end <= length, at, || {
        format!("a table is at {offset:#x} to {end:#x}, the file has {length:#x} bytes")
    })
}

/// Checks that the load commands and the symbol table of a Mach-O file lie inside it. Its parser would treat truncated commands as their
/// end.
fn mach_o_tables(bytes: &[u8]) -> Result<(), Violation> {
    // The magic contains `cf` for 64 bits and `ce` for 32 bits, and begins with `fe` in a big-endian file.
    let wide = matches!(bytes, [0xcf, ..] | [_, _, _, 0xcf, ..]);
    let little = bytes.first() != Some(&0xfe);
    let number = |at: u64| number(bytes, at, 4, little);
    let length = bytes.len() as u64;
    let header = if wide { 32 } else { 28 };
    let Some((count, size)) = number(16).zip(number(20)) else {
        // The parser rejects a truncated header.
        return Ok(());
    };
    check_range(header, size, length, 20)?;
    const LC_SYMTAB: u64 = 2;
    let mut at = header;
    for _ in 0..count {
        let Some((kind, size)) = number(at).zip(number(at.saturating_add(4))) else {
            break;
        };
        if kind == LC_SYMTAB {
            // The fields of LC_SYMTAB: offset and count of the symbols, offset and bytes of their names.
            let field = |index: u64| number(at.saturating_add(index.saturating_mul(4)));
            let symbol = if wide { 16 } else { 12 };
            for (offset, count, entry) in [(2, 3, symbol), (4, 5, 1)] {
                if let Some((offset, count)) = field(offset).zip(field(count)) {
                    check_range(offset, count.saturating_mul(entry), length, at)?;
                }
            }
        }
        // A command takes at least eight bytes.
        at = at.saturating_add(size.max(8));
    }
    Ok(())
}

/// Checks that the section headers and the symbol table of a COFF object file lie inside it.
fn coff_tables(bytes: &[u8]) -> Result<(), Violation> {
    let number = |at: u64, size: usize| number(bytes, at, size, true);
    let length = bytes.len() as u64;
    // A file with more sections than 16 bits can count does not start with the machine, and has a longer header.
    let many = number(0, 2) == Some(0);
    let (header, sections, table, count, symbol) = if many {
        (56, number(44, 4), number(48, 4), number(52, 4), 20)
    } else {
        (20, number(2, 2), number(8, 4), number(12, 4), 18)
    };
    if let Some(sections) = sections {
        // A section header takes 40 bytes in both kinds of file.
        check_range(header, sections.saturating_mul(40), length, 0)?;
    }
    if let Some((table, count)) = table.zip(count) {
        check_range(table, count.saturating_mul(symbol), length, 0)?;
    }
    Ok(())
}

/// Reads the integer of `size` bytes at `at`; returns `None` where the bytes end before it does.
fn number(bytes: &[u8], at: u64, size: usize, little: bool) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let field = bytes.get(at..at.checked_add(size)?)?;
    let add = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    Some(if little {
        field.iter().rev().fold(0, add)
    } else {
        field.iter().fold(0, add)
    })
}
