//! Object files: ELF, Mach-O, PE, COFF. Headers and symbol tables are read; of the sections, only those with a blob are touched.

use super::allowance::Allowance;
use super::image::{self, Defined, ObjectSymbol, ObjectTables};
use super::symbols::{self, Raw};
use super::{ContainerPart, EmbeddedBlob, MemberPlace, limit_to_header_size};
use crate::blob::BLOB_52;
use crate::rule::{Findings, Kind, Violation};
use std::borrow::Cow;

/// Reads the object file `bytes` into `part`.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    place: &MemberPlace,
    part: &mut ContainerPart<'a>,
    findings: &mut Findings,
    allowance: &mut Allowance,
) -> Result<(), Violation> {
    let image = image::read(part.form, bytes, allowance)?;
    let table = &image.symbols;
    // Undefined symbols are listed too: they show which functions of the runtime the code calls (BLOB-65).
    let raw = table.iter().map(|entry| Raw {
        name: entry.name,
        address: entry.address,
        size: entry.size,
        defined: entry.place != Defined::Nowhere,
        text: entry.text,
    });
    part.symbols = symbols::classify(raw, allowance)?;
    // BLOB-53: for a symbol without a size, the next symbol is the bound.
    let starts = Starts::of(table);
    for entry in table.iter().filter(|entry| entry.place != Defined::Nowhere) {
        // BLOB-50: every symbol that ends like a blob's counts, because one program can contain several system libraries (BLOB-51).
        let Some((prefix, layout)) = symbols::blob(entry.name) else {
            continue;
        };
        let range =
            extent(&image, bytes, entry, &starts).map_err(|broken| broken.in_field(entry.name))?;
        let (content, size) = limit_to_header_size(range.bytes, range.known, range.start, findings)
            .map_err(|broken| broken.in_field(entry.name))?;
        allowance
            .blob(content.len(), range.start)
            .map_err(|broken| broken.in_field(entry.name))?;
        part.blobs.push(EmbeddedBlob {
            symbol: entry.name.to_owned(),
            prefix: prefix.to_owned(),
            layout: Some(layout),
            address: Some(entry.address),
            offset: place.file_offset(range.start),
            size,
            bytes: Cow::Borrowed(content),
        });
    }
    part.machine = Some(image.machine);
    Ok(())
}

/// The sorted start addresses of symbols, so that a hostile table is not searched again for each of its blobs.
struct Starts(Vec<(Defined, u64)>);

impl Starts {
    /// Collects the start of every symbol. Undefined symbols have their own place, so they bound no other symbol.
    fn of(table: &[ObjectSymbol<'_>]) -> Starts {
        let mut starts: Vec<_> = table
            .iter()
            .map(|entry| (entry.place, entry.address))
            .collect();
        starts.sort_unstable();
        Starts(starts)
    }

    /// Returns the address of the next symbol in the same place.
    fn next(&self, entry: &ObjectSymbol<'_>) -> Option<u64> {
        let behind = self
            .0
            .partition_point(|start| *start <= (entry.place, entry.address));
        let (place, address) = self.0.get(behind)?;
        (*place == entry.place).then_some(*address)
    }
}

/// The bytes that a symbol covers.
struct SymbolExtent<'a> {
    bytes: &'a [u8],
    /// Offset of these bytes in the object file.
    start: u64,
    /// True if the symbol table contains the size.
    known: bool,
}

/// Returns the bytes of a symbol (BLOB-52): as many as its size, or up to the next symbol.
fn extent<'a>(
    image: &ObjectTables<'a>,
    bytes: &'a [u8],
    entry: &ObjectSymbol<'a>,
    starts: &Starts,
) -> Result<SymbolExtent<'a>, Violation> {
    let (start, end) = match entry.place {
        Defined::Section(index) => in_section(image, entry, index)?,
        Defined::Image => in_segment(image, entry)?,
        // BLOB-52: a common or absolute symbol has no bytes in the file.
        Defined::NoBytes | Defined::Nowhere => {
            return Err(no_bytes(entry, "is defined without a place"));
        }
    };
    // BLOB-53: ELF stores the size of a symbol; Mach-O, COFF and PE do not.
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
        // BLOB-52: this bounds the symbol even if the check above is disabled.
        own.min(end)
    } else {
        // It ends at the next symbol, or at the end of the section.
        let room = starts
            .next(entry)
            .map(|next| next.saturating_sub(entry.address));
        room.map_or(end, |room| start.saturating_add(room).min(end))
    };
    // BLOB-52: the file is checked last, because tables that agree with each other may still disagree with the file.
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let content = range.and_then(|(start, end)| bytes.get(start..end));
    BLOB_52.require_as(Kind::Truncated, content.is_some(), start, || {
        let length = bytes.len();
        format!(
            "`{}` lies at {start:#x} to {end:#x}, the file has {length:#x} bytes",
            entry.name
        )
    })?;
    Ok(SymbolExtent {
        bytes: content.unwrap_or_default(),
        start,
        known,
    })
}

/// Returns the offset of the symbol in the file, and the end of its section.
fn in_section(
    image: &ObjectTables<'_>,
    entry: &ObjectSymbol<'_>,
    index: usize,
) -> Result<(u64, u64), Violation> {
    let section = image
        .sections
        .get(index)
        .ok_or_else(|| no_bytes(entry, "is in a section that is not there"))?;
    let (start, size) = section
        .file
        .ok_or_else(|| no_bytes(entry, "is in a section without bytes (.bss)"))?;
    // In an object file an address counts from its section. The section starts at 0 in ELF and COFF, but not in Mach-O.
    let inside = entry.address.saturating_sub(section.address);
    BLOB_52.require_as(Kind::Truncated, inside < size, start, || {
        format!(
            "`{}` starts at {inside:#x} of a section of {size:#x} bytes",
            entry.name
        )
    })?;
    Ok((start.saturating_add(inside), start.saturating_add(size)))
}

/// Returns the offset of the symbol in the file, and the end of its segment.
fn in_segment(image: &ObjectTables<'_>, entry: &ObjectSymbol<'_>) -> Result<(u64, u64), Violation> {
    // BLOB-52: the search is by address, as the system's loader maps the image, because an image may have its sections stripped.
    for segment in &image.segments {
        let Some(inside) = entry.address.checked_sub(segment.address) else {
            continue;
        };
        let (start, size) = segment.file.unwrap_or_default();
        if inside < size {
            return Ok((start.saturating_add(inside), start.saturating_add(size)));
        }
        // BLOB-52: the memory is mapped but not filled from the file. It is zero at start, like .bss.
        if inside < segment.size {
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
    Err(BLOB_52.rejected(Kind::Truncated, message))
}

/// Creates the error for a blob without bytes in the file: BLOB-52, kind missing.
fn no_bytes(entry: &ObjectSymbol<'_>, why: &str) -> Violation {
    BLOB_52.rejected(Kind::Missing, format!("`{}` {why}", entry.name))
}
