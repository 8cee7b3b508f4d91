//! The results of a run: of each case, and in numbers.

use super::Selection;
use crate::conformance::answer_parts::Parts;
use crate::conformance::case::Case;
use crate::conformance::known_failures::KnownFailure;
use crate::conformance::reply::Identity;
use crate::conformance::verdict::Verdict;
use serde_json::Value;
use std::time::Duration;

/// The result of one case.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaseOutcome<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its verdict.
    pub verdict: Verdict,
    /// The parts that the case states and the answer does not, if that is not a failure. They were not compared.
    pub unstated: Parts,
    /// `true` if the verdict is a failure. In a run that must be complete, a missing answer is also a failure.
    pub fails: bool,
    /// The entry of the known-failures file that excuses it.
    pub known: Option<KnownFailure>,
    /// The answer to a failed case, if it is short enough for a report.
    pub answer: Option<Value>,
    /// The testee's output on stderr during the case.
    pub stderr: Option<String>,
    /// A remark, for example that the case was run again alone.
    pub note: Option<String>,
    /// The time that the implementation took.
    pub took: Duration,
}

impl CaseOutcome<'_> {
    /// Returns whether it makes the run fail.
    pub fn is_failure(&self) -> bool {
        self.fails && self.known.is_none()
    }
}

/// The number of cases for each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    counts: [usize; Verdict::NAMES.len()],
    /// The failures that the known-failures file excuses. They also count under their verdict.
    pub known: usize,
}

impl VerdictCounts {
    /// Returns the number of cases with the verdict `name`, one of [`Verdict::NAMES`]; 0 for any other name.
    pub fn count(&self, name: &str) -> usize {
        let place = Verdict::NAMES.iter().position(|known| *known == name);
        place
            .and_then(|place| self.counts.get(place))
            .copied()
            .unwrap_or(0)
    }

    /// Returns every verdict with its count, in the order of [`Verdict::NAMES`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        Verdict::NAMES.into_iter().zip(self.counts)
    }

    /// Returns the number of all verdicts.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    fn add(&mut self, outcome: &CaseOutcome<'_>) {
        let name = outcome.verdict.name();
        if let Some(place) = Verdict::NAMES.iter().position(|known| *known == name) {
            self.counts[place] += 1;
        }
        self.known += usize::from(outcome.known.is_some());
    }
}

/// The content of a report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report<'a> {
    /// The hash of the suite.
    pub suite: &'a str,
    /// The judged implementation.
    pub identity: Identity,
    /// Its name on the command line.
    pub implementation: String,
    /// The selection of cases.
    pub selection: Selection,
    /// `true` if a case without an answer fails the run.
    pub complete: bool,
    /// The selected cases, in order.
    pub results: Vec<CaseOutcome<'a>>,
    /// The errors of the known-failures file, and the reason why cases were not run.
    pub problems: Vec<String>,
}

impl<'a> Report<'a> {
    /// Returns all counts.
    pub fn totals(&self) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        self.results.iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// Returns the counts of each chapter that has results, in order.
    pub fn chapters(&self) -> Vec<(&'a str, VerdictCounts)> {
        let mut chapters: Vec<(&'a str, VerdictCounts)> = Vec::new();
        for outcome in &self.results {
            let name = outcome.case.chapter.as_str();
            match chapters.iter_mut().find(|(known, _)| *known == name) {
                Some((_, counts)) => counts.add(outcome),
                None => {
                    let mut counts = VerdictCounts::default();
                    counts.add(outcome);
                    chapters.push((name, counts));
                }
            }
        }
        chapters
    }

    /// Returns, for each part of the answer, the number of passes that were judged without it because the implementation does not
    /// state it.
    pub fn unstated(&self) -> Vec<(&'static str, usize)> {
        let passes = || {
            let results = self.results.iter();
            results.filter(|outcome| outcome.verdict == Verdict::Pass)
        };
        let count = |part| passes().filter(|one| one.unstated.has(part)).count();
        let counts = Parts::NAMES
            .iter()
            .map(|(name, part)| (*name, count(*part)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Returns whether something was judged, nothing failed except known failures, and the known-failures file is correct.
    pub fn is_good(&self) -> bool {
        // A run in which nothing was judged is not a success. Otherwise an implementation that answers nothing would pass.
        self.was_judged() && self.problems.is_empty() && self.failures().next().is_none()
    }

    /// Returns whether at least one case was neither unsupported nor skipped.
    pub fn was_judged(&self) -> bool {
        let totals = self.totals();
        totals.total() > totals.count("unsupported") + totals.count("skipped")
    }

    /// Returns the cases that fail the run.
    pub fn failures(&self) -> impl Iterator<Item = &CaseOutcome<'a>> {
        self.results.iter().filter(|outcome| outcome.is_failure())
    }
}
