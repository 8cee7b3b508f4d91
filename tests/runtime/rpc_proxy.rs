//! A proxy that runs: pairs, what it passes on, and what it records.

#![cfg(feature = "rpc")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tvmspec::rpc::proxy::{ProxyHandle, ProxyOptions, ProxyServer};
use tvmspec::rpc::{Connection, Hello};
use tvmspec::wire::Writer;

/// A proxy on a thread, which ends with the test.
struct Running {
    handle: ProxyHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new(options: ProxyOptions) -> Running {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = ProxyServer::bind(any, options).unwrap();
        let handle = server.handle().unwrap();
        let thread = Some(thread::spawn(move || server.run(|_| ()).unwrap()));
        Running { handle, thread }
    }

    fn peer(&self, key: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.handle.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(&hello(key)).unwrap();
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        let ended = self.thread.take().unwrap().join();
        assert!(thread::panicking() || ended.is_ok());
    }
}

fn hello(key: &str) -> Vec<u8> {
    let mut out = Writer::new();
    Hello { key: key.into() }.write(&mut out).unwrap();
    out.into_bytes()
}

fn expect(stream: &mut TcpStream, bytes: &[u8]) {
    let mut there = vec![0; bytes.len()];
    stream.read_exact(&mut there).unwrap();
    assert_eq!(there, bytes);
}

const SHUTDOWN: [u8; 12] = [4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

/// RPC-71, RPC-73: success is the same number as the magic, so that an answer looks like the hello of the other side.
#[test]
fn a_server_and_a_client_of_one_key_are_connected() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Running::new(ProxyOptions {
        capture: Some(folder.path().to_owned()),
        ..ProxyOptions::default()
    });
    let mut server = proxy.peer("server:dev");
    let mut client = proxy.peer("client:dev -timeout=9");
    expect(&mut server, &hello("client:dev -timeout=9"));
    expect(&mut client, &hello("server:dev"));
    client.write_all(&SHUTDOWN).unwrap();
    expect(&mut server, &SHUTDOWN);
    server.write_all(&SHUTDOWN).unwrap();
    expect(&mut client, &SHUTDOWN);
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    drop((server, proxy));
    recorded(folder.path(), 2);
}

/// What is recorded is read back, each side with as many messages.
fn recorded(folder: &Path, messages: usize) {
    let side = |side| std::fs::read(folder.join(format!("session-1.{side}.bin"))).unwrap();
    let (client, server) = (side("client"), side("server"));
    let read = Connection::read(&client, &server, None);
    for side in [&read.client, &read.server] {
        assert_eq!((side.messages.len(), &side.broken), (messages, &None));
    }
}

/// RPC-72.
#[test]
fn who_has_no_other_side_is_sent_away() {
    let proxy = Running::new(ProxyOptions {
        wait: Duration::from_millis(300),
        ..ProxyOptions::default()
    });
    let mut client = proxy.peer("client:dev");
    expect(&mut client, &[0x73, 0xf2, 0x0f, 0]);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

/// RPC-72: the first of two servers keeps its place. Either may be the first to be read.
#[test]
fn a_second_server_of_a_key_is_a_duplicate() {
    let proxy = Running::new(ProxyOptions::default());
    let (said, answers) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (said, mut stream) = (said.clone(), proxy.peer("server:dev"));
        thread::spawn(move || {
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            said.send(answer).unwrap();
        });
    }
    let next = || answers.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(next(), [0x72, 0xf2, 0x0f, 0]);
    // The one that stays gets a client.
    let _client = proxy.peer("client:dev");
    assert_eq!(next(), [0x71, 0xf2, 0x0f, 0]);
}

/// RPC-70, and RPC-01: a peer that breaks a rule is closed out, and the next one is served.
#[test]
fn what_breaks_a_rule_ends_its_own_connection() {
    let proxy = Running::new(ProxyOptions::default());
    for bytes in [
        &hello("client:")[..],
        &hello("foo"),
        &[0; 8],
        &[0x71, 0xf2, 0x0f, 0, 0xff, 0xff, 0xff, 0xff],
    ] {
        let mut peer = TcpStream::connect(proxy.handle.address()).unwrap();
        peer.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        let _ = peer.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
    let mut server = proxy.peer("server:dev");
    let mut client = proxy.peer("client:dev");
    expect(&mut server, &hello("client:dev"));
    expect(&mut client, &hello("server:dev"));
}

/// In front of one server every byte passes as it is, its hello and the answer too.
#[test]
fn one_server_is_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let proxy = Running::new(ProxyOptions {
        to: Some(listener.local_addr().unwrap()),
        capture: Some(folder.path().to_owned()),
        ..ProxyOptions::default()
    });
    let mut client = proxy.peer("client:dev");
    let (mut server, _) = listener.accept().unwrap();
    expect(&mut server, &hello("client:dev"));
    server.write_all(&hello("server:dev")).unwrap();
    expect(&mut client, &hello("server:dev"));
    client.write_all(&SHUTDOWN).unwrap();
    expect(&mut server, &SHUTDOWN);
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    drop((server, proxy));
    let side = |side| std::fs::read(folder.path().join(format!("session-1.{side}.bin"))).unwrap();
    let (client, server) = (side("client"), side("server"));
    let read = Connection::read(&client, &server, None);
    assert_eq!(
        (read.client.messages.len(), read.server.messages.len()),
        (2, 1)
    );
}
