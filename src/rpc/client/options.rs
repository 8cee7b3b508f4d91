//! How a session is made.

use crate::release::Release;
use std::time::Duration;

/// How a session is made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// By whose rules the server speaks. Without it the first answer shows the era (RPC-100), and only what every release of that era
    /// accepts is written.
    pub release: Option<Release>,
    /// How long the server may take until the session has begun.
    pub connect_timeout: Duration,
    /// How long the answer to a request may take; none for any time. A session whose answer is late is closed.
    pub timeout: Option<Duration>,
    /// How many seconds the whole session may take: the server ends it then (RPC-05).
    pub session_timeout: Option<f64>,
    /// Servers between: the server that is connected to connects to the first of them, that one to the next. The last one executes.
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

/// A server that another server connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHop {
    /// Its name or address, as the server before it knows it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its key.
    pub key: String,
}
