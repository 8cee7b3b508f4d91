//! The dynamic symbol table of an opened ELF library, read in the library's memory.
//!
//! A loader looks up about twenty names, most of which a library does not define. For each of these `dlsym` searches every dependency and
//! composes an error text. The library's own hash table answers with one test of a bit mask.

use super::segment::{MappedSegment, ProgramHeader};
use crate::module::SymbolName;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const DynamicEntry,
}

#[repr(C)]
struct DynamicEntry {
    tag: i64,
    value: usize,
}

/// An entry of the symbol table of a 64-bit ELF file (`Elf64_Sym`).
#[repr(C)]
pub(super) struct ElfSymbol {
    name: u32,
    /// Type in the lower half, binding in the upper half.
    pub(super) info: u8,
    other: u8,
    section: u16,
    value: usize,
    pub(super) size: usize,
}

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}

const NEEDED: i64 = 1;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const HASH: i64 = 4;
const GNU_HASH: i64 = 0x6fff_fef5;

/// Type of a symbol whose address is returned by a function.
const INDIRECT: u8 = 10;

/// Address and size of a symbol in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundSymbol {
    /// `None` if a function of the library returns the address, which `dlsym` calls (`STT_GNU_IFUNC`).
    pub(super) address: Option<NonNull<c_void>>,
    pub(super) size: usize,
    /// True if the table marks it as data.
    pub(super) is_data: bool,
}

/// The head of a `DT_GNU_HASH` table.
#[derive(Debug)]
struct HashSection {
    buckets: u32,
    /// Index of the first symbol in the table.
    first: u32,
    /// Number of mask words, a power of two.
    masks: u32,
    shift: u32,
    /// Address of the first mask word; buckets and chains follow.
    start: usize,
}

/// The symbol table of one library, valid while the library is open.
#[derive(Debug)]
pub(super) struct SymbolTable {
    base: usize,
    symbols: usize,
    strings: usize,
    /// GNU hash table. Without it `dlsym` must look up names.
    hash: Option<HashSection>,
    /// Older table, `DT_HASH`, which provides the number of symbols if the other table is missing.
    plain_hash: Option<usize>,
    /// Address and number of the program headers, if the dynamic linker returns them: glibc from 2.36 on.
    headers: Option<(usize, usize)>,
    alone: bool,
}

impl SymbolTable {
    /// Returns the table of the library of `handle`. Returns `None` if this module does not support the form of the table.
    ///
    /// # Safety
    ///
    /// `handle` must come from `dlopen` and be open.
    pub(super) unsafe fn of(handle: *mut c_void) -> Option<SymbolTable> {
        const LINK_MAP: c_int = 2;
        let mut map: *const LinkMap = std::ptr::null();
        // SAFETY: `handle` is open, by this contract, and `map` receives the address of its link map.
        unsafe { dlinfo(handle, LINK_MAP, (&raw mut map).cast()) };
        // SAFETY: `map` is the link map of an open handle, or null.
        let map = unsafe { map.as_ref() }?;
        let (mut symbols, mut strings, mut hash, mut plain_hash) = (0, 0, 0, 0);
        let (mut needed, mut needs) = ([0; 8], 0);
        let mut next = map.dynamic;
        // A single pass, because every load walks the section.
        // SAFETY: the dynamic section ends with an entry whose tag is 0, which is the last that is read.
        while let DynamicEntry { tag, value } = unsafe { &*next }
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
            next = next.wrapping_add(1);
        }
        // glibc has already added the base to these addresses. An address below the base was not adjusted, and is left to `dlsym`.
        let place = |place: usize| Some(place).filter(|place| *place > map.base);
        let (symbols, strings) = (place(symbols)?, place(strings)?);
        let hash = place(hash).and_then(|hash| {
            // SAFETY: this is the hash table of an open library.
            unsafe { HashSection::at(hash) }
        });
        let mut table = SymbolTable {
            base: map.base,
            symbols,
            strings,
            hash,
            plain_hash: place(plain_hash),
            // SAFETY: `handle` is open, by this contract.
            headers: unsafe { program_headers(handle) },
            alone: false,
        };
        // If there are more needed libraries than fit, `dlsym` searches the rest.
        let needed = needed.get(..needs);
        table.alone = table.hash.is_some()
            && needed.is_some_and(|all| all.iter().all(|name| table.is_system(*name)));
        Some(table)
    }

    /// Returns the names of all visible symbols, in the order of the table; `true` for those that the library needs.
    pub(super) fn names(&self) -> Vec<(String, bool)> {
        let symbols = (0..self.count()).filter_map(|at| {
            let symbol = (self.symbols as *const ElfSymbol).wrapping_add(at);
            // SAFETY: `at` is less than the number of symbols in the table.
            let symbol = unsafe { &*symbol };
            let text = (self.strings + symbol.name as usize) as *const c_char;
            // SAFETY: the name of a symbol is an offset into the string table, where a NUL ends it.
            let text = unsafe { CStr::from_ptr(text) };
            let name = text.to_str().ok().filter(|_| is_shown(symbol))?;
            Some((name.to_owned(), symbol.section == 0))
        });
        symbols.collect()
    }

    /// Returns the names that this library needs from others and that begin with one of these bytes. Leaves out weak names, which may
    /// be missing.
    pub(super) fn needed(&self, initials: [u8; 2]) -> impl Iterator<Item = &CStr> {
        const WEAK: u8 = 2;
        // In a GNU hash table, symbols that are needed come first.
        let hashed = self.hash.as_ref().map(|hash| hash.first as usize);
        (0..hashed.unwrap_or_else(|| self.count())).filter_map(move |at| {
            let symbol = (self.symbols as *const ElfSymbol).wrapping_add(at);
            // SAFETY: `at` is less than the number of symbols in the table.
            let symbol = unsafe { &*symbol };
            if symbol.section != 0 || symbol.info >> 4 == WEAK {
                return None;
            }
            let text = (self.strings + symbol.name as usize) as *const c_char;
            // Every load reads these names, and most belong to other libraries, so that only the first byte is compared.
            // SAFETY: this is the first byte of a text, which may be its NUL.
            if !initials.contains(&unsafe { text.cast::<u8>().read() }) {
                return None;
            }
            // SAFETY: a symbol's name is an offset into the string table, where a NUL ends it.
            Some(unsafe { CStr::from_ptr(text) })
        })
    }

    /// Returns the number of symbols.
    fn count(&self) -> usize {
        match &self.hash {
            Some(hash) => hash.count() as usize,
            None => self.plain_hash.map_or(0, |hash| {
                // SAFETY: the second word of this older table is the number of symbols.
                unsafe { ((hash + 4) as *const u32).read() as usize }
            }),
        }
    }

    /// Returns whether the library depends only on system libraries, so that `dlsym` finds nothing that its table lacks.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Returns the readable segment of this library that contains `address`; `None` also if the dynamic linker returns no headers.
    pub(super) fn segment(&self, address: usize) -> Option<MappedSegment> {
        let (first, count) = self.headers?;
        // SAFETY: the headers are in memory of the library, which is mapped while `self` is used.
        let headers = unsafe { std::slice::from_raw_parts(first as *const ProgramHeader, count) };
        ProgramHeader::holding(headers, self.base as u64, address as u64)
    }

    /// Returns whether a needed library belongs to the system or is tvm-ffi. Such a library does not define functions of a runtime.
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

    /// Returns whether a name with this hash may be defined. Makes a single test, which rarely returns true for a missing name.
    #[inline]
    pub(super) fn may_have(&self, wanted: u32) -> bool {
        self.hash.as_ref().is_some_and(|hash| hash.may_have(wanted))
    }

    /// Returns the symbol `name`, if this library itself defines it.
    pub(super) fn find(&self, name: SymbolName<'_>) -> Option<FoundSymbol> {
        let wanted = name.hash();
        let hash = self.hash.as_ref().filter(|hash| hash.may_have(wanted))?;
        let mut at = hash.bucket(wanted % hash.buckets);
        if at < hash.first {
            return None;
        }
        loop {
            let link = hash.link(at);
            if link | 1 == wanted | 1 {
                let symbol = (self.symbols as *const ElfSymbol).wrapping_add(at as usize);
                // SAFETY: the chains contain only indices of the symbol table.
                let symbol = unsafe { &*symbol };
                // SAFETY: the name of a symbol is an offset into the string table, where a NUL ends it.
                let text = unsafe {
                    CStr::from_ptr((self.strings + symbol.name as usize) as *const c_char)
                };
                if text.to_bytes() == name.text().as_bytes() && is_plain(symbol) {
                    let address = (symbol.info & 0xf != INDIRECT)
                        .then(|| self.base.wrapping_add(symbol.value) as *mut c_void);
                    return Some(FoundSymbol {
                        address: address.and_then(NonNull::new),
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

impl HashSection {
    /// # Safety
    /// `address` must be the address of a `DT_GNU_HASH` table.
    unsafe fn at(address: usize) -> Option<HashSection> {
        // SAFETY: `address` is that of a `DT_GNU_HASH` table, by this contract, which begins with four words.
        let [buckets, first, masks, shift] = unsafe { *(address as *const [u32; 4]) };
        // `dlsym` finds nothing in a table without buckets, and the number of masks is a power of two.
        (buckets > 0 && masks.is_power_of_two()).then_some(HashSection {
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
        // SAFETY: `mask_at` is the address of one of `masks` words of 64 bits.
        let mask = unsafe { (mask_at as *const u64).read() };
        mask >> (wanted % 64) & mask >> (wanted.wrapping_shr(self.shift) % 64) & 1 == 1
    }

    /// Returns the first symbol of a bucket.
    fn bucket(&self, bucket: u32) -> u32 {
        self.read_u32(2 * self.masks as usize + bucket as usize)
    }

    /// Returns the chain entry of a symbol from `first` on: its hash, with the lowest bit set if it is the last of its bucket.
    fn link(&self, symbol: u32) -> u32 {
        let chains = 2 * self.masks as usize + self.buckets as usize;
        self.read_u32(chains + (symbol - self.first) as usize)
    }

    /// Returns the number of symbols, including those below `first`, which the library needs.
    fn count(&self) -> u32 {
        let last = (0..self.buckets).map(|bucket| self.bucket(bucket)).max();
        let Some(mut last) = last.filter(|last| *last >= self.first) else {
            return self.first;
        };
        while self.link(last) & 1 == 0 {
            last += 1;
        }
        last + 1
    }

    fn read_u32(&self, at: usize) -> u32 {
        // SAFETY: the linker that created the library wrote the table, and every caller's index is within it.
        unsafe { ((self.start + 4 * at) as *const u32).read() }
    }
}

/// Returns the address and number of the program headers of an opened library.
///
/// # Safety
///
/// `handle` must come from `dlopen` and be open.
unsafe fn program_headers(handle: *mut c_void) -> Option<(usize, usize)> {
    const HEADERS: c_int = 11;
    let mut first: *const ProgramHeader = std::ptr::null();
    // SAFETY: `handle` is open, by this contract, and `first` receives the address of its headers.
    let count = unsafe { dlinfo(handle, HEADERS, (&raw mut first).cast()) };
    Some((first as usize, usize::try_from(count).ok()?))
}

/// Returns whether a symbol with this `st_info` is data: an object, or one that several files may define.
pub(super) fn is_data(info: u8) -> bool {
    const OBJECT: u8 = 1;
    const COMMON: u8 = 5;
    [OBJECT, COMMON].contains(&(info & 0xf))
}

/// Returns whether a symbol is defined, visible to others, and not thread-local.
fn is_plain(symbol: &ElfSymbol) -> bool {
    const THREAD_LOCAL: u8 = 6;
    symbol.section != 0 && is_shown(symbol) && symbol.info & 0xf != THREAD_LOCAL
}

/// Returns whether a symbol is visible to others; `dlsym` finds only visible ones.
fn is_shown(symbol: &ElfSymbol) -> bool {
    const LOCAL: u8 = 0;
    symbol.info >> 4 != LOCAL
}
