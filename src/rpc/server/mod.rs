//! The server's half: one session over any stream. Which process it runs in is for its caller to choose; the command line starts one
//! for each session.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `session` | [`serve`]: the hello, then request and answer until either side ends it | RPC-71, RPC-80 .. RPC-83 |
//! | `era` | by which release's rules the client writes | RPC-84 |
//! | `hop` | a session that another server executes | RPC-93 |
//! | `handles` | the objects of the session, behind tokens | RPC-85 |
//! | `memory` | memory, copies and streams of devices | RPC-86, RPC-87 |
//! | `values` | arguments and results, between packets and the runtime | RPC-88 |
//! | `functions` | what a client may call | RPC-89, RPC-90 |
//! | `link` | uploads that are linked before they are loaded | RPC-90 |
//! | `pairing` | [`await_pair`]: a server at a proxy | RPC-94 |
//! | `test_functions` | what servers have for tests of connections | RPC-89 |
//! | `timing` | `runtime.RPCTimeEvaluator` | RPC-91 |
//! | `directory` | files of the session | RPC-92 |
//! | `report` | how a session ended | |
//! | `watch` | what ends a session while a function of it runs: its time is over, its client is gone | RPC-83 |

mod directory;
mod era;
mod functions;
mod handles;
mod hop;
mod link;
mod memory;
mod pairing;
mod report;
mod session;
mod test_functions;
mod timing;
mod values;
mod watch;

pub use pairing::await_pair;
pub use report::{SessionEnd, SessionReport};
pub use session::{serve, serve_paired};
pub use watch::SessionWatch;

use crate::release::Release;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a server permits, and to whom.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// What the key of a client is behind `client:`, one of these.
    pub keys: Vec<String>,
    /// The key that the answer has behind `server:`. A tracker hands out keys with a random part behind this one.
    pub name: String,
    /// The release of the clients; `None` to find it out from the first packet with an argument (RPC-84).
    pub release: Option<Release>,
    /// Patterns of functions that may be called besides those of the server (RPC-89). `*` is any text, `?` any character.
    pub allow: Vec<String>,
    /// Whether a file that was uploaded may be loaded. Its code then runs with all rights of this process (RPC-90).
    pub allow_load: bool,
    /// The compiler that links uploads of `.o` and `.tar` before they are loaded or sent back; `None` to start no compiler (RPC-90).
    pub compiler: Option<String>,
    /// Patterns of servers that a client may go on to, as `HOST` or `HOST:PORT` (RPC-93). Connections to them come from this machine,
    /// with what it reaches and clients do not.
    pub connect: Vec<String>,
    /// The largest packet, in bytes (RPC-13).
    pub largest: u64,
    /// The bytes that all allocations of the session may have at a time.
    pub memory: u64,
    /// The bytes that all uploads of the session may have together.
    pub uploads: u64,
    /// The longest session. A client may state a shorter time (RPC-05).
    pub timeout: Option<Duration>,
    /// How long a client may do nothing between two requests, or inside of one that it writes, before its session ends; `None` for ever.
    pub idle: Option<Duration>,
    /// The time that a client has for its hello, and then for InitServer.
    pub handshake: Duration,
    /// Where uploads go. It is there, and is of this session alone.
    pub directory: PathBuf,
    /// Shows another thread when the time of the session is over, and for how long a request is computed, so that it ends a call that
    /// goes on behind that time, or behind its client; without it the call ends first.
    pub watch: Option<Arc<SessionWatch>>,
}

impl ServerOptions {
    /// Of a server without a key that permits nothing but the functions of servers, with files in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> ServerOptions {
        ServerOptions {
            // RPC-80: without a key of the server the first word of a hello is `client:` alone.
            keys: vec![String::new()],
            name: String::new(),
            release: None,
            allow: Vec::new(),
            allow_load: false,
            compiler: None,
            connect: Vec::new(),
            largest: super::Protocol::LARGEST,
            memory: 16 << 30,
            uploads: 4 << 30,
            timeout: None,
            idle: None,
            // RPC-83: servers of releases by default wait for a hello for ever, and serve no one else meanwhile.
            handshake: Duration::from_secs(10),
            directory: directory.into(),
            watch: None,
        }
    }
}
