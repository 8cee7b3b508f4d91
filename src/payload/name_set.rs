//! Which names are there, and which are there twice: sorted once, without a hash that hostile names could defeat.
//!
//! Ten thousand equal names must not cost ten thousand comparisons of each with all others: a set is sorted in n log n, and finding a
//! name takes log n, whatever the names are.

use crate::rule::{Findings, Kind, Rule, Violation};

/// Names with their places, by name.
pub(super) struct NameSet<'n>(Vec<(&'n str, usize)>);

impl<'n> NameSet<'n> {
    /// The set of `names`, whose places are 0, 1, 2, ... in the order in which they come.
    pub(super) fn of(names: &mut dyn Iterator<Item = &'n str>) -> NameSet<'n> {
        let mut sorted: Vec<_> = names.zip(0..).collect();
        // By name, then by place: of equal names the first comes first, and all others are the repetitions.
        sorted.sort_unstable();
        NameSet(sorted)
    }

    /// Whether `name` is one of them, in the time of a binary search.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0
            .binary_search_by(|(known, _)| (*known).cmp(name))
            .is_ok()
    }

    /// Places whose name is at an earlier one already, ascending.
    pub(super) fn repeats(&self) -> Vec<usize> {
        let mut places = Vec::new();
        // Sorted, equal names are neighbours.
        for pair in self.0.windows(2) {
            if let [(before, _), (name, place)] = pair
                && before == name
            {
                places.push(*place);
            }
        }
        // They come by name here; findings are in the order of the bytes.
        places.sort_unstable();
        places
    }
}

/// Notes `rule` for every text that is in `names` a second time.
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
