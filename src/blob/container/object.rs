//! Object files: ELF, Mach-O, PE, COFF. Headers and symbol tables are read, sections only where a blob lies.

use super::rules::{BLOB_52, BLOB_55};
use super::symbols::{self, Raw};
use super::{Blob, Form, Machine, Part, Place, bounded};
use crate::rule::{Findings, Kind, Violation};
use object::read::{ExportTarget, ObjectSymbol as _, SymbolSection};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, SectionIndex};
use std::borrow::Cow;
use std::collections::HashSet;

/// Reads the object file `bytes` into `part`.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    place: &Place,
    part: &mut Part<'a>,
    findings: &mut Findings,
) -> Result<(), Violation> {
    if bytes.starts_with(b"\x7fELF") {
        elf_tables(bytes)?;
    }
    let file = object::File::parse(bytes).map_err(|error| {
        BLOB_55.broken(
            Kind::Malformed,
            0,
            format!("cannot be read as an object file: {error}"),
        )
    })?;
    part.form = refined(part.form, &file);
    part.machine = Some(Machine {
        architecture: format!("{:?}", file.architecture()).to_ascii_lowercase(),
        bits: bits(&file),
        little_endian: file.is_little_endian(),
    });
    let table = table(&file)?;
    part.symbols = symbols::classify(table.iter().map(|entry| Raw {
        name: entry.name.as_str(),
        address: entry.address,
        size: entry.size,
        defined: entry.place != Defined::Nowhere,
        text: entry.text,
    }));
    let starts = Starts::of(&table);
    for entry in table.iter().filter(|entry| entry.place != Defined::Nowhere) {
        let Some((prefix, layout)) = symbols::blob(&entry.name) else {
            continue;
        };
        let range = extent(&file, bytes, entry, &starts)
            .map_err(|broken| broken.in_field(entry.name.clone()))?;
        let (content, size) = bounded(range.bytes, range.known, range.start, findings)
            .map_err(|broken| broken.in_field(entry.name.clone()))?;
        part.blobs.push(Blob {
            symbol: entry.name.clone(),
            prefix: prefix.to_owned(),
            layout: Some(layout),
            address: Some(entry.address),
            offset: place.file_offset(range.start),
            size,
            bytes: Cow::Borrowed(content),
        });
    }
    Ok(())
}

/// COFF does not say whether it is of 32 or 64 bits; the machine does.
fn bits(file: &object::File<'_>) -> u8 {
    let of_machine = file.architecture().address_size();
    match of_machine.map(|size| size.bytes()) {
        Some(4) => 32,
        Some(8) => 64,
        _ if file.is_64() => 64,
        _ => 32,
    }
}

/// One symbol, of whichever table.
struct Entry {
    name: String,
    address: u64,
    size: u64,
    place: Defined,
    text: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Defined {
    /// Undefined: somebody else has it.
    Nowhere,
    /// In the section of a relocatable object file.
    Section(usize),
    /// At an address of an image.
    Image,
    /// Defined, but without bytes: common, absolute.
    NoBytes,
}

fn refined(form: Form, file: &object::File<'_>) -> Form {
    use object::ObjectKind;
    match (form, file.kind()) {
        (Form::ElfShared, ObjectKind::Executable) => Form::ElfExecutable,
        (Form::MachOShared, ObjectKind::Relocatable) => Form::MachOObject,
        _ => form,
    }
}

/// The global symbols: the dynamic table first, then the static one, or the exports of a PE image.
fn table(file: &object::File<'_>) -> Result<Vec<Entry>, Violation> {
    let mut entries = Vec::new();
    let mut seen = HashSet::new();
    let relocatable = file.kind() == object::ObjectKind::Relocatable;
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if name.is_empty() || symbol.is_local() {
            continue;
        }
        let place = match symbol.section() {
            _ if symbol.is_undefined() => Defined::Nowhere,
            SymbolSection::Section(index) if relocatable => Defined::Section(index.0),
            SymbolSection::Section(_) => Defined::Image,
            SymbolSection::Undefined | SymbolSection::None => Defined::Nowhere,
            _ => Defined::NoBytes,
        };
        let name = unmangled(name, file);
        if !seen.insert(name.to_owned()) {
            continue;
        }
        entries.push(Entry {
            name: name.to_owned(),
            address: symbol.address(),
            size: symbol.size(),
            place,
            text: is_text(file, &symbol),
        });
    }
    if file.format() == object::BinaryFormat::Pe {
        exports(file, &mut seen, &mut entries)?;
    }
    Ok(entries)
}

fn is_text<'d>(file: &object::File<'d>, symbol: &object::Symbol<'d, '_>) -> bool {
    use object::SymbolKind;
    match symbol.kind() {
        SymbolKind::Text => true,
        // Mach-O and COFF do not always say what a symbol is; the section does.
        SymbolKind::Unknown | SymbolKind::Label => symbol
            .section_index()
            .and_then(|index| file.section_by_index(index).ok())
            .is_some_and(|section| section.kind() == object::SectionKind::Text),
        _ => false,
    }
}

fn exports(
    file: &object::File<'_>,
    seen: &mut HashSet<String>,
    entries: &mut Vec<Entry>,
) -> Result<(), Violation> {
    let damaged = |error| {
        BLOB_55.broken(
            Kind::Malformed,
            0,
            format!("the export table cannot be read: {error}"),
        )
    };
    // Real images have one or two; a hostile one does not get to be searched for each export.
    let code: Vec<_> = file
        .sections()
        .filter(|section| section.kind() == object::SectionKind::Text)
        .take(16)
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect();
    for export in file.exports().map_err(damaged)? {
        let export = export.map_err(damaged)?;
        let ExportTarget::Address { address } = export.target() else {
            continue;
        };
        let name = export.name();
        let Some(Ok(name)) = name.name().map(std::str::from_utf8) else {
            continue;
        };
        if !seen.insert(name.to_owned()) {
            continue;
        }
        entries.push(Entry {
            name: name.to_owned(),
            address,
            size: 0,
            place: Defined::Image,
            text: code.iter().any(|range| range.contains(&address)),
        });
    }
    Ok(())
}

/// Mach-O puts an underscore before every name, COFF on i386 too.
fn unmangled<'n>(name: &'n str, file: &object::File<'_>) -> &'n str {
    use object::{Architecture, BinaryFormat};
    match (file.format(), file.architecture()) {
        (BinaryFormat::MachO, _) | (BinaryFormat::Coff, Architecture::I386) => {
            name.strip_prefix('_').unwrap_or(name)
        }
        _ => name,
    }
}

/// Where symbols start, sorted: a hostile table is not searched again for each of its blobs.
struct Starts(Vec<(Defined, u64)>);

impl Starts {
    fn of(table: &[Entry]) -> Starts {
        let mut starts: Vec<_> = table
            .iter()
            .map(|entry| (entry.place, entry.address))
            .collect();
        starts.sort_unstable();
        Starts(starts)
    }

    /// The address of the next symbol in the same place.
    fn next(&self, entry: &Entry) -> Option<u64> {
        let behind = self
            .0
            .partition_point(|start| *start <= (entry.place, entry.address));
        let (place, address) = self.0.get(behind)?;
        (*place == entry.place).then_some(*address)
    }
}

/// The bytes that a symbol may claim.
struct Extent<'a> {
    bytes: &'a [u8],
    /// Their offset in the object file.
    start: u64,
    /// Whether the symbol table gives the size.
    known: bool,
}

fn extent<'a>(
    file: &object::File<'a>,
    bytes: &'a [u8],
    entry: &Entry,
    starts: &Starts,
) -> Result<Extent<'a>, Violation> {
    let (start, end) = match entry.place {
        Defined::Section(index) => in_section(file, entry, SectionIndex(index))?,
        Defined::Image => in_segment(file, entry)?,
        Defined::NoBytes | Defined::Nowhere => {
            return Err(no_bytes(entry, "is defined without a place"));
        }
    };
    let known = entry.size > 0;
    let end = if known {
        let own = start.saturating_add(entry.size);
        BLOB_52.require_as(Kind::Truncated, own <= end, start, || {
            let size = entry.size;
            format!(
                "`{}` has {size} bytes, its section ends before them",
                entry.name
            )
        })?;
        own.min(end)
    } else {
        // Nothing says where it ends but the next symbol, or the section.
        let room = starts
            .next(entry)
            .map(|next| next.saturating_sub(entry.address));
        room.map_or(end, |room| start.saturating_add(room).min(end))
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let content = range.and_then(|(start, end)| bytes.get(start..end));
    BLOB_52.require_as(Kind::Truncated, content.is_some(), start, || {
        let length = bytes.len();
        format!(
            "`{}` lies at {start:#x} to {end:#x}, the file has {length:#x} bytes",
            entry.name
        )
    })?;
    Ok(Extent {
        bytes: content.unwrap_or_default(),
        start,
        known,
    })
}

fn in_section(
    file: &object::File<'_>,
    entry: &Entry,
    index: SectionIndex,
) -> Result<(u64, u64), Violation> {
    let section = file
        .section_by_index(index)
        .map_err(|_| no_bytes(entry, "is in a section that is not there"))?;
    let (start, size) = section
        .file_range()
        .ok_or_else(|| no_bytes(entry, "is in a section without bytes (.bss)"))?;
    let inside = entry.address.saturating_sub(section.address());
    BLOB_52.require_as(Kind::Truncated, inside < size, start, || {
        format!(
            "`{}` starts at {inside:#x} of a section of {size:#x} bytes",
            entry.name
        )
    })?;
    Ok((start.saturating_add(inside), start.saturating_add(size)))
}

fn in_segment(file: &object::File<'_>, entry: &Entry) -> Result<(u64, u64), Violation> {
    for segment in file.segments() {
        let Some(inside) = entry.address.checked_sub(segment.address()) else {
            continue;
        };
        let (start, size) = segment.file_range();
        if inside < size {
            return Ok((start.saturating_add(inside), start.saturating_add(size)));
        }
        if inside < segment.size() {
            return Err(no_bytes(
                entry,
                "is in memory that the file does not fill (.bss)",
            ));
        }
    }
    let message = format!(
        "`{}` is at {:#x}, which no segment maps",
        entry.name, entry.address
    );
    Err(BLOB_52.broken(Kind::Truncated, 0, message))
}

fn no_bytes(entry: &Entry, why: &str) -> Violation {
    BLOB_52.broken(Kind::Missing, 0, format!("`{}` {why}", entry.name))
}

/// Whether the program and section header tables of an ELF file lie inside it: the usual mark of a download that
/// broke off.
fn elf_tables(bytes: &[u8]) -> Result<(), Violation> {
    let wide = bytes.get(4) == Some(&2);
    let little = bytes.get(5) != Some(&2);
    let number = |at: usize, size: usize| -> Option<u64> {
        let field = bytes.get(at..at.checked_add(size)?)?;
        let add = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
        Some(match little {
            true => field.iter().rev().fold(0, add),
            false => field.iter().fold(0, add),
        })
    };
    // Offset, entry size and count of the two tables.
    let tables = if wide {
        [
            (number(32, 8), number(54, 2), number(56, 2)),
            (number(40, 8), number(58, 2), number(60, 2)),
        ]
    } else {
        [
            (number(28, 4), number(42, 2), number(44, 2)),
            (number(32, 4), number(46, 2), number(48, 2)),
        ]
    };
    let length = bytes.len() as u64;
    for table in tables {
        let (Some(offset), Some(size), Some(count)) = table else {
            return Err(BLOB_55.broken(
                Kind::Truncated,
                length,
                "the file ends inside its ELF header",
            ));
        };
        let end = offset.saturating_add(size.saturating_mul(count));
        BLOB_55.require_as(Kind::Truncated, end <= length, offset, || {
            format!("the ELF header puts a table at {offset:#x} to {end:#x}, the file has {length:#x} bytes")
        })?;
    }
    Ok(())
}
