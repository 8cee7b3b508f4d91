//! An ELF file as the dynamic loader maps it: its header, its program headers, and bytes by their address.

use super::{Stop, rejects, unknown};

/// A 64-bit ELF file and what of it is mapped.
pub(super) struct Image<'a> {
    /// The whole file.
    pub(super) bytes: &'a [u8],
    /// Whether its numbers are big-endian.
    pub(super) big: bool,
    /// `e_machine`, by which types of relocations are known.
    pub(super) machine: u16,
    /// All program headers, in the order of the file.
    pub(super) segments: Vec<Segment>,
    /// The address and size of the dynamic section.
    pub(super) dynamic: (u64, u64),
}

/// A program header.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// `p_type`.
    pub(super) kind: u32,
    /// `p_flags`: [`EXECUTES`], [`WRITES`], `READS`.
    pub(super) flags: u32,
    /// `p_offset`: where its bytes start in the file.
    pub(super) offset: u64,
    /// `p_vaddr`: where they are in memory, counted from where the library is mapped.
    pub(super) address: u64,
    /// `p_filesz`: bytes in the file.
    pub(super) filled: u64,
    /// `p_memsz`: bytes in memory. Those beyond `filled` are 0.
    pub(super) size: u64,
    /// `p_align`, in bytes.
    pub(super) align: u64,
}

impl Segment {
    /// Whether bytes of the file are in both: then what is read of a file could be many times its size.
    ///
    /// A segment shares with itself.
    const fn shares(&self, other: &Segment) -> bool {
        let ends = (
            self.offset.saturating_add(self.filled),
            other.offset.saturating_add(other.filled),
        );
        self.filled > 0 && other.filled > 0 && self.offset < ends.1 && other.offset < ends.0
    }
}

/// The smallest page of the machines that TVM compiles for. Where pages are larger, linkers align to those.
const PAGE: u64 = 4096;
/// `PT_LOAD`: bytes that are mapped.
pub(super) const LOAD: u32 = 1;
/// `PT_DYNAMIC`: the dynamic section.
const DYNAMIC: u32 = 2;
/// `PT_NOTE`: notes of the linker.
const NOTE: u32 = 4;
/// `PT_PHDR`: the program headers themselves.
const PHDR: u32 = 6;
/// `PT_TLS`: what thread-local data starts as.
pub(super) const TLS: u32 = 7;
/// `PT_GNU_STACK`: whether the stack is executable, by its flags.
const STACK: u32 = 0x6474_e551;
/// `PT_GNU_RELRO`: what is made read-only once it is relocated.
const RELRO: u32 = 0x6474_e552;
/// `PT_GNU_PROPERTY`: a note on what the processor has to support.
const PROPERTY: u32 = 0x6474_e553;

/// `PF_X`, `PF_W`, `PF_R` of a program header.
pub(super) const EXECUTES: u32 = 1;
pub(super) const WRITES: u32 = 2;
const READS: u32 = 4;

/// More than any linker writes; an index into them is cheap.
const MOST_SEGMENTS: u16 = 64;

/// No library is larger in memory, in bytes.
const MOST_MEMORY: u64 = 1 << 36;

impl<'a> Image<'a> {
    /// Reads the header and the program headers of `bytes`.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Image<'a>, Stop> {
        // EI_DATA is needed before any number is read; `header` rejects values other than 1 and 2.
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
        let section = section.ok_or_else(|| rejects("it has no dynamic section"))?;
        if sections.next().is_some() {
            return Err(unknown("it has two dynamic sections"));
        }
        let place = (section.address, section.size);
        // A loader reads the section in memory, tools read it in the file: both have to be the same bytes.
        let offset = self.offset(section.address, section.size);
        if offset != Some(section.offset) || section.filled != section.size {
            return Err(unknown("its dynamic section is not where its segments are"));
        }
        // glibc writes relocated addresses into the section, unless the flags of this header say that it is read-only.
        let writes = self.segment(place.0, place.1).map(|at| at.flags & WRITES);
        if writes != Some(section.flags & WRITES) {
            return Err(unknown(
                "the flags of its dynamic section are not those of its segment",
            ));
        }
        Ok(place)
    }

    /// Reads the ELF header, with the machine and the program headers.
    fn header(&mut self) -> Result<(), Stop> {
        let ident = self.bytes.get(..16).unwrap_or_default();
        let [_, _, _, _, _, order, version, system, rest @ ..] = ident else {
            return Err(rejects("its header is not whole"));
        };
        // EI_DATA, EI_VERSION and e_version.
        if !matches!(order, 1 | 2) || *version != 1 || self.u32(20) != Some(1) {
            return Err(rejects("its ELF header is of no known version"));
        }
        // System V and GNU. glibc and musl differ in what they make of other systems and of bytes in the padding.
        if !matches!(system, 0 | 3) || rest.iter().any(|byte| *byte != 0) {
            return Err(unknown("its ELF header names a system of its own"));
        }
        let header = || {
            let kind = self.u16(16)?;
            let (machine, table) = (self.u16(18)?, self.u64(32)?);
            Some((kind, machine, table, self.u16(54)?, self.u16(56)?))
        };
        let (kind, machine, table, size, count) =
            header().ok_or_else(|| rejects("its header is not whole"))?;
        // ET_DYN. A fixed-address program (ET_EXEC) is none that `dlopen` takes.
        if kind != 3 {
            return Err(rejects("it is not a shared object"));
        }
        // e_phentsize: glibc compares it with its own struct, and does not step by it.
        if size != 56 {
            return Err(rejects(
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
        // The header of the headers is checked against the table that was just read: loaders use one or the other.
        for segment in self.of(PHDR) {
            let length = u64::from(count).saturating_mul(56);
            if self.offset(segment.address, length) != Some(table) {
                return Err(unknown(
                    "its program headers are not mapped where they state",
                ));
            }
        }
        Ok(())
    }

    /// The program header at offset `at`; `None` where the file ends in it.
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
        // The ABI has segments ascend by their addresses, and glibc reserves memory from the first to the last.
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
            // glibc checks alignment and congruence and trusts the rest: it maps what the headers state, over what was mapped
            // before, and past the end of the file, where the first access ends the process.
            let fault = if !align.is_power_of_two() || !(PAGE..=1 << 30).contains(&align) {
                "is aligned to no number of pages"
            } else if address & (align.wrapping_sub(1)) != offset & (align.wrapping_sub(1)) {
                "lies in memory and in the file at places that no page has in common"
            } else if offset
                .checked_add(filled)
                .is_none_or(|end| end > self.bytes.len() as u64)
            {
                "ends behind the file"
            // The bytes behind the file's are filled with zeros, which takes a segment that can be written.
            } else if filled > size || (filled < size && flags & WRITES == 0) {
                "has another size in memory than its kind has"
            } else if address
                .checked_add(size)
                .is_none_or(|end| end > MOST_MEMORY)
            {
                "is larger than any library"
            } else if flags & READS == 0 || flags & !(READS | WRITES | EXECUTES) != 0 {
                "has flags that no linker sets"
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
            .ok_or_else(|| rejects("it has no segment to load"))
    }

    /// The program headers that speak of what is mapped.
    fn others(&self) -> Result<(), Stop> {
        let wrong = |what: &str| Err(unknown(what));
        for segment in &self.segments {
            // The same bytes by both of its places, in memory and in the file.
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
                        "it requires a stack that can be executed, which not every system grants",
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
        // Without it the stack is made executable, on some machines, where that is allowed: glibc from 2.41 on rejects such a
        // library, earlier ones change the stack of the process.
        match self.of(STACK).count() {
            1 => Ok(()),
            _ => wrong("it does not state once which stack it needs"),
        }
    }

    /// Whether a protected range is a plain one: it begins with the data segment and ends with a page.
    fn protects(&self, range: &Segment) -> bool {
        let mut loads = self.of(LOAD);
        let end = range.address.saturating_add(range.size);
        loads.any(|load| {
            // Linkers round the end up to a page, which may lie behind the end of the segment.
            let last = ceiling(load.address.saturating_add(load.size));
            load.flags & WRITES != 0
                && range.address == load.address
                && end <= last
                && end.is_multiple_of(PAGE)
        })
    }

    /// Whether a word at `address` is made read-only after relocation.
    pub(super) fn is_protected(&self, address: u64) -> bool {
        let covers = |range: &Segment| {
            // Loaders round the end down to a page, so that a word in the last, partial page can still be written.
            let end = floor(range.address.saturating_add(range.size));
            (floor(range.address)..end).contains(&address)
        };
        self.of(RELRO).any(covers)
    }

    /// The program headers of one kind, in the order of the file.
    pub(super) fn of(&self, kind: u32) -> impl Iterator<Item = &Segment> {
        self.segments
            .iter()
            .filter(move |segment| segment.kind == kind)
    }

    /// The loaded segment that has all of `length` bytes at `address` in memory.
    ///
    /// Not all of them need be in the file: the rest of a segment is 0.
    pub(super) fn segment(&self, address: u64, length: u64) -> Option<&Segment> {
        let end = address.checked_add(length)?;
        self.of(LOAD)
            .find(|load| load.address <= address && end <= load.address.saturating_add(load.size))
    }

    /// Where in the file the `length` bytes at `address` are; `None` where not all of them are in one loaded segment.
    pub(super) fn offset(&self, address: u64, length: u64) -> Option<u64> {
        let load = self.segment(address, length)?;
        let inside = address.checked_sub(load.address)?;
        let end = inside.checked_add(length)?;
        (end <= load.filled).then(|| load.offset.saturating_add(inside))
    }

    /// Whether the segment that holds these bytes has all of `flags`.
    ///
    /// Not so where no segment holds them.
    pub(super) fn has_flags(&self, address: u64, length: u64, flags: u32) -> bool {
        let segment = self.segment(address, length);
        segment.is_some_and(|segment| segment.flags & flags == flags)
    }

    /// The `length` bytes of the file at an address; `None` where not all of them are in one loaded segment.
    pub(super) fn at(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset(address, length)?).ok()?;
        self.bytes
            .get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }

    /// The bytes at an offset in the file, as they are; `None` where the file ends in them.
    pub(super) fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let rest = self.bytes.get(usize::try_from(offset).ok()?..)?;
        rest.first_chunk().copied()
    }

    /// The number at an offset in the file, in the byte order of its header.
    pub(super) fn u16(&self, offset: u64) -> Option<u16> {
        let bytes = self.array(offset)?;
        Some(if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    /// The number at an offset in the file, in the byte order of its header.
    pub(super) fn u32(&self, offset: u64) -> Option<u32> {
        let bytes = self.array(offset)?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    /// The number at an offset in the file, in the byte order of its header.
    pub(super) fn u64(&self, offset: u64) -> Option<u64> {
        let bytes = self.array(offset)?;
        Some(if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }
}

/// The start of the page of `address`.
const fn floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// The start of the first page at or behind `address`.
const fn ceiling(address: u64) -> u64 {
    floor(address.saturating_add(PAGE - 1))
}
