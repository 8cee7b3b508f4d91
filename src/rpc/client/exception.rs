//! Parsing of the exceptions of a server: kind, message and remote backtrace.
//!
//! The packet contains one text (RPC-26), whose form changed:
//!
//! | releases | text |
//! |---|---|
//! | up to 0.20 | `[time] file:line: message` or `Kind: message`, then `Stack trace:` and its lines |
//! | 0.21, 0.22 | `Traceback (most recent call last):`, its lines, then `Kind: message` |
//! | from 0.23 on | only the message |

use super::super::PackedValue;
use crate::function::Error;

/// Kind of an exception that states no kind.
pub(super) const REMOTE: &str = "RPCError";

/// Kind of the exception for a session whose time is over.
pub(super) const EXPIRED: &str = "RPCSessionTimeoutError";

/// Text that every hop adds before the message.
const HOP: &str = "RPCError: Error caught from RPC call:\n";

/// Converts the values of an exception packet to an error.
pub(in crate::rpc) fn far_error(values: &[PackedValue<'_>]) -> Error {
    let bytes: &[u8] = match values {
        [PackedValue::Str(text) | PackedValue::StrObject(text, _)] => text,
        // RPC-26 requires one string, so that this is not reached.
        _ => b"",
    };
    let text = String::from_utf8_lossy(bytes);
    let parts = ExceptionParts::split(&text);
    Error::with_parts(
        parts.kind.as_bytes(),
        parts.message.as_bytes(),
        parts.backtrace.as_bytes(),
        None,
        None,
    )
}

/// The parts of an exception, as slices of its text.
#[derive(Debug, PartialEq, Eq)]
struct ExceptionParts<'t> {
    kind: &'t str,
    message: &'t str,
    /// Lines of the server's backtrace, in its own form and order.
    backtrace: &'t str,
}

impl<'t> ExceptionParts<'t> {
    /// Splits the text of any release.
    fn split(text: &'t str) -> ExceptionParts<'t> {
        let mut rest = text;
        // There is one prefix for each hop between the failing server and this client.
        while let Some(inner) = rest.strip_prefix(HOP) {
            rest = inner;
        }
        let (rest, backtrace) = match rest.strip_prefix("Traceback (most recent call last):\n") {
            Some(trace) => behind_frames(trace),
            None => match rest.split_once("\nStack trace:") {
                Some((message, trace)) => (message, trace.trim_start_matches('\n')),
                None => (rest, ""),
            },
        };
        let rest = strip_location(rest).trim_end_matches('\n');
        match kind_of(rest) {
            Some((kind, message)) => ExceptionParts {
                kind,
                message,
                backtrace,
            },
            None => ExceptionParts {
                kind: REMOTE,
                message: rest,
                backtrace,
            },
        }
    }
}

/// Splits a traceback into the text after its frames and the frames, whose lines begin with white space.
fn behind_frames(trace: &str) -> (&str, &str) {
    let mut end = 0;
    for line in trace.split_inclusive('\n') {
        if !line.starts_with([' ', '\t']) {
            break;
        }
        end += line.len();
    }
    (
        trace.get(end..).unwrap_or_default(),
        trace.get(..end).unwrap_or_default(),
    )
}

/// Removes the prefix `[time] file:line: `, which C++ writes up to 0.20.
fn strip_location(text: &str) -> &str {
    let Some((_, behind)) = text
        .strip_prefix('[')
        .and_then(|text| text.split_once("] "))
    else {
        return text;
    };
    let first = behind.lines().next().unwrap_or_default();
    // A file, a line and the message: `/src/a.cc:12: why`.
    let mut parts = first.splitn(3, ':');
    let (Some(_), Some(line), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
        return text;
    };
    if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    let at = behind.match_indices(':').nth(1).map_or(0, |(at, _)| at + 1);
    behind.get(at..).unwrap_or_default().trim_start()
}

/// Splits off the kind before a message, if there is one. A kind is a name that ends like the name of an exception.
fn kind_of(text: &str) -> Option<(&str, &str)> {
    let (kind, message) = text.split_once(": ")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let is_name = kind.bytes().all(plain) && kind.starts_with(|first: char| first.is_alphabetic());
    let ends = ["Error", "Exception", "Interrupt", "Exit", "Iteration"];
    let is_kind = is_name && ends.iter().any(|end| kind.ends_with(end));
    is_kind.then_some((kind, message))
}
