//! The result of a session.

use super::super::transport::seconds;
use crate::function::Error;
use crate::release::Release;
use std::time::Duration;

/// The reason why a session ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The client wrote Shutdown.
    Shutdown,
    /// The client closed the connection between two packets.
    Closed,
    /// The hello had another key.
    Mismatch,
    /// The time of the session was over (RPC-83).
    Expired,
    /// The client made no request, or read no answer, for that long.
    Idle(Duration),
    /// The client broke a rule, or the connection failed.
    Failed(Error),
}

impl std::fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionEnd::Shutdown => f.write_str("ended by the client"),
            SessionEnd::Closed => f.write_str("closed by the client"),
            SessionEnd::Mismatch => f.write_str("another key"),
            SessionEnd::Expired => f.write_str("its time was over"),
            SessionEnd::Idle(time) => write!(f, "its client did nothing for {}", seconds(*time)),
            SessionEnd::Failed(error) => f.write_str(&error.reason()),
        }
    }
}

/// The result of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionReport {
    /// Key of the client, with its options; empty if no hello came.
    pub key: String,
    /// Release whose rules the client followed, if that is known.
    pub release: Option<Release>,
    /// Number of requests that were answered.
    pub requests: u64,
    /// Number of bytes that the client wrote.
    pub received: u64,
    /// The reason why the session ended.
    pub end: SessionEnd,
}
