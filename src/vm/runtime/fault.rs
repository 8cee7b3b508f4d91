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
