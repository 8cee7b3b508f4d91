//! Writes a small shared object: a table of symbols, some bytes of data, a few instructions of code.
//!
//! | what                                   | where                 | mapped             |
//! |----------------------------------------|-----------------------|--------------------|
//! | header, tables of the dynamic linker   | from the start        | read, write        |
//! | data symbols                           | behind the tables     | read, write        |
//! | functions                              | behind the data       | read, execute      |
//!
//! A compiler for each such file would cost more than what it is for, and may not be there.

/// What the machine is called in the header of an ELF file; `None` where none is written.
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

/// The name of a machine in an ELF header.
pub(crate) const X86_64: u16 = 62;

/// An exported name, and the bytes that stand under it.
pub(crate) type Exported<'a> = (&'a str, &'a [u8]);

/// Instructions that go on at `address`, by way of a register that calls may spoil.
pub(crate) fn jump(machine: u16, address: usize) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = (address as u64).to_le_bytes();
    if machine == X86_64 {
        // movabs address, %rax; jmp *%rax; what is never reached
        [
            0x48, 0xb8, a, b, c, d, e, f, g, h, 0xff, 0xe0, 0xcc, 0xcc, 0xcc, 0xcc,
        ]
    } else {
        // ldr x16, the word behind the jump; br x16; address
        [
            0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6, a, b, c, d, e, f, g, h,
        ]
    }
}

/// Where the head of the only hash chain is, counted from the start of the library. While it is 0, no symbol is found.
pub(crate) const CHAIN_HEAD: usize = HASH + 8;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PROGRAM_HEADERS: usize = 4;
const HASH: usize = HEADER + PROGRAM_HEADERS * PROGRAM_HEADER;
const SYMBOL: usize = 24;

/// No page is larger. Code is mapped this far behind its place in the file, so that it shares no page with data.
const PAGE: usize = 0x1_0000;

/// A shared object, as the bytes of its file.
pub(crate) struct Stub {
    /// The last data symbol ends them, where there are no functions.
    pub(crate) bytes: Vec<u8>,
    /// Where the first function is once it is mapped, counted from the start of the library.
    pub(crate) code: usize,
}

/// A library that exports objects of `data` and functions of `code`.
pub(crate) fn library(machine: u16, data: &[Exported<'_>], code: &[Exported<'_>]) -> Stub {
    let all = || data.iter().chain(code);
    let names: usize = all().map(|(name, _)| name.len() + 1).sum();
    let count = 1 + data.len() + code.len();
    let symbols_at = (HASH + 4 * (3 + count)).next_multiple_of(8);
    let names_at = symbols_at + count * SYMBOL;
    let dynamic_at = (names_at + 1 + names).next_multiple_of(16);
    let data_end = data.iter().fold(dynamic_at + 6 * 16, behind);
    let code_at = data_end.next_multiple_of(16);
    let code_end = code.iter().fold(code_at, behind);

    let mut out = Bytes(Vec::with_capacity(code_end));
    out.0
        .extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out.u16(3); // ET_DYN
    out.u16(machine);
    out.u32(1);
    out.words(&[0, HEADER, 0]); // entry, program headers, section headers
    out.u32(0);
    for half in [HEADER, PROGRAM_HEADER, PROGRAM_HEADERS, 0, 0, 0] {
        out.u16(half as u16);
    }
    const LOAD: u32 = 1;
    const DYNAMIC: u32 = 2;
    const STACK: u32 = 0x6474_e551; // without it a stack that can be executed is asked for
    const READ_WRITE: u32 = 6; // dynamic linkers write into the tables
    const READ_EXECUTE: u32 = 5;
    out.program_header(LOAD, READ_WRITE, (0, 0), data_end, PAGE);
    if code.is_empty() {
        out.program_header(0, 0, (0, 0), 0, 0);
    } else {
        let place = (code_at, code_at + PAGE);
        out.program_header(LOAD, READ_EXECUTE, place, code_end - code_at, PAGE);
    }
    out.program_header(DYNAMIC, READ_WRITE, (dynamic_at, dynamic_at), 6 * 16, 8);
    out.program_header(STACK, READ_WRITE, (0, 0), 0, 16);
    // One bucket: symbol 1, then 2 and so on, then none.
    for word in [1, count as u32, u32::from(count > 1), 0] {
        out.u32(word);
    }
    for next in 2..=count as u32 {
        out.u32(if next < count as u32 { next } else { 0 });
    }
    out.0.resize(symbols_at + SYMBOL, 0);
    let (mut name_at, mut end) = (1, dynamic_at + 6 * 16);
    for (at, symbol) in all().enumerate() {
        const OBJECT: u8 = 0x11;
        const FUNCTION: u8 = 0x12;
        let is_data = at < data.len();
        let (kind, offset) = if is_data {
            (OBJECT, 0)
        } else {
            (FUNCTION, PAGE)
        };
        let place = end.next_multiple_of(16);
        out.symbol(name_at, kind, place + offset, symbol.1.len());
        name_at += symbol.0.len() as u32 + 1;
        end = behind(end, symbol);
    }
    out.0.push(0);
    for (name, _) in all() {
        out.0.extend_from_slice(name.as_bytes());
        out.0.push(0);
    }
    out.0.resize(dynamic_at, 0);
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    out.words(&[4, HASH, 5, names_at, 6, symbols_at]);
    out.words(&[10, 1 + names, 11, SYMBOL, 0, 0]);
    for (_, bytes) in all() {
        out.0.resize(out.0.len().next_multiple_of(16), 0);
        out.0.extend_from_slice(bytes);
    }
    Stub {
        bytes: out.0,
        code: code_at + PAGE,
    }
}

/// Where `symbol` ends when the one before it ends at `end`.
fn behind(end: usize, symbol: &Exported<'_>) -> usize {
    end.next_multiple_of(16) + symbol.1.len()
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn words(&mut self, values: &[usize]) {
        for value in values {
            self.0.extend_from_slice(&(*value as u64).to_le_bytes());
        }
    }

    /// `place` is where the segment is in the file and in memory.
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
        self.words(&[place.0, place.1, place.1, size, size, align]);
    }

    fn symbol(&mut self, name: u32, kind: u8, at: usize, size: usize) {
        self.u32(name);
        self.0.extend_from_slice(&[kind, 0]);
        self.u16(1); // in some section: only "undefined" and "absolute" mean more
        self.words(&[at, size]);
    }
}
