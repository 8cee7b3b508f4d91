//! Errors with the instruction in which a call failed.

use crate::function::Error;
use crate::value::Any;

/// The result of a function of this chapter.
pub(super) type VmResult<T = Any> = Result<T, Error>;

/// The beginning of the line of an instruction.
const PLACE: &str = "\n  in VM function `";

/// The maximum number of lines, because deeper ones do not help.
const PLACES: usize = 12;

/// Appends the running instruction to the message of `error`, innermost first, so that every frontend shows it.
#[cold]
pub(super) fn located(error: Error, function: &str, instruction: usize, text: &str) -> Error {
    // VM-25: recursion may fail a thousand calls deep, and each call adds a line.
    if error.message().matches(PLACE).count() >= PLACES {
        return error;
    }
    let place = format!("{PLACE}{function}`, instruction {instruction}: {text}");
    // The kind and message of a foreign error may be any bytes, which a conversion to text would lose.
    error.with_text_behind(&place)
}
