//! The types that each release loads from JSON, and the attributes that it requires of each.

use super::exports::range;
use crate::release::{Release, Releases};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The types, which `nodes.py` reads from the sources of every tag: type key, releases, attributes.
const TABLE: &str = include_str!("../../../spec/evidence/tables/nodes.tsv");

/// The content of [`TABLE`]: for each type, the attributes by release.
static NODES: LazyLock<HashMap<&str, Vec<(Releases, &str)>>> = LazyLock::new(|| {
    let mut nodes: HashMap<&str, Vec<(Releases, &str)>> = HashMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut cells = line.split('\t');
        if let (Some(key), Some(releases), Some(attributes)) =
            (cells.next(), cells.next().and_then(range), cells.next())
        {
            nodes.entry(key).or_default().push((releases, attributes));
        }
    }
    nodes
});

/// The last release in the table. 0.27 has no tag to read its types from.
pub(crate) const TABLED: Release = Release::of(26);

/// Returns the attributes that `release` requires of a type; `None` if it does not have the type.
pub(crate) fn asked(key: &str, release: Release) -> Option<impl Iterator<Item = &'static str>> {
    let rows = NODES.get(key)?;
    let row = rows.iter().find(|(of, _)| of.contains(release))?;
    Some(row.1.split(' ').filter(|name| !name.is_empty()))
}
