//! A peer of a tracker or a proxy in `rpc.relay`.

use super::session::patience;
use crate::conformance::op::OpError;
use crate::release::Release;
use crate::rpc::relay_json as relay;
use crate::rpc::{Progress, TrackerReply, TrackerRequest};
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
#[cfg(feature = "web")]
use tungstenite::{Message, WebSocket};

/// A connection to the tracker or proxy.
pub(super) struct RelayPeer {
    stream: TcpStream,
    /// WebSocket over the same connection, once it is open.
    #[cfg(feature = "web")]
    web: Option<WebSocket<TcpStream>>,
    /// Bytes that were received but not consumed.
    input: Vec<u8>,
    is_ended: bool,
}

impl RelayPeer {
    /// Creates a peer over a new connection. Small writes are sent at once, because a case waits for the answer to each.
    pub(super) fn from_stream(stream: TcpStream) -> std::io::Result<RelayPeer> {
        stream.set_nodelay(true)?;
        Ok(RelayPeer {
            stream,
            #[cfg(feature = "web")]
            web: None,
            input: Vec::new(),
            is_ended: false,
        })
    }

    /// Returns the address from which it connects.
    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Writes bytes. A peer that is gone is noticed by the next read.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Waits for more bytes; `None` if nothing comes in time.
    fn read_more(&mut self, until: Instant) -> Option<()> {
        let left = until.saturating_duration_since(Instant::now());
        // `set_read_timeout` rejects zero. Here zero means that the time is over, not that the connection is broken.
        let limit = Some(left).filter(|left| !left.is_zero())?;
        self.stream.set_read_timeout(Some(limit)).ok()?;
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => self.is_ended = true,
            Ok(count) => self.input.extend_from_slice(piece.get(..count)?),
            Err(error) => match error.kind() {
                std::io::ErrorKind::Interrupted => {}
                _ if is_timeout(&error) => return None,
                // A reset is an end as well: the other side had unread bytes.
                _ => self.is_ended = true,
            },
        }
        Some(())
    }

    /// Reads a message. Returns "end" if the connection ends before it, or the rule that it breaks.
    pub(super) fn message(
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
                Ok(Progress::Short(_)) => self.read_more(until)?,
                Err(broken) => return Some(json!({"breaks": broken.rule().id()})),
            }
        }
    }

    pub(super) fn reply(&mut self) -> Option<Value> {
        self.message(|cursor| {
            let reply = TrackerReply::read(cursor)?;
            Ok(reply.map(|reply| relay::from_tracker_reply(&reply)))
        })
    }

    /// Reads `count` bytes, or fewer if the connection ends before.
    pub(super) fn read(&mut self, count: usize) -> Option<Value> {
        let until = Instant::now() + patience();
        while self.input.len() < count && !self.is_ended {
            self.read_more(until)?;
        }
        let count = count.min(self.input.len());
        let bytes: Vec<u8> = self.input.drain(..count).collect();
        Some(json!(hex(&bytes)))
    }

    /// Reads all bytes up to the end.
    pub(super) fn read_until_close(&mut self) -> Option<Value> {
        let until = Instant::now() + patience();
        while !self.is_ended {
            self.read_more(until)?;
        }
        let bytes = std::mem::take(&mut self.input);
        Some(json!(hex(&bytes)))
    }

    /// Requests the tracker's summary until a key has these counts.
    pub(super) fn await_summary(&mut self, wanted: &Value) -> Result<Option<Value>, OpError> {
        let key = wanted.get("key").and_then(Value::as_str);
        let key = key.ok_or_else(|| super::relay::malformed_step("until"))?;
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
            // RPC-64: a key without offers and requests may be missing.
            let is_so = |name: &str| {
                let count = counts.get(name).and_then(Value::as_u64).unwrap_or(0);
                wanted
                    .get(name)
                    .is_none_or(|wanted| wanted.as_u64() == Some(count))
            };
            if is_so("free") && is_so("pending") {
                return Ok(Some(Value::Null));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }
}

#[cfg(feature = "web")]
impl RelayPeer {
    /// Opens a WebSocket at the path of a proxy. Returns null, or "end" if the proxy rejects it.
    pub(super) fn upgrade(&mut self) -> Option<Value> {
        let stream = self.stream.try_clone().ok()?;
        stream.set_read_timeout(Some(patience())).ok()?;
        match tungstenite::client("ws://localhost/ws", stream) {
            Ok((web, _)) => {
                self.web = Some(web);
                Some(Value::Null)
            }
            Err(_) => Some(json!("end")),
        }
    }

    /// Writes a binary message. A proxy that is gone is noticed by the next read.
    pub(super) fn send_message(&mut self, bytes: Vec<u8>) {
        if let Some(web) = &mut self.web {
            let _ = web.send(Message::binary(bytes));
        }
    }

    /// Reads binary messages until they have `count` bytes: message boundaries mean nothing (RPC-76). Returns "end" for any other message,
    /// for a broken frame, and for the end of the connection.
    pub(super) fn messages(&mut self, count: usize) -> Option<Value> {
        let web = self.web.as_mut()?;
        let mut all = Vec::new();
        while all.len() < count {
            match web.read() {
                Ok(Message::Binary(bytes)) => all.extend_from_slice(&bytes),
                Err(tungstenite::Error::Io(why)) if is_timeout(&why) => return None,
                Ok(_) | Err(_) => return Some(json!("end")),
            }
        }
        Some(json!(hex(&all)))
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
