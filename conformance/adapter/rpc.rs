//! `rpc:HOST:PORT[/KEY][@RELEASE]`: a server that runs somewhere, played with by a client;
//! `rpc-tracker:HOST:PORT/KEY[?wait=SECONDS][@RELEASE]`: those of a key that a tracker hands out, a new one for each session.
//!
//! Each session is a connection of its own. A server that serves no session behind one that it ended has crashed, and the case of that
//! session is charged with it. It is looked for again, and where it does not come back the other cases are skipped. The next session of a tracker's key is of another server.
//!
//! Cases call functions of the suite where a server has them: `conformance/testee/python/rpc_server.py` starts a server of TVM that
//! does. A server is as it was started, so that a session that wants it started otherwise is unsupported.
//!
//! | operation          | put by                                                                          |
//! |--------------------|---------------------------------------------------------------------------------|
//! | `rpc.session`      | its packets, one by one                                                         |
//! | `function.call`    | a call of `tvmspec.rpc.<name>`, or of a function of `testing.` that does the same |
//! | `value.convert`    | a call of a function of `testing.` with one parameter of the type               |
//! | `module.open`      | upload, load, and what it returns: the view `opened` of a library without imports |
//! | `device.program`   | the programs of the device contract, on the server's `cpu:0`                    |
//! | `device.behaviour` | the random walk of the device contract, there                                  |

mod pool;
mod remote;
mod spelled;

use super::{Identity, Reply, Testee};
use crate::conformance::op::OpError;
use crate::conformance::rpc::server_start::ServerStart;
use crate::conformance::rpc::session::SocketWriter;
use crate::conformance::rpc::session_script::SessionScript;
use crate::release::Release;
use crate::rpc::transport::Transport;
use crate::rpc::{Hello, HelloAnswer};
use pool::Pool;
use serde_json::{Value, json};
use spelled::{Seat, Spelled, spelled};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

/// The scheme of servers that a tracker hands out.
pub(super) const POOL: &str = "rpc-tracker";

/// A server or those of a tracker, and how long one may take for an answer.
pub(super) struct LiveServer {
    source: ServerSource,
    release: Release,
    /// Whether the release was stated, and is not the newest for want of that.
    is_stated: bool,
    patience: Duration,
    /// Why the last case did not have a server, or left none.
    lost: Option<String>,
}

/// How often a server is looked for that is not there any more: one that is started again by what watches it needs a moment.
const TRIES: usize = 3;

/// How long it has between.
const PAUSE: Duration = Duration::from_secs(2);

/// Where sessions go.
enum ServerSource {
    /// One server, for all.
    Server(Seat),
    /// Those of a tracker.
    Pool(Pool),
}

/// A connection to a server that nothing was written to yet.
struct Reached {
    seat: Seat,
    stream: TcpStream,
}

impl LiveServer {
    /// What `text` names. Nothing is connected to, but the tracker.
    pub(super) fn open(scheme: &str, text: &str, patience: Duration) -> Result<LiveServer, String> {
        let Spelled {
            seat,
            wait,
            release,
        } = spelled(scheme, text)?;
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

    /// Serves a session to show that a server is there.
    pub(super) fn is_there(&mut self) -> Result<(), String> {
        let tries = match self.source {
            ServerSource::Server(_) => 1,
            // One of several may be on its way out.
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
                    "{why}; if it is of another release than {}, state it behind the address: @0.8",
                    Release::LAST
                )
            })
        }
    }

    /// How reports call it.
    fn name(&self) -> String {
        match &self.source {
            ServerSource::Server(seat) => format!("RPC server at {}", seat.place),
            ServerSource::Pool(pool) => pool.name(),
        }
    }

    /// A connection for the next session. A server of a tracker that does not answer is replaced: no case has begun.
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

    /// Whether a session begins over this connection.
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

    /// Whether the server of a session is there behind it. `is_used` says whether its key is: that of a tracker's server opens one session.
    fn survives(&mut self, seat: &Seat, is_used: bool) -> Result<(), String> {
        let gone = |error: std::io::Error| format!("rpc: {}: {error}", seat.place);
        let stream = connect(&seat.place, self.patience).map_err(gone)?;
        let seat = seat.clone();
        if !is_used || matches!(self.source, ServerSource::Server(_)) {
            return self.begins(Reached { seat, stream });
        }
        // A server that waits for the next client of the tracker answers that this one is not meant.
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

    /// Plays one session over this connection. The server's own key shows as `server:`, since a case cannot know it.
    fn play(&self, script: &SessionScript<'_>, reached: Reached) -> Result<Value, Reply> {
        let Reached { seat, stream } = reached;
        let gone = |error: std::io::Error| Reply::Crash(format!("{}: {error}", seat.place));
        let writer = SocketWriter(stream.try_clone().map_err(gone)?);
        let transport = Transport::tcp(stream).map_err(|error| Reply::Crash(error.to_string()))?;
        let mut value = script.play(transport, &writer, &seat.key, self.patience)?;
        // The name of the server is its operator's choice.
        let own = match &self.source {
            ServerSource::Server(seat) => &seat.key,
            ServerSource::Pool(pool) => pool.key(),
        };
        if value["hello"]["key"] == json!(format!("server:{own}")) {
            value["hello"]["key"] = json!("server:");
        }
        Ok(value)
    }

    /// `rpc.session`.
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
        // The last question of such a session was answered, so that the server is there.
        if has("/end", "client") {
            return reply(played);
        }
        // A hang is one of a session: who hangs in its hello has not taken the key either, but does not serve it any more.
        let is_used = has("/hello/code", "success") || played.is_err();
        // A server that ends a session may have ended with it.
        match self.survives(&seat, is_used) {
            Err(why) => {
                let text = format!("{}; behind this case {why}", shown(&played));
                self.crash(text, why)
            }
            Ok(()) => reply(played),
        }
    }

    /// A case that had no server, or left none: it is charged with that, and the next one looks for the server first.
    fn crash(&mut self, text: String, why: String) -> Reply {
        self.lost = Some(why);
        Reply::Crash(text)
    }

    /// Looks for a server that was lost.
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

/// The answer of a session, which has no findings.
fn reply(played: Result<Value, Reply>) -> Reply {
    match played {
        Ok(value) => Reply::Ok {
            value,
            findings: None,
        },
        Err(reply) => reply,
    }
}

/// Connects to any address of the name, in the order of the system.
fn connect(place: &str, patience: Duration) -> std::io::Result<TcpStream> {
    let mut last = std::io::ErrorKind::AddrNotAvailable.into();
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                // A server that does not read is not written to for ever.
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Testee for LiveServer {
    /// The release is the one that was stated, or else the newest: no server says which it is of.
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

    /// One session for each case: a server that keeps something of one for the next would not be seen otherwise.
    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match op {
            "rpc.session" => self.session(args),
            _ => self.remote(op, args),
        }
    }
}

/// What a session came to, for the text of a crash behind it.
fn shown(played: &Result<Value, Reply>) -> String {
    match played {
        Ok(value) => format!("the session: {value}"),
        Err(reply) => format!("{reply:?}"),
    }
}

/// Checks the spelling without connecting.
pub(super) fn parse(scheme: &str, text: &str) -> Result<(), String> {
    spelled(scheme, text).map(drop)
}
