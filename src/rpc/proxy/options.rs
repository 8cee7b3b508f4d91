//! How a proxy is made, and what happens at one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How a proxy works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// The one server that every connection leads to; without it hellos are paired by their keys.
    pub to: Option<SocketAddr>,
    /// Where what passes is recorded: files of sessions that are there stay, and the next ones have higher numbers.
    pub capture: Option<PathBuf>,
    /// A tracker, as `HOST:PORT`, to which servers are reported (RPC-67). Then a client whose key no server has is sent away at once.
    pub tracker: Option<String>,
    /// Address for peers that connect by a WebSocket (RPC-74); port 0 is any free port. [`ProxyServer::bind`](super::ProxyServer::bind) rejects it
    /// without the feature `web`.
    pub web: Option<SocketAddr>,
    /// How long a peer waits for the other side of its key (RPC-72).
    pub wait: Duration,
    /// Connections at the same time; one more is closed.
    pub connections: usize,
}

impl Default for ProxyOptions {
    fn default() -> ProxyOptions {
        ProxyOptions {
            to: None,
            capture: None,
            tracker: None,
            web: None,
            // RPC-72: ten minutes, as proxies of releases wait on either side.
            wait: Duration::from_secs(600),
            connections: 2_000,
        }
    }
}

/// What happens at a proxy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProxyEvent {
    /// A peer waits for the other side: who, and its whole key.
    Waits(SocketAddr, String),
    /// A client and a server are connected, as the session of this number.
    Begins(u64, SocketAddr, SocketAddr),
    /// It is over: how many bytes the client wrote, and the server.
    Ends(u64, u64, u64),
    /// What passes in the session of this number is recorded no more, and why. It goes on.
    Unrecorded(u64, String),
    /// A connection is closed without a session, and why.
    Closed(SocketAddr, String),
    /// The tracker is not to be had, and why. It is looked for again.
    Tracker(String),
}

pub(super) type ProxyWatch = dyn Fn(&ProxyEvent) + Send + Sync;
