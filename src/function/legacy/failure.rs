//! How a call fails: by a text on the thread, which begins with a kind (FUN-15, FUN-18).

use super::last_error;
use crate::function::frontend;
use crate::function::{Error, ErrorKind, take_raised};
use std::ffi::{c_int, c_void};

/// The kind of the failure whose error object the frontend left on this thread (FUN-25).
const FRONTEND_KIND: ErrorKind = ErrorKind::Frontend;

/// Leaves `error` as the text of this thread's failure, and returns the code of a failure (FUN-14).
#[cold]
#[inline(never)]
pub(crate) fn report(error: Error) -> c_int {
    if error.kind() != FRONTEND_KIND {
        frontend::release();
    } else if frontend::held().is_null() {
        // FUN-14: the frontend has the error, of a signal; there is no text, and none that was here is touched.
        return -2;
    }
    let (kind, message) = (error.kind().as_str(), error.message());
    // FUN-18: frontends take the kind off the front of the text; one that is there already is not repeated.
    if message.starts_with(kind) {
        last_error::set(message);
    } else {
        last_error::set(&format!("{kind}: {message}"));
    }
    -1
}

/// Leaves `message` as the failure of this thread, in the place of an error object of the frontend (FUN-25).
pub(crate) fn leave(message: &str) {
    // FUN-25: the reference to the object ends when another failure takes its place.
    frontend::release();
    last_error::set(message);
}

/// Leaves `error`, an object of the frontend, as the failure of this thread (FUN-25).
///
/// # Safety
///
/// `error` must be null or an object of the frontend that is alive.
pub(crate) unsafe fn leave_object(error: *mut c_void) {
    // SAFETY: `error` is null or an object of the frontend, by this contract.
    let is_kept = unsafe { frontend::hold(error) };
    if is_kept {
        last_error::set(&format!(
            "{FRONTEND_KIND}: the frontend holds the error of this call"
        ))
    } else {
        // FUN-25: without the functions that count it the object may be freed before it is read.
        last_error::set("the frontend left an error and registered no functions to hold it")
    }
}

/// The error of a call that returned `code`: what the callee left, in either era's place.
pub(crate) fn of_call(code: c_int) -> Error {
    // What serves both eras leaves its failure in both places.
    let left = take_raised();
    match last_error::take() {
        Some(text) => error_of(&text),
        // FUN-14: -2 too, which is no code of the frontend here.
        None => left.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Runtime,
                format!("a compiled function returned {code} and left no message"),
            )
        }),
    }
}

/// The error that a text says (FUN-18): `[time] file:line: Check failed: ..: Kind: message`, of which only the message
/// is always there.
fn error_of(text: &str) -> Error {
    let (place, text) = match place_of(text) {
        Some((file, line, rest)) => (Some((file, line)), rest),
        None => (None, text),
    };
    // FUN-18: in a text of the log alone; elsewhere these words are part of the message.
    let (check, text) = match checked(text).filter(|_| place.is_some()) {
        Some((check, rest)) => (check, rest),
        None => ("", text),
    };
    let text = text.trim_start_matches(' ');
    // FUN-18: no blanks inside: words in front of a colon are a sentence and no kind.
    let is_kind = |name: &&str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|one| one.is_ascii_alphanumeric() || b"_.".contains(&one))
    };
    let (kind, message) = match text.split_once(':').filter(|(name, _)| is_kind(name)) {
        Some((kind, message)) => (ErrorKind::from(kind), message.trim_start_matches(' ')),
        None => (ErrorKind::Tvm, text),
    };
    // FUN-14: a text alone, whatever it begins with, is no error that the frontend holds.
    let (kind, message) = if kind == FRONTEND_KIND && frontend::held().is_null() {
        (ErrorKind::Tvm, text)
    } else {
        (kind, message)
    };
    let space = if check.is_empty() { "" } else { " " };
    let error = Error::new(kind, format!("{check}{space}{message}"));
    if let Some((file, line)) = place {
        // FUN-18: the place of the log goes to the stack trace. The log names no function, which the lines of FUN-05 end with.
        error.update_backtrace(&format!("  File \"{file}\", line {line}\n"), 0);
    }
    error
}

/// File and line that a logged text begins with, and the rest.
fn place_of(text: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = text.strip_prefix('[')?.split_once(' ')?;
    let (file, rest) = rest.trim_start_matches(' ').split_once(':')?;
    let (line, rest) = rest.split_once(':')?;
    // A bracket and two colons may stand in any text: without a number between them it is not of the log.
    line.parse::<u32>().ok()?;
    Some((file, line, rest.trim_start_matches([' ', ':'])))
}

/// `Check failed: condition:`, and the rest.
fn checked(text: &str) -> Option<(&str, &str)> {
    let start = "Check failed:";
    let end = text.strip_prefix(start)?.find(':')? + start.len() + 1;
    Some(text.split_at(end))
}
