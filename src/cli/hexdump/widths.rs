//! How wide the columns of a dump are.

use super::{BYTES, HexdumpField, LONGEST_VALUE};

/// The widths of the columns, in characters.
pub(super) struct Widths {
    pub(super) offset: usize,
    pub(super) name: usize,
    pub(super) value: usize,
    pub(super) rule: usize,
    /// How many characters of a value are shown.
    pub(super) longest: usize,
}

impl Widths {
    /// Where the column of names begins: behind the offset, two blanks, and the bytes.
    pub(super) fn names(&self) -> usize {
        self.offset + 2 + BYTES
    }

    /// Where the column of values begins.
    pub(super) fn values(&self) -> usize {
        self.names() + self.name + 1
    }

    /// Where the column of rules begins.
    pub(super) fn rules(&self) -> usize {
        self.values() + self.value + 2
    }

    /// Where the column of remarks begins.
    pub(super) fn marks(&self) -> usize {
        self.rules() + self.rule + 1
    }

    /// The widths that hold the columns of `fields`; `length` is that of all bytes, which the last offset counts to.
    pub(super) fn of(fields: &[HexdumpField<'_>], length: usize) -> Widths {
        // One name of a thousand letters would push every value out of sight: longer ones than the limit stick out alone.
        let widest = |length: fn(&HexdumpField<'_>) -> usize, limit: usize| {
            fields
                .iter()
                .map(length)
                .filter(|width| *width <= limit)
                .max()
                .unwrap_or(0)
        };
        Widths {
            offset: format!("{:x}", length.saturating_sub(1)).len().max(4),
            name: widest(|field| field.name.chars().count(), 44),
            value: widest(|field| field.value.chars().count() + 2, LONGEST_VALUE + 5),
            rule: widest(|field| field.rule.len(), 9),
            longest: LONGEST_VALUE,
        }
    }
}
