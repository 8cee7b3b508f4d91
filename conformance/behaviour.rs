//! Behaviour: what bytes cannot show, driven through an interface.

use crate::rule::Rule;
use std::fmt;

/// A rule of behaviour, as a program that drives a subject.
pub struct Behaviour<R> {
    /// `chapter/what-it-demands`, as cases are named.
    pub id: &'static str,
    /// The rules that it holds the subject to.
    pub rules: &'static [Rule],
    /// The releases in which it holds, as cases state them: `0.8..`.
    pub releases: &'static str,
    /// What goes wrong for a user where it is broken.
    pub why: &'static str,
    /// What `run` does and compares, in words, for a second implementation: a paragraph each.
    pub program: &'static [&'static str],
    /// Drives the subject: a `fn` from whatever the chapter probes with to [`Outcome`].
    pub run: R,
}

/// How a behaviour went.
pub type Outcome = Result<(), Failure>;

/// Why a behaviour did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The subject breaks the rule; says how.
    Broken(String),
    /// The subject does not have what the behaviour is about; says what. Not a pass.
    Skipped(String),
}

impl Failure {
    /// The subject breaks the rule.
    ///
    /// # Errors
    ///
    /// [`Failure::Broken`] with `how`, always.
    pub fn broken<T>(how: impl Into<String>) -> Result<T, Failure> {
        Err(Failure::Broken(how.into()))
    }

    /// The behaviour does not apply.
    ///
    /// # Errors
    ///
    /// [`Failure::Skipped`] with `why`, always.
    pub fn skipped<T>(why: impl Into<String>) -> Result<T, Failure> {
        Err(Failure::Skipped(why.into()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Broken(how) => f.write_str(how),
            Failure::Skipped(why) => write!(f, "skipped, because {why}"),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        // A call that fails ends a program, which then does not hold (device-programs.md): programs use `?` for that.
        Failure::Broken(error.to_string())
    }
}

/// Broken unless `kept`.
///
/// # Errors
///
/// [`Failure::Broken`] with `otherwise`, unless `kept`.
pub fn demand(kept: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if kept {
        Ok(())
    } else {
        Failure::broken(otherwise())
    }
}

/// Broken unless `actual` is `expected`; `what` names it.
///
/// # Errors
///
/// [`Failure::Broken`] with both values when they differ.
pub fn expect<T: PartialEq + fmt::Debug>(actual: T, expected: T, what: &str) -> Outcome {
    demand(actual == expected, || {
        format!("{what}: expected {expected:?}, got {actual:?}")
    })
}
