//! A shared library that contains the bytes of a case, so that a foreign loader can load them.
//!
//! Compiling each case would cost more than the case, and a compiler may be missing. On Linux the few tables that the dynamic
//! linker needs are written here; elsewhere [`pack::shared`] links.
//!
//! The bytes come last in the file. A loader that reads past them finds the zeros of their page, and then unmapped memory.
//!
//! Functions that return a number are written as machine code of a few instructions, so that lookups can also be tested.

use crate::blob::pack::{self, LinkOptions, SymbolNaming};
use crate::module::dso::stub::{self, Exported, MACHINE, X86_64};
use std::fs;
use std::io;
use std::path::Path;

/// Writes the library `path` with `blob` under the names of `naming`, and a context slot.
pub(in crate::conformance) fn write(
    blob: &[u8],
    symbol: &str,
    context: &str,
    naming: &SymbolNaming,
    path: &Path,
) -> io::Result<()> {
    match MACHINE {
        Some(machine) => fs::write(path, build_library(machine, blob, symbol, context)),
        None => pack::shared(blob, naming, &LinkOptions::default(), path),
    }
}

/// Writes a library of functions with the calling convention of 0.8 to 0.20, which accept any arguments and return `number`.
pub(in crate::conformance) fn write_functions(
    names: &[&str],
    number: u32,
    path: &Path,
) -> io::Result<()> {
    let Some(machine) = MACHINE else {
        return Err(io::Error::other("no code is known for this machine"));
    };
    let code = encode_constant_function(machine, number);
    let functions = names.iter().map(|name| (*name, &code[..]));
    let functions: Vec<Exported<'_>> = functions.collect();
    fs::write(path, stub::library(machine, &[], &functions).bytes)
}

/// Returns a function that stores `number` at its fourth argument and 0 (an integer) at its fifth, and returns 0.
fn encode_constant_function(machine: u16, number: u32) -> Vec<u8> {
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

/// The content of a symbol in a library that leads back into this process.
#[derive(Clone, Copy, Debug)]
pub(in crate::conformance) enum SymbolContent {
    /// Room for an address.
    Slot,
    /// Code that jumps to an address of this process.
    Jump(usize),
}

/// Writes a library for this process, with slots, with functions of this process, and with symbols for bytes.
pub(in crate::conformance) fn write_symbols(
    symbols: &[(&str, SymbolContent)],
    data: &[(&str, &[u8])],
    path: &Path,
) -> io::Result<()> {
    let Some(machine) = MACHINE else {
        return Err(io::Error::other("no code is known for this machine"));
    };
    // A slot is ordinary data: eight zeros that a loader may write.
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

/// Returns the library that contains `blob`, with a slot for the context.
fn build_library(machine: u16, blob: &[u8], symbol: &str, context: &str) -> Vec<u8> {
    // The blob comes last in the file, so that a read past its end is noticed.
    let data = [(context, &[0; 8][..]), (symbol, blob)];
    stub::library(machine, &data, &[]).bytes
}
