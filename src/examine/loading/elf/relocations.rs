//! Relocations, which the dynamic loader applies, and initializers, which it runs.

use super::dynamic::{
    Dynamic, FINI_ARRAY, FINI_ARRAY_SIZE, INIT_ARRAY, INIT_ARRAY_SIZE, PLT, PLT_SIZE, RELA,
    RELA_COUNT, RELA_SIZE, RELR, RELR_SIZE,
};
use super::symbols::RelocatableSymbols;
use super::{EXECUTES, Image, LOAD, Stop, TLS, WRITES, sections, unknown};
use std::collections::BTreeMap;

/// What a type of relocation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RelocationEffect {
    /// Adds the address of the library.
    Base,
    /// Stores the address of a symbol.
    Symbol,
    /// The same, when it is first called.
    Call,
    /// Something about thread-local data.
    Thread,
}

/// The types that a library has on the machines that TVM compiles for, by the numbers of each machine's ABI. Copies (`COPY`, for
/// programs only) and functions that choose an address (`IRELATIVE`, which run code) are not among them.
fn does(machine: u16, kind: u32) -> Option<RelocationEffect> {
    let (symbol, base, call, thread): (&[u32], u32, u32, &[u32]) = match machine {
        // x86-64: 64 and GLOB_DAT; RELATIVE; JUMP_SLOT; DTPMOD64, DTPOFF64, TPOFF64 and TLSDESC.
        62 => (&[1, 6], 8, 7, &[16, 17, 18, 36]),
        // AArch64: ABS64 and GLOB_DAT; RELATIVE; JUMP_SLOT; TLS_DTPMOD, TLS_DTPREL, TLS_TPREL and TLSDESC.
        183 => (&[257, 1025], 1027, 1026, &[1028, 1029, 1030, 1031]),
        // RISC-V, and LoongArch after its model: 64; RELATIVE; JUMP_SLOT; TLS_DTPMOD64, TLS_DTPREL64 and TLS_TPREL64.
        243 => (&[2], 3, 5, &[7, 9, 11]),
        258 => (&[2], 3, 5, &[7, 9, 11]),
        // PowerPC: GLOB_DAT and ADDR64; RELATIVE; JMP_SLOT; DTPMOD64, TPREL64 and DTPREL64.
        21 => (&[20, 38], 22, 21, &[68, 73, 78]),
        // s390x: GLOB_DAT and 64; RELATIVE; JMP_SLOT; TLS_DTPMOD, TLS_DTPOFF and TLS_TPOFF.
        22 => (&[10, 22], 12, 11, &[54, 55, 56]),
        _ => return None,
    };
    match kind {
        _ if symbol.contains(&kind) => Some(RelocationEffect::Symbol),
        _ if kind == base => Some(RelocationEffect::Base),
        _ if kind == call => Some(RelocationEffect::Call),
        _ if thread.contains(&kind) => Some(RelocationEffect::Thread),
        _ => None,
    }
}

/// Holds the relocations to the data that they are for, and what initializers and finalizers they store to the functions.
pub(super) fn check(
    image: &Image<'_>,
    dynamic: &Dynamic,
    symbols: &RelocatableSymbols,
) -> Result<(), Stop> {
    // A table that starts or ends inside a section is one whose tags were changed and whose section headers were not.
    if !sections::begins(image, dynamic) {
        return Err(unknown(
            "a table of its dynamic section begins or ends inside a section",
        ));
    }
    // What is stored at each place, where that is an address in the library.
    let mut stored = BTreeMap::new();
    compact(image, dynamic, &mut stored)?;
    table(image, dynamic, symbols, (RELA, RELA_SIZE), &mut stored)?;
    table(image, dynamic, symbols, (PLT, PLT_SIZE), &mut stored)?;
    for (start, size) in [(INIT_ARRAY, INIT_ARRAY_SIZE), (FINI_ARRAY, FINI_ARRAY_SIZE)] {
        let Some((start, length)) = dynamic.table(start, size) else {
            continue;
        };
        for index in 0..length / 8 {
            let place = start.saturating_add(index.saturating_mul(8));
            // What is called is what a relocation leaves in the word, not what the file has there.
            let runs = stored.get(&place).is_some_and(|target| match target {
                Some(function) => {
                    // A stripped library has no static symbols, and then every address in code may be a function.
                    let known =
                        symbols.functions.is_empty() || symbols.functions.contains(function);
                    known && image.has_flags(*function, 1, EXECUTES)
                }
                // The address of a symbol: the library's own were held to the segments, those of others are not known here.
                None => true,
            });
            if !runs {
                return Err(unknown(
                    "a function that runs when it is opened or closed is none",
                ));
            }
        }
    }
    Ok(())
}

/// Each place, with the address in the library that is stored there; `None` where that is a symbol's.
type Stored = BTreeMap<u64, Option<u64>>;

/// A place is a word of its own, in data, outside the dynamic section.
fn put(
    image: &Image<'_>,
    stored: &mut Stored,
    place: u64,
    target: Option<u64>,
) -> Result<(), Stop> {
    let wrong = |why: &str| {
        Err(unknown(&format!(
            "the relocation at address {place:#x} {why}"
        )))
    };
    let (start, length) = image.dynamic;
    // A loader writes wherever the word is: into code it ends the process, into a table it changes what is read next.
    if !place.is_multiple_of(8)
        || image.offset(place, 8).is_none()
        || !image.has_flags(place, 8, WRITES)
    {
        return wrong("is for no word of its data");
    }
    if (start..start.saturating_add(length)).contains(&place) {
        return wrong("is for the dynamic section");
    }
    // The address right behind a segment is that of an end, as `__stop_` symbols are.
    let last = |load: &super::Segment| {
        target.is_some_and(|target| {
            (load.address..=load.address.saturating_add(load.size)).contains(&target)
        })
    };
    if target.is_some() && !image.of(LOAD).any(last) {
        return wrong("stores an address outside the library");
    }
    match stored.insert(place, target) {
        None => Ok(()),
        Some(_) => wrong("is the second for its word"),
    }
}

/// The words that are shifted by the address of the library, as bit maps.
fn compact(image: &Image<'_>, dynamic: &Dynamic, stored: &mut Stored) -> Result<(), Stop> {
    let Some((start, length)) = dynamic.table(RELR, RELR_SIZE) else {
        return Ok(());
    };
    let offset = image.offset(start, length).unwrap_or(u64::MAX);
    let mut next = 0_u64;
    for index in 0..length / 8 {
        let word = image.u64(offset.saturating_add(index.saturating_mul(8)));
        let word = word.ok_or_else(|| unknown("its relocations end behind the file"))?;
        // Bit maps have no addends: the address to be shifted is what the file has in the word.
        let mut shift = |place: u64| {
            let target = image.offset(place, 8).and_then(|at| image.u64(at));
            let target =
                target.ok_or_else(|| unknown("a relocation is for no word of its data"))?;
            put(image, stored, place, Some(target))
        };
        // An even word is an address; the 63 upper bits of an odd one stand for the 63 words behind the last address.
        if word & 1 == 0 {
            shift(word)?;
            next = word.saturating_add(8);
            continue;
        }
        let mut bits = word >> 1;
        let mut place = next;
        while bits != 0 {
            if bits & 1 == 1 {
                shift(place)?;
            }
            bits >>= 1;
            place = place.saturating_add(8);
        }
        next = next.saturating_add(63 * 8);
    }
    Ok(())
}

/// A table of relocations of 24 bytes: where, symbol and type, addend.
fn table(
    image: &Image<'_>,
    dynamic: &Dynamic,
    symbols: &RelocatableSymbols,
    (start, size): (u64, u64),
    stored: &mut Stored,
) -> Result<(), Stop> {
    let Some((address, length)) = dynamic.table(start, size) else {
        return Ok(());
    };
    // `Dynamic::places` saw that the table lies in the file: the default is never taken.
    let offset = image.offset(address, length).unwrap_or(u64::MAX);
    // So many at the front are relative: glibc applies them as that before it looks at types.
    let leading = match start {
        RELA => dynamic.value(RELA_COUNT),
        _ => None,
    };
    let leading = leading.unwrap_or(0_u64);
    if leading > length / 24 {
        return Err(unknown("it has fewer relocations than it counts"));
    }
    for index in 0..length / 24 {
        let at = offset.saturating_add(index.saturating_mul(24));
        let word = |inside: u64| image.u64(at.saturating_add(inside));
        let Some(((place, info), addend)) = word(0).zip(word(8)).zip(word(16)) else {
            return Err(unknown("its relocations end behind the file"));
        };
        // The upper half of `r_info` is the symbol, the lower one the type.
        let (symbol, kind) = (
            info >> 32,
            u32::try_from(info & 0xffff_ffff).unwrap_or(u32::MAX),
        );
        let wrong = |why: &str| {
            Err(unknown(&format!(
                "the relocation at address {place:#x} {why}"
            )))
        };
        // DT_RELASZ may cover the relocations of the PLT too: those were held above, and `put` takes each word once.
        if start == PLT
            && is_in(
                dynamic,
                RELA,
                RELA_SIZE,
                address.saturating_add(index.saturating_mul(24)),
            )
        {
            continue;
        }
        let Some(does) = does(image.machine, kind) else {
            return wrong("is of a type that libraries do not have");
        };
        if symbol >= symbols.count {
            return wrong("names no symbol");
        }
        // glibc adds the address of the library to these without a look at their types.
        if index < leading && does != RelocationEffect::Base {
            return wrong("is counted among those of another type");
        }
        match does {
            // Loaders ignore the symbol, so that a wrong type goes unnoticed.
            RelocationEffect::Base if symbol != 0 => {
                return wrong("has a symbol, and its type has none");
            }
            RelocationEffect::Base => put(image, stored, place, Some(addend))?,
            RelocationEffect::Symbol if symbol == 0 => {
                return wrong("has no symbol, and its type has one");
            }
            RelocationEffect::Call if symbol == 0 || addend != 0 => {
                return wrong("calls no symbol");
            }
            // Without a symbol it is for the library's own data.
            RelocationEffect::Thread if image.of(TLS).next().is_none() && symbol == 0 => {
                return wrong("is for thread-local data, of which there is none");
            }
            RelocationEffect::Symbol | RelocationEffect::Thread => put(image, stored, place, None)?,
            RelocationEffect::Call => {
                put(image, stored, place, None)?;
                lazily(image, dynamic, place)?;
            }
        }
    }
    Ok(())
}

/// Whether `address` lies in the table of these two tags.
fn is_in(dynamic: &Dynamic, start: u64, size: u64, address: u64) -> bool {
    dynamic
        .table(start, size)
        .is_some_and(|(start, length)| (start..start.saturating_add(length)).contains(&address))
}

/// A function that is looked up when it is first called: its word leads to code until then, and can be written.
fn lazily(image: &Image<'_>, dynamic: &Dynamic, place: u64) -> Result<(), Stop> {
    // MOD-26: a library that is bound at once has no first call.
    if dynamic.binds_now() {
        return Ok(());
    }
    let target = image.offset(place, 8).and_then(|at| image.u64(at));
    let leads = target.is_some_and(|target| image.has_flags(target, 1, EXECUTES));
    if leads && !image.is_protected(place) {
        return Ok(());
    }
    Err(unknown(&format!(
        "the function whose address is stored at {place:#x} cannot be looked up when it is called"
    )))
}
