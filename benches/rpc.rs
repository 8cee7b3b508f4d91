//! Compares our RPC client and server with those of the wheel, in all four pairs, and our tracker with the wheel's. Prints ratios.
//!
//! Run: `TVMSPEC_PYTHON=python cargo bench --bench rpc [-- tracker]`. Without `TVMSPEC_PYTHON` the comparison is skipped.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::device::{Device, Dtype, Manager, Space, Stream, TensorRef};
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::rpc::client::{Session, SessionOptions};
use tvmspec::rpc::{Progress, TrackerHello, TrackerOffer, TrackerReply, TrackerRequest};
use tvmspec::wire::{Cursor, Writer};

/// The sizes of the copies. Only the first is measured if one short round shows that the benchmark works.
const SIZES: [(&str, usize); 3] = [("4K", 4 << 10), ("1M", 1 << 20), ("256M", 256 << 20)];

/// The counts of servers, clients and requests at a tracker.
const SERVERS: usize = 1000;
const CLIENTS: usize = 100;
const REQUESTS: usize = 10_000;

type Times = BTreeMap<String, f64>;

fn main() {
    let only = std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with('-'));
    let rounds = std::env::var("ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or_else(|| support::rounds(5));
    let Ok(python) = std::env::var("TVMSPEC_PYTHON") else {
        println!("skipped, because TVMSPEC_PYTHON names no Python with apache-tvm");
        return;
    };
    if only.as_deref() != Some("tracker") {
        sessions(&python, rounds);
    }
    trackers(&python, rounds);
}

/// A process that is ended when this value is dropped, and the port that it printed.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(command: &mut Command) -> Server {
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| line.ok()?.rsplit([' ', ':']).next()?.parse().ok());
        std::thread::spawn(move || lines.for_each(drop));
        Server {
            child,
            port: port.expect("a port"),
        }
    }

    fn ours(arguments: &[&str]) -> Server {
        Server::start(Command::new(env!("CARGO_BIN_EXE_tvmspec")).args(arguments))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The wheel's processes end their workers when stdin closes.
        drop(self.child.stdin.take());
        std::thread::sleep(Duration::from_millis(300));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a port that was free a moment ago.
fn free_port() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener
        .local_addr()
        .unwrap()
        .port()
        .min(60_000)
        .to_string()
}

/// Measures all four pairs, a few rounds of each in turn, and prints the best of all rounds.
fn sessions(python: &str, rounds: usize) {
    let ours = Server::ours(&["serve", "--port", "0", "--allow-load"]);
    let script = root().join("tests/interop/real_server.py");
    let wheel = Server::start(Command::new(python).arg(script).arg(free_port()));
    let library = root().join("golden/module/open-0.22.so");
    let mut pairs: [(&str, Times); 4] = [
        ("ours, ours", Times::new()),
        ("ours, wheel", Times::new()),
        ("wheel, ours", Times::new()),
        ("wheel, wheel", Times::new()),
    ];
    for _ in 0..rounds {
        for (at, (_, times)) in pairs.iter_mut().enumerate() {
            let port = if at % 2 == 0 { ours.port } else { wheel.port };
            let measured = match at {
                0 | 1 => our_client(port, &library),
                _ => wheel_client(python, port, &library),
            };
            for (name, seconds) in measured {
                let best = times.entry(name).or_insert(f64::INFINITY);
                *best = best.min(seconds);
            }
        }
    }
    let names: Vec<String> = pairs[3].1.keys().cloned().collect();
    println!("client, server; seconds divided by those of the wheel with the wheel");
    for name in names {
        let reference = pairs[3].1[&name];
        print!("{name:<10} {:>12.1} us", reference * 1e6);
        for (pair, times) in &pairs {
            print!("  {pair} {:.2}", times[&name] / reference);
        }
        println!();
    }
}

fn fastest(runs: usize, mut body: impl FnMut()) -> f64 {
    body();
    let once = |_| {
        let start = Instant::now();
        body();
        start.elapsed().as_secs_f64()
    };
    (0..runs).map(once).fold(f64::INFINITY, f64::min)
}

/// Returns the median of 15 runs. A pause before each run lets the server end the last session, because a new client would wait for that.
fn rested(mut body: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            let start = Instant::now();
            body();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[7]
}

/// Measures our client with the same steps as `rpc.py`.
fn our_client(port: u16, library: &Path) -> Times {
    let connect = || Session::connect("127.0.0.1", port, "", &SessionOptions::default()).unwrap();
    let mut times = Times::new();
    let mut put = |name: String, seconds: f64| {
        times.insert(name, seconds);
    };
    let first = || drop(connect().require("testing.echo").unwrap());
    put("connect".to_owned(), rested(first));
    let session = connect();
    let echo = session.require("testing.echo").unwrap();
    let calls = fastest(2, || {
        (0..1000).for_each(|_| drop(echo.call((1_i64,)).unwrap()))
    });
    put("call".to_owned(), calls / 1000.0);
    session
        .upload("open.so", &std::fs::read(library).unwrap())
        .unwrap();
    let nothing = session
        .load_module("open.so")
        .unwrap()
        .require("nothing")
        .unwrap();
    let float = Dtype::FLOAT32;
    let tensors = [0; 3].map(|_| session.empty(&[16], float, Device::CPU).unwrap());
    let calls = fastest(2, || {
        for _ in 0..1000 {
            nothing.call(tensors.clone().map(Into::into)).unwrap();
        }
    });
    put("tensors".to_owned(), calls / 1000.0);
    for (name, size) in SIZES.into_iter().take(support::rounds(SIZES.len())) {
        let here = Tensor::from_slice(&vec![1_u8; size], &[size as i64]).unwrap();
        let back = Tensor::from_slice(&vec![0_u8; size], &[size as i64]).unwrap();
        let byte = Dtype::UINT8;
        let there = session.empty(&[size as i64], byte, Device::CPU).unwrap();
        let runs = if size > 1 << 20 { 2 } else { 200 };
        let [here, back, there] = [&here, &back, &there].map(reference);
        let api = Manager::global().api(there.device.kind).unwrap();
        let copy = |from: &TensorRef<'_>, to: &TensorRef<'_>| {
            // SAFETY: all these tensors have the same size, and live until the end of this scope.
            unsafe { api.copy_tensor(from, to, Stream::DEFAULT) }.unwrap();
        };
        put(format!("to {name}"), fastest(runs, || copy(&here, &there)));
        put(
            format!("from {name}"),
            fastest(runs, || copy(&there, &back)),
        );
    }
    times
}

/// Returns the tensor in the form that devices take.
fn reference(tensor: &Tensor) -> TensorRef<'_> {
    let dl = tensor.dl();
    TensorRef {
        data: Space(dl.data),
        device: dl.device,
        dtype: dl.dtype,
        shape: tensor.shape(),
        strides: None,
        byte_offset: dl.byte_offset,
    }
}

fn wheel_client(python: &str, port: u16, library: &Path) -> Times {
    let output = Command::new(python)
        .arg(root().join("benches/rpc.py"))
        .args([
            port.to_string(),
            library.display().to_string(),
            "2".to_owned(),
            support::rounds(SIZES.len()).to_string(),
        ])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let times = lines.filter_map(|(name, seconds)| Some((name.to_owned(), seconds.parse().ok()?)));
    times.collect()
}

const TRACKER: &str = r#"
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
from tvm.rpc.tracker import Tracker
tracker = Tracker("127.0.0.1", port=int(sys.argv[1]), port_end=65000, silent=True)
print("port", tracker.port, flush=True)
sys.stdin.read()
tracker.terminate()
"#;

/// Compares trackers by requests per second, with requests that wait for servers.
fn trackers(python: &str, rounds: usize) {
    let mut best = [0.0_f64; 2];
    for _ in 0..rounds {
        let ours = Server::ours(&["tracker", "--port", "0", "--silent"]);
        best[0] = best[0].max(requests_per_second(ours.port));
        drop(ours);
        let wheel = Server::start(Command::new(python).args(["-c", TRACKER, &free_port()]));
        best[1] = best[1].max(requests_per_second(wheel.port));
    }
    println!(
        "tracker, {SERVERS} servers, {REQUESTS} requests that wait: {:.0} a second, the wheel's {:.0}, {:.1} times as many",
        best[0],
        best[1],
        best[0] / best[1]
    );
}

/// Returns the requests per second of a tracker. All requests wait first. Then each server offers itself once for each request it serves.
fn requests_per_second(port: u16) -> f64 {
    let mut clients: Vec<Peer> = (0..CLIENTS).map(|_| Peer::connect(port)).collect();
    let mut servers: Vec<Peer> = (0..SERVERS).map(|_| Peer::connect(port)).collect();
    let request = TrackerRequest::Request {
        key: "board".to_owned(),
        user: String::new(),
        priority: 1,
    };
    for client in &mut clients {
        client.write(&vec![request.clone(); REQUESTS / CLIENTS]);
    }
    let mut observer = Peer::connect(port);
    loop {
        observer.write(&[TrackerRequest::Summary]);
        let TrackerReply::Summary(summary) = observer.read() else {
            panic!("no summary");
        };
        if summary
            .queues
            .iter()
            .any(|queue| queue.pending == REQUESTS as u64)
        {
            break;
        }
    }
    let began = Instant::now();
    for round in 0..REQUESTS / SERVERS {
        for (at, server) in servers.iter_mut().enumerate() {
            server.write(&[TrackerRequest::Put(TrackerOffer {
                key: "board".to_owned(),
                port: 9000,
                match_key: format!("board:0.{at}{round}"),
                host: None,
            })]);
        }
    }
    for client in &mut clients {
        for _ in 0..REQUESTS / CLIENTS {
            assert!(matches!(client.read(), TrackerReply::Server { .. }));
        }
    }
    REQUESTS as f64 / began.elapsed().as_secs_f64()
}

/// A connection to a tracker.
struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
}

impl Peer {
    fn connect(port: u16) -> Peer {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut peer = Peer {
            stream,
            buffer: Vec::new(),
            start: 0,
        };
        let mut out = Writer::new();
        TrackerHello.write(&mut out);
        peer.stream.write_all(&out.into_bytes()).unwrap();
        peer.message(TrackerHello::read);
        peer
    }

    fn write(&mut self, requests: &[TrackerRequest]) {
        let mut out = Writer::new();
        for request in requests {
            request.write(Release::LAST, &mut out).unwrap();
        }
        self.stream.write_all(&out.into_bytes()).unwrap();
    }

    fn read(&mut self) -> TrackerReply {
        self.message(TrackerReply::read)
    }

    fn message<T>(
        &mut self,
        read: impl Fn(&mut Cursor<'_>) -> Result<Progress<T>, tvmspec::rule::Violation>,
    ) -> T {
        loop {
            let bytes = &self.buffer[self.start..];
            let mut cursor = Cursor::new(bytes);
            if let Progress::Whole(value) = read(&mut cursor).unwrap() {
                self.start += bytes.len() - cursor.remaining();
                return value;
            }
            let mut piece = [0; 16 << 10];
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "the tracker closes the connection");
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(&piece[..count]);
        }
    }
}
