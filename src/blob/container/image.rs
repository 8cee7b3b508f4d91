//! Object files of every format as the same tables: areas that have bytes, and symbols that lie in them.
//!
//! The `object` crate is called here alone, and for each thing in one place: its code is compiled for every format and width.
//!
//! | form | tables that must lie inside (BLOB-55) | where they are found |
//! |---|---|---|
//! | ELF | segments, sections, symbol tables | header; section headers of kinds SYMTAB and DYNSYM |
//! | Mach-O | load commands, symbols, names | header; LC_SYMTAB |
//! | COFF | section headers, symbols | header |
//! | PE | exports | by the `object` crate, whose errors are BLOB-55 |
//!
//! A parser of ELF or Mach-O may take a table that is cut off for an empty one: then a broken download looks like a library without
//! symbols. So sizes are checked here first.

use super::allowance::Allowance;
use super::{FileForm, Machine};
use crate::blob::BLOB_55;
use crate::rule::{Kind, Violation};
use object::read::pe::ExportTarget;
use object::read::{ObjectSymbol as _, SymbolSection};
use object::{Architecture, Object as _, ObjectSection as _, ObjectSegment as _};
use std::collections::HashSet;

/// What is read of an object file.
pub(super) struct ObjectTables<'a> {
    pub(super) machine: Machine,
    /// The sections, at the numbers by which symbols name them.
    pub(super) sections: Vec<Area>,
    /// What is mapped of an image.
    pub(super) segments: Vec<Area>,
    /// The global symbols, each name once: the dynamic table first, then the static one, then the exports of PE.
    pub(super) symbols: Vec<ObjectSymbol<'a>>,
}

/// A section or a segment.
#[derive(Clone, Default)]
pub(super) struct Area {
    pub(super) address: u64,
    /// In memory, where that may be more than in the file.
    pub(super) size: u64,
    /// Offset and size in the file; `None` where it has no bytes (.bss).
    pub(super) file: Option<(u64, u64)>,
    /// Whether it holds code.
    text: bool,
}

/// One symbol, of whichever table.
pub(super) struct ObjectSymbol<'a> {
    pub(super) name: &'a str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) place: Defined,
    /// Whether it is code.
    pub(super) text: bool,
}

/// Where a symbol is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defined {
    /// Undefined: another file has it.
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
        .map_err(|error| damaged("cannot be read as an object file", error))?;
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
    // BLOB-50: it is no part of the name that TVM looks for.
    // Mach-O puts an underscore before every name, COFF on i386 too.
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

/// What the parser rejects: BLOB-55, at the beginning of the file, because its errors have no offset.
fn damaged(what: &str, error: object::Error) -> Violation {
    BLOB_55.broken(Kind::Malformed, 0, format!("{what}: {error}"))
}

/// The names that were read. Each is paid for before it is looked at twice: one string may hold the names of all symbols.
struct SymbolNames<'a, 'w> {
    seen: HashSet<&'a str>,
    /// What a name costs that has no end: it was looked for up to the end of its table.
    unreadable: usize,
    allowance: &'w mut Allowance,
}

impl<'a> SymbolNames<'a, '_> {
    /// The name, where it is text and new.
    fn take(
        &mut self,
        name: Option<&'a [u8]>,
        underscored: bool,
    ) -> Result<Option<&'a str>, Violation> {
        let Some(name) = name else {
            self.allowance.name(self.unreadable, 0)?;
            return Ok(None);
        };
        // BLOB-68: counted before it is compared: a file may name one long string from each of its symbols.
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

/// COFF does not say whether it is of 32 or 64 bits; the machine does.
fn bits(architecture: Architecture, file: &object::File<'_>) -> u8 {
    match architecture.address_size().map(|size| size.bytes()) {
        Some(4) => 32,
        Some(8) => 64,
        _ if file.is_64() => 64,
        _ => 32,
    }
}

/// Every section at its number, with holes where a format leaves numbers out.
fn sections(file: &object::File<'_>) -> Vec<Area> {
    let mut sections = Vec::new();
    for section in file.sections() {
        // Numbers start at 1.
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

/// Every segment that is mapped.
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
    /// The global symbols of the dynamic table and of the static one.
    fn symbols(
        &mut self,
        file: &object::File<'a>,
        underscored: bool,
        relocatable: bool,
        names: &mut SymbolNames<'a, '_>,
    ) -> Result<(), Violation> {
        // The loader of the system sees the dynamic table alone, so that what it has goes first. Strip takes the other one away.
        for table in [file.dynamic_symbols(), file.symbols()] {
            for symbol in table {
                // BLOB-50: `dlsym` finds global symbols only, and neither a linker nor TVM any other.
                if symbol.is_local() {
                    continue;
                }
                let name = names.take(symbol.name_bytes().ok(), underscored)?;
                let Some(name) = name else { continue };
                let section = symbol.section();
                let place = match section {
                    SymbolSection::Section(index) if relocatable => Defined::Section(index.0),
                    SymbolSection::Section(_) => Defined::Image,
                    // BLOB-65: the runtime functions that code calls are undefined here, and are listed for that.
                    SymbolSection::Undefined | SymbolSection::None => Defined::Nowhere,
                    _ => Defined::NoBytes,
                };
                let text = match symbol.kind() {
                    object::SymbolKind::Text => true,
                    // Mach-O and COFF do not always say what a symbol is; the section does.
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

    /// What a PE image exports by name.
    fn exports(
        &mut self,
        file: &object::File<'a>,
        names: &mut SymbolNames<'a, '_>,
    ) -> Result<(), Violation> {
        let damaged = |error| damaged("the export table cannot be read", error);
        let (table, base) = match file {
            object::File::Pe32(file) => (file.export_table(), file.relative_address_base()),
            object::File::Pe64(file) => (file.export_table(), file.relative_address_base()),
            _ => return Ok(()),
        };
        let Some(table) = table.map_err(damaged)? else {
            return Ok(());
        };
        // Real images have one or two; a hostile one does not get to be searched for each export.
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
            // Any number of the file: where no segment has the address, that is for BLOB-52.
            let address = base.wrapping_add(address.into());
            self.symbols.push(ObjectSymbol {
                name,
                address,
                // An export has no size: its blob is bounded by what comes next (BLOB-53).
                size: 0,
                place: Defined::Image,
                text: code.iter().any(|range| range.contains(&address)),
            });
        }
        Ok(())
    }
}

/// BLOB-55: whether the tables of an ELF file lie inside it, which those of a download that broke off do not, and have entries of
/// the size of their format.
fn elf_tables(bytes: &[u8]) -> Result<(), Violation> {
    // Byte 4 of ELF is its width, 2 for 64 bits; byte 5 the byte order, 2 for big endian.
    let wide = bytes.get(4) == Some(&2);
    let little = bytes.get(5) != Some(&2);
    let number = |at: u64, size: usize| number(bytes, at, size, little);
    // Offset and size of the entries of the two tables; the sizes of their entries and of a symbol in this format; where a
    // section header has type, offset, size and entry size.
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
        inside(offset, size.saturating_mul(count), length, offset)?;
        // BLOB-55: without entries their size means nothing, and writers leave 0 there.
        BLOB_55.require(count == 0 || size == entry, offset, || {
            format!("the ELF header has a table with entries of {size} bytes, not {entry}")
        })?;
        // The sections come second in `tables`, so that these are theirs.
        (first, headers) = (offset, count);
    }
    let field = |header: u64, wide_at: u64, narrow_at: u64| {
        let at = if wide { wide_at } else { narrow_at };
        number(header.saturating_add(at), word)
    };
    // More sections than 16 bits count: the first has the number of all in its size.
    let many = (headers == 0 && first != 0).then(|| field(first, 32, 20));
    if let Some(all) = many.flatten() {
        headers = all;
    }
    const SHT_SYMTAB: u64 = 2;
    const SHT_DYNSYM: u64 = 11;
    for index in 0..headers {
        let header = first.saturating_add(index.saturating_mul(sections));
        let Some(kind) = number(header.saturating_add(4), 4) else {
            // What is not there is for the parser to reject.
            break;
        };
        // BLOB-55: only the tables that are searched. Where another section lies is checked when a blob is in it (BLOB-52).
        if !matches!(kind, SHT_SYMTAB | SHT_DYNSYM) {
            continue;
        }
        let place = field(header, 24, 16).zip(field(header, 32, 20));
        let Some(((offset, size), entry)) = place.zip(field(header, 56, 36)) else {
            break;
        };
        inside(offset, size, length, header)?;
        BLOB_55.require(entry == symbol, header, || {
            format!("a symbol table has entries of {entry} bytes, not {symbol}")
        })?;
    }
    Ok(())
}

/// `size` bytes from `offset` on lie inside a file of `length` bytes; offset and size are at `at`.
fn inside(offset: u64, size: u64, length: u64, at: u64) -> Result<(), Violation> {
    let end = offset.saturating_add(size);
    BLOB_55.require_as(Kind::Truncated, size == 0 || end <= length, at, || {
        format!("a table is at {offset:#x} to {end:#x}, the file has {length:#x} bytes")
    })
}

/// Whether the load commands and the symbol table of a Mach-O file lie inside it. Its parser takes commands that are cut off for
/// the end of them.
fn mach_o_tables(bytes: &[u8]) -> Result<(), Violation> {
    // The magic ends in `cf` for 64 bits and in `ce` for 32, and begins with `fe` where the file is big endian.
    let wide = matches!(bytes, [0xcf, ..] | [_, _, _, 0xcf, ..]);
    let little = bytes.first() != Some(&0xfe);
    let number = |at: u64| number(bytes, at, 4, little);
    let length = bytes.len() as u64;
    let header = if wide { 32 } else { 28 };
    let Some((count, size)) = number(16).zip(number(20)) else {
        // What is not there is for the parser to reject.
        return Ok(());
    };
    inside(header, size, length, 20)?;
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
                    inside(offset, count.saturating_mul(entry), length, at)?;
                }
            }
        }
        // A command takes eight bytes at least.
        at = at.saturating_add(size.max(8));
    }
    Ok(())
}

/// Whether the section headers and the symbol table of a COFF object file lie inside it.
fn coff_tables(bytes: &[u8]) -> Result<(), Violation> {
    let number = |at: u64, size: usize| number(bytes, at, size, true);
    let length = bytes.len() as u64;
    // A file of more sections than 16 bits count has no machine in front, and a longer header.
    let many = number(0, 2) == Some(0);
    let (header, sections, table, count, symbol) = if many {
        (56, number(44, 4), number(48, 4), number(52, 4), 20)
    } else {
        (20, number(2, 2), number(8, 4), number(12, 4), 18)
    };
    if let Some(sections) = sections {
        // A section header has 40 bytes, in either kind of file.
        inside(header, sections.saturating_mul(40), length, 0)?;
    }
    if let Some((table, count)) = table.zip(count) {
        inside(table, count.saturating_mul(symbol), length, 0)?;
    }
    Ok(())
}

/// The number of `size` bytes at `at`.
/// `None` where the bytes end before it.
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
