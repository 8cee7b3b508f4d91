//! Connections whose peers have not sent a hello yet: their number, their time limit, and the order in which the server closes them.
//!
//! An honest peer writes as soon as it is connected. Therefore few connections are in this state, and only for milliseconds. The limits
//! apply to this state only. They limit neither the sessions of an address nor the clients that wait for a session.

use super::{Hello, Progress};
use crate::lock::lock;
use crate::wire::Cursor;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a peer has for its hello, from the connection to the last byte.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of connections without a hello, over all addresses. Together with 500 sessions this stays within the default limit of
/// open files.
const MOST: usize = 500;

/// Message for a connection that was closed because it was the oldest.
const GAVE_WAY: &str = "it gave way to others, as it had not said who it is";

/// The connections of one server that have not sent a hello.
#[derive(Default)]
pub struct Handshakes {
    pending: Mutex<PendingHandshakes>,
}

debug_fields!(Handshakes: );

#[derive(Default)]
struct PendingHandshakes {
    /// Connections by address, then in the order of their arrival.
    of: HashMap<IpAddr, BTreeMap<u64, Arc<TcpStream>>>,
    count: usize,
    arrivals: u64,
    is_closed: bool,
}

/// One connection without a hello. It is counted until it is dropped.
pub struct Handshake {
    all: Arc<Handshakes>,
    address: IpAddr,
    number: u64,
}

debug_fields!(Handshake: address);

impl Handshakes {
    /// Counts a connection. If there are too many, shuts down the oldest one of the address that has most.
    pub fn begin(self: &Arc<Handshakes>, stream: &Arc<TcpStream>, peer: SocketAddr) -> Handshake {
        let address = network(peer.ip());
        let mut pending = lock(&self.pending);
        if pending.count >= MOST {
            pending.evict_connection();
        }
        pending.arrivals += 1;
        let number = pending.arrivals;
        if pending.is_closed {
            shut(stream);
        } else {
            pending.count += 1;
            let own = pending.of.entry(address).or_default();
            own.insert(number, stream.clone());
        }
        Handshake {
            all: self.clone(),
            address,
            number,
        }
    }

    /// Returns the number of connections.
    pub(in crate::rpc) fn count(&self) -> usize {
        lock(&self.pending).count
    }

    /// Ends all connections, and those that begin later.
    pub fn close(&self) {
        let mut pending = lock(&self.pending);
        pending.is_closed = true;
        while pending.evict_connection() {}
    }

    /// Accepts the next connection of `listener`. If the system has no file left for it, a connection without a hello is closed.
    ///
    /// # Errors
    ///
    /// Returns [`io::Error`] of accepting, after a short pause. The next call may succeed.
    pub fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        listener.accept().inspect_err(|error| {
            // A peer that left the queue uses no file descriptor, so closing another connection would not help.
            if error.kind() != io::ErrorKind::ConnectionAborted {
                lock(&self.pending).evict_connection();
            }
            thread::sleep(Duration::from_millis(10));
        })
    }
}

impl PendingHandshakes {
    /// Ends the oldest connection of the address that has most. Returns false if there are no connections.
    fn evict_connection(&mut self) -> bool {
        let most = self.of.iter().max_by_key(|(_, own)| own.len());
        let Some((address, number)) =
            most.and_then(|(address, own)| Some((*address, *own.first_key_value()?.0)))
        else {
            return false;
        };
        if let Some(stream) = self.remove(address, number) {
            shut(&stream);
        }
        true
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Arc<TcpStream>> {
        let own = self.of.get_mut(&address)?;
        let stream = own.remove(&number)?;
        if own.is_empty() {
            self.of.remove(&address);
        }
        self.count -= 1;
        Some(stream)
    }
}

impl Handshake {
    /// Reads a hello and no byte after it: the following bytes belong to the session.
    ///
    /// # Errors
    ///
    /// The reason as text: the hello is late or breaks a rule, or the connection was closed for others or is gone.
    pub fn read_hello(&self, stream: &TcpStream) -> Result<Hello<'static>, String> {
        let until = Instant::now() + PATIENCE;
        let mut input = Vec::new();
        // RPC-16: the magic number is read first. A peer that expects a tracker writes only four bytes, and then waits for four.
        let mut more = 4;
        loop {
            self.read(stream, until, &mut input, more)?;
            let hello = Hello::read(&mut Cursor::new(&input));
            match hello.map_err(|broken| broken.to_string())? {
                // RPC-03 bounds the key before its bytes are waited for.
                Progress::Short(missing) => more = usize::try_from(missing).unwrap_or(1),
                Progress::Whole(hello) => {
                    let key = hello.key.into_owned().into();
                    return Ok(Hello { key });
                }
            }
        }
    }

    /// Reads the first `count` bytes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Handshake::read_hello`].
    pub fn read_start(&self, stream: &TcpStream, count: usize) -> Result<Vec<u8>, String> {
        let mut input = Vec::new();
        self.read(stream, Instant::now() + PATIENCE, &mut input, count)?;
        Ok(input)
    }

    /// Waits for the first byte, and leaves it to be read.
    ///
    /// # Errors
    ///
    /// The reason as text: the byte is late, or the connection was closed for others or is gone.
    pub fn await_byte(&self, stream: &TcpStream) -> Result<(), String> {
        let limit = stream.set_read_timeout(Some(PATIENCE));
        let looked = limit.and_then(|()| stream.peek(&mut [0]));
        if looked.map_err(|error| self.describe_read_failure(&error))? == 0 {
            return Err(self.describe_read_failure(&io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }

    /// Reads `more` bytes to the end of `input`.
    fn read(
        &self,
        mut stream: &TcpStream,
        until: Instant,
        input: &mut Vec<u8>,
        more: usize,
    ) -> Result<(), String> {
        let end = input.len() + more;
        let mut room = [0; 1024];
        while input.len() < end {
            let left = until.saturating_duration_since(Instant::now());
            let most = room.len().min(end - input.len());
            let read = if left.is_zero() {
                Err(io::ErrorKind::TimedOut.into())
            } else {
                let limit = stream.set_read_timeout(Some(left));
                limit.and_then(|()| stream.read(room.get_mut(..most).unwrap_or_default()))
            };
            match read {
                Ok(0) => {
                    return Err(self.describe_read_failure(&io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(count) => input.extend(room.iter().take(count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.describe_read_failure(&error)),
            }
        }
        Ok(())
    }

    /// Returns the reason why there is no hello, after reading it failed with `error`.
    fn describe_read_failure(&self, error: &io::Error) -> String {
        use io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        if self.was_evicted() {
            return GAVE_WAY.to_owned();
        }
        match error.kind() {
            TimedOut | WouldBlock => "it has not written a hello in time".to_owned(),
            UnexpectedEof => "it left before it had written a hello".to_owned(),
            _ => error.to_string(),
        }
    }

    /// Stops counting the connection, because its peer has sent its hello. `stream` has no read timeout afterwards.
    ///
    /// # Errors
    ///
    /// A text that says that the connection was closed for others.
    pub fn end(self, stream: &TcpStream) -> Result<(), String> {
        let counted = lock(&self.all.pending).remove(self.address, self.number);
        if counted.is_none() {
            return Err(GAVE_WAY.to_owned());
        }
        stream
            .set_read_timeout(None)
            .map_err(|error| error.to_string())
    }

    /// Returns whether the connection was closed to make room for others.
    fn was_evicted(&self) -> bool {
        let pending = lock(&self.all.pending);
        let own = pending.of.get(&self.address);
        !own.is_some_and(|own| own.contains_key(&self.number))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        lock(&self.all.pending).remove(self.address, self.number);
    }
}

/// Returns the part of an address that identifies a user: an IPv4 address, or the 64-bit prefix of an IPv6 address. A host may choose
/// the rest of an IPv6 address freely.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// Wakes the thread that reads the stream. Fails only if the connection is gone.
fn shut(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
