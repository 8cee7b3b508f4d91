//! A shared library around the bytes of a case, so that a foreign loader can be put to them.
//!
//! A compiler for each case would cost more than the case, and may not be there. On Linux the few tables that the dynamic
//! linker wants are written here; elsewhere [`pack::shared`] links.
//!
//! The bytes are the last thing in the file: what a loader reads beyond them is the zeros of their page, then nothing.

use crate::blob::pack::{self, Naming, Shared};
use std::fs;
use std::io;
use std::path::Path;

/// What the machine is called in an ELF header; `None` where libraries are not written here.
const MACHINE: Option<u16> = if !cfg!(all(
    target_os = "linux",
    target_endian = "little",
    target_pointer_width = "64"
)) {
    None
} else if cfg!(target_arch = "x86_64") {
    Some(62)
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
        Some(machine) => fs::write(path, elf(machine, blob, symbol, context)),
        None => pack::shared(blob, naming, &Shared::default(), path),
    }
}

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;

/// One segment that is read and written, with a symbol table of two.
fn elf(machine: u16, blob: &[u8], symbol: &str, context: &str) -> Vec<u8> {
    let names = format!("\0{symbol}\0{context}\0");
    let hash_at = HEADER + 3 * PROGRAM_HEADER;
    let symbols_at = hash_at + 24;
    let names_at = symbols_at + 3 * SYMBOL;
    let dynamic_at = (names_at + names.len()).next_multiple_of(16);
    let slot_at = dynamic_at + 6 * 16;
    let blob_at = slot_at + 16;
    let end = blob_at + blob.len();

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
    // PT_LOAD, PT_DYNAMIC, PT_GNU_STACK: without the last a stack that can be executed is asked for.
    out.program_header(1, 0, end, 0x1_0000);
    out.program_header(2, dynamic_at, 6 * 16, 8);
    out.program_header(0x6474_e551, 0, 0, 16);
    // One bucket: symbol 1, then 2, then none.
    for word in [1, 3, 1, 0, 2, 0] {
        out.u32(word);
    }
    out.0.resize(symbols_at + SYMBOL, 0);
    out.symbol(1, blob_at, blob.len());
    out.symbol(2 + symbol.len() as u32, slot_at, 8);
    out.0.extend_from_slice(names.as_bytes());
    out.0.resize(dynamic_at, 0);
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    out.words(&[4, hash_at, 5, names_at, 6, symbols_at]);
    out.words(&[10, names.len(), 11, SYMBOL, 0, 0]);
    out.0.resize(blob_at, 0);
    out.0.extend_from_slice(blob);
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

    fn program_header(&mut self, kind: u32, at: usize, size: usize, align: usize) {
        self.u32(kind);
        self.u32(6); // read, write
        self.words(&[at, at, at, size, size, align]);
    }

    fn symbol(&mut self, name: u32, at: usize, size: usize) {
        self.u32(name);
        self.0.extend_from_slice(&[0x11, 0]); // a global object
        self.u16(1); // in some section: only "undefined" and "absolute" mean more
        self.words(&[at, size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blob_is_found_in_its_shell() {
        let library = elf(
            62,
            b"\x02\0\0\0\0\0\0\0ab",
            "__tvm_dev_mblob",
            "__tvm_module_ctx",
        );
        let file = object::File::parse(&*library).unwrap();
        use object::{Object as _, ObjectSymbol as _};
        assert!(file.dynamic_symbols().count() <= 3);
        assert!(library.ends_with(b"ab"));
        if MACHINE == Some(62) {
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
}
