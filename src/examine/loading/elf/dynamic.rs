//! The dynamic section: where every other table is.

use super::{EXECUTES, Image, Stop, WRITES, rejects, unknown};
use std::collections::BTreeMap;

/// Its entries by tag; those that may occur there once only.
pub(super) struct Dynamic {
    /// Every tag but [`NEEDED`].
    values: BTreeMap<u64, u64>,
    /// Offsets of the names of needed libraries.
    pub(super) needed: Vec<u64>,
}

/// `DT_NEEDED`: the name of a library, an offset into the names.
pub(super) const NEEDED: u64 = 1;
/// `DT_PLTRELSZ`: the bytes of [`PLT`].
pub(super) const PLT_SIZE: u64 = 2;
/// `DT_PLTGOT`: the address of the global offset table.
pub(super) const PLT_GOT: u64 = 3;
/// `DT_HASH`: the older hash table.
pub(super) const HASH: u64 = 4;
/// `DT_STRTAB`: the names.
pub(super) const STRINGS: u64 = 5;
/// `DT_SYMTAB`: the dynamic symbols.
pub(super) const SYMBOLS: u64 = 6;
/// `DT_RELA`: relocations with addends.
pub(super) const RELA: u64 = 7;
/// `DT_RELASZ`: the bytes of [`RELA`].
pub(super) const RELA_SIZE: u64 = 8;
/// `DT_RELAENT`: the bytes of one relocation, 24.
const RELA_ENTRY: u64 = 9;
/// `DT_STRSZ`: the bytes of [`STRINGS`].
pub(super) const STRINGS_SIZE: u64 = 10;
/// `DT_SYMENT`: the bytes of one symbol, 24.
const SYMBOL_ENTRY: u64 = 11;
/// `DT_INIT`: the address of a function that runs when the library is opened.
pub(super) const INIT: u64 = 12;
/// `DT_FINI`: the address of a function that runs when it is closed.
pub(super) const FINI: u64 = 13;
/// `DT_SONAME`: the library's own name.
const SONAME: u64 = 14;
/// `DT_RPATH`: where needed libraries are looked for.
const RPATH: u64 = 15;
/// `DT_SYMBOLIC`: own symbols go before those of the program.
const SYMBOLIC: u64 = 16;
/// `DT_PLTREL`: the kind of the relocations in [`PLT`], which is the tag [`RELA`] on 64-bit machines.
const PLT_KIND: u64 = 20;
/// `DT_DEBUG`: a word for debuggers.
const DEBUG: u64 = 21;
/// `DT_JMPREL`: the relocations of functions that are looked up when they are first called.
pub(super) const PLT: u64 = 23;
/// `DT_BIND_NOW`: all functions are looked up when the library is opened.
const BIND_NOW: u64 = 24;
/// `DT_INIT_ARRAY`: the addresses of functions that run when the library is opened.
pub(super) const INIT_ARRAY: u64 = 25;
/// `DT_FINI_ARRAY`: the addresses of functions that run when it is closed.
pub(super) const FINI_ARRAY: u64 = 26;
/// `DT_INIT_ARRAYSZ`: the bytes of [`INIT_ARRAY`].
pub(super) const INIT_ARRAY_SIZE: u64 = 27;
/// `DT_FINI_ARRAYSZ`: the bytes of [`FINI_ARRAY`].
pub(super) const FINI_ARRAY_SIZE: u64 = 28;
/// `DT_RUNPATH`: what took the place of [`RPATH`].
const RUNPATH: u64 = 29;
/// `DT_FLAGS`.
const FLAGS: u64 = 30;
/// `DT_RELRSZ`: the bytes of [`RELR`].
pub(super) const RELR_SIZE: u64 = 35;
/// `DT_RELR`: relative relocations as bit maps.
pub(super) const RELR: u64 = 36;
/// `DT_RELRENT`: the bytes of one word of them, 8.
const RELR_ENTRY: u64 = 37;
/// `DT_GNU_HASH`: the hash table that linkers write today.
pub(super) const GNU_HASH: u64 = 0x6fff_fef5;
/// `DT_VERSYM`: a version number for each symbol.
pub(super) const VERSIONS: u64 = 0x6fff_fff0;
/// `DT_RELACOUNT`: how many relocations at the front of [`RELA`] are relative.
pub(super) const RELA_COUNT: u64 = 0x6fff_fff9;
/// `DT_FLAGS_1`.
const FLAGS_1: u64 = 0x6fff_fffb;
/// `DT_VERDEF`: the versions that the library defines.
pub(super) const VERSIONS_DEFINED: u64 = 0x6fff_fffc;
/// `DT_VERDEFNUM`: how many.
pub(super) const VERSIONS_DEFINED_COUNT: u64 = 0x6fff_fffd;
/// `DT_VERNEED`: the versions that other libraries have to define.
pub(super) const VERSIONS_NEEDED: u64 = 0x6fff_fffe;
/// `DT_VERNEEDNUM`: of how many libraries.
pub(super) const VERSIONS_NEEDED_COUNT: u64 = 0x6fff_ffff;

/// What else a linker writes and a dynamic loader takes, entries that machines have of their own (variant calling
/// conventions, guarded entries) included.
fn is_harmless(tag: u64, machine: u16) -> bool {
    const X86_64: u16 = 62;
    match tag {
        SONAME | RPATH | SYMBOLIC | DEBUG | BIND_NOW | RUNPATH => true,
        // DT_LOPROC and those behind it: what AArch64, RISC-V and PowerPC have there is harmless; that of x86-64 is not known here.
        0x7000_0000..=0x7000_0005 => machine != X86_64,
        _ => false,
    }
}

/// ORIGIN, SYMBOLIC, BIND_NOW, STATIC_TLS; text relocations are no part of it.
const FLAGS_KNOWN: u64 = 1 | 2 | 8 | 16;
/// NOW, GLOBAL, GROUP, NODELETE, INITFIRST, ORIGIN.
const FLAGS_1_KNOWN: u64 = 1 | 2 | 4 | 8 | 0x20 | 0x80;
/// `DF_1_NOOPEN`: `dlopen` returns an error.
const FLAGS_1_NOOPEN: u64 = 0x40;
/// `DF_1_PIE`: the file is a program, which glibc opens no more since 2.30.
const FLAGS_1_PIE: u64 = 0x0800_0000;

impl Dynamic {
    /// Reads the entries up to the one of tag 0, and holds them to each other and to the segments.
    pub(super) fn read(image: &Image<'_>) -> Result<Dynamic, Stop> {
        let mut dynamic = Dynamic {
            values: BTreeMap::new(),
            needed: Vec::new(),
        };
        let (address, size) = image.dynamic;
        // `Image::dynamic_section` saw that all of it lies in one segment, so that neither default is taken.
        let entries = image.at(address, size).unwrap_or_default();
        let offset = image.offset(address, size).unwrap_or(u64::MAX);
        let mut ended = false;
        for index in 0..(entries.len() / 16) as u64 {
            let at = offset.saturating_add(index.saturating_mul(16));
            let Some((tag, value)) = image.u64(at).zip(image.u64(at.saturating_add(8))) else {
                break;
            };
            match tag {
                // DT_NULL. Linkers leave several for tools that add entries; behind the first a loader reads nothing, so that
                // anything else there is meant for a reader that does not stop.
                0 => ended = true,
                _ if ended => return Err(unknown("its dynamic section goes on behind its end")),
                // The only known tag that a linker writes more than once.
                NEEDED => dynamic.needed.push(value),
                _ if !is_known(tag) && !is_harmless(tag, image.machine) => {
                    return Err(unknown(&format!(
                        "its dynamic section has an entry of unknown tag {tag:#x}"
                    )));
                }
                // Loaders keep the entries in an array by tag: of two the last counts, and which a linker meant is not known.
                _ if dynamic.values.insert(tag, value).is_some() => {
                    return Err(unknown(&format!(
                        "its dynamic section has two entries of tag {tag:#x}"
                    )));
                }
                _ => {}
            }
        }
        if !ended {
            return Err(unknown("its dynamic section has no end"));
        }
        dynamic.pairs()?;
        dynamic.flags()?;
        dynamic.places(image)?;
        Ok(dynamic)
    }

    /// The value of the entry of this tag.
    pub(super) fn value(&self, tag: u64) -> Option<u64> {
        self.values.get(&tag).copied()
    }

    /// Address and size of a table; `None` where there is none. [`Self::pairs`] saw that both are there or neither.
    pub(super) fn table(&self, address: u64, size: u64) -> Option<(u64, u64)> {
        self.value(address).zip(self.value(size))
    }

    /// Whether every function is looked up when the library is opened.
    pub(super) fn binds_now(&self) -> bool {
        // DT_BIND_NOW, DF_BIND_NOW and DF_1_NOW say the same: linkers write one or several, and each is enough for a loader.
        let has = |tag, bit| self.value(tag).is_some_and(|flags| flags & bit != 0);
        self.value(BIND_NOW).is_some() || has(FLAGS, 8) || has(FLAGS_1, 1)
    }

    /// What must be there together, and the sizes that there is one of.
    fn pairs(&self) -> Result<(), Stop> {
        let has = |tag: u64| self.values.contains_key(&tag);
        // A loader takes one for a sign that the other is there, and would read a size or an address of 0.
        let together = [
            (RELA, RELA_SIZE),
            (RELA, RELA_ENTRY),
            (RELR, RELR_SIZE),
            (RELR, RELR_ENTRY),
            (PLT, PLT_SIZE),
            (PLT, PLT_KIND),
            (INIT_ARRAY, INIT_ARRAY_SIZE),
            (FINI_ARRAY, FINI_ARRAY_SIZE),
            (VERSIONS_NEEDED, VERSIONS_NEEDED_COUNT),
            (VERSIONS_DEFINED, VERSIONS_DEFINED_COUNT),
            (STRINGS, STRINGS_SIZE),
            (SYMBOLS, SYMBOL_ENTRY),
        ];
        for (one, other) in together {
            if has(one) != has(other) {
                return Err(unknown(&format!(
                    "its dynamic section has an entry of tag {one} or {other} without the other"
                )));
            }
        }
        // musl steps by its own sizes whatever is here, and glibc asserts some of them: another number has no one outcome.
        let sizes = [
            (RELA_ENTRY, 24),
            (RELR_ENTRY, 8),
            (SYMBOL_ENTRY, 24),
            (PLT_KIND, RELA),
        ];
        for (tag, size) in sizes {
            if self.value(tag).is_some_and(|value| value != size) {
                return Err(unknown(&format!(
                    "the entry of tag {tag} in its dynamic section is not {size}"
                )));
            }
        }
        // glibc reads the tables of names and symbols without asking whether they are there.
        let named = has(STRINGS) && has(SYMBOLS) && (has(HASH) || has(GNU_HASH));
        named.then_some(()).ok_or_else(|| {
            unknown("its dynamic section names no symbols, no names or no hash table")
        })
    }

    /// The flags are ones whose meaning is known here.
    fn flags(&self) -> Result<(), Stop> {
        if let Some(flags) = self.value(FLAGS)
            && flags & !FLAGS_KNOWN != 0
        {
            return Err(unknown("it has flags that are not examined here"));
        }
        match self.value(FLAGS_1) {
            Some(flags) if flags & (FLAGS_1_NOOPEN | FLAGS_1_PIE) != 0 => {
                Err(rejects("its flags forbid that a program opens it"))
            }
            Some(flags) if flags & !FLAGS_1_KNOWN != 0 => {
                Err(unknown("it has flags that are not examined here"))
            }
            _ => Ok(()),
        }
    }

    /// Every table in the file and in memory, code where code is run.
    fn places(&self, image: &Image<'_>) -> Result<(), Stop> {
        for (address, size, unit) in [
            (STRINGS, STRINGS_SIZE, 1),
            (RELA, RELA_SIZE, 24),
            (RELR, RELR_SIZE, 8),
            (PLT, PLT_SIZE, 24),
            (INIT_ARRAY, INIT_ARRAY_SIZE, 8),
            (FINI_ARRAY, FINI_ARRAY_SIZE, 8),
        ] {
            let Some((start, length)) = self.table(address, size) else {
                continue;
            };
            if image.offset(start, length).is_none() || !length.is_multiple_of(unit) {
                return Err(unknown(&format!(
                    "the table of tag {address} is not where its segments are"
                )));
            }
        }
        for tag in [INIT, FINI] {
            // Loaders call these two functions as soon as the library is mapped and relocated, without a look at where they lie.
            if self
                .value(tag)
                .is_some_and(|address| !image.has_flags(address, 1, EXECUTES))
            {
                return Err(unknown(
                    "its first or last function lies where nothing is executed",
                ));
            }
        }
        // The loader puts itself and the library into the words behind it.
        let got = self.value(PLT_GOT);
        if got.is_some_and(|got| !got.is_multiple_of(8) || !image.has_flags(got, 24, WRITES)) {
            return Err(unknown(
                "its table of addresses lies where nothing can be written",
            ));
        }
        Ok(())
    }
}

/// Whether an entry of this tag is looked at here.
fn is_known(tag: u64) -> bool {
    matches!(
        tag,
        PLT_SIZE..=FINI
            | PLT_KIND
            | PLT
            | INIT_ARRAY..=FINI_ARRAY_SIZE
            | FLAGS
            | RELR_SIZE..=RELR_ENTRY
            | GNU_HASH
            | VERSIONS
            | RELA_COUNT
            | FLAGS_1..=VERSIONS_NEEDED_COUNT
    )
}
