//! What a reader has to know of a stream before it reads: whose it is, and by which release's rules.

use super::super::RPC_16;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, ReadValue};

/// Who wrote a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The side that connected, and asks.
    Client,
    /// The side that was connected to, and answers.
    Server,
}

impl Speaker {
    /// The word of JSON forms: `client`, `server`.
    pub const fn name(self) -> &'static str {
        match self {
            Speaker::Client => "client",
            Speaker::Server => "server",
        }
    }
}

/// How a stream is read and written: releases differ, and their bytes do not say so.
///
/// RPC-23: both sides compare the version of the protocol, which did not change when the encoding of values did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The release whose rules hold.
    pub release: Release,
    /// Who wrote the stream.
    pub speaker: Speaker,
    /// The largest packet that is read, in bytes behind its length (RPC-13).
    pub largest: u64,
    /// How many bytes the answer to a copy has. Up to 0.6 the packet does not say so (RPC-27).
    pub awaited: Option<u64>,
}

impl Protocol {
    /// 1 GiB: what a packet may have where its reader does not say otherwise (RPC-13).
    ///
    /// Upstream has no bound, and reserves 1.2 times the length before a byte of the packet is there.
    pub const LARGEST: u64 = 1 << 30;

    /// The protocol of `release`, with the limit [`Protocol::LARGEST`].
    pub const fn new(release: Release, speaker: Speaker) -> Protocol {
        Protocol {
            release,
            speaker,
            largest: Protocol::LARGEST,
            awaited: None,
        }
    }

    /// Whether packets have a length in front of their code, and the codes of 0.7 (RPC-10).
    ///
    /// RPC-15 holds for the others.
    pub(in crate::rpc) const fn is_framed(&self) -> bool {
        self.release.minor() >= 7
    }

    /// Whether copies state a tensor, with the number of bytes behind it (RPC-25).
    #[cfg(feature = "runtime")]
    pub(in crate::rpc) const fn is_block(&self) -> bool {
        self.release.minor() >= 8
    }

    /// Whether arguments are values of tvm-ffi, each behind its own type index (RPC-42).
    ///
    /// RPC-41 holds for the others.
    pub(in crate::rpc) const fn is_ffi(&self) -> bool {
        self.release.minor() >= 21
    }
}

/// What the beginning of a stream holds. A stream that ends inside of a message is not wrong: the rest has not come in yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// A whole message; the cursor is behind it.
    Whole(T),
    /// At least that many more bytes are needed; the cursor is where it was.
    Short(u64),
}

impl<T> Progress<T> {
    /// The same with another value, made of the message.
    #[cfg(feature = "runtime")]
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Progress<U> {
        match self {
            Progress::Whole(value) => Progress::Whole(make(value)),
            Progress::Short(more) => Progress::Short(more),
        }
    }

    /// The message, for a reader of a file: there a message that is cut off is an error.
    ///
    /// # Errors
    ///
    /// RPC-16 of kind truncated, at the end of what `cursor` has.
    pub fn whole(self, cursor: &Cursor<'_>) -> Result<T, Violation> {
        match self {
            Progress::Whole(value) => Ok(value),
            // RPC-16: no more bytes come behind the end of a file.
            Progress::Short(more) => {
                // Where the next byte would be: what is there breaks no rule.
                let end = cursor.offset().saturating_add(cursor.remaining() as u64);
                let message = format!("the message goes on for {more} or more bytes");
                Err(RPC_16.broken(Kind::Truncated, end, message))
            }
        }
    }
}

/// The length or code that is next, without reading it: a message that is not all there leaves the cursor where it was (RPC-16).
pub(super) fn peeked<'f, const N: usize, T>(
    cursor: &Cursor<'_>,
    field: &'f str,
    decode: fn([u8; N]) -> T,
) -> Progress<ReadValue<'f, T>> {
    match cursor.rest().first_chunk() {
        Some(bytes) => Progress::Whole(ReadValue::new(decode(*bytes), cursor.offset(), field)),
        None => Progress::Short((N as u64).saturating_sub(cursor.remaining() as u64)),
    }
}
