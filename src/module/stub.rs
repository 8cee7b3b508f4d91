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

/// What a library exports.
pub(crate) struct Exported<'a> {
    pub(crate) name: &'a str,
    pub(crate) content: Content<'a>,
}

/// What stands under an exported name.
pub(crate) enum Content<'a> {
    /// An object of these bytes.
    Data(&'a [u8]),
    /// A function of these instructions.
    Code(&'a [u8]),
}

/// Instructions that go on at `address`, by way of a register that calls may spoil.
pub(crate) fn jump(machine: u16, address: usize) -> Vec<u8> {
    let mut code = Bytes(Vec::new());
    if machine == X86_64 {
        code.0.extend_from_slice(&[0x48, 0xb8]); // movabs address, %rax
        code.words(&[address]);
        code.0.extend_from_slice(&[0xff, 0xe0]); // jmp *%rax
    } else {
        code.u32(0x5800_0050); // ldr x16, the word behind the jump
        code.u32(0xd61f_0200); // br x16
        code.words(&[address]);
    }
    code.0
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

/// A library that exports `symbols`.
pub(crate) fn library(machine: u16, symbols: &[Exported<'_>]) -> Stub {
    let mut names = String::from("\0");
    let mut name_at = Vec::new();
    for symbol in symbols {
        name_at.push(names.len() as u32);
        names.push_str(symbol.name);
        names.push('\0');
    }
    let count = symbols.len() + 1;
    let symbols_at = (HASH + 4 * (3 + count)).next_multiple_of(8);
    let names_at = symbols_at + count * SYMBOL;
    let dynamic_at = (names_at + names.len()).next_multiple_of(16);
    let data_at = dynamic_at + 6 * 16;
    let (data, data_end) = placed(symbols, data_at, |content| match content {
        Content::Data(bytes) => Some(bytes),
        Content::Code(_) => None,
    });
    let code_at = data_end.next_multiple_of(16);
    let (code, code_end) = placed(symbols, code_at, |content| match content {
        Content::Data(_) => None,
        Content::Code(bytes) => Some(bytes),
    });

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
    let (mut data_places, mut code_places) = (data.iter(), code.iter());
    for (symbol, name) in symbols.iter().zip(name_at) {
        const GLOBAL_OBJECT: u8 = 0x11;
        const GLOBAL_FUNCTION: u8 = 0x12;
        let (kind, place, offset) = match symbol.content {
            Content::Data(_) => (GLOBAL_OBJECT, data_places.next(), 0),
            Content::Code(_) => (GLOBAL_FUNCTION, code_places.next(), PAGE),
        };
        if let Some((at, bytes)) = place {
            out.symbol(name, kind, at + offset, bytes.len());
        }
    }
    out.0.extend_from_slice(names.as_bytes());
    out.0.resize(dynamic_at, 0);
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    out.words(&[4, HASH, 5, names_at, 6, symbols_at]);
    out.words(&[10, names.len(), 11, SYMBOL, 0, 0]);
    for (at, bytes) in data.into_iter().chain(code) {
        out.0.resize(at, 0);
        out.0.extend_from_slice(bytes);
    }
    Stub {
        bytes: out.0,
        code: code_at + PAGE,
    }
}

/// The bytes of those symbols that `bytes` takes, each with its place from `at` on, and where the last one ends.
fn placed<'a>(
    symbols: &[Exported<'a>],
    at: usize,
    bytes: impl Fn(&Content<'a>) -> Option<&'a [u8]>,
) -> (Vec<(usize, &'a [u8])>, usize) {
    let mut end = at;
    let all = symbols.iter().filter_map(|symbol| bytes(&symbol.content));
    let all = all.map(|bytes| {
        let at = end.next_multiple_of(16);
        end = at + bytes.len();
        (at, bytes)
    });
    (all.collect(), end)
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
