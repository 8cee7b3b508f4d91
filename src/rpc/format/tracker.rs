//! The encoding between a tracker and its peers: a magic number in both directions, then JSON messages with a length.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | magic, once in each direction | i32 | RPC-50 |
//! | length of a message | i32 | RPC-51, RPC-52 |
//! | message | JSON in UTF-8 | RPC-53 |

use super::super::{RPC_50, RPC_51, RPC_52, RPC_53, RPC_59};
use super::hello::other_protocol_name;
use super::protocol::{Progress, peek_value};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer, show};
use serde_core::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The first message of both sides of a connection to a tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackerHello;

impl TrackerHello {
    /// The magic number: `71 f2 02 00`.
    pub const MAGIC: i32 = 0x02f271;

    /// The longest message that is read, in bytes after its length (RPC-52).
    ///
    /// Trackers from 0.25 on have the same bound; older ones have no bound.
    pub const LONGEST: i32 = 1 << 20;

    /// Reads the magic number.
    ///
    /// # Errors
    ///
    /// Returns RPC-50 for another number.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Progress<TrackerHello>, Violation> {
        let magic = match peek_value(cursor, "magic", i32::from_le_bytes) {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(magic) => magic,
        };
        magic.require(
            RPC_50,
            |magic| *magic == TrackerHello::MAGIC,
            |magic| {
                let other = match &magic.to_le_bytes() {
                    // RPC-01: the two numbers differ in only one byte.
                    [0x71, 0xf2, 0x0f, 0] => ": it begins a session with a server",
                    first => other_protocol_name(first),
                };
                format!("magic {magic:#x} is of no tracker{other}")
            },
        )?;
        cursor.i32("magic", RPC_50)?;
        Ok(Progress::Whole(TrackerHello))
    }

    /// Writes the magic number.
    pub fn write(self, out: &mut Writer) {
        out.i32(TrackerHello::MAGIC);
    }
}

/// A message as JSON, and the offset of its first byte, for error messages.
pub(super) struct TrackerText {
    pub(super) value: Value,
    pub(super) start: u64,
}

impl TrackerText {
    /// Reads one message.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Progress<TrackerText>, Violation> {
        let length = match peek_value(cursor, "length", i32::from_le_bytes) {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(length) => length,
        };
        // RPC-51, RPC-52: checked before any byte of the message is waited for.
        length.require(
            RPC_51,
            |length| *length > 0,
            |length| format!("a message has {length} bytes"),
        )?;
        let longest = TrackerHello::LONGEST;
        let length = length.require_as(
            Kind::Limit,
            RPC_52,
            |length| *length <= longest,
            |length| format!("a message of {length} bytes, {longest} are read"),
        )?;
        let length = u64::try_from(length).unwrap_or_default();
        let there = (cursor.remaining() as u64).saturating_sub(4);
        if there < length {
            return Ok(Progress::Short(length.saturating_sub(there)));
        }
        cursor.i32("length", RPC_51)?;
        let bytes = cursor.read("message", |cursor| cursor.take(length, "message", RPC_53))?;
        let invalid = |message: String| bytes.broken(RPC_53, Kind::Malformed, message);
        // serde_json accepts 128 levels and recurses for each of them, but a tracker's threads have small stacks.
        bytes.require_as(
            Kind::Limit,
            RPC_59,
            |bytes| levels(bytes) <= MOST_LEVELS,
            |bytes| format!("`{}` has more than {MOST_LEVELS} levels", show(bytes)),
        )?;
        // RPC-53: serde_json accepts only UTF-8.
        let value = serde_json::from_slice(*bytes)
            .map_err(|why| invalid(format!("`{}` is not JSON: {why}", show(*bytes))))?;
        Ok(Progress::Whole(TrackerText {
            value,
            start: bytes.offset(),
        }))
    }
}

/// RPC-59: the deepest nesting of lists and objects that is read.
const MOST_LEVELS: usize = 16;

/// Returns the deepest nesting of lists and objects in `json`, without its strings.
fn levels(json: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Writes a message: its length, then its JSON in ASCII, with the spaces of Python's `json.dumps`.
pub(super) fn write_text(value: &Value, out: &mut Writer) -> Result<(), Violation> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Ascii);
    // Writing to memory cannot fail, and the keys of a `Value` are always strings.
    let _ = value.serialize(&mut serializer);
    let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
    RPC_52.demand(Kind::Limit, length <= TrackerHello::LONGEST, || {
        format!("a message of {} bytes", text.len())
    })?;
    out.i32(length);
    out.raw(&text);
    Ok(())
}

/// RPC-53: Python's peers state the number of characters as the length, which equals the number of bytes only in ASCII.
struct Ascii;

impl Formatter for Ascii {
    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for letter in fragment.chars() {
            if letter.is_ascii() {
                write!(writer, "{letter}")?;
            } else {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}
