//! `rpc.relay`: actions of the peers of a tracker or a proxy, in order, and the bytes that it writes to them.
//!
//! Peers connect by TCP at their first step. A step that reads waits for its bytes, so that steps and events have the same order. Events
//! without a reply, such as a waiting request or a closed peer, are awaited by the counts of a tracker's summary.

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

/// Runs our own tracker or proxy in a thread, over sockets of this machine.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| malformed_step("value"))?;
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
            // A testee that does not answer in time is wrong, not slow.
            None => {
                is_late();
                shown.push(json!("nothing"));
                break;
            }
        }
    }
    let value = match args.get("events") {
        Some(Value::Bool(true)) => {
            // The testee is ended first: it reports from its own threads, and all events have arrived when they have ended.
            let names = play.end();
            json!({"read": shown, "events": events.forms(&names)})
        }
        _ => json!(shown),
    };
    Ok(Answer::new(value, Findings::default()))
}

pub(super) fn malformed_step(what: &str) -> OpError {
    OpError::Unsupported(format!("`{what}` has another form"))
}

/// Creates the error for a socket that this machine cannot provide: this says nothing about the testee.
fn no_socket(error: std::io::Error) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// A tracker or a proxy on a thread, which ends on drop.
///
/// It is between the peers, and may end while they are connected, which they then read as the end (RPC-66).
enum Between {
    Tracker(TrackerHandle, Option<JoinHandle<()>>),
    Proxy(ProxyHandle, Option<JoinHandle<()>>),
}

/// The environment of a proxy.
#[derive(Default)]
struct Beside {
    /// Tracker to which the proxy reports its servers.
    tracker: Option<Between>,
    /// Server to which every connection leads.
    server: Option<TcpListener>,
    /// Folder of recordings.
    capture: Option<tempfile::TempDir>,
}

impl Beside {
    /// Starts the environment that `args` request.
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
    /// Starts a tracker at a free port, and records its events.
    fn tracker(limits: TrackerLimits, events: Events) -> Result<Between, OpError> {
        let server = TrackerServer::bind(ANY, limits).map_err(no_socket)?;
        let handle = server.handle().map_err(no_socket)?;
        let runs = thread::spawn(move || {
            drop(server.run(move |event| events.note(Event::Tracker(event.clone()))));
        });
        Ok(Between::Tracker(handle, Some(runs)))
    }

    /// Starts the testee that `of` names, with the limits of the case: the default limits (RPC-66) are too high for a case to reach.
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
                    wait: wait.ok_or_else(|| malformed_step("wait"))?,
                    // The port is always opened; only some cases use it.
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
            _ => Err(malformed_step("of")),
        }
    }

    /// Returns the address to which peers connect; with `web`, the one for WebSockets.
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
        // The panic was already printed, and all later steps read nothing.
        let _ = runs.take().map(JoinHandle::join);
    }
}

/// The state of a play: the connected peers, and random values of earlier replies.
struct RelayPlay {
    /// Declared before `between`, so that it is dropped first: a tracker ends only after its last peer.
    peers: BTreeMap<String, RelayPeer>,
    /// Names of all peers so far, by their address.
    names: BTreeMap<SocketAddr, String>,
    events: Events,
    /// Match key of the last server that a tracker assigned.
    match_key: String,
    between: Between,
    beside: Beside,
}

impl RelayPlay {
    /// Plays a step, and returns the data that it reads, or `None` if the bytes do not come in time.
    ///
    /// `hello`, `send`, `ask` and `reply` are for trackers (from RPC-50 on), `key` and `read` for proxies (from RPC-70 on), `upgrade`,
    /// `message` and `messages` for WebSockets (RPC-74, RPC-76). `hex`, `end` and `close` work with every peer. `{stop}` stands for the
    /// random stop key, and `{match}` for the match key of the last server that was assigned.
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
        // RPC-65: each tracker has a new stop key, so that a case writes `{stop}`.
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
        let [(what, of)] = members_without_peer(step)[..] else {
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
            // The connection was already accepted above, when the peer was created.
            "accept" => {}
            "until" => return peer.await_summary(of),
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
            "end" => return Ok(peer.read_until_close()),
            _ => return Err(none()),
        }
        Ok(Some(Value::Null))
    }
}

impl RelayPlay {
    /// Ends the peers, then the tracker or proxy. Returns the names of the peers.
    fn end(self) -> BTreeMap<SocketAddr, String> {
        drop(self.peers);
        drop(self.between);
        self.names
    }

    /// Creates a peer that connects, or that accepts the connection of a proxy to its server.
    ///
    /// A proxy connects to its server only when a client comes, so that `accept` must follow the hello of a client.
    fn peer(&self, step: &Value) -> Result<RelayPeer, OpError> {
        let wants = |name: &str| step.get(name) == Some(&Value::Bool(true));
        if wants("accept") {
            let server = self
                .beside
                .server
                .as_ref()
                .ok_or_else(|| malformed_step("to"))?;
            let (stream, _) = server.accept().map_err(no_socket)?;
            return RelayPeer::from_stream(stream).map_err(no_socket);
        }
        let address = if wants("at_tracker") {
            let tracker = self.beside.tracker.as_ref();
            tracker
                .ok_or_else(|| malformed_step("at_tracker"))?
                .address(false)?
        } else {
            self.between.address(wants("web"))?
        };
        let stream = TcpStream::connect(address).map_err(no_socket)?;
        RelayPeer::from_stream(stream).map_err(no_socket)
    }

    /// Replaces the proxy's port in a reply of its tracker by 0, and hides the random part of match keys.
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
            // RPC-67: the number after the colon is random, so that a case states only the part before it.
            let text = key.as_str().unwrap_or_default().to_owned();
            if let Some((front, _)) = text.split_once(":0.") {
                *key = json!(format!("{front}:0.*"));
            }
            self.match_key = text;
        }
        reply
    }

    /// Returns the bytes that a proxy has recorded of both sides of a session.
    ///
    /// A side without a file is null: it was not recorded.
    fn recorded(&self, number: u64) -> Result<Value, OpError> {
        let folder = self
            .beside
            .capture
            .as_ref()
            .ok_or_else(|| malformed_step("capture"))?;
        let side = |side: &str| {
            let file = folder.path().join(format!("session-{number}.{side}.bin"));
            std::fs::read(file).map_or(Value::Null, |bytes| json!(hex(&bytes)))
        };
        Ok(json!({"client": side("client"), "server": side("server")}))
    }
}

/// Returns the members of a step other than its peer.
fn members_without_peer(step: &Value) -> Vec<(&str, &Value)> {
    let members = step.as_object().into_iter().flatten();
    let rest = members.filter(|(name, _)| !matches!(name.as_str(), "peer" | "web" | "at_tracker"));
    rest.map(|(name, value)| (name.as_str(), value)).collect()
}
