//! `rpc.relay`: what the peers of a tracker or a proxy do, one after the other, and what it writes to them.
//!
//! Peers connect by TCP, at their first step. A step that reads waits for what it reads, so that the order of the steps is that of what
//! happens; what no reply shows (a request that waits, a peer that is gone) is awaited by the counts of a tracker's summary.

use super::session::{is_late, patience};
use crate::conformance::case::entry::hex_bytes;
use crate::conformance::op::{Answer, OpError};
use crate::release::Release;
use crate::rpc::proxy::{ProxyHandle, ProxyOptions, ProxyServer};
use crate::rpc::relay_json as relay;
use crate::rpc::tracker::{TrackerHandle, TrackerLimits, TrackerServer};
use crate::rpc::{
    Hello, Progress, Speaker, TrackerHello, TrackerReply, TrackerRequest, WebSocketAnswer,
    WebSocketFrame, WebSocketRequest,
};
use crate::rule::{Findings, Violation};
use crate::wire::{Cursor, Writer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Our own tracker or proxy, in a thread, over sockets of this machine.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| wrong("value"))?;
    let between = Between::start(args)?;
    let mut play = RelayPlay {
        between,
        peers: BTreeMap::new(),
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
    Ok(Answer::new(json!(shown), Findings::default()))
}

fn wrong(what: &str) -> OpError {
    OpError::Unsupported(format!("`{what}` has another form"))
}

fn no_socket(error: std::io::Error) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// A tracker or a proxy on a thread, which ends with it.
enum Between {
    Tracker(TrackerHandle, Option<JoinHandle<()>>),
    Proxy(ProxyHandle, Option<JoinHandle<()>>),
}

impl Between {
    fn start(args: &Value) -> Result<Between, OpError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        match args.get("of").and_then(Value::as_str) {
            Some("tracker") => {
                let server =
                    TrackerServer::bind(any, TrackerLimits::default()).map_err(no_socket)?;
                let handle = server.handle().map_err(no_socket)?;
                let runs = thread::spawn(move || drop(server.run(|_| ())));
                Ok(Between::Tracker(handle, Some(runs)))
            }
            Some("proxy") => {
                let seconds = args.get("wait").map_or(Some(600.0), Value::as_f64);
                let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let options = ProxyOptions {
                    wait: wait.ok_or_else(|| wrong("wait"))?,
                    web: Some(any),
                    ..ProxyOptions::default()
                };
                let server = ProxyServer::bind(any, options).map_err(no_socket)?;
                let handle = server.handle().map_err(no_socket)?;
                let runs = thread::spawn(move || drop(server.run(|_| ())));
                Ok(Between::Proxy(handle, Some(runs)))
            }
            _ => Err(wrong("of")),
        }
    }

    /// Where peers connect to, those by a WebSocket at `web`.
    fn address(&self, web: bool) -> Result<SocketAddr, OpError> {
        match self {
            Between::Proxy(handle, _) if web => handle.web_address().ok_or_else(|| wrong("web")),
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

struct RelayPlay {
    /// Dropped behind the peers: a tracker ends when the last of them is gone.
    peers: BTreeMap<String, RelayPeer>,
    between: Between,
}

impl RelayPlay {
    /// What a step reads; `None` where nothing comes in time.
    fn step(&mut self, step: &Value) -> Result<Option<Value>, OpError> {
        let none = || OpError::Unsupported(format!("{step} is no step"));
        let name = step.get("peer").and_then(Value::as_str).ok_or_else(none)?;
        if !self.peers.contains_key(name) {
            let web = step.get("web") == Some(&Value::Bool(true));
            let peer = RelayPeer::connect(self.between.address(web)?).map_err(no_socket)?;
            self.peers.insert(name.to_owned(), peer);
        }
        if step.get("close").is_some() {
            self.peers.remove(name);
            return Ok(Some(Value::Null));
        }
        let peer = self.peers.get_mut(name).ok_or_else(none)?;
        let mut out = Writer::new();
        let bytes = |hex: &Value| hex.as_str().and_then(|hex| hex_bytes(hex).ok());
        let broken = |broken: Violation| OpError::Unsupported(broken.to_string());
        let request = |form: &Value| relay::to_tracker_request(form).map_err(OpError::Unsupported);
        let [(what, of)] = rest_of(step)[..] else {
            return Err(none());
        };
        match what {
            "hex" => peer.write(&bytes(of).ok_or_else(none)?),
            "key" => {
                let key = Cow::Borrowed(of.as_str().ok_or_else(none)?);
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
                return Ok(peer.reply());
            }
            "reply" => return Ok(peer.reply()),
            "until" => return peer.until(of),
            "upgrade" => {
                let part = |name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
                let request = WebSocketRequest {
                    path: part("path").ok_or_else(none)?,
                    host: part("host").ok_or_else(none)?,
                    key: part("key").ok_or_else(none)?,
                };
                request.write(&mut out).map_err(broken)?;
                peer.write(&out.into_bytes());
                return Ok(peer.message(|cursor| {
                    Ok(WebSocketAnswer::read(cursor)?
                        .map(|answer| json!({"accept": answer.accept})))
                }));
            }
            "frame" => {
                let frame = relay::to_frame(of).map_err(OpError::Unsupported)?;
                frame.write(Speaker::Client, &mut out).map_err(broken)?;
                peer.write(&out.into_bytes())
            }
            "read_frame" => {
                return Ok(peer.message(|cursor| {
                    let frame = WebSocketFrame::read(cursor, Speaker::Server, 1 << 20)?;
                    Ok(frame.map(|frame| relay::from_frame(&frame)))
                }));
            }
            "unframed" => {
                let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
                return Ok(peer.unframed(count.ok_or_else(none)?));
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

/// What a step has besides its peer.
fn rest_of(step: &Value) -> Vec<(&str, &Value)> {
    let members = step.as_object().into_iter().flatten();
    let rest = members.filter(|(name, _)| !matches!(name.as_str(), "peer" | "web"));
    rest.map(|(name, value)| (name.as_str(), value)).collect()
}

/// A connection to what is between.
struct RelayPeer {
    stream: TcpStream,
    /// What was received and not read.
    input: Vec<u8>,
    is_ended: bool,
}

impl RelayPeer {
    fn connect(address: SocketAddr) -> std::io::Result<RelayPeer> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(RelayPeer {
            stream,
            input: Vec::new(),
            is_ended: false,
        })
    }

    /// Writes; one that is gone shows when it is read from.
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for more; `None` where nothing comes in time.
    fn more(&mut self, until: Instant) -> Option<()> {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Some(left).filter(|left| !left.is_zero())?;
        self.stream.set_read_timeout(Some(limit)).ok()?;
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => self.is_ended = true,
            Ok(count) => self.input.extend_from_slice(piece.get(..count)?),
            Err(error) => match error.kind() {
                std::io::ErrorKind::Interrupted => {}
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => return None,
                // A reset is an end as well: it had bytes that it did not read.
                _ => self.is_ended = true,
            },
        }
        Some(())
    }

    /// A message, "end" where the connection ends before it, or the rule that it breaks.
    fn message(
        &mut self,
        read: impl Fn(&mut Cursor<'_>) -> Result<Progress<Value>, Violation>,
    ) -> Option<Value> {
        let until = Instant::now() + patience();
        loop {
            let mut cursor = Cursor::new(&self.input);
            match read(&mut cursor) {
                Ok(Progress::Whole(message)) => {
                    let used = self.input.len() - cursor.remaining();
                    self.input.drain(..used);
                    return Some(message);
                }
                Ok(Progress::Short(_)) if self.is_ended => return Some(json!("end")),
                Ok(Progress::Short(_)) => self.more(until)?,
                Err(broken) => return Some(json!({"breaks": broken.rule().id()})),
            }
        }
    }

    /// What frames have, up to so many bytes or to what is no frame of bytes: where one ends means nothing (RPC-76).
    fn unframed(&mut self, count: usize) -> Option<Value> {
        let mut all = String::new();
        while all.len() < count.saturating_mul(2) {
            let frame = self.message(|cursor| {
                let frame = WebSocketFrame::read(cursor, Speaker::Server, 1 << 20)?;
                Ok(frame.map(|frame| json!({"kind": frame.kind.name(), "hex": hex(&frame.data)})))
            })?;
            match frame.get("hex").and_then(Value::as_str) {
                Some(data) if frame["kind"] == "binary" => all.push_str(data),
                _ => return Some(frame.get("kind").cloned().unwrap_or(frame)),
            }
        }
        Some(json!(all))
    }

    fn reply(&mut self) -> Option<Value> {
        self.message(|cursor| {
            let reply = TrackerReply::read(cursor)?;
            Ok(reply.map(|reply| relay::from_tracker_reply(&reply)))
        })
    }

    /// `count` bytes, or those in front of an end.
    fn read(&mut self, count: usize) -> Option<Value> {
        let until = Instant::now() + patience();
        while self.input.len() < count && !self.is_ended {
            self.more(until)?;
        }
        let count = count.min(self.input.len());
        let bytes: Vec<u8> = self.input.drain(..count).collect();
        Some(json!(hex(&bytes)))
    }

    /// All bytes up to the end.
    fn rest(&mut self) -> Option<Value> {
        let until = Instant::now() + patience();
        while !self.is_ended {
            self.more(until)?;
        }
        let bytes = std::mem::take(&mut self.input);
        Some(json!(hex(&bytes)))
    }

    /// Asks a tracker for its summary until a key has these counts.
    fn until(&mut self, wanted: &Value) -> Result<Option<Value>, OpError> {
        let key = wanted.get("key").and_then(Value::as_str);
        let key = key.ok_or_else(|| wrong("until"))?;
        let until = Instant::now() + patience();
        while Instant::now() < until {
            let mut out = Writer::new();
            TrackerRequest::Summary.write(Release::LAST, &mut out)?;
            self.write(&out.into_bytes());
            let Some(summary) = self.reply() else {
                return Ok(None);
            };
            let Some(queues) = summary.get("queues") else {
                return Ok(Some(summary));
            };
            let counts = queues.get(key).unwrap_or(&Value::Null);
            let is_so = |name: &str| {
                wanted
                    .get(name)
                    .is_none_or(|count| counts.get(name) == Some(count))
            };
            if is_so("free") && is_so("pending") {
                return Ok(Some(Value::Null));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
