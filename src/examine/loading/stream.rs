//! The streams that released loaders read through, and their behaviour if the bytes end early.

use super::Stop;
use crate::wire::show;
use std::borrow::Cow;

/// The behaviour of a stream if fewer bytes are left than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Raises an error: dmlc's stream over memory, which reads library binaries up to 0.21 and payloads up to 0.23.
    Raises,
    /// Reports how much it read, which the loader may not check: payloads from 0.24 on, and Relax VM code before 0.22.
    Reports,
    /// Pads a truncated string with zeros if at least one byte is left, and reports an empty string as a failure. This is tvm-ffi's
    /// stream over the library binary.
    Pads,
}

/// A position in the bytes that a loader reads.
#[derive(Clone, Debug)]
pub(super) struct LoaderStream<'a> {
    bytes: &'a [u8],
    /// The behaviour at the end of the bytes.
    manner: Manner,
    /// The number of bytes that the header counts beyond the end. A loader continues to read the memory that follows.
    beyond: u64,
    /// The missing content that the loader does not notice, if any.
    lost: Option<String>,
}

impl<'a> LoaderStream<'a> {
    /// Creates a stream over exactly `bytes`: a string that was read, or a file.
    pub(super) fn new(bytes: &'a [u8], manner: Manner) -> LoaderStream<'a> {
        LoaderStream {
            bytes,
            manner,
            beyond: 0,
            lost: None,
        }
    }

    /// Creates a stream over the body of a library binary, whose header states a length of `counted` bytes.
    pub(super) fn with_stated_length(
        body: &'a [u8],
        counted: u64,
        manner: Manner,
    ) -> LoaderStream<'a> {
        // BLOB-01: loaders trust the count, which may be anything up to 2^64 - 1.
        let here = usize::try_from(counted).ok();
        LoaderStream {
            // BLOB-02: a loader cannot reach bytes after the counted ones.
            bytes: here.and_then(|here| body.get(..here)).unwrap_or(body),
            manner,
            beyond: counted.saturating_sub(body.len() as u64),
            lost: None,
        }
    }

    /// Returns the behaviour at the end of the bytes.
    pub(super) fn manner(&self) -> Manner {
        self.manner
    }

    /// Records missing content that causes no error.
    pub(super) fn lose(&mut self, what: String) {
        self.lost = Some(what);
    }

    /// Returns the missing content that was recorded last.
    pub(super) fn missing_content(self) -> Option<String> {
        self.lost
    }

    /// Returns the remaining bytes.
    pub(super) fn remaining(&self) -> &'a [u8] {
        self.bytes
    }

    /// Skips `length` of the remaining bytes.
    pub(super) fn skip(&mut self, length: usize) {
        self.bytes = self.bytes.get(length..).unwrap_or_default();
    }

    /// Reads `length` bytes of `what`.
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

    /// Reads an unsigned little-endian number of 8 bytes.
    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Stop> {
        let bytes = self.take(8, what)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// Reads a signed little-endian number of 8 bytes.
    pub(super) fn i64(&mut self, what: &str) -> Result<i64, Stop> {
        let bytes = self.take(8, what)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| i64::from_le_bytes(*word)))
    }

    /// Reads a signed little-endian number of 4 bytes.
    pub(super) fn i32(&mut self, what: &str) -> Result<i32, Stop> {
        let bytes = self.take(4, what)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |word| i32::from_le_bytes(*word)))
    }

    /// Reads a length and that many bytes.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a [u8], Stop> {
        let length = self.u64(what)?;
        self.take(length, what)
    }

    /// Reads a length and that many bytes, as tvm-ffi's stream over the library binary does: missing bytes are zero.
    pub(super) fn padded(&mut self, what: &str) -> Result<Cow<'a, [u8]>, Stop> {
        let length = self.u64(what)?;
        // BLOB-04, BLOB-15: the stream also returns zero bytes at its end, so an empty string looks like the end.
        if length == 0 {
            return Err(Stop::Rejects(format!(
                "the {what} is empty, which it takes for the end of the bytes"
            )));
        }
        let left = self.bytes;
        let missing = length.saturating_sub(left.len() as u64);
        // BLOB-01: if the header counts too many bytes, the loader's stream has not ended. It reads the memory that follows and pads
        // nothing.
        if missing == 0 || self.beyond > 0 {
            return self.take(length, what).map(Cow::Borrowed);
        }
        // Reading no byte is a failure, and so is a length for which no memory can be reserved.
        if left.is_empty() || length >= UNADDRESSABLE {
            return Err(Stop::Rejects(format!("the bytes end before the {what}")));
        }
        if missing > PADDING {
            return Err(Stop::Unknown(format!(
                "the {what} has a length of {length} bytes, {} are there; it reserves memory for all of them first and fills up with zeros",
                left.len()
            )));
        }
        // WIRE-01: for example, a truncated kind is read as `_lib` and two NULs, and source loses its last lines.
        self.bytes = &[];
        let mut bytes = left.to_vec();
        bytes.resize(usize::try_from(length).unwrap_or(left.len()), 0);
        Ok(Cow::Owned(bytes))
    }

    /// Reads a count of elements that take at least `smallest` bytes each. Fails at once if the remaining bytes are too few for that
    /// count.
    pub(super) fn count(&mut self, smallest: u64, what: &str) -> Result<u64, Stop> {
        let count = self.u64(what)?;
        // Without this check, reading element after element would end in the same error, but only after a long time for a hostile
        // count.
        let least = count.saturating_mul(smallest);
        if least > self.bytes.len() as u64 {
            return Err(self.short(least, what));
        }
        Ok(count)
    }

    /// Reads a count and that many elements of `size` bytes.
    pub(super) fn elements(&mut self, size: u64, what: &str) -> Result<&'a [u8], Stop> {
        let count = self.count(size, what)?;
        self.take(count.saturating_mul(size), what)
    }

    /// Reads a vector of u64.
    ///
    /// The whole vector is copied, as the loaders of the import tree and of VM code do.
    pub(super) fn words(&mut self, what: &str) -> Result<Vec<u64>, Stop> {
        let bytes = self.elements(8, what)?;
        // The length in bytes is a multiple of 8, so that nothing is left over.
        let words = bytes.chunks_exact(8);
        Ok(words
            .map(|word| {
                word.first_chunk()
                    .map_or(0, |word| u64::from_le_bytes(*word))
            })
            .collect())
    }

    /// Reads a vector of strings.
    pub(super) fn strings(&mut self, what: &str) -> Result<Vec<&'a [u8]>, Stop> {
        let count = self.count(8, what)?;
        (0..count).map(|_| self.string(what)).collect()
    }

    /// Returns the outcome of a read of `wanted` bytes, from the current position, for which too few bytes are left.
    ///
    /// BLOB-01: if the header counts too many bytes, the outcome depends on the memory after the blob.
    fn short(&self, wanted: u64, what: &str) -> Stop {
        let left = self.bytes.len() as u64;
        if wanted <= left.saturating_add(self.beyond) {
            return Stop::Unknown(format!(
                "the header counts more bytes than there are, and it reads the {what} from the memory after them"
            ));
        }
        Stop::Rejects(format!(
            "the {what} takes {wanted} bytes, and {left} are left"
        ))
    }
}

/// A size that no process can allocate, in bytes: the user address space on x86-64.
const UNADDRESSABLE: u64 = 1 << 47;

/// The maximum number of missing bytes that are padded here. If more are missing, the outcome depends on the available memory.
const PADDING: u64 = 1 << 16;

/// Formats bytes as text for a message.
///
/// Long text, text with control characters, and bytes that are not UTF-8 are shown byte by byte.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= 64 && !text.chars().any(char::is_control) => text.into(),
        _ => show(bytes).into(),
    }
}
