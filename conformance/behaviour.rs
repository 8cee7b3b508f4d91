//! Behaviour: what bytes cannot show, driven through an interface.

use std::fmt;

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
        // A call that fails ends a program, which then does not hold: programs use `?` for that.
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
