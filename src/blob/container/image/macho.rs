//! Mach-O.

use super::{Area, Defined, Entry, Fields, Image, damaged};
use crate::rule::Violation;

const LC_SEGMENT: u64 = 1;
const LC_SEGMENT_64: u64 = 0x19;
const LC_SYMTAB: u64 = 2;
const S_ZEROFILL: u64 = 1;
const S_SYMBOL_STUBS: u64 = 8;
const S_GB_ZEROFILL: u64 = 0xc;
const S_THREAD_LOCAL_ZEROFILL: u64 = 0x12;
const S_ATTR_DEBUG: u64 = 0x0200_0000;
/// `S_ATTR_PURE_INSTRUCTIONS` and `S_ATTR_SOME_INSTRUCTIONS`.
const S_ATTR_CODE: u64 = 0x8000_0400;
const N_STAB: u64 = 0xe0;
const N_TYPE: u64 = 0xe;
const N_UNDF: u64 = 0;
const N_SECT: u64 = 0xe;
const N_EXT: u64 = 1;

/// The name of a machine by its `cputype`.
fn machine(cputype: u64) -> &'static str {
    match cputype {
        7 => "i386",
        8 => "mips",
        12 => "arm",
        18 => "powerpc",
        0x0100_0007 => "x86_64",
        0x0100_000c => "aarch64",
        0x0100_0012 => "powerpc64",
        0x0200_000c => "aarch64_ilp32",
        _ => "unknown",
    }
}

/// What a file for several machines holds for each: its name, offset and size; `None` where the list is cut off.
pub(in super::super) fn fat(bytes: &[u8]) -> Option<Vec<(&'static str, u64, u64)>> {
    let file = Fields {
        bytes,
        big_endian: true,
        wide: bytes.get(3) == Some(&0xbf),
    };
    let machines = file.table(8, file.u32(4), file.at(20, 32))?;
    let one = |one: Fields<'_>| (machine(one.u32(0)), one.word(8, 8), one.word(12, 16));
    Some(machines.map(one).collect())
}

pub(super) fn read<'a>(bytes: &'a [u8], image: &mut Image<'a>) -> Result<(), Violation> {
    let magic = |at| bytes.get(at).copied().unwrap_or(0);
    let file = Fields {
        bytes,
        big_endian: magic(0) == 0xfe,
        wide: magic(0) == 0xcf || magic(3) == 0xcf,
    };
    let header = file.at(28, 32);
    if file.part(0, header).is_none() {
        return Err(damaged("its header is"));
    }
    image.is_of(machine(file.u32(4)), file.wide, !file.big_endian);
    // Numbers of sections start at 1.
    image.sections.push(Area::default());
    let mut table = None;
    let mut commands = file.part(header, file.u32(20)).unwrap_or_default();
    for _ in 0..file.u32(16) {
        let size = commands.u32(4);
        let Some(command) = commands.part(0, size).filter(|_| size >= 8) else {
            break;
        };
        match (command.u32(0), file.wide) {
            (LC_SEGMENT, false) | (LC_SEGMENT_64, true) => segment(command, image)?,
            (LC_SYMTAB, _) => table = Some(command),
            _ => {}
        }
        let rest = (commands.bytes.len() as u64).saturating_sub(size);
        commands = commands.part(size, rest).unwrap_or_default();
    }
    table.map_or(Ok(()), |table| symbols(file, table, image))
}

/// A segment and its sections.
fn segment<'a>(command: Fields<'a>, image: &mut Image<'a>) -> Result<(), Violation> {
    let (header, size) = (command.at(56, 72), command.at(68, 80));
    let sections = command.table(header, command.u32(command.at(48, 64)), size);
    let sections = sections.ok_or_else(|| damaged("its sections are"))?;
    image.segments.push(Area {
        address: command.word(24, 24),
        size: command.word(28, 32),
        file: Some((command.word(32, 40), command.word(36, 48))),
        text: false,
    });
    for section in sections {
        let flags = section.u32(section.at(56, 64));
        let kind = flags & 0xff;
        let size = section.word(36, 40);
        let filled = !matches!(kind, S_ZEROFILL | S_GB_ZEROFILL | S_THREAD_LOCAL_ZEROFILL);
        image.sections.push(Area {
            address: section.word(32, 32),
            size,
            file: filled.then_some((section.u32(section.at(40, 48)), size)),
            text: (kind == S_SYMBOL_STUBS || flags & S_ATTR_CODE != 0) && flags & S_ATTR_DEBUG == 0,
        });
    }
    Ok(())
}

fn symbols<'a>(
    file: Fields<'a>,
    table: Fields<'a>,
    image: &mut Image<'a>,
) -> Result<(), Violation> {
    let names = file.part(table.u32(16), table.u32(20)).unwrap_or_default();
    let symbols = file.table(table.u32(8), table.u32(12), file.at(12, 16));
    for symbol in symbols.ok_or_else(|| damaged("its symbol table is"))? {
        let kind = symbol.number(4, 1);
        let section = symbol.number(5, 1);
        let value = symbol.word(8, 8);
        let place = match (kind & N_TYPE, value) {
            (N_UNDF, 0) => Defined::Nowhere,
            (N_SECT, _) if section > 0 => image.inside(section),
            _ => Defined::NoBytes,
        };
        let local = kind & N_EXT == 0 && place != Defined::Nowhere;
        if kind & N_STAB != 0 || local {
            continue;
        }
        // Of a common symbol the value is the size.
        let (address, size) = match kind & N_TYPE {
            N_UNDF => (0, value),
            _ => (value, 0),
        };
        let name = names.text(symbol.u32(0));
        image.add(Entry {
            // Mach-O puts an underscore before every name.
            name: name.strip_prefix('_').unwrap_or(name),
            address,
            size,
            place,
            text: kind & N_TYPE == N_SECT && image.is_text(section),
        });
    }
    Ok(())
}
