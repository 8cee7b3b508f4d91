//! What came of a run: of each case, and in numbers.

use super::Selection;
use crate::conformance::case::Case;
use crate::conformance::known::KnownFailure;
use crate::conformance::parts::Parts;
use crate::conformance::reply::Identity;
use crate::conformance::verdict::Verdict;
use serde_json::Value;
use std::time::Duration;

/// What came of one case.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaseOutcome<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its verdict.
    pub verdict: Verdict,
    /// What the case states and the answer does not, where that is no failure: it was not compared.
    pub unstated: Parts,
    /// Whether that is a failure: of a run that must be complete, no answer is one too.
    pub fails: bool,
    /// The entry of the known-failures file that excuses it.
    pub known: Option<KnownFailure>,
    /// The answer to a case that fails, where it is no longer than a report can hold.
    pub answer: Option<Value>,
    /// What the testee wrote to its stderr meanwhile.
    pub stderr: Option<String>,
    /// What else there is to say: that it was run again alone, for one.
    pub note: Option<String>,
    /// How long the implementation took.
    pub took: Duration,
}

impl CaseOutcome<'_> {
    /// Whether it makes the run fail.
    pub fn is_failure(&self) -> bool {
        self.fails && self.known.is_none()
    }
}

/// How often each verdict came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    counts: [usize; Verdict::NAMES.len()],
    /// Failures that the known-failures file excuses; they are counted under their verdict too.
    pub known: usize,
}

impl VerdictCounts {
    /// How often the verdict `name` came.
    pub fn count(&self, name: &str) -> usize {
        let place = Verdict::NAMES.iter().position(|known| *known == name);
        place
            .and_then(|place| self.counts.get(place))
            .copied()
            .unwrap_or(0)
    }

    /// Every verdict with its count, in the order of [`Verdict::NAMES`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        Verdict::NAMES.into_iter().zip(self.counts)
    }

    /// All verdicts together.
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

/// Everything that a report can say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report<'a> {
    /// Hash of the suite.
    pub suite: &'a str,
    /// Who was judged.
    pub identity: Identity,
    /// How it was named on the command line.
    pub implementation: String,
    /// Which cases were selected.
    pub selection: Selection,
    /// Whether a case without an answer fails the run.
    pub complete: bool,
    /// Every selected case, in order.
    pub results: Vec<CaseOutcome<'a>>,
    /// What makes the known-failures file untrue, and why cases were put to no testee.
    pub problems: Vec<String>,
}

impl<'a> Report<'a> {
    /// All counts.
    pub fn totals(&self) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        self.results.iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// The counts of each chapter that has results, in order.
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

    /// How many passes were judged without each part of the answer, because the implementation does not state it.
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

    /// Whether something was judged, nothing failed that is not known, and the known-failures file is true.
    pub fn is_good(&self) -> bool {
        // A run in which nothing was judged is no success: an implementation that answers nothing would pass.
        self.was_judged() && self.problems.is_empty() && self.failures().next().is_none()
    }

    /// Whether at least one case was neither unsupported nor skipped.
    pub fn was_judged(&self) -> bool {
        let totals = self.totals();
        totals.total() > totals.count("unsupported") + totals.count("skipped")
    }

    /// What fails the run.
    pub fn failures(&self) -> impl Iterator<Item = &CaseOutcome<'a>> {
        self.results.iter().filter(|outcome| outcome.is_failure())
    }
}
