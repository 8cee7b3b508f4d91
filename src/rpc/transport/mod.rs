//! Hellos and packets over a blocking stream: a socket, or a pair of sockets in a test.
//!
//! | what | how | rules |
//! |---|---|---|
//! | a packet that is read | into one buffer, which grows as bytes come in, never by what a length promises | RPC-13, RPC-16 |
//! | a packet that is written | in one write; content of 16 KiB or more goes out from where it lies | RPC-10 |
//! | a stream that ends | between two packets it is the end of the session, inside of one a violation | RPC-16 |

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

/// How much room the buffer gets at a time while the peer has written less than that.
const STEP: usize = 64 << 10;

/// A buffer above this size is not kept for the next packet.
const KEPT: usize = 32 << 20;

/// How long a read polls before it sleeps. Waking a sleeping process costs 5 to 100 microseconds, more than a small call itself, so
/// that a peer that answers within this time is answered without it.
const POLL: Duration = Duration::from_micros(50);

/// A wait that is no longer than this, the wake-up included, lets the next read poll again. A longer one shows a peer that computes or
/// rests. So polling takes at most a twentieth of a processor.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// One end of a connection.
///
/// Errors carry the [`Violation`], with its offset in the stream that is read, or are of kind [`ErrorKind::Timeout`] or [`ErrorKind::Connection`]. After any of
/// them the stream is of no use: where the next packet begins is not known.
pub struct Transport {
    stream: Box<dyn RpcStream>,
    /// What came in and is not consumed lies in `start..end`; behind is room.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes of the stream were consumed: the offset of `start`.
    offset: u64,
    deadline: Option<Instant>,
    /// How long each read and each write may take.
    patience: Option<Duration>,
    /// The limit that the stream has.
    limit: Option<Duration>,
    /// The next read polls before it sleeps.
    polls: bool,
}

impl Transport {
    /// Over any stream.
    pub fn new(stream: impl RpcStream + 'static) -> Transport {
        Transport::over(Box::new(stream))
    }

    fn over(stream: Box<dyn RpcStream>) -> Transport {
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

    /// Over a socket, whose small packets go out at once.
    ///
    /// # Errors
    ///
    /// Kind [`ErrorKind::Connection`] for a socket that is gone.
    pub fn tcp(stream: TcpStream) -> Result<Transport> {
        // A request waits for its answer: Nagle's algorithm and a delayed acknowledgement add 40 ms to each.
        stream.set_nodelay(true).map_err(closed)?;
        Ok(Transport::new(stream))
    }

    /// When reads and writes give up; `None` for never.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Whether the deadline has come. What waited for it may be some microseconds early.
    pub(in crate::rpc) fn is_late(&self) -> bool {
        let soon = Instant::now() + Duration::from_millis(50);
        self.deadline.is_some_and(|deadline| soon >= deadline)
    }

    /// How long the peer may write nothing, or take nothing, while something is waited for; `None` for any time.
    pub(in crate::rpc) fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// How many bytes of the peer were consumed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads a hello.
    ///
    /// # Errors
    ///
    /// Those of [`Hello::read`], RPC-16 for a stream that ends inside, [`ErrorKind::Timeout`], [`ErrorKind::Connection`].
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
    /// Those of [`HelloAnswer::read`], RPC-16 for a stream that ends inside, [`ErrorKind::Timeout`], [`ErrorKind::Connection`].
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
    /// Those of [`Hello::write`], [`ErrorKind::Timeout`], [`ErrorKind::Connection`].
    pub fn write_hello(&mut self, hello: &Hello<'_>) -> Result<()> {
        let mut out = Writer::new();
        hello.write(&mut out)?;
        self.write_all(&out.into_bytes(), &[])
    }

    /// Writes the answer to a hello.
    ///
    /// # Errors
    ///
    /// Those of [`HelloAnswer::write`], [`ErrorKind::Timeout`], [`ErrorKind::Connection`].
    pub fn write_answer(&mut self, answer: &HelloAnswer<'_>, release: Release) -> Result<()> {
        let mut out = Writer::new();
        answer.write(release, &mut out)?;
        self.write_all(&out.into_bytes(), &[])
    }

    /// Waits for a packet. It borrows the transport's buffer; `None` is a stream that ended between two packets.
    ///
    /// `spoken` says how the peer speaks, and how large a packet may be. What is odd goes to `findings`.
    ///
    /// # Errors
    ///
    /// Those of [`Packet::read`], RPC-16 for a stream that ends inside of a packet, [`ErrorKind::Timeout`], [`ErrorKind::Connection`].
    pub fn read_packet(
        &mut self,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Option<Packet<'_>>> {
        let Some(length) = self.await_packet(spoken)? else {
            return Ok(None);
        };
        let (from, offset) = (self.start, self.offset);
        // The bytes stay where they are until the next read: the packet borrows them.
        self.consume(length);
        let bytes = self.buffer.get(from..from + length).unwrap_or_default();
        let mut cursor = Cursor::new(bytes).at(offset);
        let packet = Packet::read(&mut cursor, spoken, findings)?.whole(&cursor)?;
        Ok(Some(packet))
    }

    /// The bytes of the next packet, without consuming them; `None` is a stream that ended between two packets. For what has to find out
    /// by which release's rules the peer writes.
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
    /// Those of [`Packet::write`], [`ErrorKind::Timeout`], [`ErrorKind::Connection`].
    pub fn write_packet(&mut self, packet: &Packet<'_>, spoken: &Protocol) -> Result<()> {
        let (head, content) = encoded(packet, spoken)?;
        self.write_all(&head, content)
    }

    /// Another transport over the same stream, to be written to while this one is read; `None` where the stream has none.
    pub(in crate::rpc) fn twin(&self) -> Result<Option<Transport>> {
        let stream = self.stream.twin().map_err(closed)?;
        Ok(stream.map(|stream| Transport {
            deadline: self.deadline,
            patience: self.patience,
            limit: self.limit,
            ..Transport::over(stream)
        }))
    }

    /// Writes bytes that are a packet already.
    pub(in crate::rpc) fn write_raw(&mut self, packet: &[u8]) -> Result<()> {
        self.write_all(packet, &[])
    }

    /// No byte is read any more, by a twin either.
    pub(in crate::rpc) fn end_reading(&self) {
        self.stream.end(false);
    }

    /// No byte is read or written any more, by a twin either.
    pub(in crate::rpc) fn end(&self) {
        self.stream.end(true);
    }

    /// Waits until a packet is whole, and returns how many bytes it has.
    fn await_packet(&mut self, spoken: &Protocol) -> Result<Option<usize>> {
        let framed = spoken.is_framed();
        // RPC-10: the length first: nothing of the body is looked at before all of it is there.
        let mut wanted = if framed { 8 } else { 4 };
        loop {
            if !self.fill(wanted)? {
                let there = self.end - self.start;
                // Released peers take a stream that ends inside of the length for one that ends in front of it.
                if there == 0 || (framed && there < 8) {
                    return Ok(None);
                }
                return Err(self.cut(wanted - there));
            }
            // Behind the length only: the packet itself is read once, when it is whole.
            let there = if framed && wanted == 8 {
                8
            } else {
                self.end - self.start
            };
            let bytes = self.buffer.get(self.start..self.start + there);
            let mut cursor = Cursor::new(bytes.unwrap_or_default()).at(self.offset);
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

    /// Reads what is short enough to be read anew whenever bytes come in, and returns it with its length.
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
            let mut cursor = Cursor::new(bytes).at(self.offset);
            match read(&mut cursor)? {
                Progress::Whole(value) => return Ok((value, there - cursor.remaining())),
                // A hello is bounded by RPC-03, so that the number is a small one.
                Progress::Short(more) => wanted = there.saturating_add(more as usize),
            }
        }
    }

    /// RPC-16: the stream ended inside of a message.
    fn cut(&self, more: usize) -> Error {
        let end = self.offset + (self.end - self.start) as u64;
        let message = format!("the stream ends, and the message goes on for {more} or more bytes");
        RPC_16.broken(Kind::Truncated, end, message).into()
    }

    /// The first `length` bytes are dealt with. They are overwritten by the next read at the earliest.
    pub(in crate::rpc) fn consume(&mut self, length: usize) {
        self.start += length;
        self.offset += length as u64;
    }

    /// Reads until `wanted` bytes are there; false where the stream ends before.
    fn fill(&mut self, wanted: usize) -> Result<bool> {
        if self.end - self.start >= wanted {
            return Ok(true);
        }
        self.make_room();
        while self.end - self.start < wanted {
            if self.end == self.buffer.len() {
                // RPC-13: room as bytes have come in, so that a length alone reserves nothing.
                let missing = wanted - self.end;
                let step = missing.min(self.end.max(STEP)).max(STEP);
                self.buffer.resize(self.end + step, 0);
            }
            self.bound()?;
            match self.receive() {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A reset is how a peer of another system closes: it is no message that was cut off by itself.
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(true)
    }

    /// Reads once into the room of the buffer. After a short wait the next call polls for a moment before it sleeps.
    fn receive(&mut self) -> io::Result<usize> {
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let began = Instant::now();
        while self.polls && began.elapsed() < POLL {
            if let Some(read) = self.stream.read_ready(room) {
                return read;
            }
            // The peer may wait for this very processor.
            std::thread::yield_now();
        }
        let read = self.stream.read(room);
        self.polls = began.elapsed() < SHORT_WAIT;
        read
    }

    /// Moves what is not consumed to the front of the buffer, which is small again where it has become large.
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

    /// Writes `head` and `content` in one call of the system, unless the system takes less.
    fn write_all(&mut self, head: &[u8], content: &[u8]) -> Result<()> {
        let mut slices = [IoSlice::new(head), IoSlice::new(content)];
        let mut rest = &mut slices[..];
        // Slices of nothing at the end would be written for ever.
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

    /// Bounds the next read or write by the patience, and by what is left until the deadline.
    fn bound(&mut self) -> Result<()> {
        // The clock is read only where there is a deadline: a small call takes some 17 microseconds, and would read it four times.
        let left = self
            .deadline
            .map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Error::new(ErrorKind::Timeout, "the peer took too long"));
        }
        let limit = [left, self.patience].into_iter().flatten().min();
        // A call of the system for each packet, where the patience is always the same.
        if limit != self.limit {
            self.stream.set_limit(limit).map_err(closed)?;
            self.limit = limit;
        }
        Ok(())
    }
}

/// What the system reported of a connection.
fn failed(error: io::Error) -> Error {
    match error.kind() {
        // Both are what a socket with a limit reports, by the system.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::new(ErrorKind::Timeout, "the peer took too long")
        }
        _ => closed(error),
    }
}

/// A connection that is gone.
fn closed(error: io::Error) -> Error {
    Error::new(
        ErrorKind::Connection,
        format!("the connection is gone: {error}"),
    )
}

/// A time for people: three digits at most, and no zeros at the end.
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
