//! Rules, and the values that report a broken rule. Read this module first.
//!
//! The specification (`spec/<chapter>.md`) consists of numbered rules: `### BLOB-07 The import tree occurs once`. Each id is a constant
//! of its chapter, of type [`Rule`]: [`blob::rules::BLOB_07`](crate::blob::rules::BLOB_07). The documentation of the constant is the
//! text of the rule, and `Rule::text` returns it as data (feature `suite`). A constant without a rule in the specification does not
//! compile.
//!
//! The text of a rule begins with its norm, which binds every implementation. A paragraph `Upstream:` says what TVM's releases do
//! instead, and `Here:` what this crate decides beyond the norm. The attributes state who is obliged: a *reader* takes bytes apart, a
//! *writer* makes them, a *loader* makes modules of a library, a *runtime* runs them, a *frontend* is a language binding.
//!
//! Code that reads, writes, loads or runs reports a broken rule in one of two ways:
//!
//! * A [`Violation`] is an error with the rule, the byte, the field, a class ([`Kind`]) that test cases compare, and a text.
//! * A [`Finding`] is returned with the value ([`Tolerated`]), and reading continues. The rule is a SHOULD, or is disputed, or binds the
//!   user of the content. [`Tolerated::strict`] returns the first finding as a violation. A reader that works on a cursor adds findings
//!   to the caller's [`Findings`] instead, which are strict from the start if made so.
//!
//! ```
//! use tvmspec::blob::rules::BLOB_04;
//! use tvmspec::rule::{Findings, Kind};
//! use tvmspec::wire::rules::{WIRE_01, WIRE_08};
//! use tvmspec::wire::Cursor;
//!
//! // A length of 3 followed by one byte: the content, at byte 8, is cut off.
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
//! # Enforcing a rule
//!
//! | method | subject | result |
//! |---|---|---|
//! | [`Rule::require`] | bytes | the violation, at an offset, unless the rule is kept |
//! | [`Rule::demand`] | a value that was never bytes | the violation, without an offset, unless the rule is kept |
//! | [`Findings::expect`], [`Findings::note`] | bytes | a finding; under strict findings the violation |
//! | [`Rule::broken`], [`Rule::rejected`] | bytes; a value | the violation itself, if reading cannot continue |
//!
//! All of them create the violation in one place, so that every violation has a rule. The first three are checks that the suite can
//! switch off, to see that a case notices it.

mod findings;
mod tolerated;
mod violation;

pub use findings::{Finding, Findings, Strictness};
pub use tolerated::Tolerated;
pub(crate) use violation::Detail;
pub use violation::{Kind, Violation};

use std::fmt;

/// The level of obligation of a rule: the attribute `level` of its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Breaking it is a violation.
    Must,
    /// A limit of this crate, which no release has. Breaking it is a violation here, although the format allows it.
    Limit,
    /// Breaking it is a finding, and a violation under [`Strictness::Strict`].
    Should,
    /// A permission, which cannot be broken.
    May,
    /// Released implementations disagree. The text of the rule says how, and its part *Here* states the choice of this crate. If bytes
    /// show the disagreement, it is a finding.
    Disputed,
}

impl Level {
    /// Returns whether breaking a rule of this level is a violation, and not a finding.
    pub const fn is_binding(self) -> bool {
        // A limit is not part of the format, but input beyond it would exhaust memory or stack here. The caller therefore gets an
        // error, as for a MUST.
        matches!(self, Level::Must | Level::Limit)
    }

    /// Returns the word of the specification: `MUST`, `LIMIT`, ...
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

/// The id of a numbered rule, such as `BLOB-07`. The module `rules` of each chapter has a constant for each of its rules, and
/// all of them in `RULES`.
///
/// Rules are compared and sorted by their ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule(&'static str);

impl Rule {
    /// Creates the rule with this id, without a check. The constants of the chapters are checked at compile time. Other ids are for
    /// code outside this crate that defines rules.
    pub const fn new(id: &'static str) -> Rule {
        Rule(id)
    }

    /// Returns the id as the specification writes it: `BLOB-07`.
    pub const fn id(self) -> &'static str {
        self.0
    }

    /// Checks bytes against the rule. Unless `kept`, returns a violation of kind [`Kind::Malformed`] at byte `offset`. The message is
    /// created only then.
    ///
    /// # Errors
    ///
    /// Returns the violation of this rule, unless `kept`.
    pub fn require(
        self,
        kept: bool,
        offset: u64,
        message: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        self.require_as(Kind::Malformed, kept, offset, message)
    }

    /// Like [`Rule::require`], with another kind.
    // Loops over the words of a file check each word. The calls would take half of their time.
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

    /// Like [`Rule::require`], with a kind, for a value that was never bytes: the violation has no offset.
    ///
    /// # Errors
    ///
    /// Returns the violation of this rule, of `kind`, unless `kept`.
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

    /// Creates the violation at byte `offset`, for a place where reading cannot continue. No other value could take the place of the
    /// missing one, so that there is no check to switch off.
    // Cold, because valid input never gets here, and the loops that check words stay small.
    #[cold]
    pub fn broken(self, kind: Kind, offset: u64, message: impl Into<String>) -> Violation {
        Violation::new(self, kind, Some(offset), message.into())
    }

    /// Creates the violation without an offset, for a value that cannot be written, called or run.
    #[cold]
    pub fn rejected(self, kind: Kind, message: impl Into<String>) -> Violation {
        Violation::new(self, kind, None, message.into())
    }

    /// Returns whether the rule-off test has switched this rule off on this thread. Always false in a release build.
    #[inline]
    fn is_off(self) -> bool {
        // Per thread, because tests run in parallel, and only one of them has the rule off.
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

/// Declares the module `rules` of a chapter: a constant for each rule, and `RULES` with all of them in order. The build script generates both
/// from `spec/`, so that code cannot name a rule without a text.
macro_rules! chapter_rules {
    ($chapter:literal) => {
        #[doc = concat!("The rules of chapter `", $chapter, "`.")]
        #[doc = concat!("The documentation of each constant is the text of the rule in `spec/", $chapter, ".md`.")]
        /// The text of the chapter around the rules follows.
        ///
        #[doc = include_str!(concat!(env!("OUT_DIR"), "/rules/", $chapter, ".md"))]
        pub mod rules {
            include!(concat!(env!("OUT_DIR"), "/rules/", $chapter, ".rs"));
        }
    };
}
pub(crate) use chapter_rules;

/// The switch of the rule-off check in `tests/suite`. A release build does not have it.
#[cfg(all(feature = "suite", debug_assertions))]
#[doc(hidden)]
pub mod off {
    use super::Rule;
    use std::cell::Cell;

    thread_local! {
        pub(super) static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Runs `body` with `rule` unenforced on this thread.
    pub fn run_without<T>(rule: Rule, body: impl FnOnce() -> T) -> T {
        // Reset by a destructor, because a body that panics, such as a failing assertion, must not leave the rule off for the next
        // test.
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
