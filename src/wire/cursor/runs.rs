//! Byte runs and text with a length before them.

use super::super::trace::TraceValue;
use super::super::{ReadValue, WIRE_04, WIRE_05, show};
use super::Cursor;
use crate::rule::{Kind, Rule, Violation};

impl<'a> Cursor<'a> {
    /// Reads a u64 length and that many bytes (WIRE-04).
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 if the length or its content is truncated.
    #[inline]
    pub fn bytes(&mut self, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        let bytes = self.run_here(field)?;
        // Without a trace, no name is created.
        if self.trace.is_some() {
            self.record_run(field, rule, bytes, TraceValue::Bytes(bytes));
        }
        Ok(self.pass(bytes))
    }

    /// Reads a u64 length and that many bytes of unknown content, which are recorded as a length and a run.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::bytes`].
    #[inline]
    pub fn run(&mut self, field: &str, rule: Rule) -> Result<&'a [u8], Violation> {
        let bytes = self.run_here(field)?;
        if self.trace.is_some() {
            self.record_run(field, rule, bytes, TraceValue::Run(bytes.len()));
        }
        Ok(self.pass(bytes))
    }

    /// Reads a u64 length and that many bytes of UTF-8 (WIRE-04, WIRE-05).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::bytes`]; WIRE-05 at the first byte that is not UTF-8.
    pub fn str<'f>(
        &mut self,
        field: &'f str,
        rule: Rule,
    ) -> Result<ReadValue<'f, &'a str>, Violation> {
        let start = self.offset();
        let bytes = self.run_here(field)?;
        if self.trace.is_some() {
            self.record_run(field, rule, bytes, TraceValue::Bytes(bytes));
        }
        // WIRE-05: released readers compare names as bytes and do not check them. WIRE-01 is checked before WIRE-05, because missing bytes
        // cannot be wrong.
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = error.valid_up_to() as u64;
            let offset = start.saturating_add(8).saturating_add(valid);
            let message = format!("{field} `{}` is not UTF-8", show(bytes));
            WIRE_05
                .broken(Kind::Malformed, offset, message)
                .in_field(field)
        })?;
        self.pass(bytes);
        Ok(ReadValue::new(text, start, field))
    }

    /// Returns the bytes after the u64 length at the cursor, without moving the cursor.
    // WIRE-04: the length is compared with the window before anything is allocated. Released readers allocate first: a length
    // of 2^40 in a file of 100 bytes ends their process.
    #[inline]
    fn run_here(&self, field: &str) -> Result<&'a [u8], Violation> {
        match self.whole_run(1) {
            Some(bytes) => Ok(bytes),
            None => Err(self.cut_run(field)),
        }
    }

    /// Returns the content after the u64 count at the cursor, of elements of `size` bytes, if all of it is there.
    #[inline]
    pub(in crate::formats::wire) fn whole_run(&self, size: usize) -> Option<&'a [u8]> {
        let (count, rest) = self.window.get(self.position..)?.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        // WIRE-06: the product must not overflow: 2^61 words of 8 bytes would be 0 bytes in 64 bits.
        rest.get(..count.checked_mul(size)?)
    }

    /// Creates the violation for a truncated length or its bytes.
    #[cold]
    fn cut_run(&self, field: &str) -> Violation {
        let mut behind = self.clone();
        match behind.length(field, WIRE_04) {
            // The length is recorded by now, so that the dump of a truncated file shows the number that is too large.
            Ok(length) => {
                behind.position = behind.position.saturating_add(8);
                behind.short(length, field)
            }
            Err(broken) => broken,
        }
    }

    /// Moves the cursor after a count of 8 bytes and after `bytes`, which follow it, and returns `bytes`.
    #[inline]
    pub(in crate::formats::wire) fn pass(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.position = self.position.saturating_add(8).saturating_add(bytes.len());
        bytes
    }

    /// Records the length at the cursor, and the `bytes` after it as `value`.
    #[cold]
    fn record_run(&self, field: &str, rule: Rule, bytes: &[u8], value: TraceValue<'_>) {
        let (start, length) = (self.offset(), bytes.len() as u64);
        let content = start.saturating_add(8);
        let shown = TraceValue::Count(length, "bytes");
        self.record_span(start, content, field, WIRE_04, shown);
        self.record_span(content, content.saturating_add(length), field, rule, value);
    }
}
