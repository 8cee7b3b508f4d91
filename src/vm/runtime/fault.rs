//! Why a call did not end well: what went wrong, and where in the code of the VM.

use crate::function::{Error, ErrorKind};
use crate::rule::Violation;
use crate::value::Any;
use std::fmt;

/// What a function of this chapter returns.
pub(super) type VmResult<T = Any> = Result<T, Fault>;

/// A rule that was broken or an error of a function, and the instructions on the way to it, innermost first.
#[derive(Clone)]
pub struct Fault(Box<FaultDetail>);

/// In a box, so that the result of a call stays small where there is no fault.
#[derive(Clone)]
struct FaultDetail {
    cause: Cause,
    places: Vec<String>,
}

/// What went wrong: a rule of this runtime, or an error that a function raised.
#[derive(Clone)]
enum Cause {
    Broken(Violation),
    Failed(Error),
}

/// Deeper places add nothing that helps.
const PLACES: usize = 12;

impl Fault {
    /// The broken rule, if that is what went wrong.
    pub fn violation(&self) -> Option<&Violation> {
        match &self.0.cause {
            Cause::Broken(broken) => Some(broken),
            Cause::Failed(_) => None,
        }
    }

    /// Adds the instruction that was running.
    #[cold]
    pub(super) fn at(mut self, function: &str, instruction: usize, text: &str) -> Fault {
        if self.0.places.len() < PLACES {
            self.0.places.push(format!(
                "  in VM function `{function}`, instruction {instruction}: {text}"
            ));
        }
        self
    }

    /// A line for each instruction, to stand behind a message.
    fn places(&self) -> String {
        self.0.places.iter().fold(String::new(), |mut text, place| {
            text.push('\n');
            text.push_str(place);
            text
        })
    }
}

impl From<Violation> for Fault {
    #[cold]
    fn from(broken: Violation) -> Fault {
        Fault(Box::new(FaultDetail {
            cause: Cause::Broken(broken),
            places: Vec::new(),
        }))
    }
}

impl From<Error> for Fault {
    #[cold]
    fn from(failed: Error) -> Fault {
        Fault(Box::new(FaultDetail {
            cause: Cause::Failed(failed),
            places: Vec::new(),
        }))
    }
}

impl From<crate::device::Error> for Fault {
    #[cold]
    fn from(error: crate::device::Error) -> Fault {
        match error {
            crate::device::Error::Refused(broken) => broken.into(),
            other => Error::new(ErrorKind::Runtime, other.to_string()).into(),
        }
    }
}

impl From<Fault> for Error {
    /// The places go behind the message, so that every frontend shows them.
    #[cold]
    fn from(fault: Fault) -> Error {
        let error = match &fault.0.cause {
            Cause::Broken(broken) => Error::from(broken.clone()),
            Cause::Failed(error) => error.clone(),
        };
        match fault.0.places.as_slice() {
            // Kind and message of a foreign error are any bytes, which text would lose.
            [_, ..] => error.with_text_behind(&fault.places()),
            [] => error,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Broken(broken) => write!(f, "{broken}")?,
            Cause::Failed(error) => write!(f, "{error}")?,
        }
        f.write_str(&self.places())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_stands_behind_the_message_and_the_rest_stays() {
        let failed = Error::new("KeyError", "why").caused_by(Error::new("ValueError", "first"));
        let error = Error::from(Fault::from(failed).at("main", 3, "return %0"));
        let message = "why\n  in VM function `main`, instruction 3: return %0";
        assert_eq!(error.message(), message);
        assert_eq!(error.kind(), "KeyError");
        assert_eq!(error.cause().expect("a cause").message(), "first");
    }
}
