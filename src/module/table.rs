//! The dynamic symbol table of an opened ELF library, read where the dynamic linker left it.
//!
//! A loader asks for some twenty names, most of which a library does not have. `dlsym` answers such a question by searching
//! every dependency and composing an error text; the library's own hash table answers with one look at a bit mask.

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
}

/// The table of one library. Valid while the library is open.
#[derive(Debug)]
pub(super) struct Table {
    base: usize,
    symbols: usize,
    strings: usize,
    /// The table of `GNU_HASH`; 0 when the library has none and `dlsym` has to look names up.
    hash: usize,
    /// How many symbols there are.
    count: usize,
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
        // SAFETY: the linker gave a live link map.
        let map = unsafe { &*map };
        let (mut symbols, mut strings, mut hash, mut plain_hash) = (0, 0, 0, 0);
        let mut needed = Vec::new();
        let mut entry = map.dynamic;
        // SAFETY: the dynamic section ends with an entry whose tag is 0.
        while let Dynamic { tag, value } = unsafe { &*entry }
            && *tag != 0
        {
            match *tag {
                NEEDED => needed.push(*value),
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
            hash: if absent(hash) { 0 } else { hash },
            count: 0,
            alone: false,
        };
        table.count = if table.hash == 0 {
            // SAFETY: the second word of this older table counts the symbols.
            unsafe { ((plain_hash + 4) as *const u32).read() as usize }
        } else {
            table.last_hashed() + 1
        };
        table.alone = table.hash != 0 && needed.into_iter().all(|name| table.is_system(name));
        Some(table)
    }

    /// The names of all symbols that others can see, in the order of the table: those it defines with `false`, then those
    /// that it needs with `true`.
    pub(super) fn names(&self) -> Vec<(String, bool)> {
        const LOCAL: u8 = 0;
        let (mut defined, mut needed) = (Vec::new(), Vec::new());
        // The first entry stands for no symbol.
        for at in 1..self.count {
            // SAFETY: within the symbol table, whose names are offsets into the string table.
            let (symbol, text) = unsafe {
                let symbol = &*(self.symbols as *const Symbol).add(at);
                let text = CStr::from_ptr((self.strings + symbol.name as usize) as *const c_char);
                (symbol, text)
            };
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

    /// The highest index that the hash table reaches; below its first index are the symbols that the library needs.
    fn last_hashed(&self) -> usize {
        let (buckets, first, masks) = (self.word(0), self.word(1), self.word(2));
        let bucket_words = 4 + 2 * masks as usize;
        let chain_words = bucket_words + buckets as usize;
        let starts = (0..buckets as usize).map(|bucket| self.word(bucket_words + bucket));
        let mut last = starts.max().unwrap_or(0);
        if last < first {
            return first.saturating_sub(1) as usize;
        }
        while self.word(chain_words + (last - first) as usize) & 1 == 0 {
            last += 1;
        }
        last as usize
    }

    /// A word of the hash table.
    fn word(&self, at: usize) -> u32 {
        // SAFETY: the hash table was made by the linker that made the library, and every caller's index follows its form.
        unsafe { ((self.hash + 4 * at) as *const u32).read() }
    }

    /// Whether nothing but system libraries stands behind it, so that what it does not have, `dlsym` will not find.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
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

    /// The symbol `name` that this library itself defines.
    pub(super) fn find(&self, name: &str) -> Option<Found> {
        let wanted = name.bytes().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(byte.into())
        });
        if self.hash == 0 {
            return None;
        }
        let word = |at: usize| self.word(at);
        let (buckets, first, masks, shift) = (word(0), word(1), word(2), word(3));
        if buckets == 0 || masks == 0 {
            return None;
        }
        let mask_at = self.hash + 16 + 8 * ((wanted / 64) % masks) as usize;
        // SAFETY: one of `masks` words of 64 bits behind the header.
        let mask = unsafe { (mask_at as *const u64).read() };
        let bits = 1_u64 << (wanted % 64) | 1_u64 << ((wanted >> (shift % 32)) % 64);
        if mask & bits != bits {
            return None;
        }
        let bucket_words = 4 + 2 * masks as usize;
        let chain_words = bucket_words + buckets as usize;
        let mut at = word(bucket_words + (wanted % buckets) as usize);
        if at < first {
            return None;
        }
        loop {
            let link = word(chain_words + (at - first) as usize);
            if link | 1 == wanted | 1 {
                // SAFETY: the chain only holds indices of the symbol table.
                let symbol = unsafe { &*(self.symbols as *const Symbol).add(at as usize) };
                // SAFETY: an offset into the string table.
                let text = unsafe {
                    CStr::from_ptr((self.strings + symbol.name as usize) as *const c_char)
                };
                if text.to_bytes() == name.as_bytes() && is_plain(symbol) {
                    return Some(Found {
                        address: self.base.wrapping_add(symbol.value),
                        size: symbol.size,
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

/// Defined, and data or code at its own address: not thread-local, not resolved by a function.
fn is_plain(symbol: &Symbol) -> bool {
    const THREAD_LOCAL: u8 = 6;
    const INDIRECT: u8 = 10;
    symbol.section != 0 && ![THREAD_LOCAL, INDIRECT].contains(&(symbol.info & 0xf))
}
