//! Names in the dynamic string table: of libraries, and of the versions that they have to have.

use super::dynamic::{
    Dynamic, STRINGS, STRINGS_SIZE, VERSIONS, VERSIONS_DEFINED, VERSIONS_DEFINED_COUNT,
    VERSIONS_NEEDED, VERSIONS_NEEDED_COUNT,
};
use super::symbols::{ListedSymbol, hash};
use super::{Image, Stop, unknown};
use std::collections::BTreeSet;

/// How many bytes of names, and how many links of chains, are looked at. A hostile file has names that are the tails of one
/// another, and chains that all its symbols or versions share.
pub(super) const SCANNED: u64 = 1 << 26;

/// What a look at the shortest name costs: the entry that names it is read too.
const LEAST: u64 = 32;

/// A string table, and how much of it may still be looked at: each look at a name costs its length.
pub(super) struct Names<'a> {
    bytes: &'a [u8],
    left: u64,
}

impl<'a> Names<'a> {
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

/// Holds the names of libraries, and the versions that they have to have, against each other.
pub(super) fn check(
    image: &Image<'_>,
    dynamic: &Dynamic,
    symbols: &[ListedSymbol<'_>],
) -> Result<(), Stop> {
    const WRONG: &str =
        "its versions, or the names of the libraries that it needs, contradict each other";
    let wrong = || unknown(WRONG);
    let mut names = Names::dynamic(image, dynamic).ok_or_else(wrong)?;
    let mut libraries = BTreeSet::new();
    for at in &dynamic.needed {
        let name = names.at(*at).filter(|name| !name.is_empty());
        libraries.insert(name.ok_or_else(|| names.fault(WRONG))?);
    }
    let Some(table) = dynamic.value(VERSIONS) else {
        let lonely = dynamic.value(VERSIONS_NEEDED).is_none();
        return lonely.then_some(()).ok_or_else(wrong);
    };
    let mut known = BTreeSet::from([0, 1]);
    let needed = needed_versions(image, dynamic, &mut names, &libraries, &mut known);
    needed.ok_or_else(|| names.fault(WRONG))?;
    let defined = defined_versions(image, dynamic, &mut names, &mut known);
    defined.ok_or_else(|| names.fault(WRONG))?;
    let count = symbols.len() as u64;
    let offset = image
        .offset(table, count.saturating_mul(2))
        .ok_or_else(wrong)?;
    for index in 0..count {
        let version = image.u16(offset.saturating_add(index.saturating_mul(2)));
        let version = version.ok_or_else(wrong)? & 0x7fff;
        if !known.contains(&version) {
            return Err(wrong());
        }
    }
    Ok(())
}

fn needed_versions(
    image: &Image<'_>,
    dynamic: &Dynamic,
    names: &mut Names<'_>,
    libraries: &BTreeSet<&[u8]>,
    known: &mut BTreeSet<u16>,
) -> Option<()> {
    let Some((mut entry, count)) = dynamic.table(VERSIONS_NEEDED, VERSIONS_NEEDED_COUNT) else {
        return Some(());
    };
    for index in 0..count {
        let at = image.offset(entry, 16)?;
        let one = image.u16(at)? == 1;
        let file = names.at(u64::from(image.u32(at.checked_add(4)?)?))?;
        if !one || !libraries.contains(file) {
            return None;
        }
        let inner = image.u16(at.checked_add(2)?)?;
        let mut aux = entry.checked_add(u64::from(image.u32(at.checked_add(8)?)?))?;
        for place in 0..inner {
            let at = image.offset(aux, 16)?;
            let name = names.at(u64::from(image.u32(at.checked_add(8)?)?))?;
            if image.u32(at)? != hash(name) || image.u16(at.checked_add(4)?)? & !2 != 0 {
                return None;
            }
            known.insert(image.u16(at.checked_add(6)?)? & 0x7fff);
            let next = image.u32(at.checked_add(12)?)?;
            aux = follow(aux, next, u64::from(inner.checked_sub(place)?))?;
        }
        let next = image.u32(at.checked_add(12)?)?;
        entry = follow(entry, next, count.checked_sub(index)?)?;
    }
    Some(())
}

fn defined_versions(
    image: &Image<'_>,
    dynamic: &Dynamic,
    names: &mut Names<'_>,
    known: &mut BTreeSet<u16>,
) -> Option<()> {
    let Some((mut entry, count)) = dynamic.table(VERSIONS_DEFINED, VERSIONS_DEFINED_COUNT) else {
        return Some(());
    };
    for index in 0..count {
        let at = image.offset(entry, 20)?;
        let aux = entry.checked_add(u64::from(image.u32(at.checked_add(12)?)?))?;
        let named = image.offset(aux, 8)?;
        let name = names.at(u64::from(image.u32(named)?))?;
        if image.u16(at)? != 1 || image.u32(at.checked_add(8)?)? != hash(name) {
            return None;
        }
        known.insert(image.u16(at.checked_add(4)?)? & 0x7fff);
        let next = image.u32(at.checked_add(16)?)?;
        entry = follow(entry, next, count.checked_sub(index)?)?;
    }
    Some(())
}

/// The address of the next link of a chain; `left` counts the links from this one on, and only the last one has no next.
fn follow(at: u64, next: u32, left: u64) -> Option<u64> {
    let is_last = left == 1;
    ((next == 0) == is_last).then_some(())?;
    at.checked_add(u64::from(next))
}
