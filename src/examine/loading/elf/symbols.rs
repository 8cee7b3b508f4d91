//! The dynamic symbols, their names and versions, and the hash tables through which they are found.

use super::dynamic::{Dynamic, GNU_HASH, HASH, SYMBOLS};
use super::names::{Names, SCANNED};
use super::{EXECUTES, Image, Stop, TLS, names, sections, unknown};
use std::collections::{BTreeMap, BTreeSet};

/// A dynamic symbol.
#[derive(Clone, Copy)]
pub(super) struct ListedSymbol<'a> {
    pub(super) index: u64,
    pub(super) name: &'a [u8],
    info: u8,
    other: u8,
    value: u64,
    size: u64,
    pub(super) defined: bool,
    pub(super) weak: bool,
    pub(super) global: bool,
    absolute: bool,
}

impl ListedSymbol<'_> {
    /// Its name as messages have it: the start of a long one.
    fn text(&self) -> String {
        let name: String = String::from_utf8_lossy(self.name)
            .chars()
            .take(64)
            .collect();
        name.escape_debug().to_string()
    }
}

const NOT_THERE: &str =
    "its symbols, their names or their hash table are not where its segments are";

/// The links of chains that were followed, and the bytes of the names that were compared there.
#[derive(Default)]
struct StepCount(u64);

impl StepCount {
    /// One link more, at which `name` is compared; `None` behind [`SCANNED`].
    fn take(&mut self, name: &[u8]) -> Option<()> {
        self.0 = self.0.checked_add(name.len() as u64)?.checked_add(1)?;
        (self.0 <= SCANNED).then_some(())
    }
}

/// What relocations and initializers may name.
pub(super) struct RelocatableSymbols {
    /// How many there are; their indices are smaller.
    pub(super) count: u64,
    /// The addresses of functions of either symbol table; empty for a file without static symbols.
    pub(super) functions: BTreeSet<u64>,
}

/// How many symbols there are, as the hash table bounds them.
fn count(image: &Image<'_>, dynamic: &Dynamic) -> Option<u64> {
    if let Some(table) = dynamic.value(HASH) {
        let at = image.offset(table, 8)?;
        return Some(u64::from(image.u32(at.checked_add(4)?)?));
    }
    let hash = GnuHash::read(image, dynamic.value(GNU_HASH)?)?;
    let mut last = None;
    for bucket in 0..hash.buckets {
        last = last.max(hash.bucket(image, bucket));
    }
    let Some(mut index) = last.filter(|last| *last >= hash.first) else {
        return Some(hash.first);
    };
    while hash.chained(image, index)? & 1 == 0 {
        index = index.checked_add(1)?;
    }
    index.checked_add(1)
}

/// All dynamic symbols, the first, empty one included.
pub(super) fn list<'a>(
    image: &Image<'a>,
    dynamic: &Dynamic,
) -> Result<Vec<ListedSymbol<'a>>, Stop> {
    let wrong = || unknown(NOT_THERE);
    let mut names = Names::dynamic(image, dynamic).ok_or_else(wrong)?;
    let table = dynamic.value(SYMBOLS).ok_or_else(wrong)?;
    let count = count(image, dynamic).ok_or_else(wrong)?;
    let offset = image
        .offset(table, count.saturating_mul(24))
        .ok_or_else(wrong)?;
    let mut symbols = Vec::new();
    for index in 0..count {
        let at = offset.saturating_add(index.saturating_mul(24));
        symbols.push(symbol(image, &mut names, index, at).ok_or_else(|| {
            names.fault(&format!(
                "symbol {index} has no name inside the table of names"
            ))
        })?);
    }
    Ok(symbols)
}

fn symbol<'a>(
    image: &Image<'a>,
    names: &mut Names<'a>,
    index: u64,
    at: u64,
) -> Option<ListedSymbol<'a>> {
    let word = |inside: u64| image.u64(at.checked_add(inside)?);
    let [info, other] = image.array(at.checked_add(4)?)?;
    let section = image.u16(at.checked_add(6)?)?;
    Some(ListedSymbol {
        index,
        name: names.at(u64::from(image.u32(at)?))?,
        info,
        other,
        value: word(8)?,
        size: word(16)?,
        defined: section != 0,
        weak: info >> 4 == 2,
        global: matches!(info >> 4, 1 | 2 | 10),
        absolute: section >= 0xff00,
    })
}

/// Holds every symbol to what a dynamic loader does with it.
pub(super) fn read(image: &Image<'_>, dynamic: &Dynamic) -> Result<RelocatableSymbols, Stop> {
    let symbols = list(image, dynamic)?;
    let statics = statics(image)?;
    let tables = Tables::read(image, dynamic).ok_or_else(|| unknown(NOT_THERE))?;
    let mut steps = StepCount::default();
    for symbol in symbols.iter().skip(1) {
        let fault = fault(image, symbol).or_else(|| disagreement(symbol, &statics));
        if let Some(fault) = fault {
            return Err(unknown(&format!("symbol `{}` {fault}", symbol.text())));
        }
        if symbol.defined && symbol.global {
            tables.find(image, symbol, &symbols, &mut steps)?;
        }
    }
    names::check(image, dynamic, &symbols)?;
    Ok(RelocatableSymbols {
        count: symbols.len() as u64,
        functions: statics.functions,
    })
}

/// What is odd about a symbol by itself.
fn fault(image: &Image<'_>, symbol: &ListedSymbol<'_>) -> Option<&'static str> {
    const FUNCTION: u8 = 2;
    let kind = symbol.info & 15;
    if !matches!(kind, 0..=6) || symbol.info >> 4 > 2 && symbol.info >> 4 != 10 {
        return Some("is of a kind that runs code when it is looked up, or of none");
    }
    if !symbol.defined {
        // A reference that is not visible elsewhere is taken for the library's own, at address zero.
        let open = symbol.global && symbol.other & 3 == 0 && symbol.value == 0;
        return (!open).then_some("is left to others and not visible to them");
    }
    if symbol.name.is_empty() && symbol.global {
        return Some("has no name");
    }
    if symbol.absolute || kind == 3 {
        return None;
    }
    if kind == 6 {
        let fits = image
            .of(TLS)
            .any(|data| symbol.value.saturating_add(symbol.size) <= data.size);
        return (!fits).then_some("lies outside the thread-local data");
    }
    if image.segment(symbol.value, symbol.size).is_none() {
        return Some("lies outside the segments");
    }
    if kind == FUNCTION && !image.has_flags(symbol.value, symbol.size, EXECUTES) {
        return Some("is a function where nothing is executed");
    }
    // The slots and the context, which a loader of TVM writes.
    let written = symbol.name.starts_with(b"__TVM")
        || symbol.name.ends_with(b"__tvm_module_ctx")
        || symbol.name.ends_with(b"_library_ctx");
    let writable = image.has_flags(symbol.value, 8, super::WRITES);
    if written && kind != FUNCTION && (!writable || image.is_protected(symbol.value)) {
        return Some("is written by a loader of TVM, and lies where nothing can be written");
    }
    None
}

/// Value, size and kind of a symbol.
type Definition = (u64, u64, u8);

/// What the static table says; empty for a file without one.
struct Statics<'a> {
    /// Of global names.
    values: BTreeMap<&'a [u8], Definition>,
    functions: BTreeSet<u64>,
    /// Whether defined names carry their versions.
    versioned: bool,
}

/// The static symbols, which say of every dynamic one a second time where it is.
fn statics<'a>(image: &Image<'a>) -> Result<Statics<'a>, Stop> {
    let mut statics = Statics {
        values: BTreeMap::new(),
        functions: BTreeSet::new(),
        versioned: false,
    };
    let Some((table, names)) = sections::symbols(image) else {
        return Ok(statics);
    };
    let bytes = |section: &sections::Section| {
        let start = usize::try_from(section.offset).ok()?;
        let length = usize::try_from(section.size).ok()?;
        image.bytes.get(start..start.checked_add(length)?)
    };
    let Some((_, names)) = bytes(&table).zip(bytes(&names)) else {
        return Err(unknown("its static symbols end behind the file"));
    };
    let mut names = Names::new(names);
    for index in 1..table.size / 24 {
        let at = table.offset.saturating_add(index.saturating_mul(24));
        let Some(symbol) = symbol(image, &mut names, index, at) else {
            return Err(names.fault(&format!(
                "static symbol {index} has no name inside the table of names"
            )));
        };
        if symbol.defined && symbol.info & 15 == 2 {
            statics.functions.insert(symbol.value);
        }
        if symbol.global {
            statics.versioned |= symbol.defined && symbol.name.contains(&b'@');
            let definition = (symbol.value, symbol.size, symbol.info);
            statics.values.insert(symbol.name, definition);
        }
    }
    Ok(statics)
}

/// Whether the static table has the same name at another place.
fn disagreement(symbol: &ListedSymbol<'_>, statics: &Statics<'_>) -> Option<&'static str> {
    // Undefined ones carry a version behind their names there.
    if statics.values.is_empty() || !symbol.defined || !symbol.global || symbol.absolute {
        return None;
    }
    match statics.values.get(symbol.name) {
        Some(definition) if *definition == (symbol.value, symbol.size, symbol.info) => None,
        Some(_) => Some("is elsewhere, or something else, in the static symbols"),
        None if statics.versioned => None,
        None => Some("is none of the static symbols"),
    }
}

/// The hash table that dynamic loaders of GNU systems use.
struct GnuHash {
    buckets: u64,
    /// The first symbol that is in it.
    first: u64,
    words: u64,
    shift: u32,
    /// Offsets in the file.
    filter: u64,
    table: u64,
    chains: u64,
}

impl GnuHash {
    fn read(image: &Image<'_>, address: u64) -> Option<GnuHash> {
        let at = image.offset(address, 16)?;
        let word = |index: u64| image.u32(at.checked_add(index)?);
        let (buckets, first) = (u64::from(word(0)?), u64::from(word(4)?));
        let (words, shift) = (u64::from(word(8)?), word(12)?);
        let filter = at.checked_add(16)?;
        let table = filter.checked_add(words.checked_mul(8)?)?;
        let chains = table.checked_add(buckets.checked_mul(4)?)?;
        let length = chains.checked_sub(at)?;
        let whole = image.offset(address, length).is_some();
        let plain = buckets > 0 && words.is_power_of_two() && shift < 32;
        (whole && plain).then_some(GnuHash {
            buckets,
            first,
            words,
            shift,
            filter,
            table,
            chains,
        })
    }

    fn bucket(&self, image: &Image<'_>, bucket: u64) -> Option<u64> {
        let at = self.table.checked_add(bucket.checked_mul(4)?)?;
        image.u32(at).map(u64::from)
    }

    /// The hash in the chain at a symbol.
    fn chained(&self, image: &Image<'_>, index: u64) -> Option<u32> {
        let inside = index.checked_sub(self.first)?.checked_mul(4)?;
        image.u32(self.chains.checked_add(inside)?)
    }

    /// Whether a look-up ends at `symbol`, or at one of the same name before it.
    fn finds(
        &self,
        image: &Image<'_>,
        symbol: &ListedSymbol<'_>,
        all: &[ListedSymbol<'_>],
        steps: &mut StepCount,
    ) -> Option<bool> {
        let hash = symbol.name.iter().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
        });
        let word = u64::from(hash / 64) & self.words.wrapping_sub(1);
        let bits = image.u64(self.filter.checked_add(word.checked_mul(8)?)?)?;
        let second = hash.checked_shr(self.shift)? & 63;
        if bits.wrapping_shr(hash & 63) & bits.wrapping_shr(second) & 1 == 0 {
            return Some(false);
        }
        let mut index = self.bucket(image, u64::from(hash).checked_rem(self.buckets)?)?;
        if index == 0 {
            return Some(false);
        }
        loop {
            steps.take(symbol.name)?;
            let chained = self.chained(image, index)?;
            let here = all.get(usize::try_from(index).ok()?)?;
            if (chained ^ hash) >> 1 == 0 && (index == symbol.index || here.name == symbol.name) {
                return Some(true);
            }
            if chained & 1 == 1 {
                return Some(false);
            }
            index = index.checked_add(1)?;
        }
    }
}

/// The hash of the older tables and of versions.
pub(super) fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0_u32, |hash, byte| {
        let hash = hash.wrapping_shl(4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// The older hash table.
struct OldHash {
    buckets: u64,
    chains: u64,
    /// Offset in the file, of the header's two words.
    table: u64,
}

impl OldHash {
    fn read(image: &Image<'_>, address: u64) -> Option<OldHash> {
        let table = image.offset(address, 8)?;
        let buckets = u64::from(image.u32(table)?);
        let chains = u64::from(image.u32(table.checked_add(4)?)?);
        let words = buckets.checked_add(chains)?.checked_add(2)?;
        image.offset(address, words.checked_mul(4)?)?;
        Some(OldHash {
            buckets,
            chains,
            table,
        })
    }

    /// The word behind the header.
    fn word(&self, image: &Image<'_>, index: u64) -> Option<u64> {
        let inside = index.checked_add(2)?.checked_mul(4)?;
        image.u32(self.table.checked_add(inside)?).map(u64::from)
    }

    /// Whether a look-up ends at `symbol`, or at one of the same name before it.
    fn finds(
        &self,
        image: &Image<'_>,
        symbol: &ListedSymbol<'_>,
        all: &[ListedSymbol<'_>],
        steps: &mut StepCount,
    ) -> Option<bool> {
        let bucket = u64::from(hash(symbol.name)).checked_rem(self.buckets)?;
        let mut index = self.word(image, bucket)?;
        let mut left = self.chains;
        while index != 0 && left > 0 {
            steps.take(symbol.name)?;
            let here = all.get(usize::try_from(index).ok()?)?;
            if index == symbol.index || here.name == symbol.name {
                return Some(true);
            }
            index = self.word(image, self.buckets.checked_add(index)?)?;
            left = left.saturating_sub(1);
        }
        Some(false)
    }
}

/// The hash tables that a library has.
struct Tables {
    gnu: Option<GnuHash>,
    old: Option<OldHash>,
}

impl Tables {
    /// `None` where one that the dynamic section names is not there.
    fn read(image: &Image<'_>, dynamic: &Dynamic) -> Option<Tables> {
        let mut tables = Tables {
            gnu: None,
            old: None,
        };
        if let Some(address) = dynamic.value(GNU_HASH) {
            tables.gnu = Some(GnuHash::read(image, address)?);
        }
        if let Some(address) = dynamic.value(HASH) {
            tables.old = Some(OldHash::read(image, address)?);
        }
        Some(tables)
    }

    /// Holds every table to it that it finds a symbol that others may look up.
    fn find(
        &self,
        image: &Image<'_>,
        symbol: &ListedSymbol<'_>,
        all: &[ListedSymbol<'_>],
        steps: &mut StepCount,
    ) -> Result<(), Stop> {
        let gnu = self.gnu.as_ref();
        let gnu = gnu.is_none_or(|table| table.finds(image, symbol, all, steps) == Some(true));
        let old = self.old.as_ref();
        let old = old.is_none_or(|table| table.finds(image, symbol, all, steps) == Some(true));
        if gnu && old {
            return Ok(());
        }
        Err(unknown(&format!(
            "the hash table does not find symbol `{}`",
            symbol.text()
        )))
    }
}
