//! Failures of calls: a text on the thread, which begins with a kind (FUN-15, FUN-18).

use super::last_error;
use crate::function::frontend;
use crate::function::{Error, ErrorKind, take_raised};
use std::ffi::{c_int, c_void};

/// The kind of a failure whose error object the frontend stored on this thread (FUN-25).
const FRONTEND_KIND: ErrorKind = ErrorKind::Frontend;

/// Stores `error` as the failure text of this thread, and returns the code of a failure (FUN-14).
#[cold]
#[inline(never)]
pub(crate) fn report(error: Error) -> c_int {
    if error.kind() != FRONTEND_KIND {
        frontend::release();
    } else if frontend::stored_error().is_null() {
        // FUN-14: a signal raised the error, and the frontend has stored it. There is no text, and an earlier text stays.
        return -2;
    }
    let (kind, message) = (error.kind().as_str(), error.message());
    // FUN-18: frontends split the kind from the beginning of the text. If it is already there, it is not repeated.
    if message.starts_with(kind) {
        last_error::set(message);
    } else {
        last_error::set(&format!("{kind}: {message}"));
    }
    -1
}

/// Stores `message` as the failure of this thread, in place of an error object of the frontend (FUN-25).
pub(crate) fn store_message(message: &str) {
    // FUN-25: the reference to the object is released when another failure replaces it.
    frontend::release();
    last_error::set(message);
}

/// Stores `error`, an object of the frontend, as the failure of this thread (FUN-25).
///
/// # Safety
///
/// `error` is null or a live object of the frontend.
pub(crate) unsafe fn store_object(error: *mut c_void) {
    // SAFETY: `error` is null or an object of the frontend, by this contract.
    let is_kept = unsafe { frontend::store_error(error) };
    if is_kept {
        last_error::set(&format!(
            "{FRONTEND_KIND}: the frontend holds the error of this call"
        ))
    } else {
        // FUN-25: without the functions that count it, the object may be freed before it is read.
        last_error::set("the frontend left an error and registered no functions to hold it")
    }
}

/// Returns the error of a call that returned `code`. The callee stored the error in the place of the old or of the new era.
pub(crate) fn take_call_error(code: c_int) -> Error {
    // Code that serves both eras stores its failure in both places.
    let left = take_raised();
    match last_error::take() {
        Some(text) => error_of(&text),
        // FUN-14: also for -2, which is not a code of the frontend here.
        None => left.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Runtime,
                format!("a compiled function returned {code} and left no message"),
            )
        }),
    }
}

/// Parses an error from a text (FUN-18): `[time] file:line: Check failed: ..: Kind: message`. All parts except the message are optional.
fn error_of(text: &str) -> Error {
    let (place, text) = match place_of(text) {
        Some((file, line, rest)) => (Some((file, line)), rest),
        None => (None, text),
    };
    // FUN-18: only in a text of the log. Elsewhere these words are part of the message.
    let (check, text) = match checked(text).filter(|_| place.is_some()) {
        Some((check, rest)) => (check, rest),
        None => ("", text),
    };
    let text = text.trim_start_matches(' ');
    // FUN-18: no blanks: several words before a colon are a sentence, not a kind.
    let is_kind = |name: &&str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|one| one.is_ascii_alphanumeric() || b"_.".contains(&one))
    };
    let (kind, message) = match text.split_once(':').filter(|(name, _)| is_kind(name)) {
        Some((kind, message)) => (ErrorKind::from(kind), message.trim_start_matches(' ')),
        None => (ErrorKind::Tvm, text),
    };
    // FUN-14: a text alone does not mean that the frontend has stored an error, even if it begins with that kind.
    let (kind, message) = if kind == FRONTEND_KIND && frontend::stored_error().is_null() {
        (ErrorKind::Tvm, text)
    } else {
        (kind, message)
    };
    let space = if check.is_empty() { "" } else { " " };
    let error = Error::new(kind, format!("{check}{space}{message}"));
    if let Some((file, line)) = place {
        // FUN-18: the location in the log becomes a line of the stack trace. Lines of FUN-05 end with a function, but the log names none.
        error.update_backtrace(&format!("  File \"{file}\", line {line}\n"), 0);
    }
    error
}

/// Splits a logged text into its file, its line, and the rest.
fn place_of(text: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = text.strip_prefix('[')?.split_once(' ')?;
    let (file, rest) = rest.trim_start_matches(' ').split_once(':')?;
    let (line, rest) = rest.split_once(':')?;
    // Any text may contain a bracket and two colons. Without a number between the colons it is not a logged text.
    line.parse::<u32>().ok()?;
    Some((file, line, rest.trim_start_matches([' ', ':'])))
}

/// Splits `Check failed: condition:` from the rest.
fn checked(text: &str) -> Option<(&str, &str)> {
    let start = "Check failed:";
    let end = text.strip_prefix(start)?.find(':')? + start.len() + 1;
    Some(text.split_at(end))
}
