//! Reading, checking and printing of executables, without running them: no I/O, no `unsafe`, no panic.

mod checks;
mod executable;
mod text;

pub use executable::Executable;
#[cfg(feature = "inspect")]
pub(crate) use text::Listing;
