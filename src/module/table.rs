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
    hash: usize,
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
        let (mut symbols, mut strings, mut hash) = (0, 0, 0);
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
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        // glibc has added the base to these already; a table below the base was not, and is left to `dlsym`.
        if [symbols, strings, hash]
            .into_iter()
            .any(|table| table < map.base || table == 0)
        {
            return None;
        }
        let mut table = Table {
            base: map.base,
            symbols,
            strings,
            hash,
            alone: true,
        };
        table.alone = needed.into_iter().all(|name| table.is_system(name));
        Some(table)
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
        let word = |at: usize| {
            // SAFETY: the hash table was made by the linker that made the library, and every index below follows its form.
            unsafe { ((self.hash + 4 * at) as *const u32).read() }
        };
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
