//! A client for our server. Most of its requests are correct, and use the handles returned by the server.

use super::requests::{EVALUATOR, Maker, init};
use super::{Choices, Peer, bytes_of, written};
use std::borrow::Cow;
use std::collections::VecDeque;
use tvmspec::release::Release;
use tvmspec::rpc::{CopyTarget, Hello, HelloAnswer, PackedValue as V, Packet, Progress, RpcCode, Speaker, TensorBlock};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::{Cursor, Writer};

/// The lower bound of a process's addresses, and the upper bound of a session's tokens.
const ADDRESSES: u64 = 1 << 44;

/// The source of the client's bytes.
enum Source {
    Made(Choices),
    /// Whole writes, one after another.
    Fixed(VecDeque<Vec<u8>>),
}

pub struct Client {
    source: Source,
    release: Release,
    /// The stage of the session: 0 before the hello, 1 before InitServer, and then the rest.
    stage: u8,
    requests: usize,
    /// The name last looked up. The last token is the handle of that function.
    named: &'static str,
    /// `true` if the last token is a time evaluator, or a function made by one.
    evaluates: bool,
    is_greeted: bool,
    unread: Vec<u8>,
    /// The tokens handed out by the server.
    pub tokens: Vec<u64>,
    /// One value for each answer: `true` for an exception.
    pub answers: Vec<bool>,
}

impl Client {
    fn from(source: Source, release: Release, stage: u8) -> Client {
        Client {
            source,
            release,
            stage,
            requests: 0,
            named: "",
            evaluates: false,
            is_greeted: stage > 0,
            unread: Vec::new(),
            tokens: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Makes requests from choices. A client paired by a proxy writes no hello.
    pub fn made(bytes: &[u8], release: Release, is_paired: bool) -> Client {
        Client::from(Source::Made(Choices::new(bytes)), release, is_paired.into())
    }

    /// Writes these bytes. If `begins`, a hello and InitServer are written first.
    pub fn raw(bytes: &[u8], release: Release, begins: bool) -> Client {
        let mut whole = Vec::new();
        if begins {
            whole.extend(hello("client:"));
            whole.extend(begin(release));
        }
        whole.extend(bytes);
        // A time evaluator runs as long as requested, so its name is damaged here.
        while let Some(at) = whole.windows(EVALUATOR.len()).position(|window| window == EVALUATOR.as_bytes()) {
            whole[at] = b'R';
        }
        Client::from(Source::Fixed([whole].into()), release, 0)
    }

    /// Uses the tokens of another session in every kind of request.
    pub fn thief(tokens: &[u64], release: Release) -> Client {
        let mut writes: VecDeque<Vec<u8>> = [hello("client:"), begin(release)].into();
        for token in tokens {
            let block = byte_of(*token);
            let from = match release.minor() {
                7 => CopyTarget::Flat(*token, 0, Device::CPU, Dtype::UINT8),
                _ => CopyTarget::Block(block.clone()),
            };
            let mut free = vec![V::Handle(*token)];
            if release.minor() < 21 {
                free.push(V::Int(10));
            }
            for packet in [
                Packet::CallFunc(*token, vec![]),
                Packet::CopyFromRemote(from, 1),
                Packet::SystemCall(RpcCode::FreeHandle, free),
                Packet::SystemCall(RpcCode::DevFreeData, vec![V::Device(Device::CPU), V::Handle(*token)]),
                Packet::SystemCall(RpcCode::DevStreamSync, vec![V::Device(Device::CPU), V::Handle(*token)]),
            ] {
                writes.extend(bytes_of(&packet, release, Speaker::Client));
            }
        }
        Client::from(Source::Fixed(writes), release, 0)
    }

    fn learn(&mut self, values: &[V<'_>]) {
        for value in values {
            let token = match value {
                V::Handle(token) if *token != 0 => *token,
                V::Tensor(block) if block.data != 0 => block.data,
                _ => continue,
            };
            assert!(token < ADDRESSES, "{token:#x} is an address");
            self.tokens.push(token);
        }
    }
}

impl Peer for Client {
    fn speak(&mut self) -> Vec<u8> {
        let choices = match &mut self.source {
            Source::Fixed(writes) => return writes.pop_front().unwrap_or_default(),
            Source::Made(choices) => choices,
        };
        // Ends the session at some point. An endless client finds nothing more.
        if choices.is_done() || self.requests > 200 {
            return Vec::new();
        }
        self.stage += 1;
        match self.stage {
            1 => {
                let keys = ["client:", "client: -timeout=1e9", "client:x", "server:", "client: -timeout=-1", "client: -timeout=1e-320", ""];
                let key = if choices.rarely(16) { choices.one(&keys) } else { "client:" };
                choices.damaged(hello(key)).0
            }
            2 => {
                let packet = match choices.below(16) {
                    0 => Packet::KeepAlive,
                    1 => Packet::InitServer(Cow::Borrowed(choices.one(&[b"0.7.0", b"0.9.0"])), vec![]),
                    2 => init(self.release, vec![V::Str(Cow::Borrowed(b"rpc.LocalSession"))]),
                    3 => init(self.release, vec![V::Str(Cow::Borrowed(b"rpc.Connect")), V::Str(Cow::Borrowed(b"h")), V::Int(choices.int())]),
                    _ => init(self.release, vec![]),
                };
                let bytes = bytes_of(&packet, self.release, Speaker::Client).unwrap_or_default();
                choices.damaged(bytes).0
            }
            _ => {
                let mut maker = Maker {
                    choices,
                    release: self.release,
                    tokens: &self.tokens,
                    named: &mut self.named,
                    evaluates: &mut self.evaluates,
                };
                let mut bytes = Vec::new();
                // Sometimes writes several requests at once, as a client that does not wait.
                while bytes.is_empty() && !maker.choices.is_done() || maker.choices.rarely(6) && !*maker.evaluates {
                    bytes.extend(maker.request());
                    self.requests += 1;
                }
                bytes
            }
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.unread.extend(bytes);
        if !self.is_greeted {
            let mut cursor = Cursor::new(&self.unread);
            match HelloAnswer::read(&mut cursor, self.release).expect("the server answers the hello") {
                Progress::Whole(_) => self.unread = cursor.rest().to_vec(),
                Progress::Short(_) => return,
            }
            self.is_greeted = true;
        }
        let releases = [self.release, Release::of(27), Release::of(20), Release::of(7)];
        while !self.unread.is_empty() {
            let Some((packet, length)) = written(&self.unread, &releases, Speaker::Server) else { return };
            self.unread.drain(..length);
            self.answers.push(matches!(packet, Packet::Exception(_)));
            match packet {
                Packet::Return(values) => self.learn(&values),
                Packet::Exception(_) | Packet::CopyAck(_) => {}
                other => panic!("the server answers with {other:?}"),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.unread.is_empty(), "the server has written half of a packet");
        }
    }
}

fn hello(key: &str) -> Vec<u8> {
    let mut out = Writer::new();
    Hello { key: key.into() }.write(&mut out).expect("a hello");
    out.into_bytes()
}

fn begin(release: Release) -> Vec<u8> {
    bytes_of(&init(release, vec![]), release, Speaker::Client).expect("a packet")
}

fn byte_of(data: u64) -> TensorBlock {
    TensorBlock { data, device: Device::CPU, dtype: Dtype::UINT8, shape: vec![1], byte_offset: 0 }
}
