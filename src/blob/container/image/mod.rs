//! Object files of every format as the same tables: areas that have bytes, and symbols that lie in them.
//!
//! Two of the formats come in two widths and two byte orders. These are values here ([`Fields`]), not types: each
//! format is read by one reader.

mod coff;
mod elf;
mod macho;

pub(super) use macho::fat;

use super::rules::BLOB_55;
use super::{Form, Machine};
use crate::rule::{Kind, Violation};
use std::collections::HashSet;
use std::ffi::CStr;

/// What an object file says of itself.
pub(super) struct Image<'a> {
    pub(super) machine: Machine,
    /// The sections, at the numbers by which symbols name them.
    pub(super) sections: Vec<Area>,
    /// What is mapped of an image; empty for a relocatable object file.
    pub(super) segments: Vec<Area>,
    /// The global symbols, each name once: the dynamic table first, then the static one, then the exports of PE.
    pub(super) symbols: Vec<Entry<'a>>,
    seen: HashSet<&'a str>,
    relocatable: bool,
}

/// A section or a segment.
#[derive(Clone, Copy, Default)]
pub(super) struct Area {
    pub(super) address: u64,
    /// In memory, where that may be more than in the file.
    pub(super) size: u64,
    /// Offset and size in the file; `None` where it has no bytes (.bss).
    pub(super) file: Option<(u64, u64)>,
    /// Whether it holds code.
    pub(super) text: bool,
}

/// One symbol, of whichever table.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) place: Defined,
    /// Whether it is code.
    pub(super) text: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defined {
    /// Undefined: somebody else has it.
    Nowhere,
    /// In the section of a relocatable object file.
    Section(usize),
    /// At an address of an image.
    Image,
    /// Defined, but without bytes: common, absolute.
    NoBytes,
}

/// Reads the tables of an object file of this form (BLOB-55).
pub(super) fn read(form: Form, bytes: &[u8]) -> Result<Image<'_>, Violation> {
    let relocatable = matches!(form, Form::ElfObject | Form::MachOObject | Form::CoffObject);
    let mut image = Image {
        machine: Machine {
            architecture: String::new(),
            bits: 32,
            little_endian: true,
        },
        sections: Vec::new(),
        segments: Vec::new(),
        symbols: Vec::new(),
        seen: HashSet::new(),
        relocatable,
    };
    match form {
        Form::ElfShared | Form::ElfExecutable | Form::ElfObject => elf::read(bytes, &mut image)?,
        Form::PeShared | Form::PeExecutable => coff::read_image(bytes, &mut image)?,
        Form::CoffObject => coff::read_object(bytes, &mut image)?,
        _ => macho::read(bytes, &mut image)?,
    }
    Ok(image)
}

impl<'a> Image<'a> {
    fn is_of(&mut self, architecture: &str, wide: bool, little_endian: bool) {
        self.machine = Machine {
            architecture: architecture.to_owned(),
            bits: if wide { 64 } else { 32 },
            little_endian,
        };
    }

    /// Where a symbol lies that is defined in section `number`.
    fn inside(&self, number: u64) -> Defined {
        if self.relocatable {
            Defined::Section(usize::try_from(number).unwrap_or(usize::MAX))
        } else {
            Defined::Image
        }
    }

    fn is_text(&self, number: u64) -> bool {
        let section = usize::try_from(number)
            .ok()
            .and_then(|number| self.sections.get(number));
        section.is_some_and(|section| section.text)
    }

    /// Adds a symbol, unless there is one of that name, or it has none.
    fn add(&mut self, entry: Entry<'a>) {
        if !entry.name.is_empty() && self.seen.insert(entry.name) {
            self.symbols.push(entry);
        }
    }
}

/// A part of an object file, whose numbers are read in its byte order.
#[derive(Clone, Copy, Default)]
struct Fields<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    /// Whether addresses take 8 bytes.
    wide: bool,
}

impl<'a> Fields<'a> {
    /// The `size` bytes at `start`, if all are there.
    fn part(self, start: u64, size: u64) -> Option<Fields<'a>> {
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        let bytes = self.bytes.get(start..end)?;
        Some(Fields { bytes, ..self })
    }

    /// The `count` records of `size` bytes from `start` on, if all are there.
    fn table(
        self,
        start: u64,
        count: u64,
        size: u64,
    ) -> Option<impl Iterator<Item = Fields<'a>> + Clone> {
        let part = self.part(start, count.checked_mul(size)?)?;
        let records = part.bytes.chunks_exact(usize::try_from(size).ok()?);
        Some(records.map(move |bytes| Fields { bytes, ..self }))
    }

    /// The number of `size` bytes, 8 at most, at `at`; 0 where there is none.
    fn number(self, at: u64, size: u64) -> u64 {
        let field = self.part(at, size).unwrap_or_default().bytes;
        let add = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
        if self.big_endian {
            field.iter().fold(0, add)
        } else {
            field.iter().rev().fold(0, add)
        }
    }

    fn u16(self, at: u64) -> u64 {
        self.number(at, 2)
    }

    fn u32(self, at: u64) -> u64 {
        self.number(at, 4)
    }

    /// Where a field stands: at the first offset in a file of 32 bits, at the second in one of 64.
    fn at(self, narrow: u64, wide: u64) -> u64 {
        if self.wide { wide } else { narrow }
    }

    /// The address or size that takes as many bytes as addresses do.
    fn word(self, narrow: u64, wide: u64) -> u64 {
        self.number(self.at(narrow, wide), self.at(4, 8))
    }

    /// The text from `at` up to the next zero byte; empty where it is no text.
    fn text(self, at: u64) -> &'a str {
        let rest = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let text = rest.and_then(|rest| CStr::from_bytes_until_nul(rest).ok());
        text.and_then(|text| text.to_str().ok()).unwrap_or_default()
    }
}

#[cold]
fn damaged(what: &str) -> Violation {
    BLOB_55.broken(
        Kind::Malformed,
        0,
        format!("cannot be read as an object file: {what} outside the file or of a wrong form"),
    )
}
