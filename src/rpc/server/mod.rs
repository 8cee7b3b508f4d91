//! The server side: one session over any stream. The caller chooses the process; the command line starts one process for each session.
//!
//! | file | contents | rules |
//! |---|---|---|
//! | `session` | [`serve`]: the hello, then request and answer until either side ends it | RPC-71, RPC-80 .. RPC-83 |
//! | `era` | the release whose rules the client follows | RPC-84 |
//! | `hop` | a session that another server executes | RPC-93 |
//! | `handles` | the objects of the session and their tokens | RPC-85 |
//! | `memory` | memory, copies and streams of devices | RPC-86, RPC-87 |
//! | `values` | arguments and results, between packets and the runtime | RPC-88 |
//! | `functions` | the functions that a client may call | RPC-89, RPC-90 |
//! | `link` | uploads that are linked before they are loaded | RPC-90 |
//! | `pairing` | [`await_pair`]: a server at a proxy | RPC-94 |
//! | `test_functions` | functions that tests of connections call | RPC-89 |
//! | `timing` | `runtime.RPCTimeEvaluator` | RPC-91 |
//! | `directory` | files of the session | RPC-92 |
//! | `report` | the result of a session | |
//! | `watch` | ending a session during a call: its time is over, or its client is gone | RPC-83 |

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

/// Permissions and limits of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Accepted keys: the part of a client's key after `client:` must be one of them.
    pub keys: Vec<String>,
    /// Key in the answer, after `server:`. A tracker gives clients keys that consist of this key and a random part.
    pub name: String,
    /// Release of the clients; `None` to detect it from the first packet with an argument (RPC-84).
    pub release: Option<Release>,
    /// Patterns of functions that may be called in addition to those of the server (RPC-89). `*` is any text, `?` any character.
    pub allow: Vec<String>,
    /// True if uploaded files may be loaded. Their code then runs with all rights of this process (RPC-90).
    pub allow_load: bool,
    /// Compiler that links uploads of `.o` and `.tar` before they are loaded or sent back; `None` to start no compiler (RPC-90).
    pub compiler: Option<String>,
    /// Patterns of servers to which a client may connect through this one, as `HOST` or `HOST:PORT` (RPC-93). These connections come from
    /// this machine, which may reach servers that clients cannot.
    pub connect: Vec<String>,
    /// Largest packet, in bytes (RPC-13).
    pub largest: u64,
    /// Maximum size of all allocations of the session at a time, in bytes.
    pub memory: u64,
    /// Maximum size of all uploads of the session together, in bytes.
    pub uploads: u64,
    /// Longest time of a session. A client may state a shorter one (RPC-05).
    pub timeout: Option<Duration>,
    /// Time for which a client may be idle, between two requests or inside one, before its session ends; `None` for no limit.
    pub idle: Option<Duration>,
    /// Time limit for the hello, and then for InitServer.
    pub handshake: Duration,
    /// Directory for uploads. It must exist, and belong to this session alone.
    pub directory: PathBuf,
    /// Shows another thread when the time of the session is over, and how long a request has been computed. That thread can then end a call
    /// that outlasts the time or the client. Without it, the session waits for the end of the call.
    pub watch: Option<Arc<SessionWatch>>,
}

impl ServerOptions {
    /// Returns the options of a server without a key, with files in `directory`. Clients may only call the functions of the server.
    pub fn new(directory: impl Into<PathBuf>) -> ServerOptions {
        ServerOptions {
            // RPC-80: without a key of the server, the first word of a hello is only `client:`.
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
            // RPC-83: by default, released servers wait for a hello without a limit, and serve no one else meanwhile.
            handshake: Duration::from_secs(10),
            directory: directory.into(),
            watch: None,
        }
    }
}
