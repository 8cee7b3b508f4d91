//! Which global functions the runtime of each release registers, and what brings them.

use super::exports::range;
use crate::release::{Release, Releases};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Written by `global_functions.py` from the source of every tag: a name, releases, options of the build, and a place.
const TABLE: &str = include_str!("../../../spec/evidence/tables/global_functions.tsv");

/// Options of a build that are on unless somebody turns them off.
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
    /// `-`, `python`, or options with `+` between.
    pub(crate) options: &'static str,
    /// A library or a Python module; `-` for the runtime itself.
    pub(crate) place: &'static str,
}

/// The rows of each name.
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

/// Whether `name` is that of a loader of modules, which are judged by the kinds of the modules.
pub(crate) fn is_loader(name: &str) -> bool {
    name.contains("odule.load")
}

/// The releases of rows of one name, which differ in their options.
pub(crate) fn releases(rows: &[FunctionRow]) -> Vec<Releases> {
    Releases::joined(rows.iter().flat_map(|row| row.ranges()))
}

impl FunctionRow {
    /// The ranges, written `7-20 22-27`.
    pub(crate) fn ranges(self) -> impl Iterator<Item = Releases> {
        self.releases.split(' ').filter_map(range)
    }

    /// Whether the function is there in `release`.
    pub(crate) fn is_in(self, release: Release) -> bool {
        self.ranges().any(|range| range.contains(release))
    }

    /// Whether every runtime of its releases has it.
    pub(crate) fn is_always_there(self) -> bool {
        self.options == "-" && self.place == "-"
    }

    /// Whether C++ code registers it, and not a Python module.
    pub(crate) fn is_native(self) -> bool {
        self.options != "python"
    }

    /// Whether it is there after `import tvm`, with a runtime that was built as it comes.
    pub(crate) fn is_usual(self) -> bool {
        let mut options = self.options.split('+');
        options.all(|option| matches!(option, "-" | "python") || ON_BY_DEFAULT.contains(&option))
    }

    /// The options of the build, in words.
    pub(crate) fn options_in_words(self) -> String {
        self.options.split('+').collect::<Vec<_>>().join(" and ")
    }
}
