//! The streams that released loaders read through: what each does where the bytes end early.

use super::Stop;
use crate::wire::show;
use std::borrow::Cow;

/// What a stream does when fewer bytes are left than are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It raises an error: dmlc's stream over a piece of memory, which reads library binaries up to 0.21 and payloads up to 0.23.
    Raises,
    /// It says how much it read, and the loader looks at that or not: payloads from 0.24 on, and Relax VM code before 0.22.
    Reports,
    /// It fills up with zeros a string of which one byte is left, and calls an empty one a failure: tvm-ffi's stream over the
    /// library binary.
    Pads,
}

/// A position in what a loader reads.
#[derive(Clone, Debug)]
pub(super) struct LoaderStream<'a> {
    bytes: &'a [u8],
    /// What the stream does at its end.
    manner: Manner,
    /// How many bytes more the header counts than there are: a loader reads on, into whatever lies behind.
    beyond: u64,
    /// What was missing and is not noticed.
    lost: Option<String>,
}

impl<'a> LoaderStream<'a> {
    /// The stream over `bytes`, which end where they end: a string that was read, or a file.
    pub(super) fn new(bytes: &'a [u8], manner: Manner) -> LoaderStream<'a> {
        LoaderStream {
            bytes,
            manner,
            beyond: 0,
            lost: None,
        }
    }

    /// The stream over the body of a library binary, which the header says is `counted` bytes long.
    pub(super) fn counted(body: &'a [u8], counted: u64, manner: Manner) -> LoaderStream<'a> {
        // BLOB-01: loaders trust the count, and it may be anything up to 2^64 - 1.
        let here = usize::try_from(counted).ok();
        LoaderStream {
            // BLOB-02: what is behind the count is out of a loader's reach.
            bytes: here.and_then(|here| body.get(..here)).unwrap_or(body),
            manner,
            beyond: counted.saturating_sub(body.len() as u64),
            lost: None,
        }
    }

    /// What it does where the bytes end early.
    pub(super) fn manner(&self) -> Manner {
        self.manner
    }

    /// Notes what is missing without an error.
    pub(super) fn lose(&mut self, what: String) {
        self.lost = Some(what);
    }

    /// What was noted last: nothing is read behind it.
    pub(super) fn lost(self) -> Option<String> {
        self.lost
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Goes on behind `length` of the bytes that are left.
    pub(super) fn skip(&mut self, length: usize) {
        self.bytes = self.bytes.get(length..).unwrap_or_default();
    }

    /// `length` bytes of `what`.
    pub(super) fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8], Stop> {
        let taken = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.split_at_checked(length));
        let Some((taken, rest)) = taken else {
            return Err(self.short(length, what));
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// A number of 8 bytes, little endian as the next two.
    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Stop> {
        let bytes = self.take(8, what)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// A signed number of 8 bytes.
    pub(super) fn i64(&mut self, what: &str) -> Result<i64, Stop> {
        let bytes = self.take(8, what)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| i64::from_le_bytes(*word)))
    }

    /// A signed number of 4 bytes.
    pub(super) fn i32(&mut self, what: &str) -> Result<i32, Stop> {
        let bytes = self.take(4, what)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| i32::from_le_bytes(*word)))
    }

    /// A length and that many bytes.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a [u8], Stop> {
        let length = self.u64(what)?;
        self.take(length, what)
    }

    /// A length and that many bytes, as tvm-ffi's stream over the library binary reads them: what is missing is zero.
    pub(super) fn padded(&mut self, what: &str) -> Result<Cow<'a, [u8]>, Stop> {
        let length = self.u64(what)?;
        // BLOB-04, BLOB-15: reading no byte is what the stream returns at its end.
        if length == 0 {
            return Err(Stop::Rejects(format!(
                "the {what} is empty, which it takes for the end of the bytes"
            )));
        }
        let left = self.bytes;
        let missing = length.saturating_sub(left.len() as u64);
        // BLOB-01: with bytes beyond, the stream has not ended for its loader: memory is read, and nothing filled up.
        if missing == 0 || self.beyond > 0 {
            return self.take(length, what).map(Cow::Borrowed);
        }
        // No byte read is what a failure looks like, and so is memory that cannot be reserved.
        if left.is_empty() || length >= UNADDRESSABLE {
            return Err(Stop::Rejects(format!("the bytes end before the {what}")));
        }
        if missing > PADDING {
            return Err(Stop::Unknown(format!(
                "the {what} has a length of {length} bytes, {} are there; it reserves memory for all of them first and fills up with zeros",
                left.len()
            )));
        }
        // WIRE-01: so a kind is read as `_lib` and two NULs, and source without its last lines.
        self.bytes = &[];
        let mut bytes = left.to_vec();
        bytes.resize(usize::try_from(length).unwrap_or(left.len()), 0);
        Ok(Cow::Owned(bytes))
    }

    /// A count of elements of at least `smallest` bytes each. More than the rest can hold ends in an error in any case.
    pub(super) fn count(&mut self, smallest: u64, what: &str) -> Result<u64, Stop> {
        let count = self.u64(what)?;
        // A hostile count is rejected at once: reading element after element would end in the same error, later.
        let least = count.saturating_mul(smallest);
        if least > self.bytes.len() as u64 {
            return Err(self.short(least, what));
        }
        Ok(count)
    }

    /// A count and that many elements of `size` bytes.
    pub(super) fn elements(&mut self, size: u64, what: &str) -> Result<&'a [u8], Stop> {
        let count = self.count(size, what)?;
        self.take(count.saturating_mul(size), what)
    }

    /// A vector of u64.
    ///
    /// It is read whole: loaders of the import tree and of VM code keep all of it.
    pub(super) fn words(&mut self, what: &str) -> Result<Vec<u64>, Stop> {
        let bytes = self.elements(8, what)?;
        // Their number is a multiple of 8: nothing is left over.
        let words = bytes.chunks_exact(8);
        Ok(words
            .map(|word| {
                word.first_chunk()
                    .map_or(0, |word| u64::from_le_bytes(*word))
            })
            .collect())
    }

    /// A vector of strings.
    pub(super) fn strings(&mut self, what: &str) -> Result<Vec<&'a [u8]>, Stop> {
        let count = self.count(8, what)?;
        (0..count).map(|_| self.string(what)).collect()
    }

    /// Why `wanted` bytes cannot be read. BLOB-01: where the header counts more than there is, memory behind the blob decides.
    ///
    /// `wanted` counts from where the stream is.
    fn short(&self, wanted: u64, what: &str) -> Stop {
        let left = self.bytes.len() as u64;
        if wanted <= left.saturating_add(self.beyond) {
            return Stop::Unknown(format!(
                "the header counts more bytes than there are, and it reads the {what} from whatever lies behind them"
            ));
        }
        Stop::Rejects(format!(
            "the {what} takes {wanted} bytes, and {left} are left"
        ))
    }
}

/// No process has memory for so many bytes.
///
/// It is the address space of a process on x86-64, in bytes.
const UNADDRESSABLE: u64 = 1 << 47;

/// How many missing bytes are made up here; with more of them the outcome depends on memory.
const PADDING: u64 = 1 << 16;

/// Bytes as text for a message.
///
/// Text that is long or has control characters, and what is no UTF-8, is shown byte by byte.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= 64 && !text.chars().any(char::is_control) => text.into(),
        _ => show(bytes).into(),
    }
}
