//! `rpc.relay`: what the peers of a tracker or a proxy do, one after the other, and what it writes to them.
//!
//! Peers connect by TCP, at their first step. A step that reads waits for what it reads, so that the order of the steps is that of what
//! happens; what no reply shows (a request that waits, a peer that is gone) is awaited by the counts of a tracker's summary.

use super::relay_events::{Event, Events};
use super::relay_peer::{RelayPeer, hex};
use super::session::is_late;
use crate::conformance::golden::hex_bytes;
use crate::conformance::op::{Answer, OpError};
use crate::release::Release;
use crate::rpc::proxy::{ProxyHandle, ProxyOptions, ProxyServer};
use crate::rpc::relay_json as relay;
use crate::rpc::tracker::{TrackerHandle, TrackerLimits, TrackerServer};
use crate::rpc::{Hello, TrackerHello, TrackerRequest};
use crate::rule::{Findings, Violation};
use crate::wire::Writer;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Our own tracker or proxy, in a thread, over sockets of this machine.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| wrong("value"))?;
    let events = Events::default();
    let beside = Beside::start(args)?;
    let between = Between::start(args, &beside, &events)?;
    let mut play = RelayPlay {
        peers: BTreeMap::new(),
        names: BTreeMap::new(),
        events: events.clone(),
        match_key: String::new(),
        between,
        beside,
    };
    let mut shown = Vec::new();
    for step in steps {
        match play.step(step)? {
            Some(read) => shown.push(read),
            // What does not answer its peer is wrong, and not slow.
            None => {
                is_late();
                shown.push(json!("nothing"));
                break;
            }
        }
    }
    let value = match args.get("events") {
        Some(Value::Bool(true)) => {
            // First the end: what is between reports from its own thread, and all events are there when that has ended.
            let names = play.end();
            json!({"read": shown, "events": events.forms(&names)})
        }
        _ => json!(shown),
    };
    Ok(Answer::new(value, Findings::default()))
}

pub(super) fn wrong(what: &str) -> OpError {
    OpError::Unsupported(format!("`{what}` has another form"))
}

/// Where this machine has no socket for the suite: that says nothing about the tracker or the proxy.
fn no_socket(error: std::io::Error) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// A tracker or a proxy on a thread, which ends with it.
///
/// What stands between the peers: it may end while they are connected, and then they read the end (RPC-66).
enum Between {
    Tracker(TrackerHandle, Option<JoinHandle<()>>),
    Proxy(ProxyHandle, Option<JoinHandle<()>>),
}

/// What is beside a proxy.
#[derive(Default)]
struct Beside {
    /// The tracker that it reports its servers to.
    tracker: Option<Between>,
    /// The one server that it leads to.
    server: Option<TcpListener>,
    /// Where it records what passes.
    capture: Option<tempfile::TempDir>,
}

impl Beside {
    /// What `args` want of it.
    fn start(args: &Value) -> Result<Beside, OpError> {
        let wants = |name: &str| args.get(name) == Some(&Value::Bool(true));
        Ok(Beside {
            tracker: if wants("tracker") {
                Some(Between::tracker(
                    TrackerLimits::default(),
                    Events::default(),
                )?)
            } else {
                None
            },
            server: if wants("to") {
                Some(TcpListener::bind(ANY).map_err(no_socket)?)
            } else {
                None
            },
            capture: if wants("capture") {
                Some(tempfile::tempdir().map_err(no_socket)?)
            } else {
                None
            },
        })
    }
}

/// Any free port of this machine.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl Between {
    /// A tracker at a port that is free, whose events are noted.
    fn tracker(limits: TrackerLimits, events: Events) -> Result<Between, OpError> {
        let server = TrackerServer::bind(ANY, limits).map_err(no_socket)?;
        let handle = server.handle().map_err(no_socket)?;
        let runs = thread::spawn(move || {
            drop(server.run(move |event| events.note(Event::Tracker(event.clone()))));
        });
        Ok(Between::Tracker(handle, Some(runs)))
    }

    /// What `of` names, with the limits that the case states: RPC-66 has them so high that no case would reach them.
    fn start(args: &Value, beside: &Beside, events: &Events) -> Result<Between, OpError> {
        let events = events.clone();
        let limit = |name: &str| {
            let limit = args
                .get("limits")
                .and_then(|limits| limits.get(name)?.as_u64());
            limit.and_then(|limit| usize::try_from(limit).ok())
        };
        match args.get("of").and_then(Value::as_str) {
            Some("tracker") => {
                let plain = TrackerLimits::default();
                Between::tracker(
                    TrackerLimits {
                        connections: limit("connections").unwrap_or(plain.connections),
                        waiting: limit("waiting").unwrap_or(plain.waiting),
                        keys: limit("keys").unwrap_or(plain.keys),
                        own_keys: limit("own_keys").unwrap_or(plain.own_keys),
                    },
                    events,
                )
            }
            Some("proxy") => {
                let seconds = args.get("wait").map_or(Some(600.0), Value::as_f64);
                let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let plain = ProxyOptions::default();
                let tracker = beside
                    .tracker
                    .as_ref()
                    .map(|tracker| tracker.address(false));
                let to = beside.server.as_ref().map(TcpListener::local_addr);
                let capture = beside.capture.as_ref();
                let options = ProxyOptions {
                    to: to.transpose().map_err(no_socket)?,
                    capture: capture.map(|folder| folder.path().to_owned()),
                    tracker: tracker.transpose()?.map(|address| address.to_string()),
                    wait: wait.ok_or_else(|| wrong("wait"))?,
                    // The port is there for the cases that use it.
                    web: cfg!(feature = "web").then_some(ANY),
                    connections: limit("connections").unwrap_or(plain.connections),
                };
                let server = ProxyServer::bind(ANY, options).map_err(no_socket)?;
                let handle = server.handle().map_err(no_socket)?;
                let runs = thread::spawn(move || {
                    drop(server.run(move |event| events.note(Event::Proxy(event.clone()))));
                });
                Ok(Between::Proxy(handle, Some(runs)))
            }
            _ => Err(wrong("of")),
        }
    }

    /// Where peers connect to, those by a WebSocket at `web`.
    fn address(&self, web: bool) -> Result<SocketAddr, OpError> {
        match self {
            Between::Proxy(handle, _) if web => handle.web_address().ok_or_else(|| {
                OpError::Unsupported(
                    "this build has no port for WebSockets: its feature `web` is off".into(),
                )
            }),
            Between::Proxy(handle, _) => Ok(handle.address()),
            Between::Tracker(handle, _) => Ok(handle.address()),
        }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        let runs = match self {
            Between::Tracker(handle, runs) => {
                handle.stop();
                runs
            }
            Between::Proxy(handle, runs) => {
                handle.stop();
                runs
            }
        };
        // A panic was printed, and every step behind it read nothing.
        let _ = runs.take().map(JoinHandle::join);
    }
}

/// The steps on their way: who is connected, and what replies had in them that no case can know.
struct RelayPlay {
    /// Dropped behind the peers: a tracker ends when the last of them is gone.
    peers: BTreeMap<String, RelayPeer>,
    /// Of all peers that were, by their address.
    names: BTreeMap<SocketAddr, String>,
    events: Events,
    /// The match key of the server that a tracker handed out last.
    match_key: String,
    between: Between,
    beside: Beside,
}

impl RelayPlay {
    /// What a step reads; `None` where nothing comes in time.
    ///
    /// `hello`, `send`, `ask` and `reply` speak with a tracker (RPC-50 and on), `key` and `read` with a proxy (RPC-70 and on), `upgrade`,
    /// `message` and `messages` by a WebSocket (RPC-74, RPC-76); `hex`, `end` and `close` serve every peer. `{stop}` is the key to stop, which is
    /// random, and `{match}` the match key of the last server that was handed out.
    fn step(&mut self, step: &Value) -> Result<Option<Value>, OpError> {
        let none = || OpError::Unsupported(format!("{step} is not a step"));
        let name = step.get("peer").and_then(Value::as_str).ok_or_else(none)?;
        if !self.peers.contains_key(name) {
            let peer = self.peer(step)?;
            self.names
                .insert(peer.address().map_err(no_socket)?, name.to_owned());
            self.peers.insert(name.to_owned(), peer);
        }
        if step.get("close").is_some() {
            self.peers.remove(name);
            return Ok(Some(Value::Null));
        }
        if let Some(number) = step.get("recorded").and_then(Value::as_u64) {
            return self.recorded(number).map(Some);
        }
        if let Some(count) = step.get("events").and_then(Value::as_u64) {
            let count = usize::try_from(count).map_err(|_| none())?;
            return Ok(self.events.await_count(count).map(|()| Value::Null));
        }
        // RPC-65: a new one for each tracker, so that a case writes `{stop}`.
        let stop_key = match &self.between {
            Between::Tracker(handle, _) => handle.stop_key().to_owned(),
            Between::Proxy(..) => String::new(),
        };
        let match_key = self.match_key.clone();
        let peer = self.peers.get_mut(name).ok_or_else(none)?;
        let mut out = Writer::new();
        let bytes = |hex: &Value| hex.as_str().and_then(|hex| hex_bytes(hex).ok());
        let broken = |broken: Violation| OpError::Unsupported(broken.to_string());
        let request = |form: &Value| {
            let request = relay::to_tracker_request(form)?;
            Ok::<_, OpError>(match request {
                TrackerRequest::Stop(key) => TrackerRequest::Stop(key.replace("{stop}", &stop_key)),
                other => other,
            })
        };
        let [(what, of)] = rest_of(step)[..] else {
            return Err(none());
        };
        match what {
            "hex" => peer.write(&bytes(of).ok_or_else(none)?),
            "key" => {
                let key = of.as_str().ok_or_else(none)?;
                let key = Cow::Owned(key.replace("{match}", &match_key));
                Hello { key }.write(&mut out).map_err(broken)?;
                peer.write(&out.into_bytes())
            }
            "hello" => {
                TrackerHello.write(&mut out);
                peer.write(&out.into_bytes());
                return Ok(peer.read(4));
            }
            "send" => {
                request(of)?
                    .write(Release::LAST, &mut out)
                    .map_err(broken)?;
                peer.write(&out.into_bytes())
            }
            "ask" => {
                request(of)?
                    .write(Release::LAST, &mut out)
                    .map_err(broken)?;
                peer.write(&out.into_bytes());
                let reply = peer.reply();
                return Ok(reply.map(|reply| self.without_chance(reply)));
            }
            "reply" => {
                let reply = peer.reply();
                return Ok(reply.map(|reply| self.without_chance(reply)));
            }
            // The connection was accepted above, when the peer was made.
            "accept" => {}
            "until" => return peer.until(of),
            #[cfg(feature = "web")]
            "upgrade" => return Ok(peer.upgrade()),
            #[cfg(feature = "web")]
            "message" => peer.send_message(bytes(of).ok_or_else(none)?),
            #[cfg(feature = "web")]
            "messages" => {
                let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
                return Ok(peer.messages(count.ok_or_else(none)?));
            }
            "read" => {
                let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
                return Ok(peer.read(count.filter(|count| *count <= 1 << 20).ok_or_else(none)?));
            }
            "end" => return Ok(peer.rest()),
            _ => return Err(none()),
        }
        Ok(Some(Value::Null))
    }
}

impl RelayPlay {
    /// Ends the peers, then what they were connected to. Returns their names.
    fn end(self) -> BTreeMap<SocketAddr, String> {
        drop(self.peers);
        drop(self.between);
        self.names
    }

    /// A peer that connects, or that accepts the connection of a proxy to its one server.
    ///
    /// A proxy connects to its one server when a client comes, so that `accept` is a step behind the hello of a client.
    fn peer(&self, step: &Value) -> Result<RelayPeer, OpError> {
        let wants = |name: &str| step.get(name) == Some(&Value::Bool(true));
        if wants("accept") {
            let server = self.beside.server.as_ref().ok_or_else(|| wrong("to"))?;
            let (stream, _) = server.accept().map_err(no_socket)?;
            return RelayPeer::over(stream).map_err(no_socket);
        }
        let address = if wants("at_tracker") {
            let tracker = self.beside.tracker.as_ref();
            tracker.ok_or_else(|| wrong("at_tracker"))?.address(false)?
        } else {
            self.between.address(wants("web"))?
        };
        let stream = TcpStream::connect(address).map_err(no_socket)?;
        RelayPeer::over(stream).map_err(no_socket)
    }

    /// A reply of the tracker of a proxy with 0 in the place of the proxy's port, and without the random part of match keys.
    fn without_chance(&mut self, mut reply: Value) -> Value {
        let Between::Proxy(proxy, _) = &self.between else {
            return reply;
        };
        let own = json!(proxy.address().port());
        let hide = |port: Option<&mut Value>| {
            if let Some(port) = port.filter(|port| **port == own) {
                *port = json!(0);
            }
        };
        hide(reply.get_mut("port"));
        let servers = reply.get_mut("servers").and_then(Value::as_array_mut);
        for server in servers.into_iter().flatten() {
            hide(server.get_mut("port"));
        }
        if let Some(key) = reply.get_mut("match") {
            // RPC-67: behind the colon is a number that is not guessed, so that a case states the front of the key alone.
            let text = key.as_str().unwrap_or_default().to_owned();
            if let Some((front, _)) = text.split_once(":0.") {
                *key = json!(format!("{front}:0.*"));
            }
            self.match_key = text;
        }
        reply
    }

    /// What a proxy has recorded of both sides of a session.
    ///
    /// Null for a side without a file: the session was not recorded.
    fn recorded(&self, number: u64) -> Result<Value, OpError> {
        let folder = self
            .beside
            .capture
            .as_ref()
            .ok_or_else(|| wrong("capture"))?;
        let side = |side: &str| {
            let file = folder.path().join(format!("session-{number}.{side}.bin"));
            std::fs::read(file).map_or(Value::Null, |bytes| json!(hex(&bytes)))
        };
        Ok(json!({"client": side("client"), "server": side("server")}))
    }
}

/// What a step has besides its peer.
fn rest_of(step: &Value) -> Vec<(&str, &Value)> {
    let members = step.as_object().into_iter().flatten();
    let rest = members.filter(|(name, _)| !matches!(name.as_str(), "peer" | "web" | "at_tracker"));
    rest.map(|(name, value)| (name.as_str(), value)).collect()
}
