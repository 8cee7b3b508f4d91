//! The libraries that are needed, and the versions of symbols that they have to define.

use super::dynamic::{
    Dynamic, VERSIONS, VERSIONS_DEFINED, VERSIONS_DEFINED_COUNT, VERSIONS_NEEDED,
    VERSIONS_NEEDED_COUNT,
};
use super::hash_tables::hash;
use super::names::Names;
use super::{Image, Stop, unknown};
use std::collections::BTreeSet;

/// Holds the names of libraries, and the versions that they have to have, against each other.
///
/// `symbols` is how many dynamic symbols there are: each has a version number, a u16.
pub(super) fn check(image: &Image<'_>, dynamic: &Dynamic, symbols: u64) -> Result<(), Stop> {
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
        // Without numbers for the symbols there is nothing that needed versions belong to.
        let lonely = dynamic.value(VERSIONS_NEEDED).is_none();
        return lonely.then_some(()).ok_or_else(wrong);
    };
    // VER_NDX_LOCAL and VER_NDX_GLOBAL are not listed.
    let mut known = BTreeSet::from([0, 1]);
    let needed = needed_versions(image, dynamic, &mut names, &libraries, &mut known);
    needed.ok_or_else(|| names.fault(WRONG))?;
    let defined = defined_versions(image, dynamic, &mut names, &mut known);
    defined.ok_or_else(|| names.fault(WRONG))?;
    let offset = image
        .offset(table, symbols.saturating_mul(2))
        .ok_or_else(wrong)?;
    for index in 0..symbols {
        let version = image.u16(offset.saturating_add(index.saturating_mul(2)));
        // Bit 15 hides a version from those that name none.
        let version = version.ok_or_else(wrong)? & 0x7fff;
        if !known.contains(&version) {
            return Err(wrong());
        }
    }
    Ok(())
}

/// Adds the numbers of the versions that other libraries have to define; `None` where their list contradicts itself.
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
        // `Elf64_Verneed`: version, count, file, offset of the first entry, offset of the next. glibc looks the file up among the needed
        // libraries, and ends the process where it is none of them.
        let file = names.at(u64::from(image.u32(at.checked_add(4)?)?))?;
        if !one || !libraries.contains(file) {
            return None;
        }
        let inner = image.u16(at.checked_add(2)?)?;
        let mut aux = entry.checked_add(u64::from(image.u32(at.checked_add(8)?)?))?;
        for place in 0..inner {
            let at = image.offset(aux, 16)?;
            let name = names.at(u64::from(image.u32(at.checked_add(8)?)?))?;
            // A loader compares hashes before names, so that a wrong hash is a version that no library has. Flag 2 is weak.
            if image.u32(at)? != hash(name) || image.u16(at.checked_add(4)?)? & !2 != 0 {
                return None;
            }
            // The number by which symbols name this version; bit 15 hides it there.
            known.insert(image.u16(at.checked_add(6)?)? & 0x7fff);
            let next = image.u32(at.checked_add(12)?)?;
            aux = follow(aux, next, u64::from(inner.checked_sub(place)?))?;
        }
        let next = image.u32(at.checked_add(12)?)?;
        entry = follow(entry, next, count.checked_sub(index)?)?;
    }
    Some(())
}

/// Adds the numbers of the versions that the library defines; `None` where their list contradicts itself.
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
        // `Elf64_Verdef`: version, flags, number, count, hash, offset of the first name, offset of the next.
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
