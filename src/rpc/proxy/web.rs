//! WebSocket peers of a proxy. The contents of their messages are treated like the bytes of any other connection (RPC-74, RPC-76).

use super::super::threads;
use super::relay::shut;
use crate::lock::lock;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use tungstenite::error::ProtocolError;
use tungstenite::handshake::HandshakeError;
use tungstenite::handshake::server::{ErrorResponse, Request};
use tungstenite::http::{HeaderMap, StatusCode};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

/// Path of WebSockets at a proxy (RPC-74).
const PATH: &str = "/ws";

/// The longest head of a request, in bytes (RPC-74).
const LONGEST_HEAD: usize = 8192;

/// The longest message, in bytes (RPC-76). tungstenite reserves a frame's length when it has read the header. With a larger limit a peer
/// could reserve that much with a few bytes.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Number of bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// A connection with a WebSocket, shared by the thread that reads messages and the one that writes them.
struct WebStream {
    stream: Arc<TcpStream>,
    writing: Arc<Mutex<()>>,
    /// The bounds of the request; `None` once it was accepted.
    head: Option<HeadLimit>,
}

/// The bytes that are left for a request, and the time at which it must be complete.
struct HeadLimit {
    left: usize,
    deadline: Instant,
}

impl Read for WebStream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(head) = &mut self.head else {
            return (&*self.stream).read(room);
        };
        let time = head.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if head.left == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.stream.set_read_timeout(Some(time))?;
        let most = room.len().min(head.left);
        let count = (&*self.stream).read(room.get_mut(..most).unwrap_or_default())?;
        head.left -= count;
        Ok(count)
    }
}

impl Write for WebStream {
    /// Writes all of `bytes`, which are whole frames. The reading thread also writes, because it answers Ping, and must not write inside a
    /// frame of another thread.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _one = lock(&self.writing);
        (&*self.stream).write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A peer whose WebSocket is open.
pub(super) struct WebPeer {
    /// Reads messages, and answers Ping and Close.
    messages: WebSocket<WebStream>,
}

impl WebPeer {
    /// Answers the request for a WebSocket.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no WebSocket. The peer has then received an HTTP status.
    pub(super) fn accept(stream: Arc<TcpStream>, patience: Duration) -> Result<WebPeer, String> {
        let reading = WebStream {
            stream: stream.clone(),
            writing: Arc::default(),
            head: Some(HeadLimit {
                left: LONGEST_HEAD,
                deadline: Instant::now() + patience,
            }),
        };
        let mut why = None;
        #[expect(
            clippy::result_large_err,
            reason = "the type of tungstenite's callback"
        )]
        let judge = |request: &Request, answer| match check_request(request) {
            Ok(()) => Ok(answer),
            Err((status, reason)) => {
                why = Some(reason);
                let mut rejection = ErrorResponse::new(None);
                *rejection.status_mut() = status;
                Err(rejection)
            }
        };
        let accepted = tungstenite::accept_hdr_with_config(reading, judge, Some(config()));
        match accepted {
            Ok(mut messages) => {
                messages.get_mut().head = None;
                let unbounded = stream.set_read_timeout(None);
                unbounded.map_err(|why| why.to_string())?;
                Ok(WebPeer { messages })
            }
            Err(HandshakeError::Interrupted(_)) => Err("the request is late".to_owned()),
            Err(HandshakeError::Failure(error)) => {
                // tungstenite has answered a request that `judge` rejects, but it does not answer bytes that it cannot read.
                if why.is_none() {
                    let answer =
                        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    // A peer that has left does not get the answer, which is not an error.
                    let _ = (&*stream).write_all(answer);
                }
                Err(why.unwrap_or_else(|| error.to_string()))
            }
        }
    }

    /// Passes the contents of messages on to `inner`, and the bytes from there as messages, until either side ends. Returns the reason if
    /// the peer broke a rule.
    pub(super) fn relay_messages(mut self, inner: &TcpStream) -> Option<String> {
        let web = self.messages.get_ref().stream.clone();
        let writer = WebStream {
            stream: web.clone(),
            writing: self.messages.get_ref().writing.clone(),
            head: None,
        };
        thread::scope(|scope| {
            let answers = || {
                write_messages(writer, inner);
                shut(&web);
            };
            let answers = threads::spawn_scoped(scope, answers);
            let why = match &answers {
                Ok(_) => self.read_messages(inner),
                Err(why) => Some(threads::no_thread_message(why)),
            };
            shut(inner);
            shut(&web);
            drop(answers.map(ScopedJoinHandle::join));
            why
        })
    }

    /// Reads messages and passes on their contents.
    fn read_messages(&mut self, mut inner: &TcpStream) -> Option<String> {
        loop {
            match self.messages.read() {
                // RPC-76: the messages form one stream.
                Ok(Message::Binary(bytes)) => {
                    if inner.write_all(&bytes).is_err() {
                        return None;
                    }
                }
                Ok(Message::Text(_)) => return Some("it writes text".to_owned()),
                Ok(Message::Close(_)) => return None,
                Ok(_) => {}
                Err(
                    Error::ConnectionClosed
                    | Error::AlreadyClosed
                    | Error::Io(_)
                    | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
                ) => return None,
                Err(error) => return Some(error.to_string()),
            }
        }
    }
}

/// Writes the bytes from `inner` as messages, and closes the WebSocket at its end.
fn write_messages(stream: WebStream, mut inner: &TcpStream) {
    let mut messages = WebSocket::from_raw_socket(stream, Role::Server, Some(config()));
    let mut piece = vec![0; PIECE];
    loop {
        match inner.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                let bytes = piece.get(..count).unwrap_or_default().to_vec();
                if messages.send(Message::binary(bytes)).is_err() {
                    return;
                }
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let end = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    // Fails only if the peer is gone, which then needs no close frame.
    let _ = messages.close(Some(end));
    let _ = messages.flush();
}

/// The limits of messages. Each message is written at once.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE))
        .read_buffer_size(PIECE)
        .write_buffer_size(0)
}

/// Checks the path and the origin of a request (RPC-74). The error is the HTTP status of the answer, and the reason.
fn check_request(request: &Request) -> Result<(), (StatusCode, String)> {
    if request.uri().path() != PATH {
        let why = format!("there is no `{}`", request.uri().path().escape_debug());
        return Err((StatusCode::NOT_FOUND, why));
    }
    if let Some(origin) = foreign_origin(request.headers()) {
        let why = format!("a page of `{}`", origin.escape_debug());
        return Err((StatusCode::FORBIDDEN, why));
    }
    Ok(())
}

/// Returns the origin of the page that makes the request, if it differs from the proxy's host (RPC-74). A browser lets any page connect
/// to this machine.
fn foreign_origin(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| Some(String::from_utf8_lossy(headers.get(name)?.as_bytes()));
    let origin = text("origin")?;
    let host = text("host").unwrap_or_default();
    let of = origin.split_once("://").map_or("", |(_, host)| host);
    (!of.eq_ignore_ascii_case(&host)).then(|| origin.into_owned())
}

/// Creates a loopback connection that carries the contents of a peer's messages, and returns both ends.
pub(super) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let own = TcpStream::connect(listener.local_addr()?)?;
    let address = own.local_addr()?;
    // Another process of this machine may connect as well.
    let other = loop {
        let (other, peer) = listener.accept()?;
        if peer == address {
            break other;
        }
    };
    own.set_nodelay(true)?;
    other.set_nodelay(true)?;
    Ok((own, other))
}
