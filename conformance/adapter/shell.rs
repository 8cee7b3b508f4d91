//! A shared library around the bytes of a case, so that a foreign loader can be put to them.
//!
//! A compiler for each case would cost more than the case, and may not be there. On Linux the few tables that the dynamic
//! linker wants are written here; elsewhere [`pack::shared`] links.
//!
//! The bytes are the last thing in the file: what a loader reads beyond them is the zeros of their page, then nothing.
//!
//! Functions that give a number are written as machine code, a few instructions each, so that lookups can be asked too.

use crate::blob::pack::{self, Naming, Shared};
use std::fs;
use std::io;
use std::path::Path;

/// The name of a machine in an ELF header.
const X86_64: u16 = 62;

/// What the machine is called in an ELF header; `None` where libraries are not written here.
const MACHINE: Option<u16> = if !cfg!(all(
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

/// Writes the library `path` with `blob` under the names of `naming`, and a context slot beside it.
///
/// # Errors
///
/// When the file cannot be written, or linked where that is needed.
pub(super) fn write(
    blob: &[u8],
    symbol: &str,
    context: &str,
    naming: &Naming,
    path: &Path,
) -> io::Result<()> {
    match MACHINE {
        Some(machine) => fs::write(path, around(machine, blob, symbol, context)),
        None => pack::shared(blob, naming, &Shared::default(), path),
    }
}

/// Writes a library with functions of the calling convention of 0.8 to 0.20, which take anything and give `number`.
///
/// # Errors
///
/// When the file cannot be written, or no code is known for this machine.
pub(super) fn write_functions(names: &[&str], number: u32, path: &Path) -> io::Result<()> {
    let Some(machine) = MACHINE else {
        return Err(io::Error::other("no code is known for this machine"));
    };
    let code = gives(machine, number);
    let symbols = names.iter().map(|name| Symbol {
        name,
        kind: Symbol::FUNCTION,
        bytes: &code,
    });
    let symbols: Vec<Symbol<'_>> = symbols.collect();
    fs::write(path, elf(machine, &symbols))
}

/// A function that stores `number` where the fourth argument points, 0 (an integer) where the fifth does, and returns 0.
fn gives(machine: u16, number: u32) -> Vec<u8> {
    let mut code = Bytes(Vec::new());
    if machine == X86_64 {
        code.0.extend_from_slice(&[0x48, 0xc7, 0x01]); // movq number, (%rcx)
        code.u32(number);
        code.0.extend_from_slice(&[0x41, 0xc7, 0x00, 0, 0, 0, 0]); // movl 0, (%r8)
        code.0.extend_from_slice(&[0x31, 0xc0, 0xc3]); // xorl %eax, %eax; ret
    } else {
        code.u32(0xd280_0008 | (number & 0xffff) << 5); // mov x8, number
        code.u32(0xf900_0068); // str x8, [x3]
        code.u32(0xb900_009f); // str wzr, [x4]
        code.u32(0x5280_0000); // mov w0, 0
        code.u32(0xd65f_03c0); // ret
    }
    code.0
}

/// What a symbol of a library that leads back into this process names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// Room for an address.
    Slot,
    /// Code that goes on at an address of this process.
    Jump(usize),
}

/// Writes a library with slots, and with functions of this process, for this process to load.
///
/// # Errors
///
/// When the file cannot be written, or no code is known for this machine.
pub(super) fn write_symbols(symbols: &[(&str, Content)], path: &Path) -> io::Result<()> {
    let Some(machine) = MACHINE else {
        return Err(io::Error::other("no code is known for this machine"));
    };
    let contents = symbols.iter().map(|(_, content)| match content {
        Content::Slot => (Symbol::OBJECT, vec![0; 8]),
        Content::Jump(address) => (Symbol::FUNCTION, jump(machine, *address)),
    });
    let contents: Vec<(u8, Vec<u8>)> = contents.collect();
    let symbols = symbols.iter().zip(&contents);
    let symbols: Vec<Symbol<'_>> = symbols
        .map(|((name, _), (kind, bytes))| Symbol {
            name,
            kind: *kind,
            bytes,
        })
        .collect();
    fs::write(path, elf(machine, &symbols))
}

/// Loads an address into a register that calls may spoil, and jumps there.
fn jump(machine: u16, address: usize) -> Vec<u8> {
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

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;

/// What a library exports.
struct Symbol<'a> {
    name: &'a str,
    kind: u8,
    bytes: &'a [u8],
}

impl Symbol<'_> {
    /// A global object, in the words of ELF.
    const OBJECT: u8 = 0x11;
    /// A global function.
    const FUNCTION: u8 = 0x12;
}

/// The library around `blob`, with a slot for the context.
fn around(machine: u16, blob: &[u8], symbol: &str, context: &str) -> Vec<u8> {
    let object = |name, bytes| Symbol {
        name,
        kind: Symbol::OBJECT,
        bytes,
    };
    elf(machine, &[object(context, &[0; 8]), object(symbol, blob)])
}

/// One segment with a symbol table. The bytes of the last symbol end the file.
fn elf(machine: u16, symbols: &[Symbol<'_>]) -> Vec<u8> {
    let mut names = String::from("\0");
    let mut name_at = Vec::new();
    for symbol in symbols {
        name_at.push(names.len() as u32);
        names.push_str(symbol.name);
        names.push('\0');
    }
    let count = symbols.len() + 1;
    let hash_at = HEADER + 3 * PROGRAM_HEADER;
    let symbols_at = (hash_at + 4 * (3 + count)).next_multiple_of(8);
    let names_at = symbols_at + count * SYMBOL;
    let dynamic_at = (names_at + names.len()).next_multiple_of(16);
    let mut end = dynamic_at + 6 * 16;
    let mut placed = Vec::new();
    for symbol in symbols {
        let at = end.next_multiple_of(16);
        placed.push(at);
        end = at + symbol.bytes.len();
    }

    let mut out = Bytes(Vec::with_capacity(end));
    out.0
        .extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out.u16(3); // ET_DYN
    out.u16(machine);
    out.u32(1);
    out.words(&[0, HEADER, 0]); // entry, program headers, section headers
    out.u32(0);
    for half in [HEADER, PROGRAM_HEADER, 3, 0, 0, 0] {
        out.u16(half as u16);
    }
    // Dynamic linkers write into the tables, so what is run is writable too. Only libraries with functions ask for that.
    let run = symbols.iter().any(|symbol| symbol.kind == Symbol::FUNCTION);
    let read_write = 6;
    // PT_LOAD, PT_DYNAMIC, PT_GNU_STACK: without the last a stack that can be executed is asked for.
    out.program_header(1, read_write | u32::from(run), 0, end, 0x1_0000);
    out.program_header(2, read_write, dynamic_at, 6 * 16, 8);
    out.program_header(0x6474_e551, read_write, 0, 0, 16);
    // One bucket: symbol 1, then 2 and so on, then none.
    for word in [1, count as u32, u32::from(count > 1), 0] {
        out.u32(word);
    }
    for next in 2..=count as u32 {
        out.u32(if next < count as u32 { next } else { 0 });
    }
    out.0.resize(symbols_at + SYMBOL, 0);
    for ((symbol, name), at) in symbols.iter().zip(name_at).zip(&placed) {
        out.symbol(name, symbol.kind, *at, symbol.bytes.len());
    }
    out.0.extend_from_slice(names.as_bytes());
    out.0.resize(dynamic_at, 0);
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    out.words(&[4, hash_at, 5, names_at, 6, symbols_at]);
    out.words(&[10, names.len(), 11, SYMBOL, 0, 0]);
    for (symbol, at) in symbols.iter().zip(placed) {
        out.0.resize(at, 0);
        out.0.extend_from_slice(symbol.bytes);
    }
    out.0
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

    fn program_header(&mut self, kind: u32, flags: u32, at: usize, size: usize, align: usize) {
        self.u32(kind);
        self.u32(flags);
        self.words(&[at, at, at, size, size, align]);
    }

    fn symbol(&mut self, name: u32, kind: u8, at: usize, size: usize) {
        self.u32(name);
        self.0.extend_from_slice(&[kind, 0]);
        self.u16(1); // in some section: only "undefined" and "absolute" mean more
        self.words(&[at, size]);
    }
}

#[cfg(test)]
#[path = "../../tests/skip/mod.rs"]
mod skip;

#[cfg(test)]
mod tests {
    use super::skip::skipped;
    use super::*;

    #[test]
    fn the_blob_is_found_in_its_shell() {
        let library = around(
            X86_64,
            b"\x02\0\0\0\0\0\0\0ab",
            "__tvm_dev_mblob",
            "__tvm_module_ctx",
        );
        let file = object::File::parse(&*library).unwrap();
        use object::{Object as _, ObjectSymbol as _};
        assert!(file.dynamic_symbols().count() <= 3);
        assert!(library.ends_with(b"ab"));
        if MACHINE == Some(X86_64) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("shell.so");
            fs::write(&path, &library).unwrap();
            // SAFETY: there is no code in it.
            let loaded = unsafe { libloading::Library::new(&path) }.unwrap();
            // SAFETY: the symbol names ten bytes.
            let blob = unsafe { loaded.get::<*const [u8; 10]>("__tvm_dev_mblob") }.unwrap();
            // SAFETY: as above; the library is still loaded.
            assert_eq!(unsafe { &**blob }, b"\x02\0\0\0\0\0\0\0ab");
        }
        let _ = file.dynamic_symbols().next().map(|symbol| symbol.address());
    }

    #[test]
    fn the_functions_of_a_shell_give_their_number() {
        type Compiled = unsafe extern "C" fn(usize, usize, i32, *mut i64, *mut i32, usize) -> i32;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shell.so");
        if let Err(why) = write_functions(&["f", "g"], 7, &path) {
            skipped(why);
            return;
        }
        // SAFETY: nothing runs when it is loaded.
        let loaded = unsafe { libloading::Library::new(&path) }.unwrap();
        for name in ["f", "g"] {
            let (mut value, mut code) = (-1, -1);
            // SAFETY: the code takes anything and writes to both places.
            let returned = unsafe {
                let function = loaded.get::<Compiled>(name).unwrap();
                function(0, 0, 0, &raw mut value, &raw mut code, 0)
            };
            assert_eq!((returned, value, code), (0, 7, 0), "{name}");
        }
        // SAFETY: only whether it is there is asked.
        assert!(unsafe { loaded.get::<Compiled>("h") }.is_err());
    }

    #[test]
    fn a_jump_arrives_with_its_arguments() {
        unsafe extern "C" fn sum(a: i64, b: i64) -> i64 {
            a + b
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shell.so");
        let address = (sum as unsafe extern "C" fn(i64, i64) -> i64) as usize;
        if let Err(why) = write_symbols(&[("sum", Content::Jump(address))], &path) {
            skipped(why);
            return;
        }
        // SAFETY: nothing runs when it is loaded.
        let loaded = unsafe { libloading::Library::new(&path) }.unwrap();
        type Sum = unsafe extern "C" fn(i64, i64) -> i64;
        // SAFETY: the jump leads to a function of this type.
        let said = unsafe { loaded.get::<Sum>("sum").unwrap()(40, 2) };
        assert_eq!(said, 42);
    }
}
