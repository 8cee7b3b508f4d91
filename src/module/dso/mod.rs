//! An opened shared library: its symbols, and how far each may be read.
//!
//! A library can lie about the size of its data, and a loader that believes it reads its neighbours. So every access to
//! data goes through [`Symbols`], which knows two bounds that the blob's own header has no say in: the size that the
//! symbol table has for the symbol, and the end of the mapped segment (MOD-18).
//!
//! | file | what | rules |
//! |---|---|---|
//! | `library` | [`Dso`]: opens a library, and finds symbols in it | MOD-01, MOD-02, MOD-18, MOD-26 |
//! | `table` | the symbol table of an opened ELF library, read in memory | |
//! | `segment` | mapped segments, as the dynamic linker has them | MOD-18 |
//! | `known` | what the linker, or else the file, says of a symbol | MOD-18 |
//! | `forward` | shows the C interface to libraries that need it | MOD-05 |
//! | `stub` | writes the small shared object that does so | |

#[cfg(unix)]
pub(crate) mod forward;
mod known;
mod library;
mod segment;
pub(crate) mod stub;
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod table;

pub(crate) use library::Dso;
pub(super) use segment::{can_execute, can_write, room_behind};

use super::SymbolName;
use crate::rule::Violation;
use std::ffi::c_void;
use std::ptr::NonNull;

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
