//! Which global functions the runtime of each release registers.

use super::exports::range;
use crate::release::{Release, Releases};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Written by `globals.py` from the sources of every tag: a name, the releases, and the part of the runtime.
const TABLE: &str = include_str!("globals.tsv");

/// A global function that a runtime registers.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    /// The releases that register it.
    pub(crate) releases: Vec<Releases>,
    /// The part of the runtime that does, `contrib/cublas`; empty where every build has it.
    pub(crate) part: &'static str,
}

/// What [`TABLE`] says, by name.
static GLOBALS: LazyLock<HashMap<&str, Global>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let mut cells = line.split('\t');
        let (name, ranges) = (cells.next()?, cells.next()?);
        let global = Global {
            releases: ranges.split(' ').filter_map(range).collect(),
            part: cells.next()?,
        };
        Some((name, global))
    });
    rows.collect()
});

/// What is known of the global function `name`; `None` where no release registers it.
pub(crate) fn global(name: &str) -> Option<&'static Global> {
    GLOBALS.get(name)
}

/// The entry of the table for `name`, with the name as the table has it.
pub(crate) fn global_of(name: &str) -> Option<(&'static str, &'static Global)> {
    GLOBALS
        .get_key_value(name)
        .map(|(name, global)| (*name, global))
}

impl Global {
    /// Whether `release` registers it, in some build.
    pub(crate) fn is_in(&self, release: Release) -> bool {
        self.releases.iter().any(|of| of.contains(release))
    }
}
