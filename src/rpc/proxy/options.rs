//! Options and events of a proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a proxy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// The server that every connection leads to. Without it the proxy pairs hellos by their keys.
    pub to: Option<SocketAddr>,
    /// Folder for recordings. Existing session files are kept, and new ones get higher numbers.
    pub capture: Option<PathBuf>,
    /// A tracker, as `HOST:PORT`, to which servers are reported (RPC-67). A client is then rejected at once if no server has its key.
    pub tracker: Option<String>,
    /// Address for peers that connect by a WebSocket (RPC-74); port 0 selects any free port. Without the feature `web`,
    /// [`ProxyServer::bind`](super::ProxyServer::bind) rejects it.
    pub web: Option<SocketAddr>,
    /// Time that a peer waits for the other side of its key (RPC-72).
    pub wait: Duration,
    /// Maximum number of connections at the same time; a further one is closed.
    pub connections: usize,
}

impl Default for ProxyOptions {
    fn default() -> ProxyOptions {
        ProxyOptions {
            to: None,
            capture: None,
            tracker: None,
            web: None,
            // RPC-72: ten minutes, the time that released proxies wait on either side.
            wait: Duration::from_secs(600),
            connections: 2_000,
        }
    }
}

/// An event of a proxy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProxyEvent {
    /// A peer waits for the other side: its address and its whole key.
    Waits(SocketAddr, String),
    /// A session of this number has begun: the addresses of its client and its server.
    Begins(u64, SocketAddr, SocketAddr),
    /// A session has ended: its number, and the numbers of bytes that the client and the server wrote.
    Ends(u64, u64, u64),
    /// The recording of this session has failed, for this reason. The session continues.
    Unrecorded(u64, String),
    /// A connection was closed without a session, for this reason.
    Closed(SocketAddr, String),
    /// The tracker cannot be reached, for this reason. The proxy tries again.
    Tracker(String),
}

pub(super) type ProxyWatch = dyn Fn(&ProxyEvent) + Send + Sync;
