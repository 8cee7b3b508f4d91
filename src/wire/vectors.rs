//! Vectors and maps: a count, and elements that must fit into the rest of the window.

use super::trace::TraceValue;
use super::{Cursor, WIRE_06, WIRE_07, Words};
use crate::rule::{Kind, Rule, Violation};

impl<'a> Cursor<'a> {
    /// Reads a u64 count of elements that take at least `smallest` bytes each. A count that does not fit into the rest breaks WIRE-06.
    ///
    /// The caller may reserve memory for `count` elements, because the input is large enough.
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 if the count itself is truncated; WIRE-06 for a count that does not fit into the rest.
    pub fn count(&mut self, smallest: usize, field: &str) -> Result<usize, Violation> {
        self.counted(smallest, field, WIRE_06)
    }

    /// Reads a count like [`Cursor::count`]; a trace shows the unit of `rule`.
    fn counted(&mut self, smallest: usize, field: &str, rule: Rule) -> Result<usize, Violation> {
        let count = self.length(field, rule)?;
        let room = self.remaining().saturating_sub(8);
        // WIRE-06: a count beyond `usize` cannot fit either. Released readers allocate first: for 2^28 missing words they take 2 GiB before
        // they fail.
        let needed =
            usize::try_from(count).map_or(usize::MAX, |count| count.saturating_mul(smallest));
        WIRE_06
            .require_as(Kind::Truncated, needed <= room, self.offset(), || {
                format!("{field} counts {count} elements of at least {smallest} bytes, {room} bytes follow")
            })
            .map_err(|broken| broken.in_field(field))?;
        // WIRE-06: a rejected count leaves the cursor before it, at the offset of the violation.
        self.position = self.position.saturating_add(8);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Reads a vector: a count, and then each element through `read`, with its index in the path.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::count`], and the first error of `read`.
    pub fn vector<T>(
        &mut self,
        smallest: usize,
        field: &'static str,
        read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let count = self.count(smallest, field)?;
        self.elements(count, field, read)
    }

    /// Reads a map: a count, and then key and value of each entry through `read`, in the order of the bytes (WIRE-07).
    ///
    /// `smallest` is the smallest size of a key and a value together.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::count`], and the first error of `read`.
    pub fn map<T>(
        &mut self,
        smallest: usize,
        field: &'static str,
        read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        // WIRE-07: the order and repeated keys are kept. Writers up to 0.23 write the order of a hash map, and a file must be written back
        // to the same bytes.
        let count = self.counted(smallest, field, WIRE_07)?;
        self.elements(count, field, read)
    }

    /// Reads `count` elements of `field`, each through `read`.
    fn elements<T>(
        &mut self,
        count: usize,
        field: &'static str,
        mut read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        (0..count as u64)
            .map(|index| self.read_within(field, index, &mut read))
            .collect()
    }

    /// Reads a vector of u64 without copying: a million elements cost nothing to open.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::count`], for elements of eight bytes.
    pub fn words(&mut self, field: &'static str, rule: Rule) -> Result<Words<'a>, Violation> {
        self.words_shown(field, rule, TraceValue::Unsigned)
    }

    /// Reads a vector of i64, which a trace shows as signed numbers.
    pub(crate) fn signed_words(
        &mut self,
        field: &'static str,
        rule: Rule,
    ) -> Result<Words<'a>, Violation> {
        self.words_shown(field, rule, |word| TraceValue::Signed(word.cast_signed()))
    }

    /// Reads a vector of words. `shown` converts an element for a trace.
    fn words_shown(
        &mut self,
        field: &'static str,
        rule: Rule,
        shown: fn(u64) -> TraceValue<'a>,
    ) -> Result<Words<'a>, Violation> {
        // WIRE-06: each word takes eight bytes, so the length of the bytes checks the count. No word is decoded.
        let Some(bytes) = self.whole_run(8) else {
            return Err(self.cut_words(field));
        };
        let words = Words::new(bytes, self.offset().saturating_add(8));
        if self.trace.is_some() {
            // Records the count.
            self.length(field, WIRE_06)?;
            for (index, word) in words.iter().enumerate() {
                let start = words.offset_of(index);
                self.read_within(field, index as u64, |cursor| {
                    let end = start.saturating_add(8);
                    cursor.record_span(start, end, field, rule, shown(word));
                    Ok(())
                })?;
            }
        }
        self.pass(bytes);
        Ok(words)
    }

    /// Creates the violation for a truncated vector of u64.
    #[cold]
    fn cut_words(&self, field: &str) -> Violation {
        let mut behind = self.clone();
        match behind.count(8, field) {
            Ok(count) => behind.short((count as u64).saturating_mul(8), field),
            Err(broken) => broken,
        }
    }
}
