//! Oddities that are tolerated: broken rules with which reading goes on.

use super::violation::shortened;
use super::{Kind, Rule, Violation};
use std::fmt;

/// A tolerated oddity: the input is readable, but a rule is broken that is not a MUST, or one that binds the user of what
/// was read (TEN-35).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that was not kept.
    pub rule: Rule,
    /// The class of the violation that it is where it counts as one.
    pub kind: Kind,
    /// Byte offset from the start of the input.
    pub offset: u64,
    /// What is odd, for people.
    pub message: String,
    /// Whether what was read can be used. Where it cannot, a MUST is broken that binds its user, and a verdict of the file
    /// counts a violation (TEN-35).
    pub usable: bool,
}

impl Finding {
    /// The violation that it is where it counts as one.
    #[cfg(feature = "inspect")]
    pub(crate) fn to_violation(&self) -> Violation {
        self.rule.broken(self.kind, self.offset, &*self.message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (at byte {:#x})",
            self.rule, self.message, self.offset
        )
    }
}

/// Whether an oddity is noted or rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Oddities become findings.
    #[default]
    Lenient,
    /// The first oddity becomes a violation.
    Strict,
}

/// The oddities met while reading one input, in the order met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    omitted: usize,
    /// The rules that were met since the list is full.
    met: Vec<Rule>,
    strictness: Strictness,
}

impl Findings {
    /// How many are kept, and the first of each rule besides; the rest is counted. A file can be odd in every few of its bytes, and
    /// the list is not to grow larger than the file.
    pub const MOST: usize = 10_000;

    /// Collects under `strictness`.
    pub fn new(strictness: Strictness) -> Findings {
        Findings {
            list: Vec::new(),
            omitted: 0,
            met: Vec::new(),
            strictness,
        }
    }

    /// Notes that `rule` is not kept at byte `offset`; under [`Strictness::Strict`] that is a violation.
    ///
    /// # Errors
    ///
    /// Under [`Strictness::Strict`], the violation of `rule` at `offset`.
    pub fn note(
        &mut self,
        rule: Rule,
        kind: Kind,
        offset: u64,
        message: impl Into<String>,
    ) -> Result<(), Violation> {
        // First, so that a rule that is off is neither a finding nor a violation.
        if rule.is_off() {
            return Ok(());
        }
        let message = message.into();
        if self.strictness == Strictness::Strict {
            return Err(rule.broken(kind, offset, message));
        }
        // The first of each rule goes in even when the list is full: a report that lacked a rule altogether would mislead.
        if self.list.len() >= Findings::MOST && self.has(rule) {
            // Format code may not overflow, and beyond this the number is of no use.
            self.omitted = self.omitted.saturating_add(1);
            return Ok(());
        }
        self.list.push(Finding {
            rule,
            kind,
            offset,
            message: shortened(message),
            usable: true,
        });
        Ok(())
    }

    /// [`Findings::expect`] of a rule without which what was read cannot be used.
    pub(crate) fn expect_usable(
        &mut self,
        rule: Rule,
        kind: Kind,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        let before = self.list.len();
        self.expect(rule, kind, kept, offset, message)?;
        // Nothing was pushed where the rule is kept, or the list is full and only counts.
        if let Some(noted) = self.list.get_mut(before) {
            noted.usable = false;
        }
        Ok(())
    }

    /// [`Findings::note`] unless `kept`.
    ///
    /// # Errors
    ///
    /// As [`Findings::note`] when not `kept`.
    pub fn expect(
        &mut self,
        rule: Rule,
        kind: Kind,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept {
            Ok(())
        } else {
            self.note(rule, kind, offset, message())
        }
    }

    /// What was found.
    pub fn as_slice(&self) -> &[Finding] {
        &self.list
    }

    /// Whether a finding of `rule` is in the list. Called on a full list only: each rule is searched for once, then remembered.
    fn has(&mut self, rule: Rule) -> bool {
        // A chapter has some tens of rules, a file as many oddities as bytes: `met` is short, and the list is not searched for each.
        if self.met.contains(&rule) {
            return true;
        }
        self.met.push(rule);
        self.list.iter().any(|finding| finding.rule == rule)
    }

    /// How many more there were than [`Findings::MOST`].
    #[cfg(feature = "inspect")]
    pub(crate) fn omitted(&self) -> usize {
        self.omitted
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
