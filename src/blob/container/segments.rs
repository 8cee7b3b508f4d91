//! The segments of an ELF image that the system's loader maps.

use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, FileKind, elf};

/// Returns a message if a segment of an ELF image ends after the end of the file, which breaks BLOB-55. Returns `None` for any other
/// file.
///
/// The system's loader maps such an image without an error. The first access to a page after the end of the file then ends the process
/// (SIGBUS).
///
/// `head` is the beginning of the file, with the program headers in it, and `length` is the length of the whole file.
pub(crate) fn cut_segment(head: &[u8], length: u64) -> Option<String> {
    match FileKind::parse(head).ok()? {
        FileKind::Elf32 => of_elf::<elf::FileHeader32<Endianness>>(head, length),
        FileKind::Elf64 => of_elf::<elf::FileHeader64<Endianness>>(head, length),
        _ => None,
    }
}

fn of_elf<E: FileHeader<Endian = Endianness>>(head: &[u8], length: u64) -> Option<String> {
    let header = E::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head).ok()?;
    let mapped = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let (start, end) = mapped
        .map(|segment| {
            let start: u64 = segment.p_offset(endian).into();
            (start, start.saturating_add(segment.p_filesz(endian).into()))
        })
        .find(|(_, end)| *end > length)?;
    Some(format!(
        "a segment is at {start:#x} to {end:#x}, the file has {length:#x} bytes"
    ))
}
