//! The C functions that each release exports.

use crate::release::{Release, Releases};
use std::sync::LazyLock;

/// The exported C functions, which `exports.py` reads from the headers of every tag. Each line has a name and the releases, as `22-27`.
///
/// Lines that begin with `#` are comments. A function that was removed and restored has several ranges, separated by blanks.
const TABLE: &str = include_str!("exports.tsv");

/// The rows of [`TABLE`], sorted by name.
///
/// Parsed on first use, because most programs never need them.
static EXPORTS: LazyLock<Vec<(&str, Vec<Releases>)>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, ranges)| (name, ranges.split(' ').filter_map(range).collect()))
        .collect()
});

/// Parses `22-27`, the minor versions of a first and a last release.
///
/// Returns `None` for other text. The table has none: a test compares the lines.
pub(crate) fn range(text: &str) -> Option<Releases> {
    let (since, until) = text.split_once('-')?;
    Some(Releases {
        since: Release::new(since.parse().ok()?)?,
        until: Release::new(until.parse().ok()?)?,
    })
}

/// Returns the releases whose libraries export the C function `name`; empty if no release does.
pub fn exported(name: &str) -> &'static [Releases] {
    // `exports.py` sorts the names by their bytes.
    let found = EXPORTS.binary_search_by(|(known, _)| (*known).cmp(name));
    found
        .ok()
        .and_then(|index| EXPORTS.get(index))
        .map_or(&[], |(_, releases)| releases.as_slice())
}

/// Returns every C function of every release, with the releases that export it.
pub fn exports() -> impl Iterator<Item = (&'static str, &'static [Releases])> {
    EXPORTS
        .iter()
        .map(|(name, releases)| (*name, releases.as_slice()))
}
