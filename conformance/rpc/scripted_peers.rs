//! Scripted peers of a client: servers, and a tracker.
//!
//! They use the library's own writers, or write invalid bytes. This is sound because only our own client is tested here: `rpc.session`
//! tests clients of TVM from the other side.

use super::session::patience;
use crate::conformance::form::{self, from_hex, from_text_if_any};
use crate::conformance::golden::hex_bytes;
use crate::conformance::op::OpError;
use crate::function::{Error, ErrorKind};
use crate::release::Release;
use crate::rpc::json::{from_packet, to_packet};
use crate::rpc::relay_json::{from_tracker_request, to_tracker_reply};
use crate::rpc::transport::Transport;
use crate::rpc::{
    HelloAnswer, PackedValue, Packet, Progress, Protocol, RpcCode, Speaker, TrackerHello,
    TrackerReply, TrackerRequest,
};
use crate::rule::Findings;
use crate::wire::{Cursor, Writer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A listener that plays each connection by the next script, and closes it after the script's end.
pub(super) struct ScriptedPeer {
    port: u16,
    is_over: Arc<AtomicBool>,
    accepts: JoinHandle<Vec<Value>>,
}

/// The script of one connection; returns the bytes that it read.
pub(super) trait Script: Send + 'static {
    fn play(self, stream: TcpStream) -> Value;
}

impl ScriptedPeer {
    /// Listens, and plays `scripts` in the order of the connections. Several may be open at a time.
    pub(super) fn start<S: Script>(
        scripts: impl FnOnce(u16) -> Vec<S>,
    ) -> Result<ScriptedPeer, OpError> {
        let failed = |error: std::io::Error| OpError::Unsupported(error.to_string());
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut scripts: VecDeque<S> = scripts(port).into();
        let ends = Arc::clone(&is_over);
        let accepts = thread::spawn(move || {
            let mut played = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if ends.load(Ordering::SeqCst) {
                    break;
                }
                let script = scripts.pop_front();
                played.push(thread::spawn(move || {
                    script.map_or(Value::Null, |script| script.play(stream))
                }));
            }
            let played = played.into_iter().map(JoinHandle::join);
            played.map(Result::unwrap_or_default).collect()
        });
        Ok(ScriptedPeer {
            port,
            is_over,
            accepts,
        })
    }

    /// Returns the port of the listener. The system chose it, so that several cases can run at once.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the end of all connections, and returns the bytes read on each.
    pub(super) fn end(self) -> Vec<Value> {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener, which waits for a connection.
        let last = TcpStream::connect(("127.0.0.1", self.port));
        let played = self.accepts.join().unwrap_or_default();
        drop(last);
        played
    }
}

/// The answer of a server to the hello.
///
/// Clients of TVM meet all of these: a proxy without the other side (RPC-72), a server of another protocol, a server that restarts.
#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HelloReply {
    #[default]
    Success,
    Mismatch,
    Duplicate,
    /// Closes the connection.
    Close,
    /// Closes the connection before it has read the hello.
    Reset,
    /// Answers nothing, and keeps the connection.
    Silent,
    #[serde(untagged)]
    Bytes {
        #[serde(deserialize_with = "from_hex")]
        hex: Vec<u8>,
    },
}

/// The answer of a server to a request. Bytes need not be a valid packet.
#[derive(Deserialize)]
#[serde(untagged)]
enum ScriptedAnswer {
    /// No answer; the connection stays open.
    Silent {
        #[serde(rename = "silent")]
        _silent: bool,
    },
    Bytes {
        #[serde(deserialize_with = "from_hex")]
        hex: Vec<u8>,
    },
    #[serde(deserialize_with = "packet")]
    Packet(Packet<'static>),
}

/// Reads a packet from its form.
fn packet<'v, D: Deserializer<'v>>(form: D) -> Result<Packet<'static>, D::Error> {
    to_packet(&Value::deserialize(form)?).map_err(D::Error::custom)
}

/// One session of a server.
#[derive(Deserialize)]
pub(super) struct SessionOfScript {
    /// Release whose rules the server follows; by default that of the first connection.
    #[serde(default, deserialize_with = "from_text_if_any")]
    release: Option<Release>,
    #[serde(default)]
    greeting: HelloReply,
    /// Answers to InitServer and to the later requests.
    answers: VecDeque<ScriptedAnswer>,
    /// Set if an answer was an exception.
    #[serde(skip)]
    is_far: Arc<AtomicBool>,
}

impl SessionOfScript {
    /// Reads `release`, `greeting` and `answers`.
    pub(super) fn read(
        form: &Value,
        release: Release,
        is_far: &Arc<AtomicBool>,
    ) -> Result<SessionOfScript, OpError> {
        let mut script: SessionOfScript = form::read(form)?;
        script.release.get_or_insert(release);
        script.is_far = Arc::clone(is_far);
        Ok(script)
    }

    /// Plays the session, and appends the bytes of the client to `read`.
    ///
    /// Requests that free something are answered without the script, because the client sends them when a value is dropped, which cases do
    /// not count. The session ends with the script.
    fn serve(
        mut self,
        stream: TcpStream,
        hello: &mut Value,
        read: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let gone = |error: std::io::Error| Error::new(ErrorKind::Connection, error.to_string());
        let release = self.release.unwrap_or(Release::LAST);
        let mut raw = stream.try_clone().map_err(gone)?;
        raw.set_read_timeout(Some(patience())).map_err(gone)?;
        if matches!(self.greeting, HelloReply::Reset) {
            // A connection that is closed with unread bytes is reset.
            return raw.peek(&mut [0]).map(drop).map_err(gone);
        }
        let mut transport = Transport::tcp(stream)?;
        transport.set_deadline(Some(Instant::now() + patience()));
        // The hello is read before any answer: closing with unread bytes would reset the connection, which only `reset` is meant to do.
        let greeted = transport.read_hello();
        let is_client = greeted.is_ok();
        if let Ok(greeted) = greeted {
            *hello = json!(greeted.key);
        }
        let answer = match &self.greeting {
            HelloReply::Success => HelloAnswer::Success("server:scripted".into()),
            HelloReply::Mismatch => HelloAnswer::Mismatch,
            HelloReply::Duplicate => HelloAnswer::Duplicate,
            HelloReply::Close | HelloReply::Reset => return Ok(()),
            HelloReply::Silent => return drain(&mut raw).map_err(gone),
            HelloReply::Bytes { hex: bytes } => {
                raw.write_all(bytes).map_err(gone)?;
                return drain(&mut raw).map_err(gone);
            }
        };
        if !is_client {
            return Ok(());
        }
        transport.write_answer(&answer, release)?;
        loop {
            transport.set_deadline(Some(Instant::now() + patience()));
            let spoken = Protocol::new(release, Speaker::Client);
            let packet = match transport.read_packet(&spoken, &mut Findings::default()) {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let rule = error.violation().map(|broken| broken.rule().id());
                    read.push(json!({ "breaks": rule }));
                    return Err(error);
                }
            };
            read.push(from_packet(&packet));
            let void = ScriptedAnswer::Packet(Packet::Return(vec![PackedValue::None]));
            let answer = match packet {
                Packet::Shutdown => return Ok(()),
                Packet::SystemCall(
                    RpcCode::FreeHandle | RpcCode::DevFreeData | RpcCode::DevStreamSync,
                    _,
                ) => Some(void),
                _ => self.answers.pop_front(),
            };
            let mut out = Writer::new();
            let bytes = match answer {
                None => return Ok(()),
                Some(ScriptedAnswer::Silent { .. }) => continue,
                Some(ScriptedAnswer::Bytes { hex: bytes }) => bytes,
                Some(ScriptedAnswer::Packet(packet)) => {
                    packet.write(&Protocol::new(release, Speaker::Server), &mut out)?;
                    out.into_bytes()
                }
            };
            // RPC-26: the packet's code tells the client that the error is the server's, so that it is shown in full. For raw bytes the
            // code after the length is checked.
            if bytes.get(8) == Some(&5) {
                self.is_far.store(true, Ordering::Relaxed);
            }
            raw.write_all(&bytes).map_err(gone)?;
        }
    }
}

impl Script for SessionOfScript {
    fn play(self, stream: TcpStream) -> Value {
        let (mut hello, mut read) = (Value::Null, Vec::new());
        // An error means that the client is gone.
        drop(self.serve(stream, &mut hello, &mut read));
        json!({"hello": hello, "requests": read})
    }
}

/// One connection of a tracker.
pub(super) struct TrackerOfScript {
    /// Answer to the hello; `None` for silence.
    hello: Option<Vec<u8>>,
    /// Replies to the requests in order. After the last one nothing is answered, and the connection stays open.
    replies: VecDeque<ScriptedReply>,
    /// Port that replaces a server's port 0.
    port: u16,
}

/// The reply of a tracker: a message of RPC-57, arbitrary bytes, or the end.
enum ScriptedReply {
    Reply(TrackerReply),
    Bytes(Vec<u8>),
    Close,
}

impl TrackerOfScript {
    /// Reads a list of replies, the first of which may be a `hello`.
    pub(super) fn read(form: &Value, port: u16) -> Result<TrackerOfScript, OpError> {
        let wrong = || OpError::Unsupported("`tracker` has another form".into());
        let mut out = Writer::new();
        TrackerHello.write(&mut out);
        let mut script = TrackerOfScript {
            hello: Some(out.into_bytes()),
            replies: VecDeque::new(),
            port,
        };
        let bytes = |hex: &Value| hex.as_str().and_then(|hex| hex_bytes(hex).ok());
        for reply in form.as_array().ok_or_else(wrong)? {
            if let Some(hello) = reply.get("hello") {
                script.hello = match hello {
                    Value::Null => None,
                    hex => Some(bytes(hex).ok_or_else(wrong)?),
                };
                continue;
            }
            let reply = match (reply.get("hex"), reply.get("close")) {
                (Some(hex), _) => ScriptedReply::Bytes(bytes(hex).ok_or_else(wrong)?),
                (_, Some(_)) => ScriptedReply::Close,
                _ => ScriptedReply::Reply(to_tracker_reply(reply)?),
            };
            script.replies.push_back(reply);
        }
        Ok(script)
    }

    /// Plays the connection, and adds the requests to `read`.
    fn serve(mut self, mut stream: TcpStream, read: &mut Vec<Value>) -> std::io::Result<()> {
        stream.set_read_timeout(Some(patience()))?;
        stream.set_nodelay(true)?;
        let mut input = vec![0; 4];
        stream.read_exact(&mut input)?;
        if TrackerHello::read(&mut Cursor::new(&input)).is_err() {
            read.push(json!({"breaks": "RPC-50"}));
            return Ok(());
        }
        let Some(hello) = self.hello.take() else {
            return drain(&mut stream);
        };
        stream.write_all(&hello)?;
        input.clear();
        loop {
            let mut cursor = Cursor::new(&input);
            match TrackerRequest::read(&mut cursor, Release::LAST) {
                Ok(Progress::Whole(request)) => {
                    let used = input.len() - cursor.remaining();
                    input.drain(..used);
                    read.push(from_tracker_request(&request));
                    match self.replies.pop_front() {
                        None => {}
                        Some(ScriptedReply::Close) => return Ok(()),
                        Some(ScriptedReply::Bytes(bytes)) => stream.write_all(&bytes)?,
                        Some(ScriptedReply::Reply(mut reply)) => {
                            if let TrackerReply::Server { port: of @ 0, .. } = &mut reply {
                                *of = self.port;
                            }
                            let mut out = Writer::new();
                            if reply.write(&mut out).is_ok() {
                                stream.write_all(&out.into_bytes())?;
                            }
                        }
                    }
                }
                Ok(Progress::Short(_)) => {
                    let mut piece = [0; 4096];
                    match stream.read(&mut piece)? {
                        0 => return Ok(()),
                        count => input.extend(piece.iter().take(count)),
                    }
                }
                Err(broken) => {
                    read.push(json!({"breaks": broken.rule().id()}));
                    return Ok(());
                }
            }
        }
    }
}

impl Script for TrackerOfScript {
    fn play(self, stream: TcpStream) -> Value {
        let mut read = Vec::new();
        // An error means that the client is gone.
        drop(self.serve(stream, &mut read));
        json!(read)
    }
}

/// Reads until the client closes the connection.
///
/// Otherwise the connection would be reset, and the client would see that instead of silence.
fn drain(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    while stream.read(&mut piece)? > 0 {}
    Ok(())
}
