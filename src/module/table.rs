//! The dynamic symbol table of an opened ELF library, read where the dynamic linker left it.
//!
//! A loader asks for some twenty names, most of which a library does not have. `dlsym` answers such a question by searching
//! every dependency and composing an error text; the library's own hash table answers with one look at a bit mask.

use super::Name;
use super::dso::{ProgramHeader, Segment};
use std::ffi::{CStr, c_char, c_int, c_void};

#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}

const NEEDED: i64 = 1;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const HASH: i64 = 4;
const GNU_HASH: i64 = 0x6fff_fef5;

/// Where a symbol is, and how many bytes the table gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) address: usize,
    pub(super) size: usize,
    /// Whether the table says that it is data.
    pub(super) is_data: bool,
}

/// The head of a table of `DT_GNU_HASH`.
#[derive(Debug)]
struct Hash {
    buckets: u32,
    /// The first symbol that is in it.
    first: u32,
    /// Number of mask words, a power of two.
    masks: u32,
    shift: u32,
    /// Address of the first mask word; buckets and chains follow.
    start: usize,
}

/// The table of one library. Valid while the library is open.
#[derive(Debug)]
pub(super) struct Table {
    base: usize,
    symbols: usize,
    strings: usize,
    /// Without one `dlsym` has to look names up.
    hash: Option<Hash>,
    /// The older table of `DT_HASH`, or 0.
    plain_hash: usize,
    /// Its program headers, and how many.
    headers: (usize, usize),
    alone: bool,
}

impl Table {
    /// The table of the library behind `handle`; `None` when it has none of the form that this reads.
    ///
    /// # Safety
    ///
    /// `handle` must come from `dlopen` and be open.
    pub(super) unsafe fn of(handle: *mut c_void) -> Option<Table> {
        const LINK_MAP: c_int = 2;
        let mut map: *const LinkMap = std::ptr::null();
        // SAFETY: an open handle, and a place for the address of its link map.
        if unsafe { dlinfo(handle, LINK_MAP, (&raw mut map).cast()) } != 0 || map.is_null() {
            return None;
        }
        // SAFETY: `dlinfo` gave the link map of an open handle, not null as just seen.
        let map = unsafe { &*map };
        let (mut symbols, mut strings, mut hash, mut plain_hash) = (0, 0, 0, 0);
        let (mut needed, mut needs) = ([0; 8], 0);
        let mut entry = map.dynamic;
        // SAFETY: the dynamic section ends with an entry whose tag is 0.
        while let Dynamic { tag, value } = unsafe { &*entry }
            && *tag != 0
        {
            match *tag {
                NEEDED => {
                    if let Some(slot) = needed.get_mut(needs) {
                        *slot = *value;
                    }
                    needs += 1;
                }
                STRINGS => strings = *value,
                SYMBOLS => symbols = *value,
                GNU_HASH => hash = *value,
                HASH => plain_hash = *value,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        // glibc has added the base to these already; a table below the base was not, and is left to `dlsym`.
        let absent = |table: usize| table < map.base || table == 0;
        if absent(symbols) || absent(strings) || (absent(hash) && absent(plain_hash)) {
            return None;
        }
        let mut table = Table {
            base: map.base,
            symbols,
            strings,
            hash: if absent(hash) {
                None
            } else {
                // SAFETY: the hash table of an open library.
                unsafe { Hash::at(hash) }
            },
            plain_hash: if absent(plain_hash) { 0 } else { plain_hash },
            headers: headers(map.base, if absent(hash) { plain_hash } else { hash }),
            alone: false,
        };
        // More than there is room for need not be looked at one by one: `dlsym` will.
        let needed = needed.get(..needs);
        table.alone = table.hash.is_some()
            && needed.is_some_and(|all| all.iter().all(|name| table.is_system(*name)));
        Some(table)
    }

    /// The names of all symbols that others can see, in the order of the table: those it defines with `false`, then those
    /// that it needs with `true`.
    pub(super) fn names(&self) -> Vec<(String, bool)> {
        const LOCAL: u8 = 0;
        let (mut defined, mut needed) = (Vec::new(), Vec::new());
        // The first entry stands for no symbol.
        for at in 1..self.count() {
            let symbol = (self.symbols as *const Symbol).wrapping_add(at);
            // SAFETY: `at` is less than the number of symbols in the table.
            let symbol = unsafe { &*symbol };
            let text = (self.strings + symbol.name as usize) as *const c_char;
            // SAFETY: the name of a symbol is an offset into the string table, where a NUL ends it.
            let text = unsafe { CStr::from_ptr(text) };
            let is_needed = symbol.section == 0;
            let list = if is_needed { &mut needed } else { &mut defined };
            if let Ok(text) = text.to_str()
                && !text.is_empty()
                && (is_needed || symbol.info >> 4 != LOCAL)
            {
                list.push((text.to_owned(), is_needed));
            }
        }
        defined.append(&mut needed);
        defined
    }

    /// The names that this library needs from others and that begin with one of `prefixes`; not those that may be missing.
    pub(super) fn needed<'a>(&'a self, prefixes: &'a [&[u8]]) -> impl Iterator<Item = &'a str> {
        const WEAK: u8 = 2;
        // Where symbols are hashed, those that are needed come first.
        let end = self.hash.as_ref().map(|hash| hash.first as usize);
        (1..end.unwrap_or_else(|| self.count())).filter_map(move |at| {
            let symbol = (self.symbols as *const Symbol).wrapping_add(at);
            // SAFETY: `at` is less than the number of symbols in the table.
            let symbol = unsafe { &*symbol };
            if symbol.section != 0 || symbol.info >> 4 == WEAK {
                return None;
            }
            let text = (self.strings + symbol.name as usize) as *const c_char;
            // SAFETY: a symbol's name is an offset into the string table, where a NUL ends it.
            let begins = |prefix: &&[u8]| unsafe { begins(text, prefix) };
            if !prefixes.iter().any(begins) {
                return None;
            }
            // SAFETY: the same text, up to its NUL.
            unsafe { CStr::from_ptr(text) }.to_str().ok()
        })
    }

    /// How many symbols there are.
    fn count(&self) -> usize {
        match &self.hash {
            Some(hash) => hash.last() + 1,
            None if self.plain_hash == 0 => 0,
            // SAFETY: the second word of this older table counts the symbols.
            None => unsafe { ((self.plain_hash + 4) as *const u32).read() as usize },
        }
    }

    /// Whether nothing but system libraries stands behind it, so that what it does not have, `dlsym` will not find.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
    }

    /// The readable segment of this library that holds `address`; `None` also when it does not tell.
    pub(super) fn segment(&self, address: usize) -> Option<Segment> {
        let (first, count) = self.headers;
        if count == 0 {
            return None;
        }
        // SAFETY: `headers` found them in memory of the library, which is mapped while `self` is used.
        let headers = unsafe { std::slice::from_raw_parts(first as *const ProgramHeader, count) };
        ProgramHeader::holding(headers, self.base as u64, address as u64)
    }

    fn is_system(&self, name: usize) -> bool {
        const SYSTEM: [&[u8]; 9] = [
            b"libc.",
            b"libm.",
            b"libpthread.",
            b"libdl.",
            b"librt.",
            b"libgcc_s.",
            b"libstdc++.",
            b"ld-linux",
            b"libtvm_ffi.",
        ];
        // SAFETY: the entry is an offset into the string table, where a NUL ends every name.
        let name = unsafe { CStr::from_ptr((self.strings + name) as *const c_char) }.to_bytes();
        SYSTEM.into_iter().any(|system| name.starts_with(system))
    }

    /// Whether a name of this hash may be defined: one look, and mostly right.
    #[inline]
    pub(super) fn may_have(&self, wanted: u32) -> bool {
        self.hash.as_ref().is_some_and(|hash| hash.may_have(wanted))
    }

    /// The symbol `name` that this library itself defines.
    pub(super) fn find(&self, name: Name<'_>) -> Option<Found> {
        let wanted = name.hash();
        let hash = self.hash.as_ref().filter(|hash| hash.may_have(wanted))?;
        let mut at = hash.bucket(wanted % hash.buckets);
        if at < hash.first {
            return None;
        }
        loop {
            let link = hash.link(at);
            if link | 1 == wanted | 1 {
                let symbol = (self.symbols as *const Symbol).wrapping_add(at as usize);
                // SAFETY: the chains hold indices of the symbol table alone.
                let symbol = unsafe { &*symbol };
                // SAFETY: an offset into the string table.
                let text = unsafe {
                    CStr::from_ptr((self.strings + symbol.name as usize) as *const c_char)
                };
                if text.to_bytes() == name.text().as_bytes() && is_plain(symbol) {
                    return Some(Found {
                        address: self.base.wrapping_add(symbol.value),
                        size: symbol.size,
                        is_data: is_data(symbol.info),
                    });
                }
            }
            if link & 1 == 1 {
                return None;
            }
            at += 1;
        }
    }
}

impl Hash {
    /// # Safety
    ///
    /// `address` must be that of such a table.
    unsafe fn at(address: usize) -> Option<Hash> {
        // SAFETY: such a table begins with four words.
        let [buckets, first, masks, shift] = unsafe { *(address as *const [u32; 4]) };
        (buckets > 0 && masks.is_power_of_two()).then_some(Hash {
            buckets,
            first,
            masks,
            shift,
            start: address + 16,
        })
    }

    #[inline]
    fn may_have(&self, wanted: u32) -> bool {
        let mask_at = self.start + 8 * ((wanted / 64) & (self.masks - 1)) as usize;
        // SAFETY: one of `masks` words of 64 bits.
        let mask = unsafe { (mask_at as *const u64).read() };
        mask >> (wanted % 64) & mask >> ((wanted >> (self.shift % 32)) % 64) & 1 == 1
    }

    /// The first symbol of a bucket.
    fn bucket(&self, bucket: u32) -> u32 {
        self.word(2 * self.masks as usize + bucket as usize)
    }

    /// What the chains say of a symbol from `first` on: its hash, and in the lowest bit whether it is the last of a bucket.
    fn link(&self, symbol: u32) -> u32 {
        let chains = 2 * self.masks as usize + self.buckets as usize;
        self.word(chains + (symbol - self.first) as usize)
    }

    /// The highest index that the table reaches; below `first` are the symbols that the library needs.
    fn last(&self) -> usize {
        let mut last = (0..self.buckets)
            .map(|bucket| self.bucket(bucket))
            .max()
            .unwrap_or(0);
        if last < self.first {
            return self.first.saturating_sub(1) as usize;
        }
        while self.link(last) & 1 == 0 {
            last += 1;
        }
        last as usize
    }

    fn word(&self, at: usize) -> u32 {
        // SAFETY: the table was made by the linker that made the library, and every caller's index follows its form.
        unsafe { ((self.start + 4 * at) as *const u32).read() }
    }
}

/// The program headers of the library at `base`, where they can be read without asking the linker: when the page that its
/// hash table lies in begins with the file's header and holds all of them. Their address and number; elsewhere no number.
fn headers(base: usize, hash: usize) -> (usize, usize) {
    const PAGE: usize = 4096;
    const MAGIC: [u8; 6] = *b"\x7fELF\x02\x01";
    #[repr(C)]
    struct FileHeader {
        magic: [u8; 16],
        kind: u16,
        machine: u16,
        version: u32,
        entry: u64,
        headers: u64,
        sections: u64,
        flags: u32,
        size: u16,
        header_size: u16,
        header_count: u16,
    }
    if hash - base >= PAGE || !base.is_multiple_of(PAGE) {
        return (0, 0);
    }
    // SAFETY: the page is mapped and readable, for the hash table lies in it.
    let file = unsafe { &*(base as *const FileHeader) };
    let end = file
        .headers
        .saturating_add(u64::from(file.header_count) * 56);
    let fits = file.header_size == 56 && file.headers % 8 == 0 && end <= PAGE as u64;
    if !file.magic.starts_with(&MAGIC) || !fits {
        return (0, 0);
    }
    (base + file.headers as usize, file.header_count.into())
}

/// Whether `text` begins with `prefix`, without a look at the rest of it.
///
/// # Safety
///
/// A NUL ends `text`, and `prefix` holds none.
unsafe fn begins(text: *const c_char, prefix: &[u8]) -> bool {
    let mut bytes = prefix.iter().enumerate();
    bytes.all(|(at, byte)| {
        let next = text.cast::<u8>().wrapping_add(at);
        // SAFETY: the bytes before were not NUL, so this one belongs to the text.
        *byte == unsafe { next.read() }
    })
}

/// Whether a symbol of this `st_info` is data, by its type: an object, or one that several files may define.
pub(super) fn is_data(info: u8) -> bool {
    const OBJECT: u8 = 1;
    const COMMON: u8 = 5;
    [OBJECT, COMMON].contains(&(info & 0xf))
}

/// Defined, and data or code at its own address: not thread-local, not resolved by a function.
fn is_plain(symbol: &Symbol) -> bool {
    const THREAD_LOCAL: u8 = 6;
    const INDIRECT: u8 = 10;
    symbol.section != 0 && ![THREAD_LOCAL, INDIRECT].contains(&(symbol.info & 0xf))
}
