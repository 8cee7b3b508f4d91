//! An opened shared library: its symbols, and how far each may be read.
//!
//! A library can lie about the size of its data, and a loader that believes it reads its neighbours. So every access to
//! data goes through [`Symbols`](super::Symbols), which knows two bounds that the blob's own header has no say in: the size that the
//! symbol table has for the symbol, and the end of the mapped segment (MOD-18).
//!
//! | file | what | rules |
//! |---|---|---|
//! | `library` | [`Dso`]: opens a library, and finds symbols in it | MOD-01, MOD-02, MOD-18, MOD-26 |
//! | `table` | the symbol table of an opened ELF library, read in memory | |
//! | `segment` | mapped segments, as the dynamic linker has them | MOD-18 |
//! | `known` | what the linker, or else the file, says of a symbol | |
//! | `forward` | shows the C interface to libraries that need it | MOD-05, MOD-26 |
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
