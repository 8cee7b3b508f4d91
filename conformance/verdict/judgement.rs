//! The verdict of one answer, with the parts that could be compared.

use super::{Verdict, expected, fail};
use crate::conformance::answer_parts::Parts;
use crate::conformance::case::{Case, Expect};

/// The verdict of one answer, and how much of it there was to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// The verdict, based on the parts that the answer states.
    pub verdict: Verdict,
    /// The parts that the answer states.
    pub stated: Parts,
    /// The parts that the case states and the answer does not.
    pub unstated: Parts,
    /// The parts that the answer states although the case has none, such as a field.
    pub surplus: Parts,
}

impl Judgement {
    /// Creates a verdict without parts to compare.
    pub(in crate::conformance) fn without_parts(verdict: Verdict) -> Judgement {
        Judgement {
            verdict,
            stated: Parts::default(),
            unstated: Parts::default(),
            surplus: Parts::default(),
        }
    }

    /// Merges this judgement with that of the next input, for a case with several inputs.
    pub(in crate::conformance) fn merge_next(mut self, next: Judgement) -> Judgement {
        self.verdict = next.verdict;
        self.stated.add(next.stated);
        self.unstated.add(next.unstated);
        self.surplus.add(next.surplus);
        self
    }

    /// Returns the judgement for an implementation that must state these parts whenever a case does. A pass without them becomes a
    /// failure.
    pub fn require_parts(mut self, case: &Case, parts: Parts) -> Judgement {
        // In a case without findings, a missing list counts as an empty one.
        if parts.has(Parts::FINDINGS) && case.findings.is_empty() {
            self.unstated.remove(Parts::FINDINGS);
        }
        let missing = self.unstated.intersection(parts);
        if self.verdict == Verdict::Pass && !missing.is_empty() {
            let actual = match &case.expect {
                Expect::Reject(_) => format!("rejection without {missing}"),
                _ => format!("acceptance without {missing}"),
            };
            self.verdict = fail(expected(case), actual, None);
        }
        self
    }

    /// Returns the judgement for an implementation that must state everything, and nothing else. It must execute every case of an
    /// operation that it names: a request that it cannot read is its own mistake.
    pub fn in_full(self, case: &Case) -> Judgement {
        let mut judgement = self.require_parts(case, Parts::ALL);
        if let Verdict::Unsupported(why) = &judgement.verdict {
            let actual = format!("unsupported: {why}");
            judgement.verdict = fail(expected(case), actual, None);
        }
        let surplus = judgement.surplus;
        if judgement.verdict == Verdict::Pass && !surplus.is_empty() {
            let actual = format!("rejection with {surplus}");
            judgement.verdict = fail(expected(case), actual, None);
        }
        judgement
    }
}

impl Judgement {
    /// Compares one part, and records who states it. Returns whether it is right, as far as both state it.
    pub(super) fn compare_part<T: PartialEq>(
        &mut self,
        part: Parts,
        expected: Option<T>,
        actual: Option<T>,
    ) -> bool {
        match (expected, actual) {
            (None, None) => true,
            // Correct as far as it is stated. Only `require_parts` fails an answer for a missing part.
            (Some(_), None) => {
                self.unstated.add(part);
                true
            }
            // It contradicts nothing that the case states. Only `in_full`, which applies to this crate, fails it.
            (None, Some(_)) => {
                self.surplus.add(part);
                true
            }
            (Some(expected), Some(actual)) => {
                self.stated.add(part);
                expected == actual
            }
        }
    }
}
