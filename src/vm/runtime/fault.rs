//! Where in the code of the VM a call failed.

use crate::function::Error;
use crate::value::Any;

/// What a function of this chapter returns.
pub(super) type VmResult<T = Any> = Result<T, Error>;

/// What the line of an instruction begins with.
const PLACE: &str = "\n  in VM function `";

/// Deeper places add nothing that helps.
const PLACES: usize = 12;

/// `error` with the instruction that was running behind its message, so that every frontend shows it: innermost first.
#[cold]
pub(super) fn located(error: Error, function: &str, instruction: usize, text: &str) -> Error {
    // VM-25: recursion may fail a thousand calls deep, and each of them adds a line.
    if error.message().matches(PLACE).count() >= PLACES {
        return error;
    }
    let place = format!("{PLACE}{function}`, instruction {instruction}: {text}");
    // Kind and message of a foreign error are any bytes, which text would lose.
    error.with_text_behind(&place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_stands_behind_the_message_and_the_rest_stays() {
        let failed = Error::new("KeyError", "why").caused_by(Error::new("ValueError", "first"));
        let error = located(failed, "main", 3, "return %0");
        let message = "why\n  in VM function `main`, instruction 3: return %0";
        assert_eq!(error.message(), message);
        assert_eq!(error.kind(), "KeyError");
        assert_eq!(error.cause().expect("a cause").message(), "first");
        let deep = (0..20).fold(error, |error, at| located(error, "main", at, "call"));
        assert_eq!(deep.message().matches(PLACE).count(), PLACES);
    }
}
