//! The global functions that the runtime of each release registers, and the build options or libraries that add them.

use super::exports::range;
use crate::release::{Release, Releases};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The global functions, which `global_functions.py` reads from the source of every tag: name, releases, build options, place.
const TABLE: &str = include_str!("../../../spec/evidence/tables/global_functions.tsv");

/// Build options that are on by default.
const ON_BY_DEFAULT: [&str; 7] = [
    "USE_AOT_EXECUTOR",
    "USE_GRAPH_EXECUTOR",
    "USE_GRAPH_RUNTIME",
    "USE_PROFILER",
    "USE_RANDOM",
    "USE_RPC",
    "USE_SORT",
];

/// A row of [`TABLE`].
#[derive(Clone, Copy)]
pub(crate) struct FunctionRow {
    releases: &'static str,
    /// `-`, `python`, or build options joined by `+`.
    pub(crate) options: &'static str,
    /// The library or Python module that registers the function; `-` for the runtime itself.
    pub(crate) place: &'static str,
}

/// The rows of [`TABLE`] by name.
pub(crate) static FUNCTIONS: LazyLock<BTreeMap<&str, Vec<FunctionRow>>> = LazyLock::new(|| {
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

/// Returns whether `name` is that of a loader of modules. Loaders are judged by the kinds of the modules instead.
pub(crate) fn is_loader(name: &str) -> bool {
    name.contains("odule.load")
}

/// Returns the releases of all rows of one name. The rows differ in their options.
pub(crate) fn releases(rows: &[FunctionRow]) -> Vec<Releases> {
    Releases::joined(rows.iter().flat_map(|row| row.ranges()))
}

impl FunctionRow {
    /// Returns the ranges, which the table writes as `7-20 22-27`.
    pub(crate) fn ranges(self) -> impl Iterator<Item = Releases> {
        self.releases.split(' ').filter_map(range)
    }

    /// Returns whether `release` has the function.
    pub(crate) fn is_in(self, release: Release) -> bool {
        self.ranges().any(|range| range.contains(release))
    }

    /// Returns whether every runtime of these releases has it.
    pub(crate) fn is_always_there(self) -> bool {
        self.options == "-" && self.place == "-"
    }

    /// Returns whether C++ code registers it, and not a Python module.
    pub(crate) fn is_native(self) -> bool {
        self.options != "python"
    }

    /// Returns whether it is available after `import tvm`, with a runtime that was built with default options.
    pub(crate) fn is_usual(self) -> bool {
        let mut options = self.options.split('+');
        options.all(|option| matches!(option, "-" | "python") || ON_BY_DEFAULT.contains(&option))
    }

    /// Returns the build options as text.
    pub(crate) fn options_in_words(self) -> String {
        self.options.split('+').collect::<Vec<_>>().join(" and ")
    }
}
