//! Many peers that connect and write nothing: the next peer is served at once, and a signal ends the server.
//!
//! There are more of them than a server keeps, and several times as many with `TVMSPEC_THOROUGH`. The time limit distinguishes a server
//! that serves at once from one that waits 10 s for each hello.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

use crate::support::serving::Serving;
use crate::support::test_scale::is_thorough;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tvmspec::rpc::Hello;
use tvmspec::rpc::client::{Session, SessionOptions};
use tvmspec::wire::Writer;

/// More time than a server needs if it does not wait for a mute peer.
const SOON: Duration = Duration::from_secs(6);

/// Opens as many connections as the test may have.
fn open_silent_connections(address: SocketAddr) -> Vec<TcpStream> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit).expect("a limit");
    let count = if is_thorough() { 2000 } else { 600 };
    let connect = |_| TcpStream::connect(address).expect("it listens");
    (0..count).map(connect).collect()
}

/// Sends SIGTERM, and checks that the process ends soon and successfully.
#[track_caller]
fn assert_ends_on_sigterm(serving: &mut Serving) {
    let process = Pid::from_child(&serving.child);
    let began = Instant::now();
    kill_process(process, Signal::TERM).expect("a signal");
    assert!(serving.child.wait().expect("an end").success());
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

fn hello(key: &str) -> Vec<u8> {
    let mut out = Writer::new();
    let hello = Hello { key: key.into() };
    hello.write(&mut out).expect("a short key");
    out.into_bytes()
}

/// Connects with a time limit that only a server that serves at once keeps.
fn peer(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    stream.write_all(bytes).expect("written");
    stream
}

#[track_caller]
fn expect(stream: &mut TcpStream, bytes: &[u8]) {
    let mut there = vec![0; bytes.len()];
    stream.read_exact(&mut there).expect("an answer in time");
    assert_eq!(there, bytes);
}

#[test]
fn a_server_serves_the_next_client() {
    let mut server = Serving::server(&["--sessions", "2"]);
    drop(server.take_log());
    let mute = open_silent_connections(server.address);
    let mut options = SessionOptions::default();
    options.timeout = Some(SOON);
    options.connect_timeout = SOON;
    for _ in 0..4 {
        let session = Session::connect("127.0.0.1", server.port(), "", &options);
        let session = session.expect("a session");
        let sum = session.call("rpc.test.addone", (41,));
        assert_eq!(sum.map(i64::try_from), Ok(Ok(42)));
    }
    assert_ends_on_sigterm(&mut server);
    drop(mute);
}

#[test]
fn a_tracker_answers_the_next_peer() {
    let mut tracker = Serving::start(&["tracker", "--port", "0", "--silent"]);
    let magic = 0x0002_f271_i32.to_le_bytes();
    // Half of them write a hello, and no request.
    let mut mute = open_silent_connections(tracker.address);
    for stream in mute.iter_mut().step_by(2) {
        // Fails if the tracker has already closed the connection.
        let _ = stream.write_all(&magic);
    }
    let mut peer = peer(tracker.address, &magic);
    expect(&mut peer, &magic);
    peer.write_all(b"\x03\x00\x00\x00[1]").expect("written");
    expect(&mut peer, b"\x01\x00\x00\x000");
    // A connection with a hello is kept.
    let more = self::open_silent_connections(tracker.address);
    peer.write_all(b"\x03\x00\x00\x00[1]").expect("written");
    expect(&mut peer, b"\x01\x00\x00\x000");
    assert_ends_on_sigterm(&mut tracker);
    drop((mute, more));
}

#[test]
fn a_proxy_pairs_the_next_peers() {
    let mut proxy = Serving::start(&["proxy", "--port", "0"]);
    drop(proxy.take_log());
    let mute = open_silent_connections(proxy.address);
    let mut server = peer(proxy.address, &hello("server:dev"));
    let more = self::open_silent_connections(proxy.address);
    let mut client = peer(proxy.address, &hello("client:dev"));
    expect(&mut server, &hello("client:dev"));
    expect(&mut client, &hello("server:dev"));
    // The running session ends with the proxy.
    assert_ends_on_sigterm(&mut proxy);
    drop((mute, more));
}

#[test]
#[cfg(feature = "web")]
fn a_proxy_lets_the_next_peer_in_by_a_web_socket() {
    let mut proxy = Serving::start(&["proxy", "--port", "0", "--web-port", "0"]);
    drop(proxy.take_log());
    let web = proxy.rest.rsplit(' ').next().expect("a last word");
    let web: SocketAddr = web.parse().expect("an address");
    let mut mute = open_silent_connections(web);
    for (number, stream) in mute.iter_mut().enumerate() {
        // Fails if the proxy has already closed the connection.
        let _ = match number % 3 {
            0 => stream.write_all(b"GET /ws HTTP/1.1\r\n"),
            1 => tungstenite_request(stream),
            _ => Ok(()),
        };
    }
    let stream = peer(web, b"");
    let (mut socket, _) = tungstenite::client("ws://localhost/ws", stream).expect("in time");
    let greeting = tungstenite::Message::binary(hello("server:dev"));
    socket.send(greeting).expect("written");
    let mut client = peer(proxy.address, &hello("client:dev"));
    expect(&mut client, &hello("server:dev"));
    assert_ends_on_sigterm(&mut proxy);
    drop(mute);
}

/// Writes a whole request for a WebSocket, after which no hello follows.
#[cfg(feature = "web")]
fn tungstenite_request(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
}

#[test]
fn a_proxy_before_one_server_takes_no_mute_peer_to_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let to = listener.local_addr().expect("an address").to_string();
    let mut proxy = Serving::start(&["proxy", "--port", "0", "--to", &to]);
    drop(proxy.take_log());
    let mute = open_silent_connections(proxy.address);
    let mut client = peer(proxy.address, &hello("client:dev"));
    // The first connection that arrives is that of the client that has written.
    let (mut server, _) = listener.accept().expect("a connection");
    expect(&mut server, &hello("client:dev"));
    server.write_all(&hello("server:dev")).expect("written");
    expect(&mut client, &hello("server:dev"));
    assert_ends_on_sigterm(&mut proxy);
    drop(mute);
}
