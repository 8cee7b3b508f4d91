//! ELF.

use super::super::rules::BLOB_55;
use super::{Area, Defined, Entry, Fields, Image, damaged};
use crate::rule::{Kind, Violation};

const SHT_PROGBITS: u64 = 1;
const SHT_SYMTAB: u64 = 2;
const SHT_STRTAB: u64 = 3;
const SHT_NOBITS: u64 = 8;
const SHT_DYNSYM: u64 = 11;
const SHT_SYMTAB_SHNDX: u64 = 18;
/// `SHF_ALLOC` and `SHF_EXECINSTR`.
const SHF_CODE: u64 = 6;
const PT_LOAD: u64 = 1;
const PN_XNUM: u64 = 0xffff;
const SHN_LORESERVE: u64 = 0xff00;
const SHN_COMMON: u64 = 0xfff2;
const SHN_XINDEX: u64 = 0xffff;
const STB_LOCAL: u64 = 0;
const STT_OBJECT: u64 = 1;
const STT_FUNC: u64 = 2;
const STT_TLS: u64 = 6;
const STT_GNU_IFUNC: u64 = 10;

/// `e_machine`, the bits of the class where they matter, and the name.
const MACHINES: &[(u64, u8, &str)] = &[
    (2, 32, "sparc"),
    (3, 0, "i386"),
    (4, 32, "m68k"),
    (8, 64, "mips64"),
    (8, 32, "mips"),
    (15, 0, "hppa"),
    (18, 32, "sparc32plus"),
    (20, 0, "powerpc"),
    (21, 0, "powerpc64"),
    (22, 64, "s390x"),
    (40, 0, "arm"),
    (42, 32, "superh"),
    (43, 64, "sparc64"),
    (50, 0, "ia64"),
    (62, 64, "x86_64"),
    (62, 32, "x86_64_x32"),
    (83, 0, "avr"),
    (94, 32, "xtensa"),
    (105, 0, "msp430"),
    (133, 32, "sharc"),
    (164, 0, "hexagon"),
    (175, 32, "e2k32"),
    (175, 64, "e2k64"),
    (183, 64, "aarch64"),
    (183, 32, "aarch64_ilp32"),
    (243, 32, "riscv32"),
    (243, 64, "riscv64"),
    (247, 0, "bpf"),
    (252, 0, "csky"),
    (258, 32, "loongarch32"),
    (258, 64, "loongarch64"),
    (263, 0, "sbf"),
    (0x9026, 64, "alpha"),
];

pub(super) fn read<'a>(bytes: &'a [u8], image: &mut Image<'a>) -> Result<(), Violation> {
    let file = Fields {
        bytes,
        big_endian: bytes.get(5) == Some(&2),
        wide: bytes.get(4) == Some(&2),
    };
    tables(file)?;
    let ident = (file.number(4, 1), file.number(5, 1), file.number(6, 1));
    if !matches!(ident, (1 | 2, 1 | 2, 1)) {
        return Err(damaged("its identification is"));
    }
    let machine = file.u16(18);
    let named = MACHINES
        .iter()
        .find(|(number, bits, _)| *number == machine && (*bits == 0 || (*bits == 64) == file.wide));
    let name = named.map_or("unknown", |(.., name)| name);
    image.is_of(name, file.wide, !file.big_endian);
    let sections = sections(file)?;
    if let Some(first) = sections.first() {
        let names = match file.u16(file.at(50, 62)) {
            SHN_XINDEX => link(first),
            number => number,
        };
        if names == 0 || names >= sections.len() as u64 {
            return Err(damaged("the names of its sections are"));
        }
    }
    for section in &sections {
        let (kind, size) = (section.u32(4), section.word(20, 32));
        let flags = section.word(8, 8);
        image.sections.push(Area {
            address: section.word(12, 16),
            size,
            file: (kind != SHT_NOBITS).then_some((section.word(16, 24), size)),
            text: kind == SHT_PROGBITS && flags & SHF_CODE == SHF_CODE,
        });
    }
    for segment in segments(file, sections.first())? {
        if segment.u32(0) == PT_LOAD {
            image.segments.push(Area {
                address: segment.word(8, 16),
                size: segment.word(20, 40),
                file: Some((segment.word(4, 8), segment.word(16, 32))),
                text: false,
            });
        }
    }
    for kind in [SHT_DYNSYM, SHT_SYMTAB] {
        if let Some(at) = sections.iter().position(|section| section.u32(4) == kind) {
            symbols(file, &sections, at, image)?;
        }
    }
    Ok(())
}

/// Whether the program and section header tables lie inside the file: the usual mark of a download that broke off.
fn tables(file: Fields<'_>) -> Result<(), Violation> {
    let length = file.bytes.len() as u64;
    if length < file.at(52, 64) {
        let message = "the file ends inside its ELF header";
        return Err(BLOB_55.broken(Kind::Truncated, length, message));
    }
    for (offset, size) in [(file.word(28, 32), 42), (file.word(32, 40), 46)] {
        let size = file.at(size, size.saturating_add(12));
        let count = file.u16(size.saturating_add(2));
        let end = offset.saturating_add(file.u16(size).saturating_mul(count));
        BLOB_55.require_as(Kind::Truncated, end <= length, offset, || {
            format!("the ELF header puts a table at {offset:#x} to {end:#x}, the file has {length:#x} bytes")
        })?;
    }
    Ok(())
}

/// The section headers. A count that 16 bits cannot hold stands in the first of them.
fn sections(file: Fields<'_>) -> Result<Vec<Fields<'_>>, Violation> {
    let (start, size) = (file.word(32, 40), file.at(40, 64));
    let count = match file.u16(file.at(48, 60)) {
        0 if start > 0 => {
            let first = file.part(start, size);
            first
                .ok_or_else(|| damaged("a section header is"))?
                .word(20, 32)
        }
        count => count,
    };
    headers(file, start, count, size, file.at(46, 58))
}

/// The program headers, whose count may stand in the first section header.
fn segments<'a>(
    file: Fields<'a>,
    first: Option<&Fields<'a>>,
) -> Result<Vec<Fields<'a>>, Violation> {
    let count = match (file.u16(file.at(44, 56)), first) {
        (PN_XNUM, Some(first)) => first.u32(first.at(28, 44)),
        (count, _) => count,
    };
    headers(
        file,
        file.word(28, 32),
        count,
        file.at(32, 56),
        file.at(42, 54),
    )
}

/// `count` headers of `size` bytes, which must be what stands at `said`; none where the table is at 0.
fn headers(
    file: Fields<'_>,
    start: u64,
    count: u64,
    size: u64,
    said: u64,
) -> Result<Vec<Fields<'_>>, Violation> {
    if start == 0 || count == 0 {
        return Ok(Vec::new());
    }
    let headers = file.table(start, count, size);
    let headers = headers.filter(|_| file.u16(said) == size);
    Ok(headers
        .ok_or_else(|| damaged("a table of headers is"))?
        .collect())
}

fn content<'a>(file: Fields<'a>, section: &Fields<'_>) -> Option<Fields<'a>> {
    file.part(section.word(16, 24), section.word(20, 32))
}

fn link(section: &Fields<'_>) -> u64 {
    section.u32(section.at(24, 40))
}

/// The texts in section `number`, none where they lie outside the file.
fn names<'a>(
    file: Fields<'a>,
    sections: &[Fields<'a>],
    number: u64,
) -> Result<Fields<'a>, Violation> {
    let section = usize::try_from(number).ok().and_then(|at| sections.get(at));
    let section = section.filter(|section| section.u32(4) == SHT_STRTAB);
    let section = section.ok_or_else(|| damaged("a table of names is"))?;
    Ok(content(file, section).unwrap_or_default())
}

/// The global symbols of the table in section `at`.
fn symbols<'a>(
    file: Fields<'a>,
    sections: &[Fields<'a>],
    at: usize,
    image: &mut Image<'a>,
) -> Result<(), Violation> {
    let table = sections.get(at).copied().unwrap_or_default();
    let extended = sections
        .iter()
        .filter(|section| section.u32(4) == SHT_SYMTAB_SHNDX)
        .find(|section| link(section) == at as u64);
    let extended = match extended {
        Some(section) => content(file, section).ok_or_else(|| damaged("a table of numbers is"))?,
        None => Fields::default(),
    };
    let names = match link(&table) {
        0 => Fields::default(),
        number => names(file, sections, number)?,
    };
    let (start, size, record) = (table.word(16, 24), table.word(20, 32), file.at(16, 24));
    let count = size.checked_div(record).unwrap_or(0);
    let symbols = file
        .table(start, count, record)
        .filter(|_| size.is_multiple_of(record))
        .ok_or_else(|| damaged("a table of symbols is"))?;
    for (index, symbol) in symbols.enumerate() {
        let info = symbol.number(symbol.at(12, 4), 1);
        if info >> 4 == STB_LOCAL {
            continue;
        }
        let number = symbol.u16(symbol.at(14, 6));
        let section = match number {
            SHN_XINDEX => extended.u32((index as u64).saturating_mul(4)),
            SHN_LORESERVE.. => 0,
            section => section,
        };
        image.add(Entry {
            name: names.text(symbol.u32(0)),
            // Of a common symbol the value is the alignment.
            address: if number == SHN_COMMON {
                0
            } else {
                symbol.word(4, 8)
            },
            size: symbol.word(8, 16),
            place: match section {
                0 if number >= SHN_LORESERVE => Defined::NoBytes,
                0 => Defined::Nowhere,
                section => image.inside(section),
            },
            text: match info & 15 {
                STT_FUNC | STT_GNU_IFUNC => true,
                STT_OBJECT..=STT_TLS => false,
                // Labels of assembly do not say what they are; the section does.
                _ => image.is_text(section),
            },
        });
    }
    Ok(())
}
