//! `tvmspec serve`: the actions of a client affect only its own session.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

mod hostile;
mod resources;
mod termination;

use crate::support::skip::skipped;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::function::ErrorKind;
use tvmspec::release::Release;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;

/// A server, which ends with the test.
struct Server {
    child: Child,
    address: SocketAddr,
    log: BufReader<ChildStderr>,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        Server::start_in(&std::env::temp_dir(), arguments)
    }

    /// Starts a server whose files are in `folder`.
    fn start_in(folder: &Path, arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["serve", "--port", "0"])
            .args(arguments)
            .env("TMPDIR", folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a line");
        let address = line.trim().strip_prefix("serving on ");
        let log = BufReader::new(child.stderr.take().expect("piped"));
        let address = address.expect(&line).parse().expect("an address");
        Server {
            child,
            address,
            log,
        }
    }

    /// Opens a connection whose reads and writes take at most 20 s.
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a limit");
        stream.set_write_timeout(limit).expect("a limit");
        stream
    }

    /// Opens a connection, and exchanges the hello and its answer.
    fn greet(&self, key: &'static str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&hello(key.as_bytes())).expect("written");
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..4], Hello::MAGIC.to_le_bytes());
        stream
    }

    /// Plays a whole session of an honest client.
    fn is_alive(&self, release: u8) {
        let mut peer = Peer::of(self, release);
        let found = peer.look_up("rpc.test.addone");
        assert_ne!(found, 0);
        peer.transport
            .write_packet(&Packet::Shutdown, &peer.own)
            .expect("written");
        assert_eq!(peer.read(), PeerAnswer::Gone);
    }

    /// Returns the next line of the log, without those about the start of a session.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.log.read_line(&mut line).expect("a line");
            if !line.ends_with(": begins\n") {
                return line;
            }
        }
    }
}

/// A client whose session has begun.
struct Peer {
    transport: Transport,
    own: Protocol,
    other: Protocol,
}

/// The result of a request.
#[derive(Debug, PartialEq)]
enum PeerAnswer {
    /// The last value.
    Value(PackedValue<'static>),
    /// The text of an exception.
    Raised(String),
    /// The connection has ended.
    Gone,
}

impl Peer {
    fn of(server: &Server, release: u8) -> Peer {
        let mut transport = Transport::tcp(server.connect()).expect("a socket");
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(20)));
        let key = Cow::Borrowed("client:");
        transport.write_hello(&Hello { key }).expect("written");
        let release = Release::of(release);
        let answer = transport.read_answer(release).expect("an answer");
        assert_eq!(answer, HelloAnswer::Success("server:".into()));
        let mut peer = Peer {
            transport,
            own: Protocol::new(release, Speaker::Client),
            other: Protocol::new(release, Speaker::Server),
        };
        let init = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
        assert_eq!(peer.ask(&init), PeerAnswer::Value(PackedValue::None));
        peer
    }

    fn ask(&mut self, packet: &Packet<'_>) -> PeerAnswer {
        self.transport
            .write_packet(packet, &self.own)
            .expect("written");
        self.read()
    }

    fn read(&mut self) -> PeerAnswer {
        let mut findings = Findings::default();
        let values = match self.transport.read_packet(&self.other, &mut findings) {
            Ok(None) => return PeerAnswer::Gone,
            Err(error) if error.kind() == ErrorKind::Connection => return PeerAnswer::Gone,
            Ok(Some(Packet::Return(values))) => values,
            Ok(Some(Packet::Exception(values))) => {
                let [PackedValue::Str(text)] = &values[..] else {
                    panic!("{values:?}")
                };
                return PeerAnswer::Raised(String::from_utf8_lossy(text).into_owned());
            }
            other => panic!("{other:?}"),
        };
        PeerAnswer::Value(match values.last() {
            Some(PackedValue::Handle(token)) => PackedValue::Handle(*token),
            Some(PackedValue::Int(value)) => PackedValue::Int(*value),
            Some(PackedValue::Str(text)) => PackedValue::Str(text.to_vec().into()),
            _ => PackedValue::None,
        })
    }

    fn look_up(&mut self, name: &'static str) -> u64 {
        let name = text(name);
        handle(self.ask(&Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name])))
    }

    fn call(&mut self, name: &'static str, args: Vec<PackedValue<'static>>) -> PeerAnswer {
        let function = self.look_up(name);
        self.ask(&Packet::CallFunc(function, args))
    }
}

#[track_caller]
fn handle(outcome: PeerAnswer) -> u64 {
    match outcome {
        PeerAnswer::Value(PackedValue::Handle(token)) => token,
        other => panic!("{other:?}"),
    }
}

fn text(text: &'static str) -> PackedValue<'static> {
    PackedValue::Str(text.as_bytes().into())
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its sessions end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hello(key: &[u8]) -> Vec<u8> {
    let length = key.len() as i32;
    [&Hello::MAGIC.to_le_bytes()[..], &length.to_le_bytes(), key].concat()
}

/// Returns a packet of any code and body.
fn framed(code: i32, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len() as u64;
    [&length.to_le_bytes()[..], &code.to_le_bytes(), body].concat()
}

/// Returns an InitServer packet without arguments.
fn init() -> Vec<u8> {
    framed(2, &[&5_u64.to_le_bytes(), &b"0.8.0"[..], &[0; 4]].concat())
}

#[test]
fn each_session_has_a_line_in_the_log() {
    let mut server = Server::start(&[]);
    server.is_alive(27);
    let line = server.line();
    assert!(line.starts_with("session 1 from 127.0.0.1:"), "{line}");
    assert!(line.contains("`client:` as 0.27, 2 requests"), "{line}");
    assert!(line.contains("ended by the client"), "{line}");
    // A connection without a session has one line.
    drop(server.connect());
    let mut line = String::new();
    server.log.read_line(&mut line).expect("a line");
    assert!(line.starts_with("session 2 from"), "{line}");
    assert!(line.contains(": not started: it left before"), "{line}");
    let mut other = server.connect();
    other.write_all(&hello(b"client:other")).expect("written");
    let line = server.line();
    assert!(line.starts_with("session 3 from"), "{line}");
    assert!(line.contains("`client:other` has another key"), "{line}");
}

#[test]
fn rpc_84_a_release_whose_clients_are_not_served_is_no_option() {
    for (release, starts) in [("0.2", false), ("0.6", false), ("0.7", true)] {
        // The range of ports is empty, so that a valid release fails there.
        let server = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args([
                "serve",
                "--release",
                release,
                "--port",
                "9",
                "--port-end",
                "8",
            ])
            .output()
            .expect("a process");
        let text = String::from_utf8_lossy(&server.stderr);
        assert_eq!(server.status.code(), Some(2), "{text}");
        let why = if starts {
            "there is no port"
        } else {
            "clients up to 0.6 have another protocol, which is not served"
        };
        assert!(text.contains(why), "{release}: {text}");
    }
}

#[test]
fn clients_that_are_sent_elsewhere_are_a_warning() {
    use tvmspec::rpc::tracker::{TrackerLimits, TrackerServer};
    // Connecting a UDP socket sends no packet, but shows the address by which this machine would reach another one.
    let far = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.77:9")?;
        socket.local_addr()
    });
    let Some(own) = far.ok().map(|far| far.ip()).filter(|ip| !ip.is_loopback()) else {
        return skipped("this machine has no address but its own");
    };
    let tracker = TrackerServer::bind(SocketAddr::new(own, 0), TrackerLimits::default());
    let tracker = tracker.expect("a tracker");
    let handle = tracker.handle().expect("a handle");
    let place = handle.address().to_string();
    std::thread::spawn(move || tracker.run(|_| {}));
    let warning = format!(
        "the tracker sends clients to {own}, and this server listens at 127.0.0.1 alone: --host {own}"
    );
    let with = |more: &[&str]| {
        let arguments = [&["--tracker", &place, "--key", "k"], more].concat();
        let mut server = Server::start(&arguments);
        // The session produces a line, so that the test ends even if there is no warning.
        drop(server.connect());
        server.line()
    };
    assert!(with(&[]).contains(&warning), "{}", with(&[]));
    for right in [["--host", "0.0.0.0"], ["--custom-addr", "127.0.0.1"]] {
        let line = with(&right);
        assert!(line.starts_with("session 1 from"), "{line}");
    }
}
