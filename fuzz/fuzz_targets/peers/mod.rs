//! Peers in memory. Both ends of a session run in one thread, and input is made when an end reads it.

pub mod client;
mod requests;
pub mod server;

use std::collections::VecDeque;
use std::io::{Read, Result, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tvmspec::release::Release;
use tvmspec::rpc::transport::RpcStream;
use tvmspec::rpc::{Packet, Progress, Protocol, Speaker};
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Writer};

/// A source of choices, one byte each. After the last byte every choice is the first option.
pub struct Choices {
    bytes: Vec<u8>,
    at: usize,
}

impl Choices {
    pub fn new(bytes: &[u8]) -> Choices {
        Choices { bytes: bytes.to_vec(), at: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    /// Returns a number below `bound`, at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Returns `true` once in `times` choices on average.
    pub fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Returns a boundary value, or any number.
    pub fn int(&mut self) -> i64 {
        let ends = [0, 1, 2, 4, 10, 64, -1, 1 << 16, 1 << 20, 1 << 40, i64::MAX, i64::MIN];
        match self.below(14) {
            12 => i64::from(self.byte()),
            13 => self.word() as i64,
            at => ends[at],
        }
    }

    pub fn text(&mut self) -> &'static [u8] {
        let texts: [&[u8]; 10] =
            [b"a.bin", b"b.so", b"get_arr", b"", b"../x", b"/etc/passwd", b"a\0b", b"\xff\xfe", b"ValueError", &[b'x'; 300]];
        self.one(&texts)
    }

    /// Damages a packet once in eight times: a bit, a byte, a length or the end. Also returns whether it did.
    pub fn damaged(&mut self, mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
        if bytes.is_empty() || !self.rarely(8) {
            return (bytes, false);
        }
        let at = (usize::from(self.byte()) << 8 | usize::from(self.byte())) % bytes.len();
        match self.below(7) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.byte(),
            2 => bytes[at] = self.one(&[0, 1, 0x7f, 0x80, 0xff]),
            3 => bytes.truncate(at),
            4 => bytes.insert(at, self.byte()),
            // Changes the length, while the content stays.
            5 => bytes[0] = bytes[0].wrapping_add(self.one(&[1, 4, 8, 252, 255])),
            _ => {
                let at = at % bytes.len().min(8);
                bytes[at] = self.byte();
            }
        }
        (bytes, true)
    }
}

/// The peer of the library under test.
pub trait Peer: Send + 'static {
    /// Returns the next bytes written by the peer, or nothing if it has closed.
    fn speak(&mut self) -> Vec<u8>;
    /// Takes bytes written by the library.
    fn hear(&mut self, bytes: &[u8]);
}

/// The library's end of the connection.
pub struct Line<P> {
    peer: Arc<Mutex<P>>,
    waiting: VecDeque<u8>,
    /// The most bytes for one read.
    step: usize,
}

impl<P: Peer> Line<P> {
    pub fn to(peer: &Arc<Mutex<P>>, step: usize) -> Line<P> {
        Line { peer: peer.clone(), waiting: VecDeque::new(), step: step.max(1) }
    }
}

pub fn lock<P>(peer: &Mutex<P>) -> MutexGuard<'_, P> {
    peer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Peer> Read for Line<P> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.waiting.is_empty() {
            self.waiting = lock(&self.peer).speak().into();
        }
        let most = into.len().min(self.step);
        self.waiting.read(&mut into[..most])
    }
}

impl<P: Peer> Write for Line<P> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        lock(&self.peer).hear(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<P: Peer> RpcStream for Line<P> {
    fn set_limit(&self, _: Option<Duration>) -> Result<()> {
        Ok(())
    }
}

/// Returns the bytes of a packet, or `None` if the release has no form for it.
pub fn bytes_of(packet: &Packet<'_>, release: Release, speaker: Speaker) -> Option<Vec<u8>> {
    let mut out = Writer::new();
    packet.write(&Protocol::new(release, speaker), &mut out).ok()?;
    Some(out.into_bytes())
}

/// Returns the first packet written by the library and its length, by the rules of the first release that reads it.
///
/// # Panics
///
/// Panics if no release reads the bytes, because the library must write packets.
pub fn written(bytes: &[u8], releases: &[Release], speaker: Speaker) -> Option<(Packet<'static>, usize)> {
    let mut broken = String::new();
    for release in releases {
        let mut cursor = Cursor::new(bytes);
        match Packet::read(&mut cursor, &Protocol::new(*release, speaker), &mut Findings::default()) {
            Ok(Progress::Whole(packet)) => return Some((owned(packet), bytes.len() - cursor.remaining())),
            Ok(Progress::Short(_)) => return None,
            Err(error) => broken = format!("{broken}\n{release}: {error}"),
        }
    }
    panic!("no release reads {:02x?}: {broken}", &bytes[..bytes.len().min(200)])
}

/// Copies the parts of a packet needed by the peers, without contents.
fn owned(packet: Packet<'_>) -> Packet<'static> {
    use tvmspec::rpc::PackedValue as V;
    let values = |values: Vec<V<'_>>| {
        let one = |value| match value {
            V::None => V::None,
            V::Int(value) => V::Int(value),
            V::Handle(token) => V::Handle(token),
            V::Tensor(block) => V::Tensor(block),
            V::Str(text) => V::Str(text.into_owned().into()),
            V::Uint(_) | V::Bool(_) | V::Float(_) | V::Dtype(..) | V::Device(_) | V::Bytes(_) => V::None,
            V::Module(token) | V::Function(token) | V::Object(token, _) => V::Uint(token),
            V::StrObject(..) | V::BytesObject(..) => V::None,
        };
        values.into_iter().map(one).collect()
    };
    match packet {
        Packet::KeepAlive => Packet::KeepAlive,
        Packet::Shutdown => Packet::Shutdown,
        Packet::InitServer(version, args) => Packet::InitServer(version.into_owned().into(), values(args)),
        Packet::CallFunc(function, args) => Packet::CallFunc(function, values(args)),
        Packet::Return(args) => Packet::Return(values(args)),
        Packet::Exception(args) => Packet::Exception(values(args)),
        Packet::CopyFromRemote(from, nbytes) => Packet::CopyFromRemote(from, nbytes),
        Packet::CopyToRemote(to, _) => Packet::CopyToRemote(to, Vec::new().into()),
        Packet::CopyAck(content) => Packet::CopyAck(content.into_owned().into()),
        Packet::SystemCall(code, args) => Packet::SystemCall(code, values(args)),
    }
}
