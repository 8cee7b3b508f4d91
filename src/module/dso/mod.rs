//! Opened shared libraries: their symbols, and the readable size of each.
//!
//! A library may state a wrong size for its data, and a loader that trusts it reads the memory after the data. Every access to data
//! therefore uses [`Symbols`](super::Symbols). It knows two bounds outside of the blob's header: the size in the symbol table, and the
//! end of the mapped segment (MOD-18).
//!
//! | file | contents | rules |
//! |---|---|---|
//! | `library` | [`Dso`]: opens a library, and finds symbols in it | MOD-01, MOD-02, MOD-18, MOD-26 |
//! | `table` | the symbol table of an opened ELF library, read in memory | |
//! | `segment` | mapped segments, from the dynamic linker | MOD-18 |
//! | `symbol_info` | properties of a symbol, from the linker or the file | |
//! | `trampolines` | makes the C interface visible to libraries that need it | MOD-05, MOD-26 |
//! | `stub` | writes the small shared object for this | |

mod library;
mod segment;
pub(crate) mod stub;
mod symbol_info;
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod table;
#[cfg(unix)]
pub(crate) mod trampolines;

pub(crate) use library::Dso;
pub(super) use segment::{can_execute, can_write, readable_bytes_from};
