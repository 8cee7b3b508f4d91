//! Estimation of the release of a runtime.

use super::RegisteredNames;
use crate::examine::loading::exports;
use crate::examine::loading::global_functions::FUNCTIONS;
use crate::release::{Release, Releases};

/// Returns the releases that the fewest names contradict. Returns a range if several consecutive releases are equally likely.
pub(super) fn likely_releases(names: &RegisteredNames) -> Releases {
    let possible = names.interface.releases();
    let counts: Vec<(Release, usize)> = Release::all()
        .filter(|release| possible.contains(*release))
        .map(|release| (release, count_contradictions(names, release)))
        .collect();
    let least = counts.iter().map(|(_, count)| *count).min();
    let mut best = counts
        .iter()
        .filter(|(_, count)| Some(*count) == least)
        .map(|(release, _)| *release);
    let since = best.next().unwrap_or(possible.since);
    Releases {
        since,
        until: best.next_back().unwrap_or(since),
    }
}

/// Counts the names that the runtime has and `release` lacks, or the other way round.
fn count_contradictions(names: &RegisteredNames, release: Release) -> usize {
    let functions = FUNCTIONS.iter().filter(|(name, rows)| {
        let rows = rows.iter().filter(|row| row.is_native());
        let mut here = rows.clone().filter(|row| row.is_in(release));
        if names.functions.contains(**name) {
            // Only other releases have this name.
            rows.count() > 0 && here.next().is_none()
        } else {
            here.any(|row| row.is_always_there())
        }
    });
    // A build may leave out some C functions, so that only additional ones count.
    let exports = exports().filter(|(name, ranges)| {
        names.exports.contains(*name) && !ranges.iter().any(|range| range.contains(release))
    });
    functions.count().saturating_add(exports.count())
}
