//! Errors for a hello without an answer. They state which other service uses the address, and what to do.

use super::super::RPC_16;
use super::super::tracker::TrackerClient;
use super::super::transport::seconds;
use super::options::SessionOptions;
use crate::function::{Error, ErrorKind};
use crate::rule::Kind;
use std::time::Duration;

/// Time limit for the check whether a peer that closed the connection is a tracker.
const PATIENCE: Duration = Duration::from_secs(2);

/// Extends the error of a hello without an answer by the finding at `place`. If `may_ask`, a second connection probes for a tracker,
/// because a tracker closes a client's connection without an answer.
pub(super) fn unanswered(
    error: Error,
    place: (&str, u16),
    key: &str,
    options: &SessionOptions,
    may_ask: bool,
) -> Error {
    let (host, port) = place;
    if error.kind() == ErrorKind::Timeout {
        let limit = seconds(options.connect_timeout);
        let text = format!(
            "{host}:{port} accepts the connection and answers nothing within {limit}: a server of TVM has one session at a time, a proxy waits for a server of key `{key}`"
        );
        return Error::new(ErrorKind::Timeout, text);
    }
    let broken = error.violation();
    // RPC-16: the stream ended before the first byte of the answer.
    let is_end = broken.is_some_and(|broken| broken.rule() == RPC_16 && broken.offset() == Some(0));
    // A reset, which the other side causes if it has not read the whole hello.
    let is_reset = broken.is_none() && error.kind() == ErrorKind::Connection;
    if !is_end && !is_reset {
        return error;
    }
    let is_tracker = may_ask
        && TrackerClient::connect_within(place, PATIENCE.min(options.connect_timeout)).is_ok();
    let text = if is_tracker {
        format!(
            "{host}:{port} is a tracker, and no server: a server that it hands out is rpc-tracker://{host}:{port}/KEY"
        )
    } else {
        format!(
            "{host}:{port} closes the connection and answers nothing: check that an RPC server or a proxy listens on this port"
        )
    };
    if is_end {
        RPC_16.broken(Kind::Truncated, 0, text).into()
    } else {
        Error::new(ErrorKind::Connection, text)
    }
}
