//! What the dynamic loader of an ELF system reads before TVM reads anything: program headers, the dynamic section, symbols,
//! hash tables, relocations, initializers.
//!
//! Nothing is executed. Each table is read at the address at which the dynamic loader reads it, and is held against the others:
//! the section headers, the hash tables and the static symbols say much of it twice. What is *not* looked at: instructions
//! (those of initializers too), data without relocations, unwind tables, and which versions of functions other libraries
//! define.
//!
//! The work is bounded by the size of the file: each byte of it is in one segment, each table is read once, and names up to a
//! fixed number of bytes.

mod dynamic;
mod hash_tables;
mod image;
mod names;
mod relocations;
mod sections;
mod symbols;
mod versions;

use super::Stop;
use dynamic::Dynamic;
use image::{EXECUTES, Image, LOAD, Segment, TLS, WRITES};

/// How much of a file its reading looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfCoverage {
    /// At everything that a dynamic loader reads of a 64-bit ELF library.
    Tables,
    /// At none of it: another format, or 32 bits.
    Nothing,
}

impl ElfCoverage {
    /// What "loads" rests on, for people.
    pub const fn text(self) -> &'static str {
        match self {
            ElfCoverage::Tables => {
                "the ELF tables that the dynamic loader reads (program headers, dynamic section, symbols, hash tables, relocations, initializers) and the library binary; not the instructions, nor data without relocations"
            }
            ElfCoverage::Nothing => {
                "symbols and the library binary; not the other tables that the system's loader reads, nor the instructions"
            }
        }
    }
}

/// Reads what the dynamic loader reads of `bytes`.
///
/// # Errors
///
/// [`Stop::Rejects`] where every dynamic loader ends in an error, [`Stop::Unknown`] where a table contradicts itself or another.
pub fn tables(bytes: &[u8]) -> Result<ElfCoverage, Stop> {
    // EI_CLASS 2: sizes of entries and types of relocations are those of 64 bits only.
    if !bytes.starts_with(b"\x7fELF\x02") {
        return Ok(ElfCoverage::Nothing);
    }
    let image = Image::read(bytes)?;
    let dynamic = Dynamic::read(&image)?;
    // Section headers first: where they contradict the dynamic section, later messages would name what follows from that.
    sections::check(&image, &dynamic)?;
    let symbols = symbols::read(&image, &dynamic)?;
    versions::check(&image, &dynamic, symbols.count)?;
    relocations::check(&image, &dynamic, &symbols)?;
    Ok(ElfCoverage::Tables)
}

/// The names of the functions and objects that a 64-bit ELF library leaves to others and cannot do without.
///
/// Empty for a file whose [`tables`] contradict each other.
pub fn wanted(bytes: &[u8]) -> Vec<&[u8]> {
    named(bytes, |symbol| {
        // Symbol 0 is the empty one. A weak symbol may stay without a definition.
        !symbol.defined && !symbol.weak && symbol.index > 0
    })
}

/// The names that a 64-bit ELF library defines for others.
pub fn defined(bytes: &[u8]) -> Vec<&[u8]> {
    named(bytes, |symbol| symbol.defined && symbol.global)
}

/// The names of the dynamic symbols that `keep` keeps.
fn named(bytes: &[u8], keep: impl Fn(&symbols::ListedSymbol<'_>) -> bool) -> Vec<&[u8]> {
    let names = || {
        let image = Image::read(bytes).ok()?;
        let dynamic = Dynamic::read(&image).ok()?;
        let symbols = symbols::list(&image, &dynamic).ok()?;
        let kept = symbols.iter().filter(|symbol| keep(symbol));
        Some(kept.map(|symbol| symbol.name).collect())
    };
    // What is wrong with the tables is for `tables` to say.
    names().unwrap_or_else(Vec::new)
}

/// Nothing is known of what follows: dynamic loaders differ here, or none of them checks.
fn unknown(why: &str) -> Stop {
    Stop::Unknown(format!(
        "the dynamic loader comes first, and it is not known what that does: {why}"
    ))
}

/// Every dynamic loader returns an error here.
fn rejects(why: &str) -> Stop {
    Stop::Rejects(format!("the dynamic loader does not open it: {why}"))
}
