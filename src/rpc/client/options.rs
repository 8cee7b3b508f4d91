//! Options of a session.

use crate::release::Release;
use std::time::Duration;

/// Options of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The release whose rules the server follows. Without it, the first answer shows the era (RPC-100), and the client writes only what
    /// every release of that era accepts.
    pub release: Option<Release>,
    /// Time limit for the start of the session.
    pub connect_timeout: Duration,
    /// Time limit for the answer to a request; `None` for no limit. A late answer closes the session.
    pub timeout: Option<Duration>,
    /// Time limit of the whole session in seconds, after which the server ends it (RPC-05).
    pub session_timeout: Option<f64>,
    /// Chain of further servers: the first server connects to the first hop, which connects to the next. The last one executes.
    pub hops: Vec<RemoteHop>,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            release: None,
            connect_timeout: Duration::from_secs(60),
            timeout: None,
            session_timeout: None,
            hops: Vec::new(),
        }
    }
}

/// A server to which another server connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHop {
    /// Its name or address, as the previous server knows it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its key.
    pub key: String,
}
