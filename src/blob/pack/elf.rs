//! Replacement of the library binary in ELF files of 64 bits, little endian (BLOB-75).
//!
//! ```text
//! library, before    headers, sections with addresses                            | other sections, section headers
//! library, after     headers, sections with addresses | zeros of .bss | the blob | other sections | names, section headers
//! ```
//!
//! The last segment of a library grows to include the blob. The blob gets a separate section, after the sections with addresses.
//! Dynamic symbols refer to sections by index, so the indices of sections with addresses must not change. `strip` and `objcopy` move
//! the new section like any other.
//!
//! The alternative, a separate segment, needs one more program header. There is no room for it, and those tools lose a table that was
//! moved.

/// The name of the section that contains a replaced library binary.
const NAME: &[u8] = b".tvm_library_bin\0";

/// Returns a shared library with `blob` after its data. Returns `None` if the file is of another format, or has no sections.
pub(super) fn replace_in_library(file: &[u8], symbol: &str, blob: &[u8]) -> Option<Vec<u8>> {
    let mut elf = Elf(file.to_vec());
    elf.is_known().then_some(())?;
    let segments = elf.table(32, 56, 54, SEGMENT)?;
    let sections = elf.table(40, 60, 58, SECTION)?;
    let last = last_segment(&elf, &segments)?;
    let address = last.address.checked_add(last.memory)?;
    let address = address.checked_next_multiple_of(ALIGN)?;
    let place = last
        .offset
        .checked_add(address.checked_sub(last.address)?)?;
    let end = place.checked_add(blob.len() as u64)?;
    let grown = end.checked_sub(last.offset)?;
    // Everything without an address moves by this distance. It is a multiple of every alignment that is used in practice.
    let file_end = last.offset.checked_add(last.stored)?;
    let moved = end.checked_sub(file_end)?.checked_next_multiple_of(PAGE)?;
    let zeros = place.checked_sub(file_end)?;
    (zeros <= (file.len() as u64).checked_add(MOST_ZEROS)?).then_some(())?;

    // Headers and symbol tables are edited before anything moves, because their offsets are those of the old file.
    let at = elf.behind_addresses(&sections)?;
    for (table, entries) in elf.symbol_tables(&sections)? {
        for entry in entries {
            let field = entry.checked_add(6)?;
            let index = elf.read_integer(field, 2)?;
            // Indices from 0xff00 on do not refer to a section.
            if index >= at && index < 0xff00 {
                elf.put(
                    field,
                    &u16::try_from(index.checked_add(1)?).ok()?.to_le_bytes(),
                )?;
            }
            if elf.is_named(table, entry, symbol, &sections)? && index != 0 {
                elf.put(field, &u16::try_from(at).ok()?.to_le_bytes())?;
                elf.put(entry.checked_add(8)?, &address.to_le_bytes())?;
                elf.put(entry.checked_add(16)?, &(blob.len() as u64).to_le_bytes())?;
            }
        }
    }
    elf.put(last.header.checked_add(32)?, &grown.to_le_bytes())?;
    elf.put(last.header.checked_add(40)?, &grown.to_le_bytes())?;
    let names = elf.read_integer(62, 2)?;
    let names_header = *sections.get(usize::try_from(names).ok()?)?;
    let mut text = elf
        .slice(
            elf.read_integer(names_header.checked_add(24)?, 8)?,
            elf.read_integer(names_header.checked_add(32)?, 8)?,
        )?
        .to_vec();
    let name = text.len() as u64;
    text.extend_from_slice(NAME);

    let text_place = (file.len() as u64).checked_add(moved)?;
    let headers_place = text_place
        .checked_add(text.len() as u64)?
        .checked_next_multiple_of(8)?;
    let mut headers = Vec::new();
    for (index, header) in (0_u64..).zip(&sections) {
        if index == at {
            headers.extend_from_slice(&own_section(name, address, place, blob.len() as u64));
        }
        let mut copy = Elf(elf.slice(*header, SECTION)?.to_vec());
        copy.renumber(at)?;
        let offset = copy.read_integer(24, 8)?;
        if index == names {
            copy.put(24, &text_place.to_le_bytes())?;
            copy.put(32, &(text.len() as u64).to_le_bytes())?;
        } else if offset >= file_end && !copy.has_address()? {
            copy.put(24, &offset.checked_add(moved)?.to_le_bytes())?;
        }
        headers.extend_from_slice(&copy.0);
    }
    if at == sections.len() as u64 {
        headers.extend_from_slice(&own_section(name, address, place, blob.len() as u64));
    }
    elf.put(40, &headers_place.to_le_bytes())?;
    let count = u16::try_from(sections.len()).ok()?.checked_add(1)?;
    elf.put(60, &count.to_le_bytes())?;
    if names >= at {
        let names = u16::try_from(names).ok()?.checked_add(1)?;
        elf.put(62, &names.to_le_bytes())?;
    }

    let file_end = usize::try_from(file_end).ok()?;
    let (data, rest) = elf.0.split_at_checked(file_end)?;
    let mut out = data.to_vec();
    out.resize(usize::try_from(place).ok()?, 0);
    out.extend_from_slice(blob);
    out.resize(file_end.checked_add(usize::try_from(moved).ok()?)?, 0);
    out.extend_from_slice(rest);
    out.extend_from_slice(&text);
    out.resize(usize::try_from(headers_place).ok()?, 0);
    out.extend_from_slice(&headers);
    Some(out)
}

/// A loadable segment.
struct LoadSegment {
    /// Offset of its program header.
    header: u64,
    offset: u64,
    address: u64,
    /// Number of bytes in the file.
    stored: u64,
    /// Number of bytes in memory.
    memory: u64,
}

/// Returns the segment with the highest addresses; `None` if another segment has higher offsets in the file.
fn last_segment(elf: &Elf, segments: &[u64]) -> Option<LoadSegment> {
    const LOAD: u64 = 1;
    let mut last: Option<LoadSegment> = None;
    let mut end = 0;
    for header in segments {
        let field = |at: u64| elf.read_integer(header.checked_add(at)?, 8);
        let found = LoadSegment {
            header: *header,
            offset: field(8)?,
            address: field(16)?,
            stored: field(32)?,
            memory: field(40)?,
        };
        if found.stored > 0 {
            end = end.max(found.offset.checked_add(found.stored)?);
        }
        let is_load = elf.read_integer(*header, 4)? == LOAD;
        if is_load
            && last
                .as_ref()
                .is_none_or(|last| last.address < found.address)
        {
            last = Some(found);
        }
    }
    last.filter(|last| last.offset.checked_add(last.stored) == Some(end))
}

/// Returns the section header for the blob.
fn own_section(name: u64, address: u64, place: u64, size: u64) -> Vec<u8> {
    const PROGBITS: u64 = 1;
    let head = PROGBITS.wrapping_shl(32) | name;
    let words = [head, ALLOC, address, place, size, 0, ALIGN, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The flag of sections that have an address.
const ALLOC: u64 = 2;
/// The alignment of the blob.
const ALIGN: u64 = 16;
/// The page size in bytes. Everything that moves keeps its offset within a page.
const PAGE: u64 = 0x1000;
/// Largest number of padding bytes that a file may get, in addition to its own size.
const MOST_ZEROS: u64 = 1 << 24;

/// Returns an object file with `blob` as its library binary. The section of the old library binary must contain nothing else.
pub(super) fn replace_in_object(file: &[u8], symbol: &str, blob: &[u8]) -> Option<Vec<u8>> {
    let mut elf = Elf(file.to_vec());
    elf.is_known().then_some(())?;
    let sections = elf.table(40, 60, 58, SECTION)?;
    let holder = elf.holder(symbol, &sections)?;
    let header = *sections.get(usize::try_from(holder).ok()?)?;
    let symbols = elf.symbols(symbol, &sections)?;
    for at in &symbols {
        let whole = elf.read_integer(at.checked_add(8)?, 8)? == 0
            && elf.read_integer(at.checked_add(16)?, 8)?
                == elf.read_integer(header.checked_add(32)?, 8)?;
        whole.then_some(())?;
        elf.put(at.checked_add(16)?, &(blob.len() as u64).to_le_bytes())?;
    }
    let place = elf.0.len() as u64;
    elf.put(header.checked_add(24)?, &place.to_le_bytes())?;
    elf.put(header.checked_add(32)?, &(blob.len() as u64).to_le_bytes())?;
    elf.0.extend_from_slice(blob);
    Some(elf.0)
}

/// Size of a program header in bytes.
const SEGMENT: u64 = 56;
/// Size of a section header in bytes.
const SECTION: u64 = 64;
/// Size of a symbol in bytes.
const SYMBOL: u64 = 24;

/// An ELF file of 64 bits, little endian, that is edited. Nothing is trusted: access outside the file returns `None`.
pub(super) struct Elf(pub(super) Vec<u8>);

impl Elf {
    /// Returns whether this code supports the class and the byte order.
    fn is_known(&self) -> bool {
        self.0.starts_with(b"\x7fELF\x02\x01")
    }

    /// Reads the integer of `size` bytes at `at`.
    fn read_integer(&self, at: u64, size: u64) -> Option<u64> {
        let mut word = [0; 8];
        let bytes = self.slice(at, size)?;
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    fn slice(&self, at: u64, size: u64) -> Option<&[u8]> {
        let start = usize::try_from(at).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.0.get(start..end)
    }

    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()> {
        let start = usize::try_from(at).ok()?;
        let end = start.checked_add(bytes.len())?;
        self.0.get_mut(start..end)?.copy_from_slice(bytes);
        Some(())
    }

    /// Returns the offset of each entry of a table. The arguments are the places in the header of its offset, entry count and entry size.
    fn table(&self, offset: u64, count: u64, size: u64, expected: u64) -> Option<Vec<u64>> {
        let (offset, count) = (self.read_integer(offset, 8)?, self.read_integer(count, 2)?);
        (self.read_integer(size, 2)? == expected && count > 0).then_some(())?;
        (0..count)
            .map(|index| offset.checked_add(index.checked_mul(expected)?))
            .collect()
    }

    /// Returns the index after the last section with an address. Returns `None` if a separate table contains the section indices of
    /// symbols.
    fn behind_addresses(&self, sections: &[u64]) -> Option<u64> {
        const NUMBERS: u64 = 18;
        let mut behind = 0;
        for (index, at) in (0_u64..).zip(sections) {
            let kind = self.read_integer(at.checked_add(4)?, 4)?;
            (kind != NUMBERS).then_some(())?;
            if self.read_integer(at.checked_add(8)?, 8)? & ALLOC != 0 {
                behind = index.checked_add(1)?;
            }
        }
        (behind > 0).then_some(behind)
    }

    /// Returns whether the section has an address. `self` is only a section header.
    fn has_address(&self) -> Option<bool> {
        Some(self.read_integer(8, 8)? & ALLOC != 0)
    }

    /// Increases the indices of other sections from `from` on. `self` is only a section header.
    fn renumber(&mut self, from: u64) -> Option<()> {
        const RELOCATIONS: [u64; 2] = [4, 9];
        const INFO_LINK: u64 = 0x40;
        let is_link = self.read_integer(8, 8)? & INFO_LINK != 0
            || RELOCATIONS.contains(&self.read_integer(4, 4)?);
        for (at, is_number) in [(40, true), (44, is_link)] {
            let number = self.read_integer(at, 4)?;
            if is_number && number >= from {
                let number = u32::try_from(number).ok()?.checked_add(1)?;
                self.put(at, &number.to_le_bytes())?;
            }
        }
        Some(())
    }

    /// Returns the header of each symbol table, static and dynamic, and the offsets of its entries.
    fn symbol_tables(&self, sections: &[u64]) -> Option<Vec<(u64, Vec<u64>)>> {
        const STATIC: u64 = 2;
        const DYNAMIC: u64 = 11;
        let mut tables = Vec::new();
        for at in sections {
            let kind = self.read_integer(at.checked_add(4)?, 4)?;
            if kind != STATIC && kind != DYNAMIC {
                continue;
            }
            let start = self.read_integer(at.checked_add(24)?, 8)?;
            let size = self.read_integer(at.checked_add(32)?, 8)?;
            self.slice(start, size)?;
            let count = size.checked_div(SYMBOL)?;
            let entries = (0..count)
                .map(|index| start.checked_add(index.checked_mul(SYMBOL)?))
                .collect::<Option<Vec<_>>>()?;
            tables.push((*at, entries));
        }
        Some(tables)
    }

    /// Returns whether the symbol at `entry`, in the table with header `table`, has the name `name`.
    fn is_named(&self, table: u64, entry: u64, name: &str, sections: &[u64]) -> Option<bool> {
        let names = usize::try_from(self.read_integer(table.checked_add(40)?, 4)?).ok()?;
        let names = self.read_integer(sections.get(names)?.checked_add(24)?, 8)?;
        let text = names.checked_add(self.read_integer(entry, 4)?)?;
        let text = self.slice(text, (name.len() as u64).checked_add(1)?);
        let text = text.and_then(|text| text.strip_suffix(&[0]));
        Some(text == Some(name.as_bytes()))
    }

    /// Returns the offsets of the entries for `name` in the static and the dynamic symbol table.
    fn symbols(&self, name: &str, sections: &[u64]) -> Option<Vec<u64>> {
        let mut found = Vec::new();
        for (table, entries) in self.symbol_tables(sections)? {
            for entry in entries {
                let is_defined = self.read_integer(entry.checked_add(6)?, 2)? != 0;
                if is_defined && self.is_named(table, entry, name, sections)? {
                    found.push(entry);
                }
            }
        }
        Some(found)
    }

    /// Returns the index of the section that defines `name`.
    fn holder(&self, name: &str, sections: &[u64]) -> Option<u64> {
        let symbols = self.symbols(name, sections)?;
        self.read_integer(symbols.first()?.checked_add(6)?, 2)
    }
}
