//! What of an answer can be stated, or left out by an implementation that does not know it.

use std::fmt;

/// A set of parts of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// The kind of a rejection.
    pub const KIND: Parts = Parts(1);
    /// The rule that is broken.
    pub const RULE: Parts = Parts(1 << 1);
    /// The byte at which it is.
    pub const OFFSET: Parts = Parts(1 << 2);
    /// The field that breaks it.
    pub const FIELD: Parts = Parts(1 << 3);
    /// What was odd in an accepted input.
    pub const FINDINGS: Parts = Parts(1 << 4);
    /// The kind of each finding.
    pub const FINDING_KINDS: Parts = Parts(1 << 5);
    /// The byte of each finding.
    pub const FINDING_OFFSETS: Parts = Parts(1 << 6);
    /// Everything.
    pub const ALL: Parts = Parts((1 << 7) - 1);

    /// Each part by name, in the order in which reports count them.
    pub const NAMES: [(&str, Parts); 7] = [
        ("kind", Parts::KIND),
        ("rule", Parts::RULE),
        ("offset", Parts::OFFSET),
        ("field", Parts::FIELD),
        ("findings", Parts::FINDINGS),
        ("finding kinds", Parts::FINDING_KINDS),
        ("finding offsets", Parts::FINDING_OFFSETS),
    ];

    /// Adds `other`.
    pub fn add(&mut self, other: Parts) {
        self.0 |= other.0;
    }

    /// Takes `other` out.
    pub fn remove(&mut self, other: Parts) {
        self.0 &= !other.0;
    }

    /// What is in both.
    #[must_use]
    pub fn and(self, other: Parts) -> Parts {
        Parts(self.0 & other.0)
    }

    /// Whether all of `other` is in it.
    pub fn has(self, other: Parts) -> bool {
        self.and(other) == other
    }

    /// Whether nothing is.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Parts::NAMES.iter().filter(|(_, part)| self.has(*part));
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        f.write_str(&names.join(", "))
    }
}
