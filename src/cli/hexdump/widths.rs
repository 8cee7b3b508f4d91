//! The widths of the columns of a dump.

use super::{BYTES, HexdumpField, LONGEST_VALUE};

/// The widths of the columns, in characters.
pub(super) struct Widths {
    pub(super) offset: usize,
    pub(super) name: usize,
    pub(super) value: usize,
    pub(super) rule: usize,
    /// The number of characters of a value that are shown.
    pub(super) longest: usize,
}

impl Widths {
    /// Returns the start of the column of names: after the offset, two blanks, and the bytes.
    pub(super) fn names(&self) -> usize {
        self.offset + 2 + BYTES
    }

    /// Returns the start of the column of values.
    pub(super) fn values(&self) -> usize {
        self.names() + self.name + 1
    }

    /// Returns the start of the column of rules.
    pub(super) fn rules(&self) -> usize {
        self.values() + self.value + 2
    }

    /// Returns the start of the column of remarks.
    pub(super) fn marks(&self) -> usize {
        self.rules() + self.rule + 1
    }

    /// Returns the widths that fit the columns of `fields`. `length` is the number of all bytes, which determines the width of the
    /// offset.
    pub(super) fn measure(fields: &[HexdumpField<'_>], length: usize) -> Widths {
        // A single name of a thousand letters would push every value out of sight. Names above the limit exceed their column instead.
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
