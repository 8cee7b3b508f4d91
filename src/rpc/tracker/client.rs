//! The other end of a tracker's connection: what servers, clients and proxies ask.

use super::super::transport::seconds;
use super::super::{Progress, TrackerHello, TrackerReply, TrackerRequest};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a tracker may take for a reply that it has at once, and for its hello.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a read lasts before it is looked whether waiting goes on.
const SLICE: Duration = Duration::from_millis(200);

/// A connection to a tracker.
///
/// What it has offered or asked for is withdrawn when it goes (RPC-63).
pub struct TrackerClient {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A server that a tracker has handed out. It is this client's until its session ends: then it offers itself anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackedServer {
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// The key that the hello must have; it opens one session.
    pub match_key: String,
}

impl TrackerClient {
    /// Connects to a tracker.
    ///
    /// # Errors
    ///
    /// A ConnectionError where nothing answers there; a TimeoutError; RPC-50 for what is no tracker.
    pub fn connect(address: impl ToSocketAddrs) -> Result<TrackerClient> {
        TrackerClient::connect_within(address, PATIENCE)
    }

    /// [`TrackerClient::connect`] to one whose hello comes within `patience`, at most what a tracker may take.
    pub(in crate::rpc) fn connect_within(
        address: impl ToSocketAddrs,
        patience: Duration,
    ) -> Result<TrackerClient> {
        let patience = patience.min(PATIENCE);
        let mut last = io::Error::other("the name has no address");
        let mut place = String::new();
        for address in address.to_socket_addrs().map_err(gone)? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => return TrackerClient::over(stream, patience),
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

    /// A client over a connection to what shows in the first four bytes to be a tracker (RPC-50).
    fn over(stream: TcpStream, patience: Duration) -> Result<TrackerClient> {
        // Of a connection that was reset there is no address any more.
        let place = stream.peer_addr().map_err(gone)?;
        stream.set_nodelay(true).map_err(gone)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(gone)?;
        let mut client = TrackerClient {
            stream,
            buffer: Vec::new(),
        };
        let mut out = Writer::new();
        TrackerHello.write(&mut out);
        // RPC-50: the number goes out alone: trackers take the first bytes that come in for it.
        client.write(&out.into_bytes())?;
        let hello = client.read(patience, &|| true, TrackerHello::read);
        hello.map_err(|error| no_tracker(error, place, patience))?;
        Ok(client)
    }

    /// The address of this end of the connection: to that of a server that states no other, a tracker sends clients (RPC-56).
    ///
    /// # Errors
    ///
    /// A ConnectionError where the connection is gone.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.stream.local_addr().map_err(gone)
    }

    /// A request and its reply, which the tracker has at once.
    ///
    /// # Errors
    ///
    /// What the connection is broken by; RPC-51 to RPC-58 for a reply that is none.
    pub fn ask(&mut self, request: &TrackerRequest) -> Result<TrackerReply> {
        self.send(request)?;
        self.read(PATIENCE, &|| true, TrackerReply::read)
    }

    /// A request whose reply is that it is done.
    ///
    /// # Errors
    ///
    /// As [`TrackerClient::ask`]; another reply.
    pub fn order(&mut self, request: &TrackerRequest) -> Result<()> {
        match self.ask(request)? {
            TrackerReply::Success => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// The match keys of the servers that wait, of all keys: a server whose own is not among them was handed to a client (RPC-67).
    ///
    /// # Errors
    ///
    /// As [`TrackerClient::ask`]; another reply.
    pub fn pending_match_keys(&mut self) -> Result<Vec<String>> {
        match self.ask(&TrackerRequest::PendingMatchKeys)? {
            TrackerReply::MatchKeys(keys) => Ok(keys),
            other => Err(unexpected(&other)),
        }
    }

    /// A server of `key`, as soon as one is free; with a higher `priority` before other clients (RPC-61).
    ///
    /// # Errors
    ///
    /// A TimeoutError where none is free within `wait`; as [`TrackerClient::ask`].
    pub fn request(&mut self, key: &str, priority: i64, wait: Duration) -> Result<TrackedServer> {
        self.request_while(key, priority, wait, &|| true)
    }

    /// [`TrackerClient::request`], as long as `goes_on`, which is asked several times a second. A request that was abandoned stands
    /// in the tracker's queue until this client goes.
    ///
    /// # Errors
    ///
    /// As [`TrackerClient::request`]; a TimeoutError, too, once it does not go on.
    pub fn request_while(
        &mut self,
        key: &str,
        priority: i64,
        wait: Duration,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<TrackedServer> {
        let request = TrackerRequest::Request {
            key: key.to_owned(),
            // RPC-54: empty, as clients of releases write it.
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
        self.stream.write_all(bytes).map_err(gone)
    }

    /// Reads until a message is whole.
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
                return Err(gone(io::ErrorKind::TimedOut.into()));
            }
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            self.stream.set_read_timeout(Some(slice)).map_err(gone)?;
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::Connection,
                        "the tracker has closed the connection",
                    ));
                }
                // RPC-52 bounds what is kept.
                Ok(count) => self.buffer.extend(piece.iter().take(count)),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted
                            | io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(gone(error)),
            }
        }
    }
}

/// What the system reported.
fn gone(error: io::Error) -> Error {
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

/// Why there is no hello of a tracker, and what may be there instead.
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
        // RPC-01: servers and proxies close the connection of what begins with another number.
        format!(
            "{place} closes the connection in front of a tracker's hello, as servers and proxies do; for one of these the name is rpc://HOST:PORT/KEY, without a tracker"
        )
    };
    Error::new(error.kind(), text)
}

/// A reply to something else.
fn unexpected(reply: &TrackerReply) -> Error {
    Error::new(
        ErrorKind::Connection,
        format!("the tracker answers {reply:?}"),
    )
}
