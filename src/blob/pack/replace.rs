//! Another library binary in a file that has one, with everything else as it is (BLOB-75).
//!
//! | file | where the new bytes go |
//! |---|---|
//! | any, of the same length | in the place of the old ones |
//! | a library binary of its own | they are the file |
//! | ELF object, 64 bits, little endian, a section of its own | behind the file; the header of the section points to them |
//! | ELF library, 64 bits, little endian | behind the file, in a segment of their own, to which the symbol points |
//!
//! The old bytes stay in an ELF file: code and data keep their places.

use super::members::in_members;
use crate::blob::BLOB_75;
use crate::blob::container::{self, FileForm};
use crate::rule::{Kind, Violation};

/// `file` with `blob` (header included) in the place of its library binary number `index`, in the order of
/// [`container::File::blobs`].
///
/// # Errors
///
/// What [`container::open`] rejects; BLOB-75: missing where there is no such library binary, unsupported for a container in which a
/// longer or shorter one has no place: link it anew, with the objects of its host code.
pub fn replace(file: &[u8], index: usize, blob: &[u8]) -> Result<Vec<u8>, Violation> {
    let read = container::open(file)?;
    let Some((part, old)) = read.blobs().nth(index) else {
        let count = read.blobs().count();
        let message = format!("there is no library binary {index}, of {count}");
        return Err(BLOB_75.rejected(Kind::Missing, message));
    };
    let made = match (old.offset, part.form) {
        (_, FileForm::RawBlob) if part.member.is_empty() => Some(blob.to_vec()),
        (Some(offset), _) if old.bytes.len() == blob.len() => {
            let mut made = Elf(file.to_vec());
            made.put(offset, blob).map(|()| made.0)
        }
        (_, FileForm::ElfShared) if part.member.is_empty() => in_library(file, &old.symbol, blob),
        (_, FileForm::ElfObject) if part.member.is_empty() => in_object(file, &old.symbol, blob),
        // Of a member another length moves what is behind it, in each archive around it.
        _ if !part.member.is_empty() => in_members(file, read.form, index, blob),
        _ => None,
    };
    let made = made.ok_or_else(|| unsupported(part.form))?;
    // The file is read as a loader reads it, so that no edit makes one in which another library binary is found.
    let again = container::open(&made)?;
    let found = again.blobs().nth(index);
    if found.is_none_or(|(_, found)| found.bytes != blob || found.symbol != old.symbol) {
        return Err(unsupported(part.form));
    }
    Ok(made)
}

fn unsupported(form: FileForm) -> Violation {
    let message = format!(
        "in this {} a library binary of another length has no place; link it anew with the objects of its host code",
        form.title()
    );
    BLOB_75.rejected(Kind::Unsupported, message)
}

/// A shared library with `blob` in a segment behind the others; `None` where the file is not of this kind, or has no sections.
///
/// ```text
/// old bytes | zeros up to a page | program headers | sections | blob
/// ```
fn in_library(file: &[u8], symbol: &str, blob: &[u8]) -> Option<Vec<u8>> {
    const LOAD: u64 = 1;
    const PHDR: u64 = 6;
    let mut elf = Elf(file.to_vec());
    elf.is_known().then_some(())?;
    let segments = elf.table(32, 56, 54, SEGMENT)?;
    let sections = elf.table(40, 60, 58, SECTION)?;
    let loads = segments
        .iter()
        .map(|at| {
            let load = elf.word(*at, 4)? == LOAD;
            let end = elf.word(at.checked_add(16)?, 8)?;
            let end = end.checked_add(elf.word(at.checked_add(40)?, 8)?)?;
            let align = elf.word(at.checked_add(48)?, 8)?;
            Some(load.then_some((end, align)))
        })
        .collect::<Option<Vec<_>>>()?;
    let page = loads.iter().flatten().map(|load| load.1).max()?.max(0x1000);
    let end = loads.iter().flatten().map(|load| load.0).max()?;
    // A segment is mapped in pages: its offset and its address are the same within one.
    let start = (elf.0.len() as u64).checked_next_multiple_of(page)?;
    let address = end.checked_next_multiple_of(page)?;
    let to_address = |offset: u64| offset.checked_sub(start)?.checked_add(address);

    let headers = SEGMENT.checked_mul((segments.len() as u64).checked_add(1)?)?;
    let names = start.checked_add(headers)?;
    let tables = SECTION.checked_mul((sections.len() as u64).checked_add(1)?)?;
    let place = names.checked_add(tables)?;
    let size = place.checked_add(blob.len() as u64)?.checked_sub(start)?;

    // The headers move behind the file, since there is no room for one more where they are.
    let last = loads.iter().rposition(Option::is_some)?;
    let mut moved = Vec::new();
    for (index, at) in segments.iter().enumerate() {
        let mut header = elf.slice(*at, SEGMENT)?.to_vec();
        if elf.word(*at, 4)? == PHDR {
            header = segment(PHDR, start, address, headers, 8);
        }
        moved.extend_from_slice(&header);
        // The loader of the system expects these in the order of their addresses.
        if index == last {
            moved.extend_from_slice(&segment(LOAD, start, address, size, page));
        }
    }
    let holder = elf.holder(symbol, &sections)?;
    for at in &sections {
        moved.extend_from_slice(elf.slice(*at, SECTION)?);
    }
    // One more, which is what the section of the old bytes is, at the new place.
    let mut section = elf
        .slice(*sections.get(usize::try_from(holder).ok()?)?, SECTION)?
        .to_vec();
    for (at, value) in [
        (16, to_address(place)?),
        (24, place),
        (32, blob.len() as u64),
        (48, 1),
        (56, 0),
    ] {
        let at: usize = at;
        let field = section.get_mut(at..at.checked_add(8)?)?;
        field.copy_from_slice(&value.to_le_bytes());
    }
    moved.extend_from_slice(&section);

    let new_section = u16::try_from(sections.len()).ok()?;
    for at in elf.symbols(symbol, &sections)? {
        elf.put(at.checked_add(6)?, &new_section.to_le_bytes())?;
        elf.put(at.checked_add(8)?, &to_address(place)?.to_le_bytes())?;
        elf.put(at.checked_add(16)?, &(blob.len() as u64).to_le_bytes())?;
    }
    elf.put(32, &start.to_le_bytes())?;
    elf.put(40, &names.to_le_bytes())?;
    let count = |items: &[u64]| u16::try_from(items.len()).ok()?.checked_add(1);
    elf.put(56, &count(&segments)?.to_le_bytes())?;
    elf.put(60, &count(&sections)?.to_le_bytes())?;

    elf.0.resize(usize::try_from(start).ok()?, 0);
    elf.0.extend_from_slice(&moved);
    elf.0.extend_from_slice(blob);
    Some(elf.0)
}

/// An object file whose section of the library binary, which holds nothing else, is `blob`.
fn in_object(file: &[u8], symbol: &str, blob: &[u8]) -> Option<Vec<u8>> {
    let mut elf = Elf(file.to_vec());
    elf.is_known().then_some(())?;
    let sections = elf.table(40, 60, 58, SECTION)?;
    let holder = elf.holder(symbol, &sections)?;
    let header = *sections.get(usize::try_from(holder).ok()?)?;
    let symbols = elf.symbols(symbol, &sections)?;
    for at in &symbols {
        let whole = elf.word(at.checked_add(8)?, 8)? == 0
            && elf.word(at.checked_add(16)?, 8)? == elf.word(header.checked_add(32)?, 8)?;
        whole.then_some(())?;
        elf.put(at.checked_add(16)?, &(blob.len() as u64).to_le_bytes())?;
    }
    let place = elf.0.len() as u64;
    elf.put(header.checked_add(24)?, &place.to_le_bytes())?;
    elf.put(header.checked_add(32)?, &(blob.len() as u64).to_le_bytes())?;
    elf.0.extend_from_slice(blob);
    Some(elf.0)
}

/// A program header of a segment that is read only.
fn segment(kind: u64, offset: u64, address: u64, size: u64, align: u64) -> Vec<u8> {
    const READ: u64 = 4;
    // The two words of 32 bits that a header begins with.
    let head = READ.wrapping_shl(32) | kind;
    let words = [head, offset, address, address, size, size, align];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Bytes of a program header.
const SEGMENT: u64 = 56;
/// Bytes of a section header.
const SECTION: u64 = 64;
/// Bytes of a symbol.
const SYMBOL: u64 = 24;

/// A file of ELF, 64 bits and little endian, that is edited. Nothing is trusted: what is outside is `None`.
struct Elf(Vec<u8>);

impl Elf {
    /// Whether it is of the class and the byte order that this code reads.
    fn is_known(&self) -> bool {
        self.0.starts_with(b"\x7fELF\x02\x01")
    }

    /// The integer of `size` bytes at `at`.
    fn word(&self, at: u64, size: u64) -> Option<u64> {
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

    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()> {
        let start = usize::try_from(at).ok()?;
        let end = start.checked_add(bytes.len())?;
        self.0.get_mut(start..end)?.copy_from_slice(bytes);
        Some(())
    }

    /// Where each entry begins of the table whose offset, count and size of an entry are in the header at these places.
    fn table(&self, offset: u64, count: u64, size: u64, expected: u64) -> Option<Vec<u64>> {
        let (offset, count) = (self.word(offset, 8)?, self.word(count, 2)?);
        (self.word(size, 2)? == expected && count > 0).then_some(())?;
        (0..count)
            .map(|index| offset.checked_add(index.checked_mul(expected)?))
            .collect()
    }

    /// Where the entries of `name` begin, in the static and the dynamic table of symbols.
    fn symbols(&self, name: &str, sections: &[u64]) -> Option<Vec<u64>> {
        const STATIC: u64 = 2;
        const DYNAMIC: u64 = 11;
        let mut found = Vec::new();
        for at in sections {
            let kind = self.word(at.checked_add(4)?, 4)?;
            if kind != STATIC && kind != DYNAMIC {
                continue;
            }
            let start = self.word(at.checked_add(24)?, 8)?;
            let end = start.checked_add(self.word(at.checked_add(32)?, 8)?)?;
            let names = usize::try_from(self.word(at.checked_add(40)?, 4)?).ok()?;
            let names = self.word(sections.get(names)?.checked_add(24)?, 8)?;
            let mut symbol = start;
            while symbol.checked_add(SYMBOL)? <= end {
                let text = names.checked_add(self.word(symbol, 4)?)?;
                let text = self.slice(text, (name.len() as u64).checked_add(1)?);
                let same = text.is_some_and(|text| {
                    text.strip_suffix(&[0])
                        .is_some_and(|text| text == name.as_bytes())
                });
                if same && self.word(symbol.checked_add(6)?, 2)? != 0 {
                    found.push(symbol);
                }
                symbol = symbol.checked_add(SYMBOL)?;
            }
        }
        Some(found)
    }

    /// The number of the section that `name` is defined in.
    fn holder(&self, name: &str, sections: &[u64]) -> Option<u64> {
        let symbols = self.symbols(name, sections)?;
        self.word(symbols.first()?.checked_add(6)?, 2)
    }
}
