//! A vector of u64 that borrows where it can.

use std::borrow::Cow;

/// A vector of u64 that is still bytes: elements are decoded one at a time, and each has an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words<'a> {
    // Bytes and not u64: nothing aligns a vector in a file (chapter wire), which comes behind strings of any length.
    bytes: Cow<'a, [u8]>,
    /// Absolute offset of the first one.
    start: u64,
}

impl<'a> Words<'a> {
    /// The words in `bytes`, of which the first is at offset `start`.
    pub(super) fn new(bytes: &'a [u8], start: u64) -> Words<'a> {
        Words {
            bytes: Cow::Borrowed(bytes),
            start,
        }
    }

    /// How many elements there are.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a vector of a file is compared with the number that it should have"
    )]
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Element `index`; none where there are fewer.
    pub fn get(&self, index: usize) -> Option<u64> {
        let start = index.checked_mul(8)?;
        let word = self.bytes.get(start..start.checked_add(8)?)?;
        word.try_into().ok().map(u64::from_le_bytes)
    }

    /// The last element; none of an empty vector.
    pub fn last(&self) -> Option<u64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Absolute offset of element `index`; counted from 0 for words that were never in a file.
    pub(crate) fn offset_of(&self, index: usize) -> u64 {
        self.start.saturating_add((index as u64).saturating_mul(8))
    }

    /// The elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + '_ {
        self.bytes
            // WIRE-06: the bytes of a vector are a multiple of 8; what made these words has checked it.
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
    }

    /// The elements, decoded.
    pub fn to_vec(&self) -> Vec<u64> {
        self.iter().collect()
    }

    /// The words with nothing borrowed.
    pub fn into_owned(self) -> Words<'static> {
        Words {
            bytes: Cow::Owned(self.bytes.into_owned()),
            start: self.start,
        }
    }

    /// The elements as they are in a file: 8 bytes each, little endian.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Words that were never in a file.
impl From<&[u64]> for Words<'_> {
    fn from(words: &[u64]) -> Self {
        // In the form of a file, so that all words are read in one way.
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Words {
            bytes: Cow::Owned(bytes),
            start: 0,
        }
    }
}
