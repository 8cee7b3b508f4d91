//! Behaviour that bytes cannot show, tested through an interface.

use std::fmt;

/// The outcome of a behaviour.
pub type Outcome = Result<(), Failure>;

/// The reason why a behaviour did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The subject breaks the rule, in this way.
    Broken(String),
    /// The subject lacks this feature, which the behaviour needs. It does not count as a pass.
    Skipped(String),
}

impl Failure {
    /// Returns a failure: the subject breaks the rule.
    ///
    /// # Errors
    ///
    /// Always [`Failure::Broken`] with `how`.
    pub fn broken<T>(how: impl Into<String>) -> Result<T, Failure> {
        Err(Failure::Broken(how.into()))
    }

    /// Returns a failure: the behaviour does not apply.
    ///
    /// # Errors
    ///
    /// Always [`Failure::Skipped`] with `why`.
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
        // A failed call breaks the program, so that programs can use `?`.
        Failure::Broken(error.to_string())
    }
}

/// Requires that `kept` is true.
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

/// Requires that `actual` equals `expected`; `what` names the value.
///
/// # Errors
///
/// [`Failure::Broken`] with both values if they differ.
pub fn expect<T: PartialEq + fmt::Debug>(actual: T, expected: T, what: &str) -> Outcome {
    demand(actual == expected, || {
        format!("{what}: expected {expected:?}, got {actual:?}")
    })
}
