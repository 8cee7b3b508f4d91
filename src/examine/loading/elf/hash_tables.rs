//! The hash tables through which a dynamic loader finds symbols by their names.

use super::Image;
use super::dynamic::{Dynamic, GNU_HASH, HASH};
use super::names::SCANNED;

/// The hash tables that a library has.
pub(super) struct HashTables {
    /// `DT_GNU_HASH`.
    gnu: Option<GnuHash>,
    /// `DT_HASH`.
    old: Option<OldHash>,
}

impl HashTables {
    /// `None` where one that the dynamic section names is not there.
    ///
    /// A library may have one of them, or both for loaders of either age.
    pub(super) fn read(image: &Image<'_>, dynamic: &Dynamic) -> Option<HashTables> {
        let mut tables = HashTables {
            gnu: None,
            old: None,
        };
        if let Some(address) = dynamic.value(GNU_HASH) {
            tables.gnu = Some(GnuHash::read(image, address)?);
        }
        if let Some(address) = dynamic.value(HASH) {
            tables.old = Some(OldHash::read(image, address)?);
        }
        Some(tables)
    }

    /// Whether every table finds symbol number `symbol` by its name. `names` are those of all symbols.
    pub(super) fn find(
        &self,
        image: &Image<'_>,
        symbol: u64,
        names: &[&[u8]],
        steps: &mut StepCount,
    ) -> bool {
        // A loader uses one of the two tables, and which one differs between loaders: each has to find the symbol.
        let gnu = self.gnu.as_ref();
        let gnu = gnu.is_none_or(|table| table.finds(image, symbol, names, steps) == Some(true));
        let old = self.old.as_ref();
        let old = old.is_none_or(|table| table.finds(image, symbol, names, steps) == Some(true));
        gnu && old
    }
}

/// The links of chains that were followed, and the bytes of the names that were compared there.
#[derive(Default)]
pub(super) struct StepCount(u64);

impl StepCount {
    /// One link more, at which `name` is compared; `None` behind [`SCANNED`].
    ///
    /// Chains are followed for each symbol anew, so that a long chain that all symbols share costs the square of its length.
    fn take(&mut self, name: &[u8]) -> Option<()> {
        self.0 = self.0.checked_add(name.len() as u64)?.checked_add(1)?;
        (self.0 <= SCANNED).then_some(())
    }
}

/// How many symbols there are, as the hash table bounds them.
///
/// No entry of the dynamic section has this number. `None` where there is no table, or its last chain has no end.
pub(super) fn count(image: &Image<'_>, dynamic: &Dynamic) -> Option<u64> {
    if let Some(table) = dynamic.value(HASH) {
        let at = image.offset(table, 8)?;
        // The older table has a chain for each symbol, so that its second word is their number.
        return Some(u64::from(image.u32(at.checked_add(4)?)?));
    }
    // The newer table does not hold the number of symbols: it is found as debuggers find it, by the last chain.
    let hash = GnuHash::read(image, dynamic.value(GNU_HASH)?)?;
    let mut last = None;
    for bucket in 0..hash.buckets {
        last = last.max(hash.bucket(image, bucket));
    }
    // All buckets are empty: the symbols in front of the first hashed one are all that there are.
    let Some(mut index) = last.filter(|last| *last >= hash.first) else {
        return Some(hash.first);
    };
    while hash.chained(image, index)? & 1 == 0 {
        index = index.checked_add(1)?;
    }
    index.checked_add(1)
}

/// The hash table that dynamic loaders of GNU systems use: four words, a Bloom filter, buckets, and a hash for each symbol in it.
struct GnuHash {
    /// How many buckets there are.
    buckets: u64,
    /// The first symbol that is in it.
    first: u64,
    /// How many words of 64 bits the filter has, a power of two.
    words: u64,
    /// By how many bits the hash is shifted for the second bit in the filter.
    shift: u32,
    /// Where the filter starts, an offset in the file as the next two.
    filter: u64,
    /// Where the buckets start, each the number of a symbol, u32.
    table: u64,
    /// Where the hashes start, u32 each, that of symbol `first` in front.
    chains: u64,
}

impl GnuHash {
    /// Reads the header of the table at `address`, which lies in a segment whole, or there is none.
    fn read(image: &Image<'_>, address: u64) -> Option<GnuHash> {
        let at = image.offset(address, 16)?;
        let word = |index: u64| image.u32(at.checked_add(index)?);
        let (buckets, first) = (u64::from(word(0)?), u64::from(word(4)?));
        let (words, shift) = (u64::from(word(8)?), word(12)?);
        let filter = at.checked_add(16)?;
        let table = filter.checked_add(words.checked_mul(8)?)?;
        let chains = table.checked_add(buckets.checked_mul(4)?)?;
        let length = chains.checked_sub(at)?;
        // The hashes of the symbols follow; how many there are is not in the header, and each is checked when it is read.
        let whole = image.offset(address, length).is_some();
        // Loaders divide by the number of buckets and mask with that of words, without a look at either.
        let plain = buckets > 0 && words.is_power_of_two() && shift < 32;
        (whole && plain).then_some(GnuHash {
            buckets,
            first,
            words,
            shift,
            filter,
            table,
            chains,
        })
    }

    /// The first symbol of a bucket; 0 for an empty one.
    fn bucket(&self, image: &Image<'_>, bucket: u64) -> Option<u64> {
        let at = self.table.checked_add(bucket.checked_mul(4)?)?;
        image.u32(at).map(u64::from)
    }

    /// The hash in the chain at a symbol.
    ///
    /// Symbols in front of the first one in the table have none: local ones, and those that are left to others.
    fn chained(&self, image: &Image<'_>, index: u64) -> Option<u32> {
        let inside = index.checked_sub(self.first)?.checked_mul(4)?;
        image.u32(self.chains.checked_add(inside)?)
    }

    /// Whether a look-up ends at `symbol`, or at one of the same name before it.
    ///
    /// `None` where the walk leaves the table, or takes more steps than are allowed.
    fn finds(
        &self,
        image: &Image<'_>,
        symbol: u64,
        names: &[&[u8]],
        steps: &mut StepCount,
    ) -> Option<bool> {
        let name = *names.get(usize::try_from(symbol).ok()?)?;
        // Bernstein's hash, as the GNU linker computes it.
        let hash = name.iter().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
        });
        // The filter is an array of words of 64 bits: one of them has both bits of a name.
        let word = u64::from(hash / 64) & self.words.wrapping_sub(1);
        // A Bloom filter comes first: where one of the two bits is missing, a loader does not look further.
        let bits = image.u64(self.filter.checked_add(word.checked_mul(8)?)?)?;
        let second = hash.checked_shr(self.shift)? & 63;
        if bits.wrapping_shr(hash & 63) & bits.wrapping_shr(second) & 1 == 0 {
            return Some(false);
        }
        let mut index = self.bucket(image, u64::from(hash).checked_rem(self.buckets)?)?;
        if index == 0 {
            return Some(false);
        }
        loop {
            steps.take(name)?;
            let chained = self.chained(image, index)?;
            let here = *names.get(usize::try_from(index).ok()?)?;
            // The lowest bit is not part of the hash: it ends the chain.
            if (chained ^ hash) >> 1 == 0 && (index == symbol || here == name) {
                return Some(true);
            }
            if chained & 1 == 1 {
                return Some(false);
            }
            index = index.checked_add(1)?;
        }
    }
}

/// The hash of the older tables and of versions.
pub(super) fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0_u32, |hash, byte| {
        let hash = hash.wrapping_shl(4).wrapping_add(u32::from(*byte));
        // As the ABI has it: the upper four bits are folded into the lower ones and cleared, so that 28 bits are left.
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// The older hash table.
struct OldHash {
    /// How many buckets there are.
    buckets: u64,
    /// How many links there are, one for each symbol.
    chains: u64,
    /// Offset in the file, of the header's two words.
    table: u64,
}

impl OldHash {
    /// Reads the header of the table at `address`, which lies in a segment whole, or there is none.
    fn read(image: &Image<'_>, address: u64) -> Option<OldHash> {
        let table = image.offset(address, 8)?;
        let buckets = u64::from(image.u32(table)?);
        let chains = u64::from(image.u32(table.checked_add(4)?)?);
        // Two words of the header, the buckets, and a link for each symbol.
        let words = buckets.checked_add(chains)?.checked_add(2)?;
        image.offset(address, words.checked_mul(4)?)?;
        Some(OldHash {
            buckets,
            chains,
            table,
        })
    }

    /// The word `index` behind the header: first the buckets, then the links, each the number of a symbol; 0 is none.
    fn word(&self, image: &Image<'_>, index: u64) -> Option<u64> {
        let inside = index.checked_add(2)?.checked_mul(4)?;
        image.u32(self.table.checked_add(inside)?).map(u64::from)
    }

    /// Whether a look-up ends at `symbol`, or at one of the same name before it.
    ///
    /// `None` where the walk leaves the table, or takes more steps than are allowed.
    fn finds(
        &self,
        image: &Image<'_>,
        symbol: u64,
        names: &[&[u8]],
        steps: &mut StepCount,
    ) -> Option<bool> {
        let name = *names.get(usize::try_from(symbol).ok()?)?;
        let bucket = u64::from(hash(name)).checked_rem(self.buckets)?;
        let mut index = self.word(image, bucket)?;
        // Links that go round in a circle have no 0 at their end: there are no more steps than symbols.
        let mut left = self.chains;
        while index != 0 && left > 0 {
            steps.take(name)?;
            let here = *names.get(usize::try_from(index).ok()?)?;
            if index == symbol || here == name {
                return Some(true);
            }
            index = self.word(image, self.buckets.checked_add(index)?)?;
            left = left.saturating_sub(1);
        }
        Some(false)
    }
}
