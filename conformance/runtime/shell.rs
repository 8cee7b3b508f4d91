//! A shared library around the bytes of a case, so that a foreign loader can be put to them.
//!
//! A compiler for each case would cost more than the case, and may not be there. On Linux the few tables that the dynamic
//! linker wants are written here; elsewhere [`pack::shared`] links.
//!
//! The bytes are the last thing in the file: what a loader reads beyond them is the zeros of their page, then nothing.
//!
//! Functions that return a number are written as machine code, a few instructions each, so that lookups can be driven too.

use crate::blob::pack::{self, LinkOptions, SymbolNaming};
use crate::module::dso::stub::{self, Exported, MACHINE, X86_64};
use std::fs;
use std::io;
use std::path::Path;

/// Writes the library `path` with `blob` under the names of `naming`, and a context slot beside it.
pub(in crate::conformance) fn write(
    blob: &[u8],
    symbol: &str,
    context: &str,
    naming: &SymbolNaming,
    path: &Path,
) -> io::Result<()> {
    match MACHINE {
        Some(machine) => fs::write(path, around(machine, blob, symbol, context)),
        None => pack::shared(blob, naming, &LinkOptions::default(), path),
    }
}

/// Writes a library with functions of the calling convention of 0.8 to 0.20, which take anything and return `number`.
pub(in crate::conformance) fn write_functions(
    names: &[&str],
    number: u32,
    path: &Path,
) -> io::Result<()> {
    let Some(machine) = MACHINE else {
        return Err(io::Error::other("no code is known for this machine"));
    };
    let code = returning(machine, number);
    let functions = names.iter().map(|name| (*name, &code[..]));
    let functions: Vec<Exported<'_>> = functions.collect();
    fs::write(path, stub::library(machine, &[], &functions).bytes)
}

/// A function that stores `number` where the fourth argument points, 0 (an integer) where the fifth does, and returns 0.
fn returning(machine: u16, number: u32) -> Vec<u8> {
    if machine == X86_64 {
        let [a, b, c, d] = number.to_le_bytes();
        // The System V convention: %rcx is the fourth argument, %r8 the fifth.
        return vec![
            0x48, 0xc7, 0x01, a, b, c, d, // movq number, (%rcx)
            0x41, 0xc7, 0x00, 0, 0, 0, 0, // movl 0, (%r8)
            0x31, 0xc0, 0xc3, // xorl %eax, %eax; ret
        ];
    }
    // AArch64: x3 is the fourth argument, x4 the fifth.
    let code = [
        0xd280_0008 | (number & 0xffff) << 5, // mov x8, number
        0xf900_0068,                          // str x8, [x3]
        0xb900_009f,                          // str wzr, [x4]
        0x5280_0000,                          // mov w0, 0
        0xd65f_03c0,                          // ret
    ];
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// What a symbol of a library that leads back into this process names.
#[derive(Clone, Copy, Debug)]
pub(in crate::conformance) enum SymbolContent {
    /// Room for an address.
    Slot,
    /// Code that goes on at an address of this process.
    Jump(usize),
}

/// Writes a library with slots, with functions of this process, and with symbols that name bytes, for this process to load.
pub(in crate::conformance) fn write_symbols(
    symbols: &[(&str, SymbolContent)],
    data: &[(&str, &[u8])],
    path: &Path,
) -> io::Result<()> {
    let Some(machine) = MACHINE else {
        return Err(io::Error::other("no code is known for this machine"));
    };
    // A slot is data like any other: eight zeros that a loader may write.
    let (mut slots, mut jumps) = (data.to_vec(), Vec::new());
    for (name, content) in symbols {
        match content {
            SymbolContent::Slot => slots.push((*name, &[0; 8][..])),
            SymbolContent::Jump(address) => jumps.push((*name, stub::jump(machine, *address))),
        }
    }
    let jumps = jumps.iter().map(|(name, code)| (*name, &code[..]));
    let jumps: Vec<Exported<'_>> = jumps.collect();
    fs::write(path, stub::library(machine, &slots, &jumps).bytes)
}

/// The library around `blob`, with a slot for the context.
fn around(machine: u16, blob: &[u8], symbol: &str, context: &str) -> Vec<u8> {
    // The blob is last in the file: what is read behind it shows.
    let data = [(context, &[0; 8][..]), (symbol, blob)];
    stub::library(machine, &data, &[]).bytes
}

#[cfg(test)]
#[path = "../../tests/support/skip.rs"]
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
            // SAFETY: the library is still loaded, and the symbol is of that type.
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
            // SAFETY: the code that was written is of this type.
            let function = unsafe { loaded.get::<Compiled>(name) }.unwrap();
            // SAFETY: the code takes anything and writes to both places.
            let returned = unsafe { function(0, 0, 0, &raw mut value, &raw mut code, 0) };
            assert_eq!((returned, value, code), (0, 7, 0), "{name}");
        }
        // SAFETY: only its presence is looked at.
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
        if let Err(why) = write_symbols(&[("sum", SymbolContent::Jump(address))], &[], &path) {
            skipped(why);
            return;
        }
        // SAFETY: nothing runs when it is loaded.
        let loaded = unsafe { libloading::Library::new(&path) }.unwrap();
        type Sum = unsafe extern "C" fn(i64, i64) -> i64;
        // SAFETY: the jump leads to a function of this type.
        let sum = unsafe { loaded.get::<Sum>("sum") }.unwrap();
        // SAFETY: it takes any two numbers.
        let total = unsafe { sum(40, 2) };
        assert_eq!(total, 42);
    }
}
