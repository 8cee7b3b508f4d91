//! Which types each release loads from JSON, and the attributes that it asks of each.

use super::exports::range;
use crate::release::{Release, Releases};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Written by `nodes.py` from the sources of every tag: a type key, the releases, and the attributes.
const TABLE: &str = include_str!("nodes.tsv");

/// What [`TABLE`] says: of each type the attributes by release.
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

/// The releases with a table, and all before: 0.27 has no tag to read one from.
pub(crate) const TABLED: Release = Release::of(26);

/// The attributes that `release` asks of a type; `None` where it does not have the type.
pub(crate) fn asked(key: &str, release: Release) -> Option<impl Iterator<Item = &'static str>> {
    let rows = NODES.get(key)?;
    let row = rows.iter().find(|(of, _)| of.contains(release))?;
    Some(row.1.split(' ').filter(|name| !name.is_empty()))
}
