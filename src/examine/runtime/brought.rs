//! Which runtimes register a global function, and what brings it.

use crate::examine::loading::{exported, range};
use crate::release::{Release, Releases};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Written by `functions.py` from the source of every tag: a name, releases, options of the build, and a place.
const TABLE: &str = include_str!("functions.tsv");

/// A row of [`TABLE`].
#[derive(Clone, Copy)]
pub(super) struct FunctionRow {
    releases: &'static str,
    /// `-`, `python`, or options with `+` between.
    options: &'static str,
    /// A library or a Python module; `-` for the runtime itself.
    place: &'static str,
}

/// The rows of each name.
pub(super) static FUNCTIONS: LazyLock<BTreeMap<&str, Vec<FunctionRow>>> = LazyLock::new(|| {
    let mut rows: BTreeMap<&str, Vec<FunctionRow>> = BTreeMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap_or_default();
        let name = field();
        let row = FunctionRow {
            releases: field(),
            options: field(),
            place: field(),
        };
        rows.entry(name).or_default().push(row);
    }
    rows
});

impl FunctionRow {
    /// The ranges, written `7-20 22-27`.
    fn ranges(self) -> impl Iterator<Item = Releases> {
        self.releases.split(' ').filter_map(range)
    }

    /// Whether the function is there in `release`.
    pub(super) fn is_in(self, release: Release) -> bool {
        self.ranges().any(|range| range.contains(release))
    }

    /// Whether every runtime of its releases has it.
    pub(super) fn is_always_there(self) -> bool {
        self.options == "-" && self.place == "-"
    }

    /// Whether C++ code registers it, and not a Python module.
    pub(super) fn is_native(self) -> bool {
        self.options != "python"
    }

    fn brought_by(self) -> String {
        let options = self.options.split('+').collect::<Vec<_>>().join(" and ");
        match (self.options, self.place) {
            ("python", module) => format!("Python's `{module}`, which has to be imported first"),
            ("-", "-") => "every runtime of that release, built as it comes".to_owned(),
            ("-", library) => format!("the library lib{library}.so beside the runtime"),
            (_, "-") => format!("a runtime built with {options}"),
            (_, library) => {
                format!("the library lib{library}.so beside a runtime built with {options}")
            }
        }
    }
}

/// Whether C++ code of some release registers the global function `name`.
pub(super) fn is_native(name: &str) -> bool {
    let rows = FUNCTIONS.get(name);
    rows.is_some_and(|rows| rows.iter().any(|row| row.is_native()))
}

/// What brings the global function `name` to a runtime of `releases`.
pub(super) fn brought_by(name: &str, releases: Releases) -> String {
    let Some(rows) = FUNCTIONS.get(name) else {
        return format!(
            "no runtime of {} to {}: the library or program that has it must register it first",
            Release::FIRST,
            Release::LAST
        );
    };
    let fitting = rows.iter().find(|row| row.is_in(releases.until));
    if let Some(row) = fitting {
        return row.brought_by();
    }
    let mut ranges: Vec<Releases> = rows.iter().flat_map(|row| row.ranges()).collect();
    ranges.sort_by_key(|range| range.since);
    // Rows of one name differ in their options: releases in a row are one range.
    ranges.dedup_by(|next, last| {
        let follows = last.until.minor().checked_add(1) == Some(next.since.minor());
        if follows {
            last.until = next.until;
        }
        follows
    });
    let newest = rows
        .iter()
        .max_by_key(|row| row.ranges().map(|range| range.until).max());
    let brought_by = newest.map_or_else(String::new, |row| row.brought_by());
    format!("{brought_by}; in {} only", in_words(ranges.into_iter()))
}

/// Ranges of releases in words. The last known release stands for the later ones too.
fn in_words(ranges: impl Iterator<Item = Releases>) -> String {
    let ranges = ranges.map(|range| match range {
        Releases { since, until } if since == until => since.to_string(),
        Releases { since, until } if until == Release::LAST => format!("{since} and later"),
        Releases { since, until } => format!("{since} to {until}"),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

/// Which releases export the C function `name`.
pub(super) fn exported_by(name: &str) -> String {
    format!("runtimes of {}", in_words(exported(name).iter().copied()))
}
