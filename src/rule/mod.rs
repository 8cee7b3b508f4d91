//! Rules, and what is returned where one is broken. Read this first.
//!
//! The specification (`spec/<chapter>.md`) is numbered rules: `### BLOB-07 The import tree occurs once`. Each id is a constant of
//! its chapter, of type [`Rule`]: [`blob::BLOB_07`](crate::blob::BLOB_07). Its title is the constant's documentation, its text
//! `Rule::text` (feature `suite`). A constant that no chapter of the specification has does not compile.
//!
//! Whatever reads, writes, loads or runs returns one of two things about a rule that is not kept:
//!
//! * a [`Violation`], which is an error: the rule, the byte, the field, a class ([`Kind`]) that cases compare, and a text.
//! * a [`Finding`], which goes to the caller's [`Findings`] while reading goes on: the rule is a SHOULD, or is disputed, or binds
//!   the user of what was read. Under [`Strictness::Strict`] the first of them is returned as a violation.
//!
//! ```
//! use tvmspec::blob::BLOB_04;
//! use tvmspec::rule::{Findings, Kind};
//! use tvmspec::wire::{Cursor, WIRE_01, WIRE_08};
//!
//! // A length of 3 with one byte behind it: the content, at byte 8, is cut off.
//! let mut cut = Cursor::new(&[3, 0, 0, 0, 0, 0, 0, 0, b'a']);
//! let broken = cut.str("kind", BLOB_04).unwrap_err();
//! assert_eq!((broken.rule(), broken.kind()), (WIRE_01, Kind::Truncated));
//! assert_eq!((broken.offset(), broken.field()), (Some(8), "kind"));
//!
//! // A byte that belongs to nothing: odd, and readable.
//! let mut findings = Findings::default();
//! Cursor::new(&[0]).finish("the file", &mut findings)?;
//! assert_eq!(findings.as_slice()[0].rule, WIRE_08);
//! # Ok::<(), tvmspec::rule::Violation>(())
//! ```
//!
//! # Holding a rule
//!
//! | method | of | returns |
//! |---|---|---|
//! | [`Rule::require`] | bytes | the violation, at an offset, unless the rule is kept |
//! | [`Rule::demand`] | a value that was never bytes | the violation, without an offset, unless the rule is kept |
//! | [`Findings::expect`], [`Findings::note`] | bytes | a finding; under strict findings the violation |
//! | [`Rule::broken`], [`Rule::rejected`] | bytes; a value | the violation itself, where there is nothing to go on with |
//!
//! The first three are checks that can be switched off: the rule-off test of the suite leaves one rule unenforced at a time, and
//! some case must notice. [`Rule::broken`] and [`Rule::rejected`] cannot be: for a rule that ends in one of them a mutant
//! (`conformance/mutants/`) is what the cases must notice. All of them make the violation in one place, which takes a rule: no
//! violation is without one.

mod findings;
mod violation;

pub use findings::{Finding, Findings, Strictness};
pub use violation::{Kind, Violation};

use std::fmt;

/// How strongly a rule binds: the attribute `level` of its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Breaking it is a violation.
    Must,
    /// A limit of this crate, which no release has: breaking it is a violation here, and nothing of the format.
    Limit,
    /// Breaking it is a finding, and a violation under [`Strictness::Strict`].
    Should,
    /// A permission: nothing breaks it.
    May,
    /// Released implementations disagree: the text of the rule says how, and its part *Here* which side this crate takes. Where
    /// bytes show the disagreement, that is a finding.
    Disputed,
}

impl Level {
    /// Whether breaking a rule of this level is a violation, and not a finding.
    pub const fn binds(self) -> bool {
        // A limit is none of the format, but what it rejects would exhaust memory or stack here: the caller gets an error, as of a MUST.
        matches!(self, Level::Must | Level::Limit)
    }

    /// The word that the specification writes: `MUST`, `LIMIT`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::Limit => "LIMIT",
            Level::Should => "SHOULD",
            Level::May => "MAY",
            Level::Disputed => "DISPUTED",
        }
    }
}

/// The id of a numbered rule, such as `BLOB-07`. Each chapter has a constant for each of its rules, and `RULES` with all of them.
///
/// Rules compare and sort by their ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule(&'static str);

impl Rule {
    /// The rule of this id. Nothing checks the id here: the constants of the chapters are checked when the crate compiles, and a
    /// rule of another id is for code outside of it that has rules of its own.
    pub const fn new(id: &'static str) -> Rule {
        Rule(id)
    }

    /// The id as the specification writes it: `BLOB-07`.
    pub const fn id(self) -> &'static str {
        self.0
    }

    /// Holds bytes to the rule: unless `kept`, a violation of kind [`Kind::Malformed`] at byte `offset`. The message is made only
    /// then.
    ///
    /// # Errors
    ///
    /// The violation of this rule, unless `kept`.
    pub fn require(
        self,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        self.require_as(Kind::Malformed, kept, offset, message)
    }

    /// [`Rule::require`] with another kind.
    // Loops over the words of a file hold each of them to a rule: a call each would be half of what they cost.
    #[inline(always)]
    pub(crate) fn require_as(
        self,
        kind: Kind,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept || self.is_off() {
            Ok(())
        } else {
            Err(self.broken(kind, offset, message()))
        }
    }

    /// [`Rule::require`] of a value that was never bytes, with a kind: the violation has no offset.
    ///
    /// # Errors
    ///
    /// The violation of this rule, of `kind`, unless `kept`.
    pub fn demand(
        self,
        kind: Kind,
        kept: bool,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept || self.is_off() {
            Ok(())
        } else {
            Err(self.rejected(kind, message()))
        }
    }

    /// The violation at byte `offset`, for a place where reading cannot go on: there is no value that could stand for what is
    /// missing, so there is no check to switch off.
    // Cold: well-formed input never comes here, and the callers that hold words in loops stay small.
    #[cold]
    pub fn broken(self, kind: Kind, offset: u64, message: impl Into<String>) -> Violation {
        Violation::new(self, kind, Some(offset), message.into())
    }

    /// The violation without an offset, for a value that cannot be written, called or run.
    #[cold]
    pub fn rejected(self, kind: Kind, message: impl Into<String>) -> Violation {
        Violation::new(self, kind, None, message.into())
    }

    /// Returns whether the rule-off test has switched this rule off on this thread. Always false in a release build.
    #[inline]
    fn is_off(self) -> bool {
        // By thread, since tests run beside each other, and only one of them has the rule off.
        #[cfg(all(feature = "suite", debug_assertions))]
        return off::OFF.get() == Some(self);
        #[cfg(not(all(feature = "suite", debug_assertions)))]
        false
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// `BLOB-07` of `BLOB_07`, when the crate compiles: a rule is written once.
pub(crate) const fn id_of<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    // A constant cannot hold a `String`, and `for` and iterators do not run when the crate compiles: hence bytes, and a `while`.
    let mut id = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        id[at] = match name.as_bytes()[at] {
            b'_' => b'-',
            byte => byte,
        };
        at += 1;
    }
    id
}

/// Declares the rules of a chapter: a constant for each, and `RULES` with all of them in order.
macro_rules! rules {
    ($($name:ident)*) => {
        $(
            // A rule that no chapter of the specification has does not compile.
            #[doc = include_str!(concat!(env!("OUT_DIR"), "/rules/", stringify!($name), ".md"))]
            pub const $name: $crate::rule::Rule = {
                const ID: [u8; stringify!($name).len()] = $crate::rule::id_of(stringify!($name));
                match std::str::from_utf8(&ID) {
                    Ok(id) => $crate::rule::Rule::new(id),
                    // The names are ASCII, and `-` for `_` keeps them so.
                    Err(_) => unreachable!(),
                }
            };
        )*
        /// Every rule that this chapter enforces, in order.
        pub const RULES: &[$crate::rule::Rule] = &[$($name),*];
    };
}
pub(crate) use rules;

/// The switch of the rule-off check in `tests/suite`. A release build has none.
#[cfg(all(feature = "suite", debug_assertions))]
#[doc(hidden)]
pub mod off {
    use super::Rule;
    use std::cell::Cell;

    thread_local! {
        pub(super) static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Runs `body` with `rule` unenforced on this thread.
    pub fn with<T>(rule: Rule, body: impl FnOnce() -> T) -> T {
        // Reset by a destructor: a body that panics, as a failing assertion does, must not leave the rule off for the next test.
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                OFF.set(None);
            }
        }
        OFF.set(Some(rule));
        let _reset = Reset;
        body()
    }
}
