//! The symbols of a library, independent of their source.

use crate::rule::Violation;
use std::ffi::c_void;
use std::ptr::NonNull;

/// The name of a symbol with its hash in ELF libraries. A loader that looks up the same names in every library computes each hash once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolName<'a> {
    text: &'a str,
    hash: u32,
}

impl<'a> SymbolName<'a> {
    /// Creates the name `text`.
    pub const fn of(text: &'a str) -> SymbolName<'a> {
        let bytes = text.as_bytes();
        let mut hash = 5381_u32;
        let mut at = 0;
        // A manual loop, because the names of releases are hashed in a `const`, in which iterators do not work.
        while at < bytes.len() {
            hash = hash.wrapping_mul(33).wrapping_add(bytes[at] as u32);
            at += 1;
        }
        SymbolName { text, hash }
    }

    /// Creates a name like [`SymbolName::of`], with a known hash.
    pub(super) const fn hashed(text: &'a str, hash: u32) -> SymbolName<'a> {
        SymbolName { text, hash }
    }

    /// Returns the name, as the symbol table contains it.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the hash for `DT_GNU_HASH`.
    pub const fn hash(&self) -> u32 {
        self.hash
    }
}

/// A source of symbols: an opened library, the system library's table, or the memory of a test.
pub trait Symbols: Send + Sync {
    /// Returns the address of an exported symbol.
    fn address(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>>;

    /// Calls `found` with the index and the address of each of `names` that is exported.
    fn addresses(&self, names: &[SymbolName<'_>], found: &mut dyn FnMut(usize, NonNull<c_void>)) {
        for (at, name) in names.iter().enumerate() {
            if let Some(address) = self.address(*name) {
                found(at, address);
            }
        }
    }

    /// Returns the bytes of the data symbol `name`. Leaves out bytes after its end if the end is known.
    ///
    /// # Errors
    ///
    /// Returns MOD-18 for a symbol whose end is unknown: neither the symbol table nor a segment has a size.
    fn data(&self, name: SymbolName<'_>) -> Result<Option<Data<'_>>, Violation>;

    /// Returns the function `name`, whose symbol begins with `prefix`. Data is not a function.
    fn function(&self, prefix: &str, name: &str) -> Option<NonNull<c_void>> {
        let address = self.address(SymbolName::of(&format!("{prefix}{name}")))?;
        // MOD-02: data symbols may have the names of functions, and calling one is undefined.
        self.is_code(address).then_some(address)
    }

    /// Returns whether the memory at `address` is executable.
    fn is_code(&self, address: NonNull<c_void>) -> bool;

    /// Returns whether `bytes` from `address` on may be written, for slots that a loader fills.
    fn is_writable(&self, address: NonNull<c_void>, bytes: usize) -> bool;

    /// Lists the names that the library exports or needs, as far as they are known. Exported names come first, and needed names have
    /// `true`.
    fn list(&self) -> Vec<(String, bool)>;

    /// Returns the functions of a TVM runtime that it needs and that this process lacks (MOD-26).
    fn missing_functions(&self) -> Vec<String> {
        // MOD-26: empty for a source without a file, which has no symbols to bind, and for a file whose tables are not read.
        Vec::new()
    }

    /// Returns the path for messages, or a text instead of it.
    fn describe(&self) -> String;
}

/// The bytes of a data symbol.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Bytes from the symbol on.
    pub bytes: &'a [u8],
    /// True if the bytes end with the symbol. Otherwise they end with the memory, and may include other data.
    pub exact: bool,
}
