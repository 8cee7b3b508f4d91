//! Oddities that are tolerated: broken rules that do not stop reading.

use super::violation::shortened;
use super::{Kind, Rule, Violation};
use std::fmt;

/// A tolerated oddity. The input is readable, but breaks a rule that is not a MUST, or a rule for the user of the content (TEN-35).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The broken rule.
    pub rule: Rule,
    /// The class of the violation, if the oddity counts as one.
    pub kind: Kind,
    /// Byte offset from the start of the input.
    pub offset: u64,
    /// A description of the oddity, for people.
    pub message: String,
    /// False if the content cannot be used. Then a MUST for its user is broken, and a verdict on the file counts a violation
    /// (TEN-35).
    pub usable: bool,
}

impl Finding {
    /// Converts the oddity to the violation that it is if it counts as one.
    pub(crate) fn to_violation(&self) -> Violation {
        self.rule.broken(self.kind, self.offset, &*self.message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (at byte {:#x}) [{}]",
            self.message, self.offset, self.rule
        )
    }
}

/// The treatment of oddities: tolerated or rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Oddities become findings.
    #[default]
    Lenient,
    /// The first oddity becomes a violation.
    Strict,
}

/// The oddities found while reading one input, in the order of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    omitted: usize,
    /// The rules that were found since the list is full.
    met: Vec<Rule>,
    strictness: Strictness,
}

impl Findings {
    /// The number of findings that are stored. The first finding of each rule is stored even after that; the others are only counted.
    /// Almost every byte of a file can be odd, and the list must not become larger than the file.
    pub const MOST: usize = 10_000;

    /// Creates an empty collection.
    pub fn new(strictness: Strictness) -> Findings {
        Findings {
            list: Vec::new(),
            omitted: 0,
            met: Vec::new(),
            strictness,
        }
    }

    /// Records that `rule` is broken at byte `offset`. Under [`Strictness::Strict`] this is a violation.
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
        // Checked first, so that a rule that is off is neither a finding nor a violation.
        if rule.is_off() {
            return Ok(());
        }
        let message = message.into();
        if self.strictness == Strictness::Strict {
            return Err(rule.broken(kind, offset, message));
        }
        // The first finding of each rule is stored even if the list is full, because a report without the rule would mislead.
        if self.list.len() >= Findings::MOST && self.has(rule) {
            // Format code must not overflow, and a larger number would be of no use.
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

    /// Like [`Findings::expect`], for a rule whose violation makes the content unusable.
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
        // Nothing was added if the rule is kept, or if the list is full and only the count has increased.
        if let Some(noted) = self.list.get_mut(before) {
            noted.usable = false;
        }
        Ok(())
    }

    /// Calls [`Findings::note`] unless `kept`.
    ///
    /// # Errors
    ///
    /// As [`Findings::note`] if not `kept`.
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

    /// Returns the stored findings.
    pub fn as_slice(&self) -> &[Finding] {
        &self.list
    }

    /// Returns whether a finding of `rule` is in the list. Called only for a full list. Each rule is searched for once and then
    /// remembered.
    fn has(&mut self, rule: Rule) -> bool {
        // A chapter has only some tens of rules, but a file may have as many oddities as bytes. `met` is therefore short, and avoids
        // searching the list each time.
        if self.met.contains(&rule) {
            return true;
        }
        self.met.push(rule);
        self.list.iter().any(|finding| finding.rule == rule)
    }

    /// Returns the number of findings that were not stored.
    #[cfg(feature = "inspect")]
    pub(crate) fn omitted(&self) -> usize {
        self.omitted
    }

    /// Returns an iterator over the stored findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'f> IntoIterator for &'f Findings {
    type Item = &'f Finding;
    type IntoIter = std::slice::Iter<'f, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
