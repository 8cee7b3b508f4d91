//! Names in the string tables, and how many of them are looked at.

use super::dynamic::{Dynamic, STRINGS, STRINGS_SIZE};
use super::{Image, Stop, unknown};

/// How many bytes of names, and how many links of chains, are looked at. A hostile file has names that are the tails of one
/// another, and chains that all its symbols or versions share.
pub(super) const SCANNED: u64 = 1 << 26;

/// What a look at the shortest name costs: the entry that names it is read too.
const LEAST: u64 = 32;

/// A string table, and how much of it may still be looked at: each look at a name costs its length.
pub(super) struct Names<'a> {
    /// Names, with a NUL behind each.
    bytes: &'a [u8],
    /// What is left to be looked at, in bytes.
    left: u64,
}

impl<'a> Names<'a> {
    /// The names in `bytes`, with [`SCANNED`] bytes of looks at them.
    pub(super) fn new(bytes: &'a [u8]) -> Names<'a> {
        Names {
            bytes,
            left: SCANNED,
        }
    }

    /// The names of the dynamic section; `None` where they are not where the segments are.
    pub(super) fn dynamic(image: &Image<'a>, dynamic: &Dynamic) -> Option<Names<'a>> {
        let (start, length) = dynamic.table(STRINGS, STRINGS_SIZE)?;
        image.at(start, length).map(Names::new)
    }

    /// The name at an offset, without the byte that ends it; `None` where none does, or where nothing is left to be looked at.
    pub(super) fn at(&mut self, offset: u64) -> Option<&'a [u8]> {
        let rest = self.bytes.get(usize::try_from(offset).ok()?..)?;
        // A name of TVM has up to 200 bytes; the longest that a C++ compiler was seen to write, some 10,000.
        let rest = rest.get(..1 << 16).unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == 0);
        let cost = end.unwrap_or(rest.len()) as u64;
        // Paid whether or not a name is found: a long run without a NUL costs as much to scan.
        self.left = self.left.saturating_sub(cost.saturating_add(LEAST));
        let end = end.filter(|_| self.left > 0)?;
        rest.get(..end)
    }

    /// `why`, unless it is that nothing is left to be looked at.
    pub(super) fn fault(&self, why: &str) -> Stop {
        match self.left {
            0 => unknown("its names are more than are looked at"),
            _ => unknown(why),
        }
    }
}
