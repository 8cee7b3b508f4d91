//! What the dynamic loader of an ELF system reads before TVM reads anything: program headers, the dynamic section, symbols,
//! hash tables, relocations, initializers.
//!
//! Nothing is executed. Each table is read at the address at which the dynamic loader reads it, and is held against the others:
//! the section headers, the hash tables and the static symbols say much of it twice. What is *not* looked at: instructions
//! (those of initializers too), data without relocations, unwind tables, and which versions of functions other libraries
//! define.
//!
//! The work is bounded by the size of the file: each byte of it is in one segment, each table is read once, and names up to a
//! fixed number of bytes.

mod dynamic;
mod names;
mod relocations;
mod sections;
mod symbols;

use super::Stop;
use dynamic::Dynamic;

/// How much of a file its reading looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// At everything that a dynamic loader reads of a 64-bit ELF library.
    Tables,
    /// At none of it: another format, or 32 bits.
    Nothing,
}

impl Looked {
    /// What "loads" rests on, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Looked::Tables => {
                "the ELF tables that the dynamic loader reads (program headers, dynamic section, symbols, hash tables, relocations, initializers) and the library binary; not the instructions, nor data without relocations"
            }
            Looked::Nothing => {
                "symbols and the library binary; not the other tables that the system's loader reads, nor the instructions"
            }
        }
    }
}

/// Reads what the dynamic loader reads of `bytes`.
///
/// # Errors
///
/// [`Stop::Refuses`] where every dynamic loader ends in an error, [`Stop::Unknown`] where a table contradicts itself or another.
pub fn tables(bytes: &[u8]) -> Result<Looked, Stop> {
    if !bytes.starts_with(b"\x7fELF\x02") {
        return Ok(Looked::Nothing);
    }
    let image = Image::read(bytes)?;
    let dynamic = Dynamic::read(&image)?;
    sections::check(&image, &dynamic)?;
    let symbols = symbols::read(&image, &dynamic)?;
    relocations::check(&image, &dynamic, &symbols)?;
    Ok(Looked::Tables)
}

/// The names of the functions and objects that a 64-bit ELF library leaves to others and cannot do without.
///
/// Empty for a file whose [`tables`] contradict each other.
pub fn wanted(bytes: &[u8]) -> Vec<&[u8]> {
    named(bytes, |symbol| {
        !symbol.defined && !symbol.weak && symbol.index > 0
    })
}

/// The names that a 64-bit ELF library defines for others.
pub fn defined(bytes: &[u8]) -> Vec<&[u8]> {
    named(bytes, |symbol| symbol.defined && symbol.global)
}

fn named(bytes: &[u8], keep: impl Fn(&symbols::ListedSymbol<'_>) -> bool) -> Vec<&[u8]> {
    let names = || {
        let image = Image::read(bytes).ok()?;
        let dynamic = Dynamic::read(&image).ok()?;
        let symbols = symbols::list(&image, &dynamic).ok()?;
        let kept = symbols.iter().filter(|symbol| keep(symbol));
        Some(kept.map(|symbol| symbol.name).collect())
    };
    names().unwrap_or_else(Vec::new)
}

/// A 64-bit ELF file and what of it is mapped.
struct Image<'a> {
    bytes: &'a [u8],
    big: bool,
    machine: u16,
    segments: Vec<Segment>,
    /// The address and size of the dynamic section.
    dynamic: (u64, u64),
}

/// A program header.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    /// Bytes in the file.
    filled: u64,
    /// Bytes in memory.
    size: u64,
    align: u64,
}

impl Segment {
    /// Whether bytes of the file are in both: then what is read of a file could be many times its size.
    const fn shares(&self, other: &Segment) -> bool {
        let ends = (
            self.offset.saturating_add(self.filled),
            other.offset.saturating_add(other.filled),
        );
        self.filled > 0 && other.filled > 0 && self.offset < ends.1 && other.offset < ends.0
    }
}

const PAGE: u64 = 4096;
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTE: u32 = 4;
const PHDR: u32 = 6;
const TLS: u32 = 7;
const STACK: u32 = 0x6474_e551;
const RELRO: u32 = 0x6474_e552;
const PROPERTY: u32 = 0x6474_e553;

const EXECUTES: u32 = 1;
const WRITES: u32 = 2;
const READS: u32 = 4;

/// More than any linker writes; an index into them is cheap.
const MOST_SEGMENTS: u16 = 64;

/// No library is larger in memory.
const MOST_MEMORY: u64 = 1 << 36;

impl<'a> Image<'a> {
    fn read(bytes: &'a [u8]) -> Result<Image<'a>, Stop> {
        let big = bytes.get(5) == Some(&2);
        let mut image = Image {
            bytes,
            big,
            machine: 0,
            segments: Vec::new(),
            dynamic: (0, 0),
        };
        image.header()?;
        image.loads()?;
        image.dynamic = image.dynamic_section()?;
        image.others()?;
        Ok(image)
    }

    /// The address and size of the one dynamic section.
    fn dynamic_section(&self) -> Result<(u64, u64), Stop> {
        let mut sections = self.of(DYNAMIC);
        let section = sections.next();
        let section = section.ok_or_else(|| refuses("it has no dynamic section"))?;
        if sections.next().is_some() {
            return Err(unknown("it has two dynamic sections"));
        }
        let place = (section.address, section.size);
        let offset = self.offset(section.address, section.size);
        if offset != Some(section.offset) || section.filled != section.size {
            return Err(unknown("its dynamic section is not where its segments are"));
        }
        let writes = self.segment(place.0, place.1).map(|at| at.flags & WRITES);
        if writes != Some(section.flags & WRITES) {
            return Err(unknown(
                "the flags of its dynamic section are not those of its segment",
            ));
        }
        Ok(place)
    }

    /// The ELF header.
    fn header(&mut self) -> Result<(), Stop> {
        let ident = self.bytes.get(..16).unwrap_or_default();
        let [_, _, _, _, _, order, version, system, rest @ ..] = ident else {
            return Err(refuses("its header is not whole"));
        };
        if !matches!(order, 1 | 2) || *version != 1 || self.u32(20) != Some(1) {
            return Err(refuses("its ELF header is of no known version"));
        }
        if !matches!(system, 0 | 3) || rest.iter().any(|byte| *byte != 0) {
            return Err(unknown("its ELF header names a system of its own"));
        }
        let header = || {
            let kind = self.u16(16)?;
            let (machine, table) = (self.u16(18)?, self.u64(32)?);
            Some((kind, machine, table, self.u16(54)?, self.u16(56)?))
        };
        let (kind, machine, table, size, count) =
            header().ok_or_else(|| refuses("its header is not whole"))?;
        if kind != 3 {
            return Err(refuses("it is not a shared object"));
        }
        if size != 56 {
            return Err(refuses(
                "its program headers are not of the size of program headers",
            ));
        }
        if count > MOST_SEGMENTS {
            return Err(unknown(
                "it has more program headers than any linker writes",
            ));
        }
        self.machine = machine;
        for index in 0..u64::from(count) {
            let at = table.saturating_add(index.saturating_mul(56));
            let segment = self.program_header(at);
            let segment =
                segment.ok_or_else(|| unknown("its program headers end behind the file"))?;
            self.segments.push(segment);
        }
        for segment in self.of(PHDR) {
            let length = u64::from(count).saturating_mul(56);
            if self.offset(segment.address, length) != Some(table) {
                return Err(unknown("its program headers are not mapped where they say"));
            }
        }
        Ok(())
    }

    fn program_header(&self, at: u64) -> Option<Segment> {
        let word = |index: u64| self.u64(at.checked_add(index)?);
        Some(Segment {
            kind: self.u32(at)?,
            flags: self.u32(at.checked_add(4)?)?,
            offset: word(8)?,
            address: word(16)?,
            filled: word(32)?,
            size: word(40)?,
            align: word(48)?,
        })
    }

    /// The segments that are mapped: inside the file, ascending, congruent to their places in it, on pages of their own.
    fn loads(&self) -> Result<(), Stop> {
        let mut end = None;
        for segment in self.of(LOAD) {
            let Segment {
                offset,
                address,
                filled,
                size,
                align,
                flags,
                ..
            } = *segment;
            let fault = if !align.is_power_of_two() || !(PAGE..=1 << 30).contains(&align) {
                "is aligned to no number of pages"
            } else if address & (align.wrapping_sub(1)) != offset & (align.wrapping_sub(1)) {
                "lies in memory and in the file at places that no page has in common"
            } else if offset
                .checked_add(filled)
                .is_none_or(|end| end > self.bytes.len() as u64)
            {
                "ends behind the file"
            } else if filled > size || (filled < size && flags & WRITES == 0) {
                "has another size in memory than its kind has"
            } else if address
                .checked_add(size)
                .is_none_or(|end| end > MOST_MEMORY)
            {
                "is larger than any library"
            } else if flags & READS == 0 || flags & !(READS | WRITES | EXECUTES) != 0 {
                "has flags that no linker gives"
            } else if end.is_some_and(|end| floor(address) < end) {
                "overlaps the one before"
            } else if self.of(LOAD).filter(|other| other.shares(segment)).count() > 1 {
                "has bytes of the file that another has too"
            } else {
                end = Some(ceiling(address.saturating_add(size)));
                continue;
            };
            return Err(unknown(&format!(
                "the segment at address {address:#x} {fault}"
            )));
        }
        end.map(|_| ())
            .ok_or_else(|| refuses("it has no segment to load"))
    }

    /// The program headers that speak of what is mapped.
    fn others(&self) -> Result<(), Stop> {
        let wrong = |what: &str| Err(unknown(what));
        for segment in &self.segments {
            let inside = self.offset(segment.address, segment.filled) == Some(segment.offset);
            match segment.kind {
                NOTE | PROPERTY if !inside || segment.filled != segment.size => {
                    return wrong("a note is not where its segments are");
                }
                TLS if !(segment.filled == 0 || inside)
                    || segment.filled > segment.size
                    || segment.size > 1 << 20
                    || !segment.align.is_power_of_two()
                    || segment.align > PAGE =>
                {
                    return wrong("its thread-local data is not where its segments are");
                }
                STACK if segment.flags & EXECUTES != 0 => {
                    return wrong(
                        "it asks for a stack that can be executed, which not every system grants",
                    );
                }
                RELRO if !self.protects(segment) => {
                    return wrong(
                        "what it wants protected after relocation is not where its data is",
                    );
                }
                _ => {}
            }
        }
        // Without it the stack is made executable, on some machines, where that is allowed.
        match self.of(STACK).count() {
            1 => Ok(()),
            _ => wrong("it does not say once what stack it needs"),
        }
    }

    /// Whether a protected range is a plain one: it begins with the data segment and ends with a page.
    fn protects(&self, range: &Segment) -> bool {
        let mut loads = self.of(LOAD);
        let end = range.address.saturating_add(range.size);
        loads.any(|load| {
            let last = ceiling(load.address.saturating_add(load.size));
            load.flags & WRITES != 0
                && range.address == load.address
                && end <= last
                && end.is_multiple_of(PAGE)
        })
    }

    /// Whether a word at `address` is made read-only after relocation.
    fn is_protected(&self, address: u64) -> bool {
        let covers = |range: &Segment| {
            let end = floor(range.address.saturating_add(range.size));
            (floor(range.address)..end).contains(&address)
        };
        self.of(RELRO).any(covers)
    }

    fn of(&self, kind: u32) -> impl Iterator<Item = &Segment> {
        self.segments
            .iter()
            .filter(move |segment| segment.kind == kind)
    }

    /// The loaded segment that has all of `length` bytes at `address` in memory.
    fn segment(&self, address: u64, length: u64) -> Option<&Segment> {
        let end = address.checked_add(length)?;
        self.of(LOAD)
            .find(|load| load.address <= address && end <= load.address.saturating_add(load.size))
    }

    /// Where in the file the `length` bytes at `address` are; `None` where not all of them are in one loaded segment.
    fn offset(&self, address: u64, length: u64) -> Option<u64> {
        let load = self.segment(address, length)?;
        let inside = address.checked_sub(load.address)?;
        let end = inside.checked_add(length)?;
        (end <= load.filled).then(|| load.offset.saturating_add(inside))
    }

    fn has_flags(&self, address: u64, length: u64, flags: u32) -> bool {
        let segment = self.segment(address, length);
        segment.is_some_and(|segment| segment.flags & flags == flags)
    }

    /// The bytes of the file behind an address.
    fn at(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset(address, length)?).ok()?;
        self.bytes
            .get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }

    fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let rest = self.bytes.get(usize::try_from(offset).ok()?..)?;
        rest.first_chunk().copied()
    }

    fn u16(&self, offset: u64) -> Option<u16> {
        let bytes = self.array(offset)?;
        Some(if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    fn u32(&self, offset: u64) -> Option<u32> {
        let bytes = self.array(offset)?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    fn u64(&self, offset: u64) -> Option<u64> {
        let bytes = self.array(offset)?;
        Some(if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }
}

const fn floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

const fn ceiling(address: u64) -> u64 {
    floor(address.saturating_add(PAGE - 1))
}

fn unknown(why: &str) -> Stop {
    Stop::Unknown(format!(
        "the dynamic loader comes first, and it is not known what that does: {why}"
    ))
}

fn refuses(why: &str) -> Stop {
    Stop::Refuses(format!("the dynamic loader does not open it: {why}"))
}
