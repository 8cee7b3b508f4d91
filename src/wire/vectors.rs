//! Vectors and maps: a count, and elements that the rest of the window must be able to hold.

use super::trace::TraceValue;
use super::{Cursor, WIRE_06, WIRE_07, Words};
use crate::rule::{Kind, Rule, Violation};

impl<'a> Cursor<'a> {
    /// A u64 count of elements of at least `smallest` bytes each; more than the rest can hold breaks WIRE-06.
    ///
    /// After it, reserving `count` elements is justified by the input.
    ///
    /// # Errors
    ///
    /// WIRE-01 when the count itself is cut; WIRE-06 for a count that the rest cannot hold.
    pub fn count(&mut self, smallest: usize, field: &str) -> Result<usize, Violation> {
        self.counted(smallest, field, WIRE_06)
    }

    /// [`Cursor::count`], shown by a trace as what `rule` counts.
    fn counted(&mut self, smallest: usize, field: &str, rule: Rule) -> Result<usize, Violation> {
        let count = self.length(field, rule)?;
        let room = self.remaining().saturating_sub(8);
        // A count that does not fit is one that the rest cannot hold.
        // WIRE-06: released readers resize to the count first: 2^28 words that are not there cost them 2 GiB before they fail.
        let needed =
            usize::try_from(count).map_or(usize::MAX, |count| count.saturating_mul(smallest));
        WIRE_06
            .require_as(Kind::Truncated, needed <= room, self.offset(), || {
                format!("{field} counts {count} elements of at least {smallest} bytes, {room} bytes follow")
            })
            .map_err(|broken| broken.in_field(field))?;
        // Only now: a count that is rejected leaves the cursor in front of it, which is the offset of the violation (WIRE-06).
        self.position = self.position.saturating_add(8);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// A vector: a count, then each element through `read`, whose path has its index.
    ///
    /// # Errors
    ///
    /// As [`Cursor::count`]; the first error of `read`.
    pub fn vector<T>(
        &mut self,
        smallest: usize,
        field: &'static str,
        read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let count = self.count(smallest, field)?;
        self.elements(count, field, read)
    }

    /// A map: a count, then key and value of each entry through `read`, in the order of the bytes (WIRE-07).
    ///
    /// `smallest` is the least size of a key and a value together.
    ///
    /// # Errors
    ///
    /// As [`Cursor::count`]; the first error of `read`.
    pub fn map<T>(
        &mut self,
        smallest: usize,
        field: &'static str,
        read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        // WIRE-07: kept as they come, repetitions included. Writers up to 0.23 emit the order of a hash map, and a file that is
        // read must be written back to the same bytes.
        let count = self.counted(smallest, field, WIRE_07)?;
        self.elements(count, field, read)
    }

    /// `count` elements of `field`, each by `read`.
    fn elements<T>(
        &mut self,
        count: usize,
        field: &'static str,
        mut read: impl FnMut(&mut Cursor<'a>) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        (0..count as u64)
            .map(|index| self.within(field, index, &mut read))
            .collect()
    }

    /// A vector of u64, borrowed: a million elements cost nothing to open.
    ///
    /// # Errors
    ///
    /// As [`Cursor::count`], of elements of eight bytes.
    pub fn words(&mut self, field: &'static str, rule: Rule) -> Result<Words<'a>, Violation> {
        self.words_shown(field, rule, TraceValue::Unsigned)
    }

    /// The same of i64, which a trace shows with their sign.
    pub(crate) fn signed_words(
        &mut self,
        field: &'static str,
        rule: Rule,
    ) -> Result<Words<'a>, Violation> {
        self.words_shown(field, rule, |word| TraceValue::Signed(word.cast_signed()))
    }

    /// A vector of words, whose elements a trace shows as `shown` has them.
    fn words_shown(
        &mut self,
        field: &'static str,
        rule: Rule,
        shown: fn(u64) -> TraceValue<'a>,
    ) -> Result<Words<'a>, Violation> {
        // WIRE-06: eight bytes each, so the bytes are there or the count is wrong; no word is looked at.
        let Some(bytes) = self.whole_run(8) else {
            return Err(self.cut_words(field));
        };
        let words = Words::new(bytes, self.offset().saturating_add(8));
        if self.trace.is_some() {
            // Recorded as the count of a vector.
            self.length(field, WIRE_06)?;
            for (index, word) in words.iter().enumerate() {
                let start = words.offset_of(index);
                self.within(field, index as u64, |cursor| {
                    let end = start.saturating_add(8);
                    cursor.record_span(start, end, field, rule, shown(word));
                    Ok(())
                })?;
            }
        }
        self.pass(bytes);
        Ok(words)
    }

    /// What is wrong with a vector of u64.
    #[cold]
    fn cut_words(&self, field: &str) -> Violation {
        let mut behind = self.clone();
        match behind.count(8, field) {
            Ok(count) => behind.short((count as u64).saturating_mul(8), field),
            Err(broken) => broken,
        }
    }
}
