//! Why a call of a device failed.

use crate::rule::{Kind, Rule, Violation};
use std::fmt;

/// Why a call of a device failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The caller broke a rule of this chapter, or requested what the contract lets a device refuse.
    Refused(Violation),
    /// The memory is not there.
    OutOfMemory {
        /// Bytes of the request.
        nbytes: usize,
        /// Who refused: a call of the driver, or an injected failure.
        by: String,
    },
    /// The driver or its library failed.
    Driver {
        /// `opencl`, `cuda`, ...
        backend: &'static str,
        /// The call that failed, such as `clBuildProgram`, and on what.
        call: String,
        /// The driver's number.
        code: i64,
        /// The driver's text for it; empty where it has none.
        meaning: String,
    },
    /// The backend, its library or its hardware is not here: which, and why.
    Absent(String),
}

impl Error {
    /// A failure of `call` with the driver's number and explanation.
    pub fn driver(
        backend: &'static str,
        call: impl Into<String>,
        code: i64,
        meaning: impl Into<String>,
    ) -> Error {
        Error::Driver {
            backend,
            call: call.into(),
            code,
            meaning: meaning.into(),
        }
    }

    /// The rule that the caller broke, if that is the reason.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Error::Refused(broken) => Some(broken.rule()),
            _ => None,
        }
    }
}

/// A refusal by `rule`, for callers that got something wrong.
pub(crate) fn refuse<T>(rule: Rule, kind: Kind, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Refused(rule.refused(kind, message)))
}

impl From<Violation> for Error {
    fn from(broken: Violation) -> Error {
        Error::Refused(broken)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(broken) => broken.fmt(f),
            Error::OutOfMemory { nbytes, by } => write!(f, "no memory for {nbytes} bytes ({by})"),
            Error::Driver {
                backend,
                call,
                code,
                meaning,
            } => {
                write!(f, "{backend}: {call} failed with {code}")?;
                if meaning.is_empty() {
                    Ok(())
                } else {
                    write!(f, " ({meaning})")
                }
            }
            Error::Absent(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}
