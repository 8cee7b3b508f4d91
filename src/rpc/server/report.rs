//! What a session came to.

use super::super::transport::seconds;
use crate::function::Error;
use crate::release::Release;
use std::time::Duration;

/// Why a session ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The client wrote that it ends it.
    Shutdown,
    /// The client closed the connection between two packets.
    Closed,
    /// The hello had another key.
    Mismatch,
    /// The time of the session was over (RPC-83).
    Expired,
    /// The client asked nothing, or took no answer, for that long.
    Idle(Duration),
    /// The client broke a rule, or the connection.
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

/// What a session came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionReport {
    /// The key of the client, with its options; empty where no hello came.
    pub key: String,
    /// The release by whose rules the client wrote, once that was known.
    pub release: Option<Release>,
    /// How many requests were answered.
    pub requests: u64,
    /// How many bytes the client wrote.
    pub received: u64,
    /// Why it ended.
    pub end: SessionEnd,
}
