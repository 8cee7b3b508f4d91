//! Conversion of errors to exception packets.

use super::super::super::Packet;
use super::super::era::Era;
use super::super::values::text;
use crate::function::Error;

/// Returns the exception for an error: its kind and message, followed by its backtrace. The texts of the releases differ, but clients look
/// only for the kind at the start (RPC-26).
pub(super) fn exception(error: &Error, era: &Era) -> Packet<'static> {
    let mut all = format!("{}: {}", error.kind().as_str(), message_of(error));
    let trace = error.backtrace();
    if !trace.is_empty() {
        all = match era.release().minor() {
            // These two releases print errors in the form of Python.
            21 | 22 => format!("Traceback (most recent call last):\n{trace}{all}\n"),
            _ => format!("{all}\nStack trace:\n{trace}"),
        };
    }
    // Limited, because a message may quote a long text of the client, and a client reads an answer as a whole.
    Packet::Exception(vec![text(limited(all))])
}

/// Returns the message, with the broken rule if there is one.
fn message_of(error: &Error) -> String {
    match error.violation() {
        Some(_) => error.reason(),
        None => error.message().to_owned(),
    }
}

/// Truncates a text to at most 64 KiB.
fn limited(mut text: String) -> String {
    let mut end = text.len().min(64 << 10);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
