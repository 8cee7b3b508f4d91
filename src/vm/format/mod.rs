//! What reads, checks and prints executables, without running any: no I/O, no `unsafe`, no panic.

mod checks;
mod executable;
mod text;

pub use executable::Executable;
#[cfg(feature = "inspect")]
pub(crate) use text::Listing;
