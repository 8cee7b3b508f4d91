//! A server for our client. Most answers fit the request, and some have unusual values or wrong sizes.

use super::{Choices, Peer, bytes_of, written};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use tvmspec::release::Release;
use tvmspec::rpc::{Hello, HelloAnswer, PackedValue as V, Packet, Progress, RpcCode, Speaker, TensorBlock};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::{Cursor, Writer};

pub struct Server {
    choices: Choices,
    release: Release,
    /// The bytes written in place of answers.
    raw: Option<Vec<u8>>,
    /// The release whose rules the client follows, if known.
    stated: Option<Release>,
    is_greeted: bool,
    has_greeted: bool,
    unread: Vec<u8>,
    due: VecDeque<Packet<'static>>,
    answered: usize,
    /// For each handle, how often it was handed out and not yet released.
    handed: HashMap<u64, i64>,
    /// `true` if damaged bytes may read as other handles.
    is_wild: bool,
    /// The count of bytes written by the client.
    pub heard: usize,
}

impl Server {
    pub fn made(bytes: &[u8], release: Release, stated: Option<Release>) -> Server {
        Server {
            choices: Choices::new(bytes),
            release,
            raw: None,
            stated,
            is_greeted: false,
            has_greeted: false,
            unread: Vec::new(),
            due: VecDeque::new(),
            answered: 0,
            handed: HashMap::new(),
            is_wild: false,
            heard: 0,
        }
    }

    /// Writes these bytes. If `begins`, the answer to the hello is written first.
    pub fn raw(bytes: &[u8], release: Release, stated: Option<Release>, begins: bool) -> Server {
        let mut whole = Vec::new();
        if begins {
            whole.extend(greeting(&HelloAnswer::Success("server:".into()), release));
            whole.extend(bytes_of(&Packet::Return(vec![V::None]), release, Speaker::Server).unwrap_or_default());
        }
        whole.extend(bytes);
        Server { raw: Some(whole), is_wild: true, ..Server::made(&[], release, stated) }
    }

    fn hand(&mut self, packet: &Packet<'_>) {
        let Packet::Return(values) = packet else { return };
        for value in values {
            if let V::Handle(handle) = value {
                *self.handed.entry(*handle).or_default() += 1;
            }
        }
    }

    fn handle(&mut self) -> u64 {
        match self.choices.below(6) {
            0 => 0,
            1 => self.choices.one(&[1, u64::MAX, 0x7fff_0000_1000]),
            _ => 0x1000 + u64::from(self.choices.byte()) * 16,
        }
    }

    fn device(&mut self) -> Device {
        let kind = self.choices.one(&[1, 1, 1, 1, 2, 0, -1, 127, 128, 129, 4096, i32::MAX, i32::MIN]);
        Device::new(kind, self.choices.one(&[0, 0, 0, 1, -1, i32::MAX]))
    }

    fn block(&mut self) -> TensorBlock {
        TensorBlock {
            data: self.handle(),
            device: self.device(),
            dtype: Dtype::scalar(self.choices.one(&[2, 2, 0, 1, 4, 6, 255]), self.choices.one(&[32, 32, 8, 1, 4, 64, 0, 255])),
            shape: (0..self.choices.below(4)).map(|_| self.choices.int()).collect(),
            byte_offset: match self.release.minor() {
                7 => 0,
                _ => self.choices.one(&[0, 0, 0, 8, u64::MAX]),
            },
        }
    }

    /// Makes the result of a call, most often in an existing form.
    fn outcome(&mut self) -> Vec<V<'static>> {
        let ffi = self.release.minor() >= 21;
        let of = |legacy: i64, new: i64| V::Int(if ffi { new } else { legacy });
        let text = Cow::Borrowed(self.choices.text());
        match self.choices.below(16) {
            0 => vec![of(4, 0), V::None],
            1 => vec![of(0, 1), V::Int(self.choices.int())],
            2 => vec![of(15, 2), V::Bool(self.choices.one(&[0, 1, 2]))],
            3 => vec![of(2, 3), V::Float(f64::from_bits(self.choices.word()))],
            4 => vec![of(11, 65), V::Str(text)],
            5 => vec![of(12, 66), V::Bytes(Cow::Owned(vec![5; self.choices.one(&[0, 1, 8, 16, 4000])]))],
            6 => vec![of(10, 68), V::Handle(self.handle())],
            7 => vec![of(9, 73), V::Handle(self.handle())],
            8..11 => vec![of(13, 70), V::Tensor(self.block()), V::Handle(self.handle())],
            11 => vec![of(8, 71), V::Handle(self.handle())],
            12 => vec![of(3, 4), V::Handle(self.handle())],
            13 => vec![of(5, 5), V::Dtype(Dtype::FLOAT32, 0)],
            14 => vec![V::Int(self.choices.int()), V::Device(self.device())],
            _ => (0..self.choices.below(5)).map(|_| self.value()).collect(),
        }
    }

    fn value(&mut self) -> V<'static> {
        match self.choices.below(9) {
            0 => V::None,
            1..3 => V::Int(self.choices.int()),
            3 => V::Handle(self.handle()),
            4 => V::Tensor(self.block()),
            5 => V::StrObject(Cow::Borrowed(self.choices.text()), self.choices.one(&[65, 11])),
            6 => V::Uint(self.choices.word()),
            7 => V::Object(self.handle(), self.choices.one(&[8, 115, 65])),
            _ => V::Str(Cow::Borrowed(self.choices.text())),
        }
    }

    fn exception(&mut self) -> Packet<'static> {
        let texts: [&[u8]; 9] = [
            b"",
            b"ValueError: no",
            b"RPCSessionTimeoutError: Your 2.0s session has expired",
            b"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nTypeError: x\n",
            b"[10:11:12] /src/a.cc:12: Check failed: x\nStack trace:\n  0: f\n",
            b"RPCError: Error caught from RPC call:\n[",
            b"[a] :::",
            b"\xff\xfe: \xc3\x28",
            b"Error: : \n\nStack trace:\n\n\n",
        ];
        Packet::Exception(vec![V::Str(Cow::Borrowed(self.choices.one(&texts)))])
    }

    fn answer(&mut self, request: Packet<'static>) -> Packet<'static> {
        match self.choices.below(24) {
            0 => return self.exception(),
            1 => return Packet::Return(self.outcome()),
            2 => return Packet::Return((0..self.choices.below(3)).map(|_| self.value()).collect()),
            3 => return self.choices.one(&[Packet::Shutdown, Packet::KeepAlive, Packet::CopyAck(Cow::Borrowed(b"abcd"))]),
            _ => {}
        }
        match request {
            Packet::CallFunc(..) => Packet::Return(self.outcome()),
            Packet::CopyFromRemote(_, nbytes) => {
                let off = self.choices.one(&[0, 0, 0, 0, 0, 1, -1]);
                let length = usize::try_from(nbytes).unwrap_or(0).min(1 << 16);
                Packet::CopyAck(Cow::Owned(vec![6; length.saturating_add_signed(off)]))
            }
            Packet::SystemCall(RpcCode::GetGlobalFunc | RpcCode::DevAllocData | RpcCode::DevAllocDataWithScope | RpcCode::DevCreateStream, _) => {
                Packet::Return(vec![V::Handle(self.handle())])
            }
            Packet::SystemCall(RpcCode::DevGetAttr, _) => {
                let text = Cow::Borrowed(self.choices.text());
                Packet::Return(vec![self.choices.one(&[V::Int(1), V::None, V::Int(-1), V::Str(text)])])
            }
            _ => Packet::Return(vec![V::None]),
        }
    }
}

impl Peer for Server {
    fn speak(&mut self) -> Vec<u8> {
        if let Some(raw) = &mut self.raw {
            return std::mem::take(raw);
        }
        if self.choices.is_done() || self.answered > 300 {
            return Vec::new();
        }
        if !self.has_greeted {
            self.has_greeted = true;
            let answer = match self.choices.below(32) {
                0 => HelloAnswer::Mismatch,
                1 => HelloAnswer::Duplicate,
                _ => HelloAnswer::Success("server:key".into()),
            };
            return self.choices.damaged(greeting(&answer, self.release)).0;
        }
        // A client that reads without a request would wait forever. The connection ends instead.
        let Some(request) = self.due.pop_front() else { return Vec::new() };
        self.answered += 1;
        let mut bytes = Vec::new();
        if self.choices.rarely(16) {
            bytes.extend([0; 8]);
        }
        let answer = self.answer(request);
        self.hand(&answer);
        let own = bytes_of(&answer, self.release, Speaker::Server).unwrap_or_default();
        let (own, damaged) = self.choices.damaged(own);
        self.is_wild |= damaged;
        bytes.extend(own);
        bytes
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.heard += bytes.len();
        self.unread.extend(bytes);
        if !self.is_greeted {
            let mut cursor = Cursor::new(&self.unread);
            match Hello::read(&mut cursor).expect("the client begins with a hello") {
                Progress::Whole(_) => self.unread = cursor.rest().to_vec(),
                Progress::Short(_) => return,
            }
            self.is_greeted = true;
        }
        let ends = [Release::of(27), Release::of(20), Release::of(7)];
        let releases: Vec<Release> = self.stated.into_iter().chain([self.release]).chain(ends).collect();
        while !self.unread.is_empty() {
            let Some((packet, length)) = written(&self.unread, &releases, Speaker::Client) else { return };
            self.unread.drain(..length);
            match packet {
                Packet::Return(_) | Packet::Exception(_) | Packet::CopyAck(_) => panic!("the client writes {packet:?}"),
                Packet::KeepAlive | Packet::Shutdown => continue,
                Packet::SystemCall(RpcCode::FreeHandle, ref args) => {
                    if let Some(V::Handle(handle)) = args.first() {
                        let left = self.handed.entry(*handle).or_default();
                        *left -= 1;
                        assert!(*left >= 0 || self.is_wild, "handle {handle:#x} is released, and was not handed out");
                    }
                }
                _ => {}
            }
            self.due.push_back(packet);
        }
    }
}

fn greeting(answer: &HelloAnswer<'_>, release: Release) -> Vec<u8> {
    let mut out = Writer::new();
    answer.write(release, &mut out).expect("an answer");
    out.into_bytes()
}
