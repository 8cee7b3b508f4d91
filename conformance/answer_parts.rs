//! The parts of an answer that an implementation may state or omit.

use std::fmt;

/// A set of parts of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// The kind of a rejection.
    pub const KIND: Parts = Parts(1);
    /// The broken rule.
    pub const RULE: Parts = Parts(1 << 1);
    /// The offset of the fault.
    pub const OFFSET: Parts = Parts(1 << 2);
    /// The faulty field.
    pub const FIELD: Parts = Parts(1 << 3);
    /// The oddities of an accepted input.
    pub const FINDINGS: Parts = Parts(1 << 4);
    /// The kind of each finding.
    pub const FINDING_KINDS: Parts = Parts(1 << 5);
    /// The offset of each finding.
    pub const FINDING_OFFSETS: Parts = Parts(1 << 6);
    /// All parts.
    pub const ALL: Parts = Parts((1 << 7) - 1);

    /// The parts by name, in the order in which reports count them.
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

    /// Removes `other`.
    pub fn remove(&mut self, other: Parts) {
        self.0 &= !other.0;
    }

    /// Returns the intersection.
    #[must_use]
    pub fn intersection(self, other: Parts) -> Parts {
        Parts(self.0 & other.0)
    }

    /// Returns whether it contains all of `other`.
    pub fn has(self, other: Parts) -> bool {
        self.intersection(other) == other
    }

    /// Returns whether it is empty.
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
