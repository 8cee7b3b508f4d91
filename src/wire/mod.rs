//! Integers, strings and vectors, which all formats of TVM consist of.
//!
//! | value | bytes | rule |
//! |---|---|---|
//! | integer, float | its size, little endian | WIRE-02 |
//! | bool | one byte, 0 or 1 | WIRE-03 |
//! | string, bytes | u64 length, then that many bytes | WIRE-04, WIRE-05 |
//! | vector | u64 count, then the elements | WIRE-06 |
//! | map | u64 count, then key and value alternately | WIRE-07 |
//!
//! A [`Cursor`] reads. It never leaves its window, knows the absolute offset and the name of each field, and can record a [`Trace`] of
//! every field for `dump`. A [`Writer`] writes.
//!
//! Any input is safe: it causes no panic, and no allocation beyond a small multiple of the bytes that are left.
//!
//! ```
//! use tvmspec::rule::{Kind, Violation};
//! use tvmspec::wire::rules::WIRE_04;
//! use tvmspec::wire::{Cursor, Writer};
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
mod trace;
mod vectors;
mod words;
mod writer;

crate::rule::chapter_rules!("wire");
pub(crate) use rules::*;

pub use cursor::Cursor;
pub use read_value::ReadValue;
#[cfg(feature = "rpc")]
pub(crate) use trace::FieldVisitor;
pub use trace::{Span, Trace};
pub use words::Words;
pub use writer::Writer;

/// Returns bytes, which need not be UTF-8, as text for messages: printable ASCII is unchanged, the rest is escaped, long text is cut.
pub fn show(bytes: &[u8]) -> String {
    // A name in a file may have any length, but a message is one line.
    const LONGEST: usize = 48;
    // The bytes are escaped, so that control characters of a file do not reach a terminal.
    let shown = bytes.get(..LONGEST).unwrap_or(bytes).escape_ascii();
    if bytes.len() > LONGEST {
        format!("{shown}...")
    } else {
        shown.to_string()
    }
}
