//! Random sessions, each from one seed: packets of both encodings, with handles that the server returned and with invalid ones. Some
//! packets have changed bytes, and some hellos are invalid.

use std::borrow::Cow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tvmspec::release::Release;
use tvmspec::rpc::transport::{RpcStream, Transport};
use tvmspec::rpc::{
    CopyTarget, Hello, PackedValue as V, Packet, Protocol, RpcCode, Speaker, TensorBlock,
    TrackerHello,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::Writer;

/// Random numbers from one seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        // Steele, Lea and Flood: a counter whose bits are mixed.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Functions of every server except the time evaluator, which may be asked to run for a long time.
const NAMES: [&str; 14] = [
    "tvm.rpc.server.upload",
    "tvm.rpc.server.download",
    "tvm.rpc.server.remove",
    "tvm.rpc.server.listdir",
    "tvm.rpc.server.workpath",
    "tvm.rpc.server.load_module",
    "tvm.rpc.server.download_linked_module",
    "tvm.rpc.server.ImportModule",
    "tvm.rpc.server.ModuleGetFunction",
    "tvm.rpc.server.GetCRTMaxPacketSize",
    "rpc.test.addone",
    "rpc.test.strcat",
    "rpc.test.except",
    "no such function",
];

/// A client, and the handles that it has received.
pub(crate) struct Maker {
    pub(crate) chance: Chance,
    /// The release by whose rules it writes.
    pub(crate) release: Release,
    /// The answers of the server so far.
    pub(crate) heard: Arc<Heard>,
    /// A file outside of every session. Its absolute path is among the texts.
    pub(crate) outside: String,
    /// One packet in so many has changed bytes; 0 for none.
    pub(crate) changes: usize,
}

impl Maker {
    fn int(&mut self) -> i64 {
        let edges = [
            0,
            1,
            -1,
            2,
            16,
            64,
            4096,
            65_536,
            1 << 31,
            1 << 40,
            i64::MAX,
            i64::MIN,
        ];
        self.chance.pick(&edges)
    }

    /// Returns a handle that the server has returned, one close to it, or an invalid one. The count of random numbers used does not
    /// depend on the known handles. Two sessions with the same seed and different servers therefore differ only in handles.
    fn handle(&mut self) -> u64 {
        let (kind, at, number) = (self.chance.below(4), self.chance.next(), self.chance.next());
        let known = self.chance.pick(&[0, 1, u64::MAX, 0x1000, 1 << 40]);
        let offset = self.chance.pick(&[0, 1, 64, 4096]);
        let seen = &lock(&self.heard.state).tokens;
        match (kind, seen.len() as u64) {
            (0, _) => number,
            (1, _) => known,
            (_, 0) => 0,
            (2, count) => seen[(at % count) as usize],
            (_, count) => seen[(at % count) as usize].wrapping_add(offset),
        }
    }

    fn device(&mut self) -> Device {
        let kind = self
            .chance
            .pick(&[1, 1, 1, 1, 2, 4, 0, -1, 127, 128, 129, i32::MAX]);
        Device::new(kind, self.chance.pick(&[0, 0, 0, 1, -1, i32::MAX]))
    }

    fn text(&mut self) -> Cow<'static, [u8]> {
        let texts: [&[u8]; 7] = [
            b"a.bin",
            b"b.so",
            b"",
            b"../x",
            b"a\0b",
            b"\xff\xfe",
            b"global",
        ];
        match self.chance.below(8) {
            7 => Cow::Owned(self.outside.clone().into_bytes()),
            at => Cow::Borrowed(texts[at]),
        }
    }

    fn block(&mut self) -> TensorBlock {
        let dimensions = self.chance.below(4);
        TensorBlock {
            data: self.handle(),
            device: self.device(),
            dtype: Dtype::scalar(
                self.chance.below(5) as u8,
                self.chance.pick(&[1, 8, 32, 64, 255]),
            ),
            shape: (0..dimensions).map(|_| self.int()).collect(),
            byte_offset: match self.release.minor() {
                7 => 0,
                _ => self.chance.pick(&[0, 0, 0, 8, u64::MAX]),
            },
        }
    }

    fn value(&mut self) -> V<'static> {
        match self.chance.below(12) {
            0 => V::None,
            1 | 2 => V::Int(self.int()),
            3 => V::Float(f64::from_bits(self.chance.next())),
            4 => V::Handle(self.handle()),
            5 => V::Dtype(Dtype::FLOAT32, 0),
            6 => V::Device(self.device()),
            7 => V::Tensor(self.block()),
            8 => V::Bytes(Cow::Owned(vec![7; self.chance.pick(&[0, 1, 1000, 70_000])])),
            9 => V::Module(self.handle()),
            10 => V::Function(self.handle()),
            _ => V::Str(self.text()),
        }
    }

    fn values(&mut self) -> Vec<V<'static>> {
        (0..self.chance.below(4)).map(|_| self.value()).collect()
    }

    /// Creates the arguments of a system call, or others.
    fn system_call(&mut self) -> Packet<'static> {
        let code = self.chance.pick(&[
            RpcCode::GetGlobalFunc,
            RpcCode::GetGlobalFunc,
            RpcCode::FreeHandle,
            RpcCode::DevSetDevice,
            RpcCode::DevGetAttr,
            RpcCode::DevAllocData,
            RpcCode::DevAllocData,
            RpcCode::DevFreeData,
            RpcCode::DevStreamSync,
            RpcCode::CopyAmongRemote,
            RpcCode::DevAllocDataWithScope,
            RpcCode::DevCreateStream,
            RpcCode::DevFreeStream,
            RpcCode::DevSetStream,
            RpcCode::DevGetCurrentStream,
        ]);
        if self.chance.below(8) == 0 {
            return Packet::SystemCall(code, self.values());
        }
        let device = V::Device(self.device());
        let args = match code {
            RpcCode::GetGlobalFunc => {
                vec![V::Str(Cow::Borrowed(self.chance.pick(&NAMES).as_bytes()))]
            }
            RpcCode::FreeHandle if self.release.minor() < 21 => {
                vec![
                    V::Handle(self.handle()),
                    V::Int(self.chance.pick(&[8, 9, 10, 13, 99])),
                ]
            }
            RpcCode::FreeHandle => vec![V::Handle(self.handle())],
            RpcCode::DevGetAttr => vec![device, V::Int(self.chance.below(20) as i64 - 1)],
            RpcCode::DevAllocData => vec![
                V::Device(Device::CPU),
                V::Int(self.int()),
                V::Int(self.chance.pick(&[64, 1, 0, 3, -1, 4096])),
                V::Dtype(Dtype::FLOAT32, 0),
            ],
            RpcCode::CopyAmongRemote => vec![
                V::Tensor(self.block()),
                V::Tensor(self.block()),
                V::Handle(self.handle()),
            ],
            RpcCode::DevAllocDataWithScope => vec![V::Tensor(self.block()), V::None],
            RpcCode::DevFreeData
            | RpcCode::DevStreamSync
            | RpcCode::DevFreeStream
            | RpcCode::DevSetStream => vec![device, V::Handle(self.handle())],
            _ => vec![device],
        };
        Packet::SystemCall(code, args)
    }

    fn packet(&mut self) -> Packet<'static> {
        match self.chance.below(16) {
            0 => Packet::KeepAlive,
            1 => Packet::InitServer(
                Cow::Borrowed(self.chance.pick(&[b"0.8.0", b"0.9.0"])),
                self.values(),
            ),
            2..6 => Packet::CallFunc(self.handle(), self.values()),
            6 => Packet::CopyFromRemote(CopyTarget::Block(self.block()), self.int() as u64),
            7 => {
                let content = vec![9; self.chance.pick(&[0, 1, 64, 4096, 70_000])];
                Packet::CopyToRemote(CopyTarget::Block(self.block()), Cow::Owned(content))
            }
            _ => self.system_call(),
        }
    }

    /// Encodes a packet, and changes some of its bytes.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let spoken = Protocol::new(self.release, Speaker::Client);
        let mut out = Writer::new();
        // A packet for which the release has no form is left out.
        if self.packet().write(&spoken, &mut out).is_err() {
            return Vec::new();
        }
        let mut bytes = out.into_bytes();
        if self.changes > 0 && self.chance.below(self.changes) == 0 && !bytes.is_empty() {
            let at = self.chance.below(bytes.len());
            match self.chance.below(4) {
                0 => bytes[at] ^= 1 << self.chance.below(8),
                1 => bytes[at] = self.chance.pick(&[0, 0x7f, 0x80, 0xff]),
                2 => bytes.truncate(at),
                _ => bytes.insert(at, self.chance.next() as u8),
            }
        }
        bytes
    }

    /// Returns the first packet of a session.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let begin = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
        let mut out = Writer::new();
        let spoken = Protocol::new(self.release, Speaker::Client);
        begin.write(&spoken, &mut out).expect("a packet");
        out.into_bytes()
    }

    /// Creates a hello that is invalid, that no server with an empty key accepts, or that has options.
    pub(crate) fn hello(&mut self) -> Vec<u8> {
        let number = self.chance.next() as i32;
        let magics = [Hello::MAGIC, TrackerHello::MAGIC, 0, -1, number];
        let keys: [&[u8]; 10] = [
            b"client:",
            b"client:x",
            b"server:",
            b"",
            b"   ",
            b"cl\xff\xfe",
            b"client: -timeout=nan",
            b"client: -timeout=-1",
            b"client: -timeout=1e999",
            b"client: -timeout",
        ];
        let wrong_magic = self.chance.below(4) == 0;
        let magic = if wrong_magic {
            self.chance.pick(&magics)
        } else {
            Hello::MAGIC
        };
        let key = self.chance.pick(&keys);
        let own = key.len() as i32;
        let length = match self.chance.below(3) {
            0 => self
                .chance
                .pick(&[-1, i32::MIN, 0, own - 1, own + 1, 4097, i32::MAX]),
            _ => own,
        };
        let mut bytes = [magic.to_le_bytes(), length.to_le_bytes()].concat();
        bytes.extend(key);
        if self.chance.below(6) == 0 {
            bytes.truncate(self.chance.below(bytes.len()));
        }
        bytes
    }
}

/// The answers of a server.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) state: Mutex<HeardState>,
    pub(crate) changed: Condvar,
}

#[derive(Default)]
pub(crate) struct HeardState {
    /// Handles that the server has returned.
    tokens: Vec<u64>,
    pub(crate) answers: usize,
    /// `true` if nothing more can be read.
    pub(crate) is_over: bool,
}

impl Heard {
    /// Reads answers until there are no more.
    pub(crate) fn listen(&self, stream: impl RpcStream + 'static, release: Release) {
        let mut transport = Transport::new(stream);
        let spoken = Protocol::new(release, Speaker::Server);
        loop {
            let mut findings = Findings::default();
            let packet = transport.read_packet(&spoken, &mut findings);
            let mut state = lock(&self.state);
            match packet {
                Ok(Some(packet)) => {
                    let values = match &packet {
                        Packet::Return(values) => values.as_slice(),
                        _ => &[],
                    };
                    let tokens = values.iter().filter_map(|value| match value {
                        V::Handle(token) if *token != 0 => Some(*token),
                        V::Tensor(block) => Some(block.data),
                        _ => None,
                    });
                    state.tokens.extend(tokens);
                    state.answers += 1;
                }
                Ok(None) | Err(_) => state.is_over = true,
            }
            let is_over = state.is_over;
            drop(state);
            self.changed.notify_all();
            if is_over {
                return;
            }
        }
    }
}

/// Locks a mutex. The data of a thread that panicked are consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
