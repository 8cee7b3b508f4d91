//! The adapter `rpc:HOST:PORT[/KEY][@RELEASE]`: a running server, which a client tests. With
//! `rpc-tracker:HOST:PORT/KEY[?wait=SECONDS][@RELEASE]` a tracker provides the servers of a key, a new one for each session.
//!
//! Each session has its own connection. If a server serves no session after one that it ended, it has crashed, and the case of that
//! session is charged. The adapter then looks for the server again. If it does not return, the other cases are skipped. With a
//! tracker, the next session uses another server of the key.
//!
//! Cases call functions of the suite if a server has them: `conformance/testee/python/rpc_server.py` starts a server of TVM that
//! does. The settings of a server cannot be changed, so a session that needs other settings is unsupported.
//!
//! | operation          | executed by                                                                     |
//! |--------------------|---------------------------------------------------------------------------------|
//! | `rpc.session`      | its packets, one by one                                                         |
//! | `function.call`    | a call of `tvmspec.rpc.<name>`, or of a function of `testing.` that does the same |
//! | `value.convert`    | a call of a function of `testing.` with one parameter of the type               |
//! | `module.open`      | upload, load, and the result: the view `opened` of a library without imports    |
//! | `device.program`   | the programs of the device contract, on the server's `cpu:0`                    |
//! | `device.behaviour` | the random walk of the device contract, on the same device                      |

mod address;
mod pool;
mod remote;

use super::{Identity, Reply, Testee};
use crate::conformance::op::OpError;
use crate::conformance::rpc::server_start::ServerStart;
use crate::conformance::rpc::session::SocketWriter;
use crate::conformance::rpc::session_script::SessionScript;
use crate::release::Release;
use crate::rpc::transport::Transport;
use crate::rpc::{Hello, HelloAnswer};
use address::{Seat, Spelled, parse_address};
use pool::Pool;
use serde_json::{Value, json};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

/// The scheme of servers that a tracker provides.
pub(super) const POOL: &str = "rpc-tracker";

/// A server or the servers of a tracker, and the time limit of an answer.
pub(super) struct LiveServer {
    source: ServerSource,
    release: Release,
    /// `true` if the user stated the release; otherwise it is the newest.
    is_stated: bool,
    patience: Duration,
    /// The reason why the last case had no server, or lost it.
    lost: Option<String>,
}

/// The number of attempts to find a lost server, because a supervisor needs a moment to restart it.
const TRIES: usize = 3;

/// The pause between the attempts.
const PAUSE: Duration = Duration::from_secs(2);

/// The destination of sessions.
enum ServerSource {
    /// One server for all sessions.
    Server(Seat),
    /// The servers of a tracker.
    Pool(Pool),
}

/// A connection to a server to which nothing was written yet.
struct Reached {
    seat: Seat,
    stream: TcpStream,
}

impl LiveServer {
    /// Opens the server that `text` names. It connects only to the tracker.
    pub(super) fn open(scheme: &str, text: &str, patience: Duration) -> Result<LiveServer, String> {
        let Spelled {
            seat,
            wait,
            release,
        } = parse_address(scheme, text)?;
        let source = match scheme {
            POOL => ServerSource::Pool(Pool::open(seat, wait)?),
            _ => ServerSource::Server(seat),
        };
        Ok(LiveServer {
            source,
            release: release.unwrap_or(Release::LAST),
            is_stated: release.is_some(),
            patience,
            lost: None,
        })
    }

    /// Serves a session to check that a server is there.
    pub(super) fn is_there(&mut self) -> Result<(), String> {
        let tries = match self.source {
            ServerSource::Server(_) => 1,
            // One of several servers may be ending.
            ServerSource::Pool(_) => 3,
        };
        let mut begun = Ok(());
        for _ in 0..tries {
            let reached = self.reach()?;
            begun = self.begins(reached);
            if begun.is_ok() {
                break;
            }
        }
        if self.is_stated {
            begun
        } else {
            begun.map_err(|why| {
                format!(
                    "{why}; if the server is of another release than {}, state the release after the address: @0.8",
                    Release::LAST
                )
            })
        }
    }

    /// Returns the name for reports.
    fn name(&self) -> String {
        match &self.source {
            ServerSource::Server(seat) => format!("RPC server at {}", seat.place),
            ServerSource::Pool(pool) => pool.name(),
        }
    }

    /// Connects for the next session. A server of a tracker that does not answer is replaced, because no case has begun.
    fn reach(&mut self) -> Result<Reached, String> {
        let patience = self.patience;
        match &mut self.source {
            ServerSource::Server(seat) => {
                let stream = connect(&seat.place, patience);
                let stream = stream.map_err(|error| format!("rpc: {}: {error}", seat.place))?;
                let seat = seat.clone();
                Ok(Reached { seat, stream })
            }
            ServerSource::Pool(pool) => pool.reach(patience),
        }
    }

    /// Checks that a session begins over this connection.
    fn begins(&self, reached: Reached) -> Result<(), String> {
        let place = reached.seat.place.clone();
        let args = json!({"release": self.release.to_string(), "value": []});
        let script = SessionScript::read(&args).map_err(|error| format!("{error:?}"))?;
        match self.play(&script, reached) {
            Ok(value) if value["end"] == "client" && value["answers"] == json!([]) => Ok(()),
            Ok(value) => Err(format!("rpc: {place} serves no session: {value}")),
            Err(reply) => Err(format!("rpc: {place} serves no session: {reply:?}")),
        }
    }

    /// Checks that the server of a session still exists after the session. `is_used` states whether its key is used up, because a
    /// tracker's server accepts each key once.
    fn survives(&mut self, seat: &Seat, is_used: bool) -> Result<(), String> {
        let gone = |error: std::io::Error| format!("rpc: {}: {error}", seat.place);
        let stream = connect(&seat.place, self.patience).map_err(gone)?;
        let seat = seat.clone();
        if !is_used || matches!(self.source, ServerSource::Server(_)) {
            return self.begins(Reached { seat, stream });
        }
        // A server that waits for the tracker's next client answers that the key does not match.
        let mut transport = Transport::tcp(stream).map_err(|error| error.to_string())?;
        transport.set_deadline(Instant::now().checked_add(self.patience));
        let hello = Hello {
            key: "client:tvmspec.rpc.probe".into(),
        };
        let answer = transport.write_hello(&hello).and_then(|()| {
            match transport.read_answer(self.release)? {
                HelloAnswer::Success(_) | HelloAnswer::Mismatch | HelloAnswer::Duplicate => Ok(()),
            }
        });
        answer.map_err(|error| format!("rpc: {} serves no session: {error}", seat.place))
    }

    /// Runs one session over this connection. The server's own key becomes `server:`, because a case cannot know it.
    fn play(&self, script: &SessionScript<'_>, reached: Reached) -> Result<Value, Reply> {
        let Reached { seat, stream } = reached;
        let gone = |error: std::io::Error| Reply::Crash(format!("{}: {error}", seat.place));
        let writer = SocketWriter(stream.try_clone().map_err(gone)?);
        let transport = Transport::tcp(stream).map_err(|error| Reply::Crash(error.to_string()))?;
        let mut value = script.play(transport, &writer, &seat.key, self.patience)?;
        // The operator of the server chooses its name.
        let own = match &self.source {
            ServerSource::Server(seat) => &seat.key,
            ServerSource::Pool(pool) => pool.key(),
        };
        if value["hello"]["key"] == json!(format!("server:{own}")) {
            value["hello"]["key"] = json!("server:");
        }
        Ok(value)
    }

    /// Runs `rpc.session`.
    fn session(&mut self, args: &Value) -> Reply {
        let script = match SessionScript::read(args) {
            Ok(script) => script,
            Err(OpError::Unsupported(why)) => {
                return Reply::Unsupported(why);
            }
            Err(OpError::Rejected(broken)) => return Reply::ProtocolError(broken.to_string()),
        };
        if script.server != ServerStart::default() {
            return Reply::Unsupported("a live server is as it was started".into());
        }
        let reached = match self.reach() {
            Ok(reached) => reached,
            Err(why) => return self.crash(why.clone(), why),
        };
        let seat = reached.seat.clone();
        let played = self.play(&script, reached);
        let has = |pointer: &str, text: &str| {
            let found = played
                .as_ref()
                .ok()
                .and_then(|value| value.pointer(pointer));
            found.is_some_and(|value| value == text)
        };
        // The last request of such a session was answered, so the server still exists.
        if has("/end", "client") {
            return reply(played);
        }
        // The key of a session that hangs counts as used. A server that hangs in hello has not taken the key, but no longer serves
        // it.
        let is_used = has("/hello/code", "success") || played.is_err();
        // A server that ends a session may have crashed with it.
        match self.survives(&seat, is_used) {
            Err(why) => {
                let text = format!("{}; after this case {why}", shown(&played));
                self.crash(text, why)
            }
            Ok(()) => reply(played),
        }
    }

    /// Charges a case that had no server, or lost it. The next case first looks for the server.
    fn crash(&mut self, text: String, why: String) -> Reply {
        self.lost = Some(why);
        Reply::Crash(text)
    }

    /// Looks for a lost server.
    fn await_return(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        let Some(mut last) = self.lost.clone() else {
            return Ok(());
        };
        for _ in 0..TRIES {
            let until = Instant::now() + PAUSE;
            while goes_on() && Instant::now() < until {
                thread::sleep(Duration::from_millis(50));
            }
            match self.reach().and_then(|reached| self.begins(reached)) {
                Ok(()) => {
                    self.lost = None;
                    return Ok(());
                }
                Err(why) => last = why,
            }
        }
        let name = self.name();
        Err(format!(
            "the {name} is gone, also at {TRIES} more tries: {last}"
        ))
    }
}

/// Returns the answer of a session, which has no findings.
fn reply(played: Result<Value, Reply>) -> Reply {
    match played {
        Ok(value) => Reply::Ok {
            value,
            findings: None,
        },
        Err(reply) => reply,
    }
}

/// Connects to any address of the name, in the system's order.
fn connect(place: &str, patience: Duration) -> std::io::Result<TcpStream> {
    let mut last = std::io::ErrorKind::AddrNotAvailable.into();
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                // The timeout prevents endless writing to a server that does not read.
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Testee for LiveServer {
    /// Returns the stated release, or otherwise the newest, because no server states its release.
    fn identity(&self) -> Identity {
        let ops = remote::OPS.iter().chain(&["rpc.session"]);
        Identity {
            name: self.name(),
            version: self.release.to_string(),
            releases: vec![self.release.to_string()],
            ops: ops.map(|op| (*op).to_owned()).collect(),
        }
    }

    fn ready(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        match &mut self.source {
            ServerSource::Server(_) => self.await_return(goes_on),
            ServerSource::Pool(pool) => pool.ready(goes_on),
        }
    }

    /// Answers each case in a new session. Otherwise a server that keeps state between sessions would not be noticed.
    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match op {
            "rpc.session" => self.session(args),
            _ => self.remote(op, args),
        }
    }
}

/// Describes a session, for the text of a crash after it.
fn shown(played: &Result<Value, Reply>) -> String {
    match played {
        Ok(value) => format!("the session: {value}"),
        Err(reply) => format!("{reply:?}"),
    }
}

/// Checks the spelling without connecting.
pub(super) fn parse(scheme: &str, text: &str) -> Result<(), String> {
    parse_address(scheme, text).map(drop)
}
