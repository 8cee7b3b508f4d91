//! A set of names that finds names and repeated names.
//!
//! It sorts the names instead of hashing them, because hostile names could defeat a hash. Sorting takes n log n and finding a name log n,
//! even for ten thousand equal names.

use crate::rule::{Findings, Kind, Rule, Violation};

/// Names with their positions, sorted by name.
pub(super) struct NameSet<'n>(Vec<(&'n str, usize)>);

impl<'n> NameSet<'n> {
    /// Creates the set of `names`, whose positions are 0, 1, 2, ... in this order.
    pub(super) fn of(names: &mut dyn Iterator<Item = &'n str>) -> NameSet<'n> {
        let mut sorted: Vec<_> = names.zip(0..).collect();
        // Sorted by name and then by position, so that the first of equal names comes first and all others are repetitions.
        sorted.sort_unstable();
        NameSet(sorted)
    }

    /// Returns whether the set contains `name`, with a binary search.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0
            .binary_search_by(|(known, _)| (*known).cmp(name))
            .is_ok()
    }

    /// Returns the positions whose name also occurs at an earlier position, ascending.
    pub(super) fn repeats(&self) -> Vec<usize> {
        let mut places = Vec::new();
        // Equal names are neighbors in the sorted list.
        for pair in self.0.windows(2) {
            if let [(before, _), (name, place)] = pair
                && before == name
            {
                places.push(*place);
            }
        }
        // The positions are sorted by name here, but findings are in the order of the bytes.
        places.sort_unstable();
        places
    }
}

/// Notes a violation of `rule` for every name that occurs again.
pub(super) fn note_repeats(
    names: &mut dyn Iterator<Item = (&str, u64)>,
    rule: Rule,
    what: &str,
    effect: &str,
    findings: &mut Findings,
) -> Result<(), Violation> {
    let names: Vec<_> = names.collect();
    let set = NameSet::of(&mut names.iter().map(|(name, _)| *name));
    for (name, offset) in set.repeats().into_iter().filter_map(|at| names.get(at)) {
        let message = format!("{what} `{name}` is there twice; {effect}");
        findings.note(rule, Kind::Duplicate, *offset, message)?;
    }
    Ok(())
}
