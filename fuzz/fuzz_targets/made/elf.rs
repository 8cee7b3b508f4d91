//! A generated 64-bit little-endian ELF file: an object file, or an image with one segment. Covers BLOB-52 to BLOB-55, BLOB-68.

use super::{Other, Shape, Verdict};
use arbitrary::{Result, Unstructured};
use tvmspec::rule::Kind;

pub struct Elf {
    pub bytes: Vec<u8>,
    /// The offset of the library binary in the file.
    pub start: u64,
    /// The value of its symbol.
    pub address: u64,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    ValueOutside,
    WithoutBytes,
    SectionOutside,
    SymbolBeyond,
    SymbolShort,
    HeaderCountsMore,
    SymbolLong,
    TablesOutside,
    EntrySize,
    NamesOverlap,
}

const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const FRONT: u64 = 16;
const BASE: u64 = 0x20_0000;

pub fn make(symbol: &str, blob: &[u8], others: &[Other], wrong: bool, from: &mut Unstructured<'_>) -> Result<Elf> {
    let image: bool = from.arbitrary()?;
    let mut wrong = match wrong {
        false => Wrong::Nothing,
        true => *from.choose(&[
            Wrong::ValueOutside,
            Wrong::WithoutBytes,
            Wrong::SectionOutside,
            Wrong::SymbolBeyond,
            Wrong::SymbolShort,
            Wrong::HeaderCountsMore,
            Wrong::SymbolLong,
            Wrong::TablesOutside,
            Wrong::EntrySize,
            Wrong::NamesOverlap,
        ])?,
    };
    if image && wrong == Wrong::SectionOutside {
        // An image maps bytes by segments, and not by sections.
        wrong = Wrong::ValueOutside;
    }
    let tail = from.int_in_range(1..=40_u64)?;
    let mut blob = blob.to_vec();
    let length = blob.len() as u64;
    if wrong == Wrong::HeaderCountsMore {
        blob[..8].copy_from_slice(&(length - 8 + 1 + tail).to_le_bytes());
    }
    // Without a size the library binary ends with its section, or at the next symbol.
    let sized = from.arbitrary()? || matches!(wrong, Wrong::SymbolBeyond | Wrong::SymbolShort | Wrong::HeaderCountsMore | Wrong::SymbolLong);
    let size = match wrong {
        Wrong::SymbolBeyond => 1 << 40,
        Wrong::SymbolShort => length - 1,
        Wrong::SymbolLong => length + tail,
        _ if sized => length,
        _ => 0,
    };

    // Order in the file: constants, code, names, symbols, sections.
    let constants = HEADER + if image { SEGMENT } else { 0 };
    let mut bytes = vec![0; constants as usize];
    bytes.extend([0x55; FRONT as usize]);
    let start = bytes.len() as u64;
    bytes.extend(&blob);
    bytes.extend(vec![0x66; tail as usize]);
    let code = bytes.len() as u64;
    bytes.extend([0xc3; 16]);
    let mut names = vec![0];
    let mut name_of = |name: &str| {
        let at = names.len() as u32;
        names.extend(name.bytes());
        names.push(0);
        at
    };
    let inside = if image { BASE + start } else { FRONT };
    let address = match (wrong, image) {
        (Wrong::ValueOutside, true) => BASE << 8,
        (Wrong::ValueOutside, false) => code - constants,
        _ => inside,
    };
    let mut table = vec![0; 24];
    let mut add = |name: u32, kind: u8, section: u16, value: u64, size: u64| {
        table.extend(name.to_le_bytes());
        table.extend([0x10 | kind, 0]);
        table.extend(section.to_le_bytes());
        table.extend(value.to_le_bytes());
        table.extend(size.to_le_bytes());
    };
    const OBJECT: u8 = 1;
    const FUNCTION: u8 = 2;
    add(name_of(symbol), OBJECT, 1, address, size);
    for other in others {
        let (kind, section, value) = match other.form {
            Shape::Code => (FUNCTION, 2, if image { BASE + code } else { 0 }),
            Shape::Data => (OBJECT, 1, if image { BASE + constants } else { 0 }),
            Shape::Undefined => (0, 0, 0),
        };
        add(name_of(&other.name), kind, section, value, 0);
    }
    if wrong == Wrong::NamesOverlap {
        let long = name_of(&"n".repeat(4096));
        for tail in 0..600 {
            add(long + tail, OBJECT, 1, 0, 0);
        }
    }
    let names_at = bytes.len() as u64;
    bytes.extend(&names);
    let table_at = bytes.len() as u64;
    bytes.extend(&table);

    let sections_at = bytes.len() as u64;
    let constants_size = code - constants;
    let mut section = |kind: u32, flags: u64, at: u64, size: u64, link: u32, entry: u64| {
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(if image && flags != 0 { BASE + at } else { 0 }.to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(link.to_le_bytes());
        bytes.extend(u32::from(link > 0).to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(entry.to_le_bytes());
    };
    let (stored, constants_at) = match wrong {
        Wrong::WithoutBytes => (8, constants),
        Wrong::SectionOutside => (1, 1 << 30),
        _ => (1, constants),
    };
    section(0, 0, 0, 0, 0, 0);
    section(stored, 2, constants_at, constants_size, 0, 0);
    section(1, 6, code, 16, 0, 0);
    let entry = if wrong == Wrong::EntrySize { 25 } else { 24 };
    section(if image { 11 } else { 2 }, 0, table_at, table.len() as u64, 4, entry);
    section(3, 0, names_at, names.len() as u64, 0, 0);

    let whole = bytes.len() as u64;
    let count: u16 = if wrong == Wrong::TablesOutside { 4000 } else { 5 };
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend(if image { 3_u16 } else { 1 }.to_le_bytes());
    header.extend(62_u16.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(if image { HEADER } else { 0 }.to_le_bytes());
    header.extend(sections_at.to_le_bytes());
    header.extend(0_u32.to_le_bytes());
    for half in [64_u16, if image { 56 } else { 0 }, u16::from(image), 64, count, 4] {
        header.extend(half.to_le_bytes());
    }
    if image {
        header.extend(1_u32.to_le_bytes());
        header.extend(5_u32.to_le_bytes());
        // For a library binary without bytes, the file content ends before it.
        let filled = if wrong == Wrong::WithoutBytes { start } else { whole };
        for word in [0, BASE, BASE, filled, whole + 64, 4096] {
            header.extend(word.to_le_bytes());
        }
    }
    bytes[..header.len()].copy_from_slice(&header);
    let verdict = match wrong {
        Wrong::Nothing => Verdict::Whole,
        Wrong::ValueOutside | Wrong::SectionOutside | Wrong::SymbolBeyond => Verdict::Broken("BLOB-52", Kind::Truncated),
        Wrong::WithoutBytes => Verdict::Broken("BLOB-52", Kind::Missing),
        Wrong::SymbolShort | Wrong::HeaderCountsMore => Verdict::Broken("BLOB-53", Kind::Truncated),
        Wrong::SymbolLong => Verdict::Odd("BLOB-54"),
        Wrong::TablesOutside => Verdict::Broken("BLOB-55", Kind::Truncated),
        Wrong::EntrySize => Verdict::Broken("BLOB-55", Kind::Malformed),
        Wrong::NamesOverlap => Verdict::Broken("BLOB-68", Kind::Limit),
    };
    Ok(Elf { bytes, start, address, verdict })
}
