//! An error as a client reads it.

use super::super::super::Packet;
use super::super::era::Era;
use super::super::values::text;
use crate::function::Error;

/// What a client gets of an error: its kind and message, and behind them where it came from. The texts of the releases differ, and
/// clients look for the kind in front alone (RPC-26).
pub(super) fn exception(error: &Error, era: &Era) -> Packet<'static> {
    let mut all = format!("{}: {}", error.kind().as_str(), message_of(error));
    let trace = error.backtrace();
    if !trace.is_empty() {
        all = match era.release().minor() {
            // The two releases whose errors print themselves as Python's do.
            21 | 22 => format!("Traceback (most recent call last):\n{trace}{all}\n"),
            _ => format!("{all}\nStack trace:\n{trace}"),
        };
    }
    // A message may quote what the client wrote, of any length, and a client reads an answer whole.
    Packet::Exception(vec![text(limited(all))])
}

/// The message, behind the rule that was broken where there is one.
fn message_of(error: &Error) -> String {
    match error.violation() {
        Some(_) => error.reason(),
        None => error.message().to_owned(),
    }
}

/// A text of at most 64 KiB.
fn limited(mut text: String) -> String {
    let mut end = text.len().min(64 << 10);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
