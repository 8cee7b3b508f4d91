//! The client side of a connection to a tracker, which servers, clients and proxies use.

use super::super::transport::seconds;
use super::super::{Progress, TrackerHello, TrackerReply, TrackerRequest};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time limit for a tracker's hello, and for a reply that the tracker can write at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time limit of one read. After each read, the client checks whether to continue waiting.
const SLICE: Duration = Duration::from_millis(200);

/// A connection to a tracker.
///
/// Its offers and requests are withdrawn when it is dropped (RPC-63).
pub struct TrackerClient {
    stream: TcpStream,
    buffer: Vec<u8>,
}

debug_fields!(TrackerClient: stream);

/// A server that a tracker has assigned to this client. When its session ends, the server offers itself again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackedServer {
    /// Host of the server.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Key that the hello must contain; it opens one session.
    pub match_key: String,
}

impl TrackerClient {
    /// Connects to a tracker.
    ///
    /// # Errors
    ///
    /// Returns a ConnectionError if nothing answers there; a TimeoutError; RPC-50 if the peer is not a tracker.
    pub fn connect(address: impl ToSocketAddrs) -> Result<TrackerClient> {
        TrackerClient::connect_within(address, PATIENCE)
    }

    /// Connects like [`TrackerClient::connect`], and waits for the hello at most for the shorter of `patience` and [`PATIENCE`].
    pub(in crate::rpc) fn connect_within(
        address: impl ToSocketAddrs,
        patience: Duration,
    ) -> Result<TrackerClient> {
        let patience = patience.min(PATIENCE);
        let mut last = io::Error::other("the name has no address");
        let mut place = String::new();
        for address in address.to_socket_addrs().map_err(connection_error)? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => return TrackerClient::from_connection(stream, patience),
                Err(error) => last = error,
            }
            place = format!(" at {address}");
        }
        let text = match last.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format!("the tracker{place} took too long"),
                ));
            }
            _ => format!("no connection to the tracker{place}: {last}"),
        };
        Err(Error::new(ErrorKind::Connection, text))
    }

    /// Creates a client over a connection, after the peer's first four bytes show that it is a tracker (RPC-50).
    fn from_connection(stream: TcpStream, patience: Duration) -> Result<TrackerClient> {
        // Read first, because after a reset the socket has no peer address any more.
        let place = stream.peer_addr().map_err(connection_error)?;
        stream.set_nodelay(true).map_err(connection_error)?;
        stream
            .set_write_timeout(Some(PATIENCE))
            .map_err(connection_error)?;
        let mut client = TrackerClient {
            stream,
            buffer: Vec::new(),
        };
        let mut out = Writer::new();
        TrackerHello.write(&mut out);
        // RPC-50: the number is written alone, because trackers treat the first bytes that arrive as this number.
        client.write(&out.into_bytes())?;
        let hello = client.read(patience, &|| true, TrackerHello::read);
        hello.map_err(|error| no_tracker(error, place, patience))?;
        Ok(client)
    }

    /// Returns the local address of the connection. A tracker sends clients there if a server states no other address (RPC-56).
    ///
    /// # Errors
    ///
    /// A ConnectionError if the connection is gone.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.stream.local_addr().map_err(connection_error)
    }

    /// Writes a request and reads its reply, for requests that the tracker answers at once.
    ///
    /// # Errors
    ///
    /// Returns errors of the connection; RPC-51 to RPC-58 for an invalid reply.
    pub fn ask(&mut self, request: &TrackerRequest) -> Result<TrackerReply> {
        self.send(request)?;
        self.read(PATIENCE, &|| true, TrackerReply::read)
    }

    /// Writes a request and expects the reply [`TrackerReply::Success`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TrackerClient::ask`], and an error for another reply.
    pub fn order(&mut self, request: &TrackerRequest) -> Result<()> {
        match self.ask(request)? {
            TrackerReply::Success => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the match keys of the waiting servers, of all keys. A server whose match key is missing was assigned to a client (RPC-67).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TrackerClient::ask`], and an error for another reply.
    pub fn pending_match_keys(&mut self) -> Result<Vec<String>> {
        match self.ask(&TrackerRequest::PendingMatchKeys)? {
            TrackerReply::MatchKeys(keys) => Ok(keys),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits for a free server of `key`. Requests with a higher `priority` are served first (RPC-61).
    ///
    /// # Errors
    ///
    /// Returns a TimeoutError if no server is free within `wait`, and the errors of [`TrackerClient::ask`].
    pub fn request(&mut self, key: &str, priority: i64, wait: Duration) -> Result<TrackedServer> {
        self.request_while(key, priority, wait, &|| true)
    }

    /// Waits like [`TrackerClient::request`] while `goes_on`, which is called several times a second, returns true. An abandoned request
    /// stays in the tracker's queue until this client is dropped.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TrackerClient::request`]. Also returns a TimeoutError if `goes_on` returns false.
    pub fn request_while(
        &mut self,
        key: &str,
        priority: i64,
        wait: Duration,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<TrackedServer> {
        let request = TrackerRequest::Request {
            key: key.to_owned(),
            // RPC-54: empty, as released clients write it.
            user: String::new(),
            priority,
        };
        self.send(&request)?;
        match self.read(wait, goes_on, TrackerReply::read) {
            Ok(TrackerReply::Server {
                host,
                port,
                match_key,
            }) => Ok(TrackedServer {
                host,
                port,
                match_key,
            }),
            Ok(other) => Err(unexpected(&other)),
            Err(error) if error.kind() == ErrorKind::Timeout => {
                let wait = seconds(wait);
                let text = format!("no server of key `{key}` was free within {wait}");
                Err(Error::new(ErrorKind::Timeout, text))
            }
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, request: &TrackerRequest) -> Result<()> {
        let mut out = Writer::new();
        request.write(Release::LAST, &mut out)?;
        self.write(&out.into_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(connection_error)
    }

    /// Reads until a message is complete.
    fn read<T>(
        &mut self,
        wait: Duration,
        goes_on: &dyn Fn() -> bool,
        read: impl Fn(&mut Cursor<'_>) -> std::result::Result<Progress<T>, Violation>,
    ) -> Result<T> {
        let end = Instant::now().checked_add(wait);
        let mut piece = [0; 4096];
        loop {
            let mut cursor = Cursor::new(&self.buffer);
            if let Progress::Whole(value) = read(&mut cursor)? {
                let left = cursor.remaining();
                self.buffer.drain(..self.buffer.len() - left);
                return Ok(value);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) || !goes_on() {
                return Err(connection_error(io::ErrorKind::TimedOut.into()));
            }
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            self.stream
                .set_read_timeout(Some(slice))
                .map_err(connection_error)?;
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::Connection,
                        "the tracker has closed the connection",
                    ));
                }
                // RPC-52 bounds the size of the buffer.
                Ok(count) => self.buffer.extend(piece.iter().take(count)),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted
                            | io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(connection_error(error)),
            }
        }
    }
}

/// Converts an error of the system.
fn connection_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::new(ErrorKind::Timeout, "the tracker took too long")
        }
        _ => Error::new(
            ErrorKind::Connection,
            format!("no connection to the tracker: {error}"),
        ),
    }
}

/// Explains why the tracker's hello is missing, and which other service may be there.
fn no_tracker(error: Error, place: SocketAddr, patience: Duration) -> Error {
    if error.violation().is_some() {
        return error;
    }
    let text = if error.kind() == ErrorKind::Timeout {
        let patience = seconds(patience);
        format!(
            "{place} has not answered the hello of a tracker's client within {patience}: is a tracker there?"
        )
    } else {
        // RPC-01: servers and proxies close a connection that begins with another number.
        format!(
            "{place} closes the connection in front of a tracker's hello, as servers and proxies do; for one of these the name is rpc://HOST:PORT/KEY, without a tracker"
        )
    };
    Error::new(error.kind(), text)
}

/// Creates the error for a reply to another kind of request.
fn unexpected(reply: &TrackerReply) -> Error {
    Error::new(
        ErrorKind::Connection,
        format!("the tracker answers {reply:?}"),
    )
}
