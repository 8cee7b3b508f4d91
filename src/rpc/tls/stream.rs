//! Bytes through the tunnel. One thread may read while another one writes.

use super::super::transport::RpcStream;
use rustls::Connection;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How many bytes are read from the socket at a time.
const STEP: usize = 64 << 10;

/// How many bytes of content become records at a time: what a write keeps in memory, encrypted.
const WRITTEN: usize = 256 << 10;

/// How long the end of a tunnel waits for its socket.
const FAREWELL: Duration = Duration::from_secs(1);

/// An end of a tunnel; a twin is the same end.
pub(super) struct TlsStream(Arc<Tunnel>);

/// What twins share.
///
/// `connection` is held for no system call: a reader that waits for bytes keeps no writer from writing, and the other way round. It is
/// locked behind `incoming` or `outgoing`, which are never held together but for the length of a `try_lock`.
struct Tunnel {
    socket: TcpStream,
    connection: Mutex<Connection>,
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Outgoing>,
    /// This end has ended reading: the end of the socket is no surprise.
    is_ended: AtomicBool,
}

/// Bytes of the socket that are not decrypted.
struct Incoming {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Records on their way to the socket.
struct Outgoing {
    records: Vec<u8>,
    /// A record went out in part: no other byte may follow.
    is_broken: bool,
}

/// Why a handshake stopped.
#[derive(Debug)]
pub(super) enum TlsFailure {
    /// The deadline came.
    Late,
    /// The socket: its end, too.
    Socket(io::Error),
    /// What either end rejects. The bytes are the first that the peer wrote.
    Tls(rustls::Error, [u8; 4]),
}

impl From<io::Error> for TlsFailure {
    fn from(error: io::Error) -> TlsFailure {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => TlsFailure::Late,
            _ => TlsFailure::Socket(error),
        }
    }
}

impl TlsFailure {
    /// Of an error behind the handshake.
    pub(super) fn behind(error: io::Error) -> TlsFailure {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => TlsFailure::Tls(tls.clone(), [0; 4]),
            None => TlsFailure::from(error),
        }
    }
}

impl TlsStream {
    /// Does the handshake of `connection` over `socket`.
    pub(super) fn shake(
        socket: TcpStream,
        mut connection: Connection,
        deadline: Instant,
    ) -> Result<TlsStream, TlsFailure> {
        connection.set_buffer_limit(Some(WRITTEN));
        let mut wire = &socket;
        let mut first = [0; 4];
        let mut buffer = vec![0; STEP];
        let (mut start, mut end) = (0, 0);
        loop {
            while connection.wants_write() {
                bound(wire, deadline)?;
                connection.write_tls(&mut wire)?;
            }
            if !connection.is_handshaking() {
                break;
            }
            if start == end {
                bound(wire, deadline)?;
                end = match wire.read(&mut buffer) {
                    Ok(0) => return Err(TlsFailure::Socket(io::ErrorKind::UnexpectedEof.into())),
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error.into()),
                };
                start = 0;
                if first == [0; 4] {
                    let there = buffer.get(..end.min(4)).unwrap_or_default();
                    for (to, from) in first.iter_mut().zip(there) {
                        *to = *from;
                    }
                }
            }
            let mut rest = buffer.get(start..end).unwrap_or_default();
            start += connection.read_tls(&mut rest)?;
            if let Err(error) = connection.process_new_packets() {
                part(wire, &mut connection);
                return Err(TlsFailure::Tls(error, first));
            }
        }
        Ok(TlsStream(Arc::new(Tunnel {
            socket,
            connection: Mutex::new(connection),
            // What the peer wrote behind its last message of the handshake.
            incoming: Mutex::new(Incoming { buffer, start, end }),
            outgoing: Mutex::new(Outgoing {
                records: Vec::new(),
                is_broken: false,
            }),
            is_ended: AtomicBool::new(false),
        })))
    }

    /// The protocol that both ends have chosen.
    pub(super) fn protocol(&self) -> Option<Vec<u8>> {
        lock(&self.0.connection).alpn_protocol().map(<[u8]>::to_vec)
    }

    /// Bounds reads and writes of the socket by what is left until `deadline`.
    pub(super) fn bound(&self, deadline: Instant) -> io::Result<()> {
        bound(&self.0.socket, deadline)
    }
}

/// See [`TlsStream::bound`].
fn bound(socket: &TcpStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    socket.set_read_timeout(Some(left))?;
    socket.set_write_timeout(Some(left))
}

/// Writes the alert of a handshake that failed. A peer that does not read it learns nothing, and the error is the same.
fn part(mut socket: &TcpStream, connection: &mut Connection) {
    let end = Instant::now() + FAREWELL;
    let written = bound(socket, end).and_then(|()| connection.write_tls(&mut socket));
    if written.is_err() || socket.shutdown(Shutdown::Write).is_err() {
        return;
    }
    // A socket that is closed with bytes unread resets the connection, and the alert goes with it.
    let mut rest = [0; 1 << 10];
    while bound(socket, end).is_ok() && matches!(socket.read(&mut rest), Ok(1..)) {}
}

impl Read for TlsStream {
    /// Bytes of the peer; 0 where it has ended the tunnel. `Interrupted` where bytes came that are no whole record: then the reader
    /// looks at its deadline, which a peer that writes byte by byte would put off otherwise.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let tunnel = &*self.0;
        let mut incoming = lock(&tunnel.incoming);
        let mut has_read = false;
        loop {
            let mut connection = lock(&tunnel.connection);
            match connection.reader().read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The end of the socket without the end of the tunnel, which this end has caused.
                Err(_) if tunnel.is_ended.load(Ordering::Relaxed) => return Ok(0),
                done => return done,
            }
            let Incoming { buffer, start, end } = &mut *incoming;
            let mut rest = buffer.get(*start..*end).unwrap_or_default();
            if !rest.is_empty() {
                *start += connection.read_tls(&mut rest)?;
                let done = connection.process_new_packets();
                let answers = connection.wants_write();
                drop(connection);
                if answers {
                    tunnel.answer();
                }
                done.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                continue;
            }
            drop(connection);
            if has_read {
                return Err(io::ErrorKind::Interrupted.into());
            }
            *start = 0;
            *end = 0;
            *end = (&tunnel.socket).read(buffer)?;
            has_read = true;
            if *end == 0 {
                // Nothing to read is how the connection learns of the end.
                lock(&tunnel.connection).read_tls(&mut io::empty())?;
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(content)])
    }

    /// The slices become records together, and go out in one write.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut outgoing = lock(&self.0.outgoing);
        let taken = lock(&self.0.connection).writer().write_vectored(slices)?;
        self.0.send(&mut outgoing)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RpcStream for TlsStream {
    fn set_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.0.socket.set_limit(limit)
    }

    fn twin(&self) -> io::Result<Option<Box<dyn RpcStream>>> {
        Ok(Some(Box::new(TlsStream(Arc::clone(&self.0)))))
    }

    fn end(&self, both: bool) {
        // First, so that a reader which sees the socket end does not take it for a tunnel that was cut.
        self.0.is_ended.store(true, Ordering::Relaxed);
        if both {
            self.0.close();
        }
        self.0.socket.end(both);
    }
}

impl Tunnel {
    /// Writes the records that the connection has.
    fn send(&self, outgoing: &mut Outgoing) -> io::Result<()> {
        if outgoing.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut connection = lock(&self.connection);
        while connection.wants_write() {
            connection.write_tls(&mut outgoing.records)?;
        }
        drop(connection);
        // Until all of it is out: a write that fails may have left a part of a record on the wire.
        outgoing.is_broken = true;
        (&self.socket).write_all(&outgoing.records)?;
        outgoing.is_broken = false;
        outgoing.records.clear();
        Ok(())
    }

    /// Writes what the connection answers by itself: an alert, new keys. Behind a writer that is at it, it goes out with the next record.
    fn answer(&self) {
        if let Some(mut outgoing) = tried(&self.outgoing) {
            // The reader is to hear of what it reads, not of this: the next write fails likewise.
            let _ = self.send(&mut outgoing);
        }
    }

    /// Writes to the peer that no byte follows, so that it knows that none was cut off.
    fn close(&self) {
        // A writer that waits for its peer is not waited for.
        let Some(mut outgoing) = tried(&self.outgoing) else {
            return;
        };
        lock(&self.connection).send_close_notify();
        if self.socket.set_write_timeout(Some(FAREWELL)).is_ok() {
            let _ = self.send(&mut outgoing);
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.close();
    }
}

/// A thread that panicked has left none of these half changed: a record is whole or `is_broken`.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`lock`], unless another thread has it.
fn tried<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
