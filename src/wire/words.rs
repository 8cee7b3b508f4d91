//! A vector of u64 that borrows if possible.

use std::borrow::Cow;

/// A vector of u64 in the form of bytes. Elements are decoded one at a time, and each has an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words<'a> {
    // Bytes instead of u64, because a vector in a file may follow strings of any length and is not aligned (chapter wire).
    bytes: Cow<'a, [u8]>,
    /// Absolute offset of the first element.
    start: u64,
}

impl<'a> Words<'a> {
    /// Creates the words in `bytes`, of which the first is at offset `start`.
    pub(super) fn new(bytes: &'a [u8], start: u64) -> Words<'a> {
        Words {
            bytes: Cow::Borrowed(bytes),
            start,
        }
    }

    /// Returns the number of elements.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a vector of a file is compared with the number that it should have"
    )]
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Returns element `index`; `None` if there are fewer.
    pub fn get(&self, index: usize) -> Option<u64> {
        let start = index.checked_mul(8)?;
        let word = self.bytes.get(start..start.checked_add(8)?)?;
        word.try_into().ok().map(u64::from_le_bytes)
    }

    /// Returns the last element; `None` for an empty vector.
    pub fn last(&self) -> Option<u64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns the absolute offset of element `index`; it counts from 0 for words that were never in a file.
    pub(crate) fn offset_of(&self, index: usize) -> u64 {
        self.start.saturating_add((index as u64).saturating_mul(8))
    }

    /// Returns the elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + '_ {
        self.bytes
            // WIRE-06: the length is a multiple of 8, which was checked when these words were created.
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
    }

    /// Decodes all elements.
    pub fn to_vec(&self) -> Vec<u64> {
        self.iter().collect()
    }

    /// Returns the words with the bytes copied.
    pub fn into_owned(self) -> Words<'static> {
        Words {
            bytes: Cow::Owned(self.bytes.into_owned()),
            start: self.start,
        }
    }

    /// Returns the elements as a file stores them: 8 bytes each, little endian.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Words that were never in a file.
impl From<&[u64]> for Words<'_> {
    fn from(words: &[u64]) -> Self {
        // They are stored in the form of a file, so that all words are read in the same way.
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Words {
            bytes: Cow::Owned(bytes),
            start: 0,
        }
    }
}
