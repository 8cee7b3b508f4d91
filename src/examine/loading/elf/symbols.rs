//! The dynamic symbols, held against the segments, the hash tables and the static symbols.

use super::dynamic::{Dynamic, SYMBOLS};
use super::hash_tables::{HashTables, StepCount, count};
use super::names::Names;
use super::{EXECUTES, Image, Stop, TLS, sections, unknown};
use std::collections::{BTreeMap, BTreeSet};

/// A dynamic symbol.
#[derive(Clone, Copy)]
pub(super) struct ListedSymbol<'a> {
    /// Its number in the table.
    pub(super) index: u64,
    /// Its name, without the NUL.
    pub(super) name: &'a [u8],
    /// `st_info`: the binding in the upper four bits, the type in the lower ones.
    info: u8,
    /// `st_other`: the visibility in the lowest two bits.
    other: u8,
    /// `st_value`: an address, of thread-local data an offset.
    value: u64,
    /// `st_size`, in bytes.
    size: u64,
    /// Whether it has a section; otherwise another library has to define it.
    pub(super) defined: bool,
    /// Whether a loader lets it be without a definition.
    pub(super) weak: bool,
    /// Whether other libraries see it.
    pub(super) global: bool,
    /// Whether its value is a plain number.
    absolute: bool,
}

impl ListedSymbol<'_> {
    /// Its name as messages have it: the start of a long one.
    fn text(&self) -> String {
        // Names of C++ reach 10,000 bytes; the beginning is enough for a message, and what is no text is escaped.
        let name: String = String::from_utf8_lossy(self.name)
            .chars()
            .take(64)
            .collect();
        name.escape_debug().to_string()
    }
}

/// Every table in the way to the symbols at once: which of them is wrong is for `readelf` to show.
const NOT_THERE: &str =
    "its symbols, their names or their hash table are not where its segments are";

/// What relocations and initializers may name.
pub(super) struct RelocatableSymbols {
    /// How many there are; their indices are smaller.
    pub(super) count: u64,
    /// The addresses of functions of either symbol table; empty for a file without static symbols.
    pub(super) functions: BTreeSet<u64>,
}

/// All dynamic symbols, the first, empty one included.
pub(super) fn list<'a>(
    image: &Image<'a>,
    dynamic: &Dynamic,
) -> Result<Vec<ListedSymbol<'a>>, Stop> {
    let wrong = || unknown(NOT_THERE);
    let mut names = Names::dynamic(image, dynamic).ok_or_else(wrong)?;
    let table = dynamic.value(SYMBOLS).ok_or_else(wrong)?;
    // The dynamic section has no number of symbols: hash tables have.
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

/// The symbol at offset `at`, of 24 bytes: name, info, other, section, value, size.
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
        // STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE.
        global: matches!(info >> 4, 1 | 2 | 10),
        // SHN_LORESERVE and above: SHN_ABS, of which the value is no address.
        absolute: section >= 0xff00,
    })
}

/// Holds every symbol to what a dynamic loader does with it.
pub(super) fn read(image: &Image<'_>, dynamic: &Dynamic) -> Result<RelocatableSymbols, Stop> {
    let symbols = list(image, dynamic)?;
    let statics = statics(image)?;
    let tables = HashTables::read(image, dynamic).ok_or_else(|| unknown(NOT_THERE))?;
    let names: Vec<&[u8]> = symbols.iter().map(|symbol| symbol.name).collect();
    let mut steps = StepCount::default();
    // Symbol 0 is empty: what has no symbol names it.
    for symbol in symbols.iter().skip(1) {
        let fault = fault(image, symbol).or_else(|| disagreement(symbol, &statics));
        if let Some(fault) = fault {
            return Err(unknown(&format!("symbol `{}` {fault}", symbol.text())));
        }
        // Only what the library defines for others is looked up through its hash table.
        if symbol.defined && symbol.global && !tables.find(image, symbol.index, &names, &mut steps)
        {
            return Err(unknown(&format!(
                "the hash table does not find symbol `{}`",
                symbol.text()
            )));
        }
    }
    Ok(RelocatableSymbols {
        count: symbols.len() as u64,
        functions: statics.functions,
    })
}

/// What is odd about a symbol by itself.
fn fault(image: &Image<'_>, symbol: &ListedSymbol<'_>) -> Option<&'static str> {
    const FUNCTION: u8 = 2;
    let kind = symbol.info & 15;
    // STT_GNU_IFUNC is 10: its function is run to find the address.
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
    // STT_SECTION names no place of its own.
    if symbol.absolute || kind == 3 {
        return None;
    }
    // STT_TLS: the value counts from the start of the thread's data.
    if kind == 6 {
        // One segment of thread-local data is all that a library has; symbols are held to its size in memory.
        let fits = image
            .of(TLS)
            .any(|data| symbol.value.saturating_add(symbol.size) <= data.size);
        return (!fits).then_some("lies outside the thread-local data");
    }
    if image.segment(symbol.value, symbol.size).is_none() {
        return Some("lies outside the segments");
    }
    // The first call of it would end the process.
    if kind == FUNCTION && !image.has_flags(symbol.value, symbol.size, EXECUTES) {
        return Some("is a function where nothing is executed");
    }
    // BLOB-65: the slots and the context, which a loader of TVM writes without a look at what protects them.
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
    /// By global names. Local ones are not unique.
    values: BTreeMap<&'a [u8], Definition>,
    /// The addresses of all functions, local ones included: initializers are mostly local.
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
            // Linkers write `name@@VERSION` here: the plain name is missing then, and that says nothing.
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
