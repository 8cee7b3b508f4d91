//! The section headers, which no dynamic loader reads: they state a second time where everything is.
//!
//! What they state wrongly does no harm by itself. It shows that a file was changed by something that did not know all of it, so
//! that what the loader does read may be wrong as well: nothing is known then.

use super::dynamic::{
    self, Dynamic, FINI_ARRAY, FINI_ARRAY_SIZE, GNU_HASH, HASH, INIT_ARRAY, INIT_ARRAY_SIZE, PLT,
    PLT_GOT, PLT_SIZE, RELA, RELA_SIZE, RELR, RELR_SIZE, STRINGS, STRINGS_SIZE, SYMBOLS, VERSIONS,
    VERSIONS_DEFINED, VERSIONS_NEEDED,
};
use super::{EXECUTES, Image, Stop, WRITES, unknown};

/// A section header.
#[derive(Clone, Copy)]
pub(super) struct Section {
    /// `sh_name`: where its name starts in the section of names.
    name: u32,
    /// `sh_type`.
    pub(super) kind: u32,
    /// `sh_flags`.
    flags: u64,
    /// `sh_addr`; 0 for what is not mapped.
    pub(super) address: u64,
    /// `sh_offset`: where its bytes start in the file.
    pub(super) offset: u64,
    /// `sh_size`, in bytes.
    pub(super) size: u64,
    /// `sh_link`: of symbols the number of the section with their names.
    pub(super) link: u32,
}

/// `SHT_NOBITS`: memory without bytes in the file, as `.bss`.
const NO_BITS: u32 = 8;
/// `SHF_TLS`: thread-local data.
const TLS: u64 = 0x400;
/// `SHT_SYMTAB`: the static symbols.
const STATIC: u32 = 2;
/// `SHT_RELA`: relocations with addends.
const RELOCATIONS: u32 = 4;

/// All of them; empty for a file that has none, or none that can be read.
pub(super) fn list(image: &Image<'_>) -> Vec<Section> {
    // e_shoff, e_shentsize and e_shnum.
    let header = || Some((image.u64(40)?, image.u16(58)?, image.u16(60)?));
    // e_shentsize is 64 in every 64-bit file: with another size the headers cannot be read, and count as stripped.
    let Some((table, 64, count)) = header() else {
        return Vec::new();
    };
    let read = |index: u64| {
        let at = table.checked_add(index.checked_mul(64)?)?;
        let word = |inside: u64| image.u64(at.checked_add(inside)?);
        Some(Section {
            name: image.u32(at)?,
            kind: image.u32(at.checked_add(4)?)?,
            flags: word(8)?,
            address: word(16)?,
            offset: word(24)?,
            size: word(32)?,
            link: image.u32(at.checked_add(40)?)?,
        })
    };
    (0..u64::from(count)).map_while(read).collect()
}

/// The table of the static symbols, and its names.
pub(super) fn symbols(image: &Image<'_>) -> Option<(Section, Section)> {
    let sections = list(image);
    let symbols = *sections.iter().find(|section| section.kind == STATIC)?;
    let names = sections.get(usize::try_from(symbols.link).ok()?)?;
    Some((symbols, *names))
}

/// Holds what is mapped, and what the dynamic section says, against the section headers. Without them there is nothing to hold.
pub(super) fn check(image: &Image<'_>, dynamic: &Dynamic) -> Result<(), Stop> {
    let sections = list(image);
    let mapped = sections
        .iter()
        // SHF_ALLOC, 2: only what is mapped can be compared. SHF_WRITE is 1, SHF_EXECINSTR 4.
        .filter(|section| section.flags & 2 != 0 && section.size > 0);
    for section in mapped.clone() {
        // `.tbss` takes no memory of the image: its address is that of what follows.
        if section.kind == NO_BITS && section.flags & TLS != 0 {
            continue;
        }
        let place = match section.kind {
            // Its place in the file means nothing.
            NO_BITS => image.segment(section.address, section.size).is_some(),
            _ => image.offset(section.address, section.size) == Some(section.offset),
        };
        let mut flags = if section.flags & 1 != 0 { WRITES } else { 0 };
        flags |= if section.flags & 4 != 0 { EXECUTES } else { 0 };
        // Bytes that are not in the file are there to be written: in a protected range the first write ends the process.
        let protected = section.kind == NO_BITS
            && image.is_protected(section.address)
            && !is_never_written(image, &sections, section);
        if !place || protected || !image.has_flags(section.address, section.size, flags) {
            return Err(unknown(&format!(
                "a section at address {:#x} is not in a segment as its header states",
                section.address
            )));
        }
    }
    for section in mapped {
        if !agrees(section, &sections, dynamic, image) {
            return Err(unknown(&format!(
                "the dynamic section does not name the table at address {:#x} as its section header does",
                section.address
            )));
        }
    }
    Ok(())
}

/// Whether lld made this section without bytes for the protected range: what fills its last page (from 18 on), and room for data that
/// the dynamic loader itself copies there before it protects the range.
fn is_never_written(image: &Image<'_>, all: &[Section], section: &Section) -> bool {
    const NAMES: [&[u8]; 2] = [b".relro_padding\0", b".bss.rel.ro\0"];
    let name = || {
        // e_shstrndx: which section has the names of all.
        let names = all.get(usize::from(image.u16(62)?))?;
        let start = names.offset.checked_add(section.name.into())?;
        image.bytes.get(usize::try_from(start).ok()?..)
    };
    name().is_some_and(|name| NAMES.iter().any(|known| name.starts_with(known)))
}

/// Whether the dynamic section says of a table what its section header says.
///
/// A section of any other kind agrees: the dynamic section has no entry for it.
fn agrees(section: &Section, all: &[Section], dynamic: &Dynamic, image: &Image<'_>) -> bool {
    let at = |tag| dynamic.value(tag) == Some(section.address);
    let whole = |tag, size| at(tag) && dynamic.value(size) == Some(section.size);
    // SHT_HASH, SHT_DYNAMIC, SHT_DYNSYM, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_RELR, and GNU's own for hashes and versions.
    match section.kind {
        5 => at(HASH),
        6 => image.dynamic == (section.address, section.size),
        11 => {
            let names = usize::try_from(section.link)
                .ok()
                .and_then(|link| all.get(link));
            let named = names.is_some_and(|names| {
                dynamic.table(STRINGS, STRINGS_SIZE) == Some((names.address, names.size))
            });
            at(SYMBOLS) && named
        }
        14 => whole(INIT_ARRAY, INIT_ARRAY_SIZE),
        15 => whole(FINI_ARRAY, FINI_ARRAY_SIZE),
        19 => whole(RELR, RELR_SIZE),
        0x6fff_fff6 => at(GNU_HASH),
        0x6fff_fffd => at(VERSIONS_DEFINED),
        0x6fff_fffe => at(VERSIONS_NEEDED),
        0x6fff_ffff => at(VERSIONS),
        RELOCATIONS => {
            // One table of the dynamic section may span several sections of relocations, so that it need not equal any of them.
            let end = section.address.saturating_add(section.size);
            let covers = |table: Option<(u64, u64)>| {
                table.is_some_and(|(start, length)| {
                    start <= section.address && end <= start.saturating_add(length)
                })
            };
            covers(dynamic.table(RELA, RELA_SIZE)) || covers(dynamic.table(PLT, PLT_SIZE))
        }
        _ => true,
    }
}

/// Whether the tables of the dynamic section begin where sections do, and those of relocations end so, as far as there are
/// sections.
pub(super) fn begins(image: &Image<'_>, dynamic: &Dynamic) -> bool {
    let sections = list(image);
    let starts = |address: u64| sections.iter().any(|section| section.address == address);
    let ends = |(start, length): (u64, u64)| {
        let end = start.saturating_add(length);
        let end_of = |section: &Section| section.address.saturating_add(section.size);
        sections.iter().any(|section| end_of(section) == end)
    };
    // RELR and the arrays are not among them: `agrees` compares those with sections of their own kinds.
    let tags = [PLT_GOT, RELA, PLT, dynamic::INIT, dynamic::FINI];
    let mut named = tags.iter().filter_map(|tag| dynamic.value(*tag));
    let tables = [dynamic.table(RELA, RELA_SIZE), dynamic.table(PLT, PLT_SIZE)];
    sections.is_empty() || (named.all(starts) && tables.into_iter().flatten().all(ends))
}
