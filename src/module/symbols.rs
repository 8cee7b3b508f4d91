//! The symbols of a library, wherever they come from.

use crate::rule::Violation;
use std::ffi::c_void;
use std::ptr::NonNull;

/// The name of a symbol with its hash as ELF libraries keep it, so that a loader that looks the same names up in every
/// library computes it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolName<'a> {
    text: &'a str,
    hash: u32,
}

impl<'a> SymbolName<'a> {
    /// The name `text`.
    pub const fn of(text: &'a str) -> SymbolName<'a> {
        let bytes = text.as_bytes();
        let mut hash = 5381_u32;
        let mut at = 0;
        // A loop by hand: the names of releases are hashed in a `const`, where iterators do not run.
        while at < bytes.len() {
            hash = hash.wrapping_mul(33).wrapping_add(bytes[at] as u32);
            at += 1;
        }
        SymbolName { text, hash }
    }

    /// [`SymbolName::of`] when the hash is known.
    pub(super) const fn hashed(text: &'a str, hash: u32) -> SymbolName<'a> {
        SymbolName { text, hash }
    }

    /// The name, as the symbol table spells it.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// The hash of `DT_GNU_HASH`.
    pub const fn hash(&self) -> u32 {
        self.hash
    }
}

/// Where symbols come from: an opened library, the system library's table, or the memory of a test.
pub trait Symbols: Send + Sync {
    /// The address of an exported symbol.
    fn address(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>>;

    /// Calls `found` for each of `names` that is exported: which it is, and its address.
    fn addresses(&self, names: &[SymbolName<'_>], found: &mut dyn FnMut(usize, NonNull<c_void>)) {
        for (at, name) in names.iter().enumerate() {
            if let Some(address) = self.address(*name) {
                found(at, address);
            }
        }
    }

    /// The bytes of the data symbol `name`: no more than belong to it, as far as that can be known.
    ///
    /// # Errors
    ///
    /// MOD-18 for a symbol whose end cannot be found: neither the symbol table nor a segment has a size.
    fn data(&self, name: SymbolName<'_>) -> Result<Option<Data<'_>>, Violation>;

    /// The function `name` whose symbols begin with `prefix`. Data is no function.
    fn function(&self, prefix: &str, name: &str) -> Option<NonNull<c_void>> {
        let address = self.address(SymbolName::of(&format!("{prefix}{name}")))?;
        // MOD-02: data symbols share the names of functions, and calling one is undefined.
        self.is_code(address).then_some(address)
    }

    /// Whether what is at `address` can be executed.
    fn is_code(&self, address: NonNull<c_void>) -> bool;

    /// Whether `bytes` from `address` on may be written, for slots that a loader fills.
    fn is_writable(&self, address: NonNull<c_void>, bytes: usize) -> bool;

    /// Names that the library exports or needs, where they can be listed: exported first, `true` for needed.
    fn list(&self) -> Vec<(String, bool)>;

    /// Functions of a TVM runtime that it needs and that this process does not have (MOD-26).
    fn unmet(&self) -> Vec<String> {
        // MOD-26: none for a source without a file, which has nothing left to bind, and none where the tables of a file are not read.
        Vec::new()
    }

    /// For messages: the path, or what is in its place.
    fn describe(&self) -> String;
}

/// The bytes of a data symbol.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// From the symbol on.
    pub bytes: &'a [u8],
    /// Whether they end where the symbol does; otherwise where the memory does, and other data may be among them.
    pub exact: bool,
}
