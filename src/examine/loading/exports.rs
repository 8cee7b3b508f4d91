//! Which C functions each release exports.

use crate::release::{Release, Releases};
use std::sync::LazyLock;

/// Written by `exports.py` from the headers of every tag: a name and the releases, as `22-27`, in each line.
///
/// Lines that begin with `#` are comments; a name that was dropped and came back has several ranges, with blanks between them.
const TABLE: &str = include_str!("exports.tsv");

/// What [`TABLE`] says, in its order: names ascend.
///
/// Parsed when it is first used: most programs never ask which release exports what.
static EXPORTS: LazyLock<Vec<(&str, Vec<Releases>)>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, ranges)| (name, ranges.split(' ').filter_map(range).collect()))
        .collect()
});

/// `22-27`, minor versions of a first and a last release.
///
/// `None` for text of another form, which the table does not have: a test compares the lines.
pub(crate) fn range(text: &str) -> Option<Releases> {
    let (since, until) = text.split_once('-')?;
    Some(Releases {
        since: Release::new(since.parse().ok()?)?,
        until: Release::new(until.parse().ok()?)?,
    })
}

/// The releases whose libraries export the C function `name`; empty for a function of no release.
pub fn exported(name: &str) -> &'static [Releases] {
    // `exports.py` writes the names sorted by their bytes.
    let found = EXPORTS.binary_search_by(|(known, _)| (*known).cmp(name));
    found
        .ok()
        .and_then(|index| EXPORTS.get(index))
        .map_or(&[], |(_, releases)| releases.as_slice())
}

/// Every C function of every release, with the releases that export it.
pub fn exports() -> impl Iterator<Item = (&'static str, &'static [Releases])> {
    EXPORTS
        .iter()
        .map(|(name, releases)| (*name, releases.as_slice()))
}
