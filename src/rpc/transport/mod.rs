//! Hellos and packets over a blocking stream: a socket, or a pair of sockets in a test.
//!
//! | event | behaviour | rules |
//! |---|---|---|
//! | a packet is read | it goes into one buffer, which grows as bytes come in, not by a promised length | RPC-13, RPC-16 |
//! | a packet is written | in one write; content of 16 KiB or more is not copied | RPC-10 |
//! | the stream ends | between two packets the session ends; inside of one a rule is broken | RPC-16 |

mod encode;
mod stream;
use super::{Hello, HelloAnswer, Packet, Progress, Protocol, RPC_13, RPC_16};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, Writer};
use encode::encoded;
use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub use stream::RpcStream;

/// Bytes by which the buffer grows while the peer has written less than that.
const STEP: usize = 64 << 10;

/// Size in bytes above which a buffer is not kept for the next packet.
const KEPT: usize = 32 << 20;

/// Time for which a read polls before it sleeps. Waking a sleeping process costs 5 to 100 microseconds, more than a small call itself. A
/// peer that answers within this time is served without a wake-up.
const POLL: Duration = Duration::from_micros(50);

/// Longest wait, including the wake-up, after which the next read polls again. After a longer wait, the peer is assumed to compute or
/// to be idle. Polling therefore takes at most a twentieth of a processor.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// One end of a connection.
///
/// Errors carry the [`Violation`] with its offset in the stream, or are of kind [`ErrorKind::Timeout`] or [`ErrorKind::Connection`]. After
/// any of them the stream cannot be used, because the start of the next packet is unknown.
pub struct Transport {
    stream: Box<dyn RpcStream>,
    /// Bytes that came in and are not consumed are at `start..end`; the rest is room.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of bytes of the stream that were consumed: the offset of `start`.
    offset: u64,
    deadline: Option<Instant>,
    /// Time limit of each read and each write.
    patience: Option<Duration>,
    /// Timeout that is set on the stream now.
    limit: Option<Duration>,
    /// True if the next read polls before it sleeps.
    polls: bool,
}

impl Transport {
    /// Creates a transport over any stream.
    pub fn new(stream: impl RpcStream + 'static) -> Transport {
        Transport::from_stream(Box::new(stream))
    }

    fn from_stream(stream: Box<dyn RpcStream>) -> Transport {
        Transport {
            stream,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            deadline: None,
            patience: None,
            limit: None,
            polls: false,
        }
    }

    /// Creates a transport over a socket, and disables Nagle's algorithm on it.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Connection`] if the socket is gone.
    pub fn tcp(stream: TcpStream) -> Result<Transport> {
        // A request waits for its answer: Nagle's algorithm and a delayed acknowledgement would add 40 ms to each.
        stream.set_nodelay(true).map_err(closed)?;
        Ok(Transport::new(stream))
    }

    /// Sets the time at which reads and writes fail with a timeout; `None` for no limit.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Returns whether the deadline has passed. A wait may end some microseconds early, so 50 ms before the deadline also count.
    pub(in crate::rpc) fn is_late(&self) -> bool {
        let soon = Instant::now() + Duration::from_millis(50);
        self.deadline.is_some_and(|deadline| soon >= deadline)
    }

    /// Sets how long the peer may be idle while a read or write waits for it; `None` for no limit.
    pub(in crate::rpc) fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Returns the number of bytes of the peer that were consumed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads a hello.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Hello::read`], [`ErrorKind::Timeout`] and [`ErrorKind::Connection`].
    /// Returns RPC-16 for a stream that ends inside the hello.
    pub fn read_hello(&mut self) -> Result<Hello<'static>> {
        let (hello, taken) = self.read_short(|cursor| {
            let hello = Hello::read(cursor)?;
            Ok(hello.map(|hello| hello.key.into_owned()))
        })?;
        self.consume(taken);
        Ok(Hello {
            key: Cow::Owned(hello),
        })
    }

    /// Reads the answer to a hello.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`HelloAnswer::read`], [`ErrorKind::Timeout`] and [`ErrorKind::Connection`].
    /// Returns RPC-16 for a stream that ends inside the answer.
    pub fn read_answer(&mut self, release: Release) -> Result<HelloAnswer<'static>> {
        let (answer, taken) = self.read_short(|cursor| {
            let answer = HelloAnswer::read(cursor, release)?;
            Ok(answer.map(|answer| match answer {
                HelloAnswer::Success(key) => HelloAnswer::Success(Cow::Owned(key.into_owned())),
                HelloAnswer::Duplicate => HelloAnswer::Duplicate,
                HelloAnswer::Mismatch => HelloAnswer::Mismatch,
            }))
        })?;
        self.consume(taken);
        Ok(answer)
    }

    /// Writes a hello.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Hello::write`], [`ErrorKind::Timeout`] and [`ErrorKind::Connection`].
    pub fn write_hello(&mut self, hello: &Hello<'_>) -> Result<()> {
        let mut out = Writer::new();
        hello.write(&mut out)?;
        self.write_all(&out.into_bytes(), &[])
    }

    /// Writes the answer to a hello.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`HelloAnswer::write`], [`ErrorKind::Timeout`] and [`ErrorKind::Connection`].
    pub fn write_answer(&mut self, answer: &HelloAnswer<'_>, release: Release) -> Result<()> {
        let mut out = Writer::new();
        answer.write(release, &mut out)?;
        self.write_all(&out.into_bytes(), &[])
    }

    /// Waits for a packet, which borrows the transport's buffer. Returns `None` if the stream ended between two packets.
    ///
    /// `spoken` states the peer's protocol and the largest packet. Oddities go to `findings`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Packet::read`], [`ErrorKind::Timeout`] and [`ErrorKind::Connection`].
    /// Returns RPC-16 for a stream that ends inside a packet.
    pub fn read_packet(
        &mut self,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Option<Packet<'_>>> {
        let Some(length) = self.await_packet(spoken)? else {
            return Ok(None);
        };
        let (from, offset) = (self.start, self.offset);
        // The bytes stay in place until the next read, so that the packet can borrow them.
        self.consume(length);
        let bytes = self.buffer.get(from..from + length).unwrap_or_default();
        let mut cursor = Cursor::new(bytes).with_base(offset);
        let packet = Packet::read(&mut cursor, spoken, findings)?.require_complete(&cursor)?;
        Ok(Some(packet))
    }

    /// Returns the bytes of the next packet without consuming them, or `None` if the stream ended between two packets. The server uses this
    /// to find out which release the peer speaks.
    pub(in crate::rpc) fn peek_packet(&mut self, spoken: &Protocol) -> Result<Option<&[u8]>> {
        let Some(length) = self.await_packet(spoken)? else {
            return Ok(None);
        };
        Ok(self.buffer.get(self.start..self.start + length))
    }

    /// Writes a packet.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Packet::write`], [`ErrorKind::Timeout`] and [`ErrorKind::Connection`].
    pub fn write_packet(&mut self, packet: &Packet<'_>, spoken: &Protocol) -> Result<()> {
        let (head, content) = encoded(packet, spoken)?;
        self.write_all(&head, content)
    }

    /// Creates another transport over the same stream, to write while this one is read. Returns `None` if the stream cannot be duplicated.
    pub(in crate::rpc) fn duplicate(&self) -> Result<Option<Transport>> {
        let stream = self.stream.duplicate().map_err(closed)?;
        Ok(stream.map(|stream| Transport {
            deadline: self.deadline,
            patience: self.patience,
            limit: self.limit,
            ..Transport::from_stream(stream)
        }))
    }

    /// Writes bytes that already are a packet.
    pub(in crate::rpc) fn write_raw(&mut self, packet: &[u8]) -> Result<()> {
        self.write_all(packet, &[])
    }

    /// Ends reading, also by a duplicate.
    pub(in crate::rpc) fn end_reading(&self) {
        self.stream.end(false);
    }

    /// Ends reading and writing, also by a duplicate.
    pub(in crate::rpc) fn end(&self) {
        self.stream.end(true);
    }

    /// Waits until a packet is complete, and returns its length in bytes.
    fn await_packet(&mut self, spoken: &Protocol) -> Result<Option<usize>> {
        let framed = spoken.is_framed();
        // RPC-10: the length comes first. The body is not parsed before all of it has arrived.
        let mut wanted = if framed { 8 } else { 4 };
        loop {
            if !self.fill(wanted)? {
                let there = self.end - self.start;
                // Released peers treat a stream that ends inside the length like one that ends before it.
                if there == 0 || (framed && there < 8) {
                    return Ok(None);
                }
                return Err(self.cut(wanted - there));
            }
            // The first pass reads only the length. A framed packet is parsed once, when it is complete.
            let there = if framed && wanted == 8 {
                8
            } else {
                self.end - self.start
            };
            let bytes = self.buffer.get(self.start..self.start + there);
            let mut cursor = Cursor::new(bytes.unwrap_or_default()).with_base(self.offset);
            if framed && wanted > 8 {
                return Ok(Some(wanted));
            }
            let more = match Packet::read(&mut cursor, spoken, &mut Findings::default())? {
                Progress::Whole(_) => {
                    return Ok(Some(there - cursor.remaining()));
                }
                Progress::Short(more) => more,
            };
            wanted = usize::try_from(more)
                .ok()
                .and_then(|more| there.checked_add(more))
                .ok_or_else(|| {
                    let message = format!("a packet of {more} bytes more than memory has");
                    RPC_13.broken(Kind::Limit, self.offset, message)
                })?;
        }
    }

    /// Reads a message that is short enough to be parsed again whenever bytes arrive. Returns it with its length.
    fn read_short<T>(
        &mut self,
        read: impl Fn(&mut Cursor<'_>) -> std::result::Result<Progress<T>, Violation>,
    ) -> Result<(T, usize)> {
        let mut wanted = 1;
        loop {
            if !self.fill(wanted)? {
                return Err(self.cut(wanted - (self.end - self.start)));
            }
            let there = self.end - self.start;
            let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let mut cursor = Cursor::new(bytes).with_base(self.offset);
            match read(&mut cursor)? {
                Progress::Whole(value) => return Ok((value, there - cursor.remaining())),
                // RPC-03 bounds a hello, so that the number is small.
                Progress::Short(more) => wanted = there.saturating_add(more as usize),
            }
        }
    }

    /// Creates the error for a stream that ended inside a message (RPC-16).
    fn cut(&self, more: usize) -> Error {
        let end = self.offset + (self.end - self.start) as u64;
        let message = format!("the stream ends, and the message goes on for {more} or more bytes");
        RPC_16.broken(Kind::Truncated, end, message).into()
    }

    /// Consumes the first `length` bytes. They stay in the buffer until the next read.
    pub(in crate::rpc) fn consume(&mut self, length: usize) {
        self.start += length;
        self.offset += length as u64;
    }

    /// Reads until `wanted` bytes are in the buffer. Returns false if the stream ends before.
    fn fill(&mut self, wanted: usize) -> Result<bool> {
        if self.end - self.start >= wanted {
            return Ok(true);
        }
        self.make_room();
        while self.end - self.start < wanted {
            if self.end == self.buffer.len() {
                // RPC-13: the buffer grows with the bytes that have arrived, so a length alone reserves nothing.
                let missing = wanted - self.end;
                let step = missing.min(self.end.max(STEP)).max(STEP);
                self.buffer.resize(self.end + step, 0);
            }
            self.bound()?;
            match self.receive() {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some systems close a connection with a reset, so that a reset is not reported as a truncated message.
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(true)
    }

    /// Reads once into the room of the buffer. After a short wait the next call polls before it sleeps.
    fn receive(&mut self) -> io::Result<usize> {
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let began = Instant::now();
        while self.polls && began.elapsed() < POLL {
            if let Some(read) = self.stream.read_ready(room) {
                return read;
            }
            // The peer may be waiting for this processor.
            std::thread::yield_now();
        }
        let read = self.stream.read(room);
        self.polls = began.elapsed() < SHORT_WAIT;
        read
    }

    /// Moves the bytes that are not consumed to the front of the buffer, and shrinks a buffer that has become large.
    fn make_room(&mut self) {
        if self.start == 0 {
            return;
        }
        let kept = self.start..self.end;
        // RPC-13: one large packet must not keep its memory for the rest of the session.
        if self.buffer.len() > KEPT {
            self.buffer = self.buffer.get(kept.clone()).unwrap_or_default().to_vec();
        } else {
            self.buffer.copy_within(kept.clone(), 0);
        }
        (self.start, self.end) = (0, kept.len());
    }

    /// Writes `head` and `content` in one system call, unless the system takes fewer bytes.
    fn write_all(&mut self, head: &[u8], content: &[u8]) -> Result<()> {
        let mut slices = [IoSlice::new(head), IoSlice::new(content)];
        let mut rest = &mut slices[..];
        // Removes empty slices: without this the loop would never end.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            self.bound()?;
            match self.stream.write_vectored(rest) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::Connection,
                        "the peer takes no more bytes",
                    ));
                }
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        self.stream.flush().map_err(failed)
    }

    /// Bounds the next read or write by the patience and by the time until the deadline.
    fn bound(&mut self) -> Result<()> {
        // Reads the clock only if there is a deadline: a small call takes about 17 microseconds and would read it four times.
        let left = self
            .deadline
            .map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Error::new(ErrorKind::Timeout, "the peer took too long"));
        }
        let limit = [left, self.patience].into_iter().flatten().min();
        // Saves a system call for each packet while the limit stays the same.
        if limit != self.limit {
            self.stream.set_limit(limit).map_err(closed)?;
            self.limit = limit;
        }
        Ok(())
    }
}

/// Converts an error that the system reported for a connection.
fn failed(error: io::Error) -> Error {
    match error.kind() {
        // A socket with a limit reports either of them, depending on the system.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::new(ErrorKind::Timeout, "the peer took too long")
        }
        _ => closed(error),
    }
}

/// Creates the error for a connection that is gone.
fn closed(error: io::Error) -> Error {
    Error::new(
        ErrorKind::Connection,
        format!("the connection is gone: {error}"),
    )
}

/// Formats a time for people: at most three digits and no trailing zeros.
pub(super) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let digits = match seconds {
        10.0.. => 0,
        1.0.. => 1,
        0.1.. => 2,
        _ => 3,
    };
    let text = format!("{seconds:.digits$}");
    if text.contains('.') {
        format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
    } else {
        format!("{text} s")
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let there = self.end - self.start;
        write!(f, "Transport(at {}, {there} bytes waiting)", self.offset)
    }
}
