//! `tvmspec serve`: the actions of a client affect only its own session.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

mod hostile;
mod resources;
mod termination;

use crate::support::rpc_peer::{Peer, PeerAnswer};
use crate::support::serving::Serving;
use crate::support::skip::skipped;
use std::io::{BufRead as _, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;
use tvmspec::rpc::{Hello, PackedValue, Packet};

impl Serving {
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

    /// Returns a client whose session has begun.
    fn peer(&self, release: u8) -> Peer {
        Peer::begin(self.address, "", release).expect("a session")
    }

    /// Plays a whole session of an honest client.
    fn is_alive(&self, release: u8) {
        let mut peer = self.peer(release);
        let found = peer.look_up("rpc.test.addone");
        assert_ne!(found, 0);
        peer.transport
            .write_packet(&Packet::Shutdown, &peer.own)
            .expect("written");
        assert_eq!(peer.read(), PeerAnswer::Gone);
    }
}

fn text(text: &'static str) -> PackedValue<'static> {
    PackedValue::Str(text.as_bytes().into())
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
    let mut server = Serving::server(&[]);
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
        let mut server = Serving::server(&arguments);
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
