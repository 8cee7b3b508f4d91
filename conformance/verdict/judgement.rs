//! The verdict of one answer, by the parts of it that there were to compare.

use super::{Verdict, expected, fail};
use crate::conformance::case::{Case, Expect};
use crate::conformance::parts::Parts;

/// The verdict of one answer, and how much of it there was to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// By what the answer states.
    pub verdict: Verdict,
    /// What it states.
    pub stated: Parts,
    /// What the case states and the answer does not.
    pub unstated: Parts,
    /// What the answer states of something that has none: a field where the case has no field.
    pub surplus: Parts,
}

impl Judgement {
    /// A verdict on what has no parts to compare.
    pub(in crate::conformance) fn bare(verdict: Verdict) -> Judgement {
        Judgement {
            verdict,
            stated: Parts::default(),
            unstated: Parts::default(),
            surplus: Parts::default(),
        }
    }

    /// This and the judgement of what was put next, for one case that puts several inputs.
    pub(in crate::conformance) fn with(mut self, next: Judgement) -> Judgement {
        self.verdict = next.verdict;
        self.stated.add(next.stated);
        self.unstated.add(next.unstated);
        self.surplus.add(next.surplus);
        self
    }

    /// The same for an implementation that must state these parts wherever a case does: a pass that does not is none.
    pub fn held_to(mut self, case: &Case, parts: Parts) -> Judgement {
        // Who leaves findings out where there are none states that there are none.
        if parts.has(Parts::FINDINGS) && case.findings.is_empty() {
            self.unstated.remove(Parts::FINDINGS);
        }
        let missing = self.unstated.and(parts);
        if self.verdict == Verdict::Pass && !missing.is_empty() {
            let actual = match &case.expect {
                Expect::Reject(_) => format!("rejection without {missing}"),
                _ => format!("acceptance without {missing}"),
            };
            self.verdict = fail(expected(case), actual, None);
        }
        self
    }

    /// The same for an implementation that states everything, and nothing that is not there. An operation that it names it does, whatever the
    /// case: a request that it does not read is its own mistake.
    pub fn in_full(self, case: &Case) -> Judgement {
        let mut judgement = self.held_to(case, Parts::ALL);
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
    /// Compares one part, and notes who states it. Whether it is right, as far as both do.
    pub(super) fn part<T: PartialEq>(
        &mut self,
        part: Parts,
        expected: Option<T>,
        actual: Option<T>,
    ) -> bool {
        match (expected, actual) {
            (None, None) => true,
            // Right as far as it goes: only `held_to` fails an answer for what it leaves out.
            (Some(_), None) => {
                self.unstated.add(part);
                true
            }
            // It contradicts nothing that the case states: only `in_full`, which our own is held to, fails it.
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
