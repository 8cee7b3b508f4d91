//! Writes a small shared object: a symbol table, some bytes of data, and a few instructions of code.
//!
//! | part                                   | place                 | permissions        |
//! |----------------------------------------|-----------------------|--------------------|
//! | header, tables of the dynamic linker   | at the start          | read, write        |
//! | data symbols                           | after the tables      | read, write        |
//! | functions                              | after the data        | read, execute      |
//!
//! A compiler would be too slow for such a file, and may not be installed.

/// Number of this machine in an ELF header; `None` if no stub is written for it.
pub(crate) const MACHINE: Option<u16> = if !cfg!(all(
    target_os = "linux",
    target_endian = "little",
    target_pointer_width = "64"
)) {
    None
} else if cfg!(target_arch = "x86_64") {
    Some(X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// Number of x86-64 in an ELF header.
pub(crate) const X86_64: u16 = 62;

/// An exported name, and the bytes of its symbol.
pub(crate) type Exported<'a> = (&'a str, &'a [u8]);

/// Returns instructions that jump to `address`, through a register that calls may overwrite.
pub(crate) fn jump(machine: u16, address: usize) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = (address as u64).to_le_bytes();
    if machine == X86_64 {
        let [(x, y), (i, j)] = [MOVABS_RAX, JMP_RAX];
        let [p, q, r, s] = NEVER;
        [x, y, a, b, c, d, e, f, g, h, i, j, p, q, r, s]
    } else {
        let ([i, j, k, l], [p, q, r, s]) = (LDR_X16_BEHIND, BR_X16);
        [i, j, k, l, p, q, r, s, a, b, c, d, e, f, g, h]
    }
}

const MOVABS_RAX: (u8, u8) = (0x48, 0xb8);
const JMP_RAX: (u8, u8) = (0xff, 0xe0);
/// Padding that is never executed.
const NEVER: [u8; 4] = [0xcc; 4];
/// Loads the word that follows the jump.
const LDR_X16_BEHIND: [u8; 4] = [0x50, 0, 0, 0x58];
const BR_X16: [u8; 4] = [0, 0x02, 0x1f, 0xd6];

/// Offset of the head of the only hash chain from the start of the library. While it is 0, no symbol is found.
pub(crate) const CHAIN_HEAD: usize = HASH + 8;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PROGRAM_HEADERS: usize = 4;
const HASH: usize = HEADER + PROGRAM_HEADERS * PROGRAM_HEADER;
const SYMBOL: usize = 24;

const WORD: usize = 8;

/// First bytes of a 64-bit little-endian ELF file.
const IDENTITY: [u8; 16] = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0";
const SHARED_OBJECT: u16 = 3;
/// Version 1, no entry point, program headers after this header, no sections, no flags.
const BEHIND_MACHINE: [u8; 32] = {
    let mut bytes = [0; 32];
    bytes[0] = 1;
    bytes[12] = HEADER as u8;
    bytes
};
/// Sizes of this header and of a program header, and the number of those; then the same for sections, which do not exist.
const SIZES: [u16; 6] = [
    HEADER as u16,
    PROGRAM_HEADER as u16,
    PROGRAM_HEADERS as u16,
    0,
    0,
    0,
];
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
/// The dynamic linker makes stacks executable if this header is missing.
const STACK: u32 = 0x6474_e551;
/// Dynamic linkers write into the tables.
const READ_WRITE: u32 = 6;
const READ_EXECUTE: u32 = 5;
/// An ignored program header: its type is 0.
const UNUSED: [u8; PROGRAM_HEADER] = [0; PROGRAM_HEADER];
const START: (usize, usize) = (0, 0);
const NOTHING: usize = 0;
/// Size of the dynamic section with its end: six pairs of words.
const TAGS: usize = 6 * 2 * WORD;
const DT_HASH: usize = 4;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_STRSZ: usize = 10;
const DT_SYMENT: usize = 11;
const DT_NULL: [usize; 2] = [0, 0];
const OBJECT: u8 = 0x11;
const FUNCTION: u8 = 0x12;

/// Largest page size. Code is mapped this far after its offset in the file, so that it shares no page with data.
const PAGE: usize = 0x1_0000;

/// A shared object, as the bytes of its file.
pub(crate) struct Stub {
    /// Bytes of the file. Without functions they end with the last data symbol.
    pub(crate) bytes: Vec<u8>,
    /// Offset of the first function from the start of the mapped library.
    pub(crate) code: usize,
}

/// Creates a library that exports the objects of `data` and the functions of `code`.
pub(crate) fn library(machine: u16, data: &[Exported<'_>], code: &[Exported<'_>]) -> Stub {
    let all = || data.iter().chain(code);
    let names: usize = all().map(|(name, _)| name.len() + 1).sum();
    let count = 1 + data.len() + code.len();
    let symbols_at = (HASH + 4 * (3 + count)).next_multiple_of(8);
    let names_at = symbols_at + count * SYMBOL;
    // One more byte than the names need: a string table begins with the empty string.
    let dynamic_at = (names_at + 1 + names).next_multiple_of(16);
    // Code follows all data: its segment is executable but not writable, the other one is writable but not executable.
    let data_end = data.iter().fold(dynamic_at + TAGS, symbol_end);
    let code_at = data_end.next_multiple_of(16);
    let code_end = code.iter().fold(code_at, symbol_end);

    let mut out = StubBytes(Vec::with_capacity(code_end));
    out.0.extend_from_slice(&IDENTITY);
    out.u16(SHARED_OBJECT);
    out.u16(machine);
    out.0.extend_from_slice(&BEHIND_MACHINE);
    for half in SIZES {
        out.u16(half);
    }
    out.program_header(LOAD, READ_WRITE, START, data_end, PAGE);
    if code.is_empty() {
        // The header is kept, so that the following tables have the same offset with and without code (`CHAIN_HEAD`).
        out.0.extend_from_slice(&UNUSED);
    } else {
        let place = (code_at, code_at + PAGE);
        out.program_header(LOAD, READ_EXECUTE, place, code_end - code_at, PAGE);
    }
    out.program_header(DYNAMIC, READ_WRITE, (dynamic_at, dynamic_at), TAGS, WORD);
    out.program_header(STACK, READ_WRITE, START, NOTHING, NOTHING);
    // One bucket: symbol 1, then 2 and so on. The old hash table is used instead of the GNU one. With one bucket it is four words and a
    // chain, and every dynamic linker still reads it.
    for word in [1, count as u32, u32::from(count > 1), 0] {
        out.u32(word);
    }
    for next in 2..=count as u32 {
        out.u32(if next < count as u32 { next } else { 0 });
    }
    // Symbol 0 is empty in every ELF file: its number ends a chain.
    out.pad_to(symbols_at + SYMBOL);
    let (mut name_at, mut end) = (1, dynamic_at + TAGS);
    for (at, symbol) in all().enumerate() {
        let is_data = at < data.len();
        let (kind, offset) = if is_data {
            (OBJECT, 0)
        } else {
            (FUNCTION, PAGE)
        };
        let place = end.next_multiple_of(16);
        out.symbol(name_at, kind, place + offset, symbol.1.len());
        name_at += symbol.0.len() as u32 + 1;
        end = symbol_end(end, symbol);
    }
    for (name, _) in all() {
        out.pad_to(out.0.len() + 1);
        out.0.extend_from_slice(name.as_bytes());
    }
    out.pad_to(dynamic_at);
    out.push_u64s(&[DT_HASH, HASH, DT_STRTAB, names_at, DT_SYMTAB, symbols_at]);
    out.push_u64s(&[DT_STRSZ, 1 + names, DT_SYMENT, SYMBOL]);
    // There are no relocations and no name: the bytes contain absolute addresses of this process, and are mapped only here.
    out.push_u64s(&DT_NULL);
    for (_, bytes) in all() {
        out.pad_to(out.0.len().next_multiple_of(16));
        out.0.extend_from_slice(bytes);
    }
    Stub {
        bytes: out.0,
        code: code_at + PAGE,
    }
}

/// Returns the end of `symbol` if the previous one ends at `end`.
fn symbol_end(end: usize, symbol: &Exported<'_>) -> usize {
    end.next_multiple_of(16) + symbol.1.len()
}

struct StubBytes(Vec<u8>);

impl StubBytes {
    fn pad_to(&mut self, end: usize) {
        self.0.resize(end, 0);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn push_u64s(&mut self, values: &[usize]) {
        for value in values {
            self.0.extend_from_slice(&(*value as u64).to_le_bytes());
        }
    }

    /// Writes a program header. `place` is the offset of the segment in the file and in memory.
    fn program_header(
        &mut self,
        kind: u32,
        flags: u32,
        place: (usize, usize),
        size: usize,
        align: usize,
    ) {
        self.u32(kind);
        self.u32(flags);
        self.push_u64s(&[place.0, place.1, place.1, size, size, align]);
    }

    fn symbol(&mut self, name: u32, kind: u8, at: usize, size: usize) {
        self.u32(name);
        self.0.extend_from_slice(&[kind, 0]);
        self.u16(1); // any section: only "undefined" and "absolute" have a special meaning
        self.push_u64s(&[at, size]);
    }
}
