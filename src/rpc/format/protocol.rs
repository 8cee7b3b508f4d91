//! The facts that a reader needs before it reads a stream: which side wrote it, and the release whose rules it follows.

use super::super::RPC_16;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, ReadValue};

/// The side that wrote a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The side that opened the connection and writes requests.
    Client,
    /// The side that accepted the connection and answers.
    Server,
}

impl Speaker {
    /// Returns the word in JSON forms: `client`, `server`.
    pub const fn name(self) -> &'static str {
        match self {
            Speaker::Client => "client",
            Speaker::Server => "server",
        }
    }
}

/// The parameters for reading and writing a stream. Releases differ, and the bytes do not show the release.
///
/// RPC-23: both sides compare the version of the protocol, which did not change when the encoding of values did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The release whose rules apply.
    pub release: Release,
    /// The side that wrote the stream.
    pub speaker: Speaker,
    /// Largest packet that is read, in bytes after its length (RPC-13).
    pub largest: u64,
    /// Length of the answer to a copy, in bytes. Up to 0.6 the packet does not state it (RPC-27).
    pub awaited: Option<u64>,
}

impl Protocol {
    /// Default size limit of a packet: 1 GiB (RPC-13).
    ///
    /// Upstream has no limit, and reserves 1.2 times the length before a byte of the packet has arrived.
    pub const LARGEST: u64 = 1 << 30;

    /// Creates the protocol of `release`, with the limit [`Protocol::LARGEST`].
    pub const fn new(release: Release, speaker: Speaker) -> Protocol {
        Protocol {
            release,
            speaker,
            largest: Protocol::LARGEST,
            awaited: None,
        }
    }

    /// Returns whether packets have a length before their code, and the codes of 0.7 (RPC-10).
    ///
    /// Otherwise RPC-15 applies.
    pub(in crate::rpc) const fn is_framed(&self) -> bool {
        self.release.minor() >= 7
    }

    /// Returns whether copies state a tensor, followed by the number of bytes (RPC-25).
    #[cfg(feature = "runtime")]
    pub(in crate::rpc) const fn is_block(&self) -> bool {
        self.release.minor() >= 8
    }

    /// Returns whether arguments are values of tvm-ffi, each after its own type index (RPC-42).
    ///
    /// Otherwise RPC-41 applies.
    pub(in crate::rpc) const fn is_ffi(&self) -> bool {
        self.release.minor() >= 21
    }
}

/// The result of reading from a stream. A stream that ends inside a message is not an error, because the rest may still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// A complete message; the cursor is after it.
    Whole(T),
    /// At least that many more bytes are needed; the cursor has not moved.
    Short(u64),
}

impl<T> Progress<T> {
    /// Converts the message.
    #[cfg(feature = "runtime")]
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Progress<U> {
        match self {
            Progress::Whole(value) => Progress::Whole(make(value)),
            Progress::Short(more) => Progress::Short(more),
        }
    }

    /// Returns the message, for readers of files, where a truncated message is an error.
    ///
    /// # Errors
    ///
    /// Returns RPC-16 of kind truncated, at the end of the bytes of `cursor`.
    pub fn require_complete(self, cursor: &Cursor<'_>) -> Result<T, Violation> {
        match self {
            Progress::Whole(value) => Ok(value),
            // RPC-16: no more bytes follow the end of a file.
            Progress::Short(more) => {
                // The offset of the first missing byte: the bytes before it break no rule.
                let end = cursor.offset().saturating_add(cursor.remaining() as u64);
                let message = format!("the message goes on for {more} or more bytes");
                Err(RPC_16.broken(Kind::Truncated, end, message))
            }
        }
    }
}

/// Decodes the next length or code without consuming it: an incomplete message leaves the cursor where it was (RPC-16).
pub(super) fn peek_value<'f, const N: usize, T>(
    cursor: &Cursor<'_>,
    field: &'f str,
    decode: fn([u8; N]) -> T,
) -> Progress<ReadValue<'f, T>> {
    match cursor.rest().first_chunk() {
        Some(bytes) => Progress::Whole(ReadValue::new(decode(*bytes), cursor.offset(), field)),
        None => Progress::Short((N as u64).saturating_sub(cursor.remaining() as u64)),
    }
}
