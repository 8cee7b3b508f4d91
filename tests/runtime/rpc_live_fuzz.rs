//! Packets of both encodings that are made at random, with handles that the server has handed out and with numbers that it has not, and
//! bytes changed in some of them: each session ends, none panics, and the process has as much memory as before.
//!
//! A few seconds; with `TVMSPEC_FUZZ_SECONDS` as many as it says. A session that fails is made again by `TVMSPEC_FUZZ_SEED`.
#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::server::{ServerOptions, SessionEnd, serve};
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    CopyTarget, Hello, PackedValue as V, Packet, Protocol, RpcCode, Speaker, TensorBlock,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::Writer;

/// Numbers of one seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        // Steele, Lea and Flood: a counter whose bits are mixed.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Functions of every server but the time evaluator, which is asked to take its time.
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

/// A client, and what it has seen of handles.
struct Maker {
    chance: Chance,
    release: Release,
    seen: Arc<Mutex<Vec<u64>>>,
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
        self.chance.one(&edges)
    }

    fn handle(&mut self) -> u64 {
        let seen = self.seen.lock().expect("whole");
        let count = seen.len();
        match self.chance.below(4) {
            0 => self.chance.next(),
            1 => self.chance.one(&[0, 1, u64::MAX, 0x1000, 1 << 40]),
            _ if count == 0 => 0,
            kind => {
                let offset = if kind == 2 {
                    0
                } else {
                    self.chance.one(&[0, 1, 64, 4096])
                };
                seen[self.chance.below(count)].wrapping_add(offset)
            }
        }
    }

    fn device(&mut self) -> Device {
        let kind = self
            .chance
            .one(&[1, 1, 1, 1, 2, 4, 0, -1, 127, 128, 129, i32::MAX]);
        Device::new(kind, self.chance.one(&[0, 0, 0, 1, -1, i32::MAX]))
    }

    fn text(&mut self) -> Cow<'static, [u8]> {
        let texts: [&[u8]; 8] = [
            b"a.bin",
            b"b.so",
            b"",
            b"../x",
            b"/etc/passwd",
            b"a\0b",
            b"\xff\xfe",
            b"global",
        ];
        Cow::Borrowed(self.chance.one(&texts))
    }

    fn block(&mut self) -> TensorBlock {
        let dimensions = self.chance.below(4);
        TensorBlock {
            data: self.handle(),
            device: self.device(),
            dtype: Dtype::scalar(
                self.chance.below(5) as u8,
                self.chance.one(&[1, 8, 32, 64, 255]),
            ),
            shape: (0..dimensions).map(|_| self.int()).collect(),
            byte_offset: match self.release.minor() {
                7 => 0,
                _ => self.chance.one(&[0, 0, 0, 8, u64::MAX]),
            },
        }
    }

    fn value(&mut self) -> V<'static> {
        match self.chance.below(12) {
            0 => V::None,
            1 | 2 => V::Int(self.int()),
            3 => V::Float(f64::from_bits(self.chance.next())),
            4 => V::Handle(self.handle()),
            5 => V::Dtype(Dtype::scalar(2, 32), 0),
            6 => V::Device(self.device()),
            7 => V::Tensor(self.block()),
            8 => V::Bytes(Cow::Owned(vec![7; self.chance.one(&[0, 1, 1000, 70_000])])),
            9 => V::Module(self.handle()),
            10 => V::Function(self.handle()),
            _ => V::Str(self.text()),
        }
    }

    fn values(&mut self) -> Vec<V<'static>> {
        (0..self.chance.below(4)).map(|_| self.value()).collect()
    }

    /// The arguments that a system call has, or others.
    fn system_call(&mut self) -> Packet<'static> {
        let code = self.chance.one(&[
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
                vec![V::Str(Cow::Borrowed(self.chance.one(&NAMES).as_bytes()))]
            }
            RpcCode::FreeHandle if self.release.minor() < 21 => {
                vec![
                    V::Handle(self.handle()),
                    V::Int(self.chance.one(&[8, 9, 10, 13, 99])),
                ]
            }
            RpcCode::FreeHandle => vec![V::Handle(self.handle())],
            RpcCode::DevGetAttr => vec![device, V::Int(self.chance.below(20) as i64 - 1)],
            RpcCode::DevAllocData => vec![
                V::Device(Device::CPU),
                V::Int(self.int()),
                V::Int(self.chance.one(&[64, 1, 0, 3, -1, 4096])),
                V::Dtype(Dtype::scalar(2, 32), 0),
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
                Cow::Borrowed(self.chance.one(&[b"0.8.0", b"0.9.0"])),
                self.values(),
            ),
            2..6 => Packet::CallFunc(self.handle(), self.values()),
            6 => Packet::CopyFromRemote(CopyTarget::Block(self.block()), self.int() as u64),
            7 => {
                let content = vec![9; self.chance.one(&[0, 1, 64, 4096, 70_000])];
                Packet::CopyToRemote(CopyTarget::Block(self.block()), Cow::Owned(content))
            }
            _ => self.system_call(),
        }
    }

    /// A packet in bytes, some of them changed.
    fn bytes(&mut self) -> Vec<u8> {
        let spoken = Protocol::new(self.release, Speaker::Client);
        let mut out = Writer::new();
        // What a release has no form for is none of its packets.
        if self.packet().write(&spoken, &mut out).is_err() {
            return Vec::new();
        }
        let mut bytes = out.into_bytes();
        if self.chance.below(6) == 0 && !bytes.is_empty() {
            let at = self.chance.below(bytes.len());
            match self.chance.below(4) {
                0 => bytes[at] ^= 1 << self.chance.below(8),
                1 => bytes[at] = self.chance.one(&[0, 0x7f, 0x80, 0xff]),
                2 => bytes.truncate(at),
                _ => bytes.insert(at, self.chance.next() as u8),
            }
        }
        bytes
    }
}

/// Reads answers until there are no more, and remembers handles.
fn listen(stream: UnixStream, release: Release, seen: &Mutex<Vec<u64>>) {
    let mut transport = Transport::new(stream);
    let spoken = Protocol::new(release, Speaker::Server);
    loop {
        let mut findings = Findings::default();
        match transport.read_packet(&spoken, &mut findings) {
            Ok(Some(Packet::Return(values))) => {
                let tokens = values.iter().filter_map(|value| match value {
                    V::Handle(token) if *token != 0 => Some(*token),
                    V::Tensor(block) => Some(block.data),
                    _ => None,
                });
                seen.lock().expect("whole").extend(tokens);
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => break,
        }
    }
}

/// One session.
fn session(seed: u64, folder: &Path) {
    let mut chance = Chance(seed);
    let release = Release::of(chance.one(&[8, 16, 20, 21, 22, 27]));
    let mut options = ServerOptions::new(folder);
    options.memory = 1 << 20;
    options.uploads = 1 << 20;
    options.largest = 1 << 20;
    options.release = (chance.below(2) == 0).then_some(release);
    let (mut own, other) = UnixStream::pair().expect("a pair");
    let server = thread::spawn(move || serve(other, &options));
    let key = if chance.below(50) == 0 {
        "client:x"
    } else {
        "client:"
    };
    let mut out = Writer::new();
    Hello { key: key.into() }.write(&mut out).expect("a hello");
    own.write_all(&out.into_bytes()).expect("written");
    // 71 f2 0f 00, and `server:` with its length; without the last two of another key.
    let mut code = [0; 4];
    own.read_exact(&mut code).expect("an answer");
    if code == 0x000f_f271_i32.to_le_bytes() {
        own.read_exact(&mut [0; 11]).expect("the rest of it");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (reads, heard) = (own.try_clone().expect("a second"), seen.clone());
        let listener = thread::spawn(move || listen(reads, release, &heard));
        let mut maker = Maker {
            chance,
            release,
            seen,
        };
        let begin = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
        let mut out = Writer::new();
        let spoken = Protocol::new(release, Speaker::Client);
        begin.write(&spoken, &mut out).expect("a packet");
        let mut bytes = out.into_bytes();
        for _ in 0..maker.chance.below(120) {
            bytes.extend(maker.bytes());
            // Some packets at once, as a client that does not wait writes them.
            if maker.chance.below(3) > 0 && own.write_all(&std::mem::take(&mut bytes)).is_err() {
                break;
            }
        }
        let _ = own.shutdown(Shutdown::Write);
        listener.join().expect("the client reads");
    }
    drop(own);
    let report = server
        .join()
        .unwrap_or_else(|_| panic!("the session of seed {seed} panics"));
    if let SessionEnd::Failed(error) = &report.end {
        assert!(!error.to_string().is_empty(), "seed {seed}");
    }
}

/// Memory of this process that is there, in KiB; 0 where the system does not say so.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn sessions_of_random_packets_end() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(seed) = number("TVMSPEC_FUZZ_SEED") {
        return session(seed, folder.path());
    }
    let lasts = Duration::from_secs(number("TVMSPEC_FUZZ_SECONDS").unwrap_or(3));
    let (began, mut seed, mut before) = (Instant::now(), 0, 0);
    while began.elapsed() < lasts {
        seed += 1;
        let (done, ended) = channel();
        let path = folder.path().to_owned();
        let running = thread::spawn(move || {
            session(seed, &path);
            let _ = done.send(());
        });
        // A session that hangs is none that the client has left.
        match ended.recv_timeout(Duration::from_secs(60)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => panic!("the session of seed {seed} hangs"),
        }
        running.join().unwrap_or_else(|_| panic!("seed {seed}"));
        if seed == 20 {
            before = resident();
        }
    }
    assert!(seed > 20, "{seed} sessions");
    let grown = resident().saturating_sub(before);
    assert!(
        before == 0 || grown < 64 << 10,
        "{grown} KiB after {seed} sessions"
    );
    println!("{seed} sessions, {grown} KiB more than at first");
}
