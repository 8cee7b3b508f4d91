//! Integers, strings, vectors: what every format of TVM is made of.
//!
//! | value | bytes | rule |
//! |---|---|---|
//! | integer, float | its size, little endian | WIRE-02 |
//! | bool | one byte, 0 or 1 | WIRE-03 |
//! | string, bytes | u64 length, then that many bytes | WIRE-04, WIRE-05 |
//! | vector | u64 count, then the elements | WIRE-06 |
//! | map | u64 count, then key and value alternately | WIRE-07 |
//!
//! Reading is done by a [`Cursor`], which never leaves its window, knows the absolute offset and the name of the field
//! it reads, and can keep a [`Trace`] of every field for `dump`. Writing is done by a [`Writer`].
//!
//! Any input is safe: no panic, and no allocation beyond a small factor of the bytes that are left.
//!
//! ```
//! use tvmspec::rule::{Kind, Violation};
//! use tvmspec::wire::{Cursor, WIRE_04, Writer};
//!
//! let mut out = Writer::new();
//! out.str("main");
//! let bytes = out.into_bytes();
//! assert_eq!(bytes, b"\x04\0\0\0\0\0\0\0main");
//!
//! assert_eq!(*Cursor::new(&bytes).str("name", WIRE_04)?, "main");
//! let cut = Cursor::new(&bytes[..10]).str("name", WIRE_04).unwrap_err();
//! assert_eq!((cut.kind(), cut.field()), (Kind::Truncated, "name"));
//! # Ok::<(), Violation>(())
//! ```

mod cursor;
mod field_path;
pub mod json;
mod read_value;
mod rules;
mod trace;
mod vectors;
mod words;
mod writer;

pub use rules::*;

pub use cursor::Cursor;
pub use read_value::ReadValue;
#[cfg(feature = "rpc")]
pub(crate) use trace::FieldVisitor;
pub use trace::{Span, Trace};
pub use words::Words;
pub use writer::Writer;

/// Text of bytes that need not be UTF-8, for messages: printable ASCII as it is, the rest escaped, long text shortened.
pub fn show(bytes: &[u8]) -> String {
    // A name in a file may have any length, and a message is one line.
    const LONGEST: usize = 48;
    // Escaped, so that control characters of a file reach no terminal.
    let shown = bytes.get(..LONGEST).unwrap_or(bytes).escape_ascii();
    if bytes.len() > LONGEST {
        format!("{shown}...")
    } else {
        shown.to_string()
    }
}
