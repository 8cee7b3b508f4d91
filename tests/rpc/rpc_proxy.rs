//! A running proxy: duplicates, recordings beside other files, and too few threads.

#![cfg(all(feature = "cli", feature = "rpc", feature = "runtime"))]

mod stopping;
#[cfg(feature = "web")]
mod web;

use crate::support::serving;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tvmspec::rpc::Hello;
use tvmspec::rpc::proxy::{ProxyEvent, ProxyHandle, ProxyOptions, ProxyServer};
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

/// RPC-72: the first of two servers keeps its place. Either of them may be read first.
#[test]
fn a_second_server_of_a_key_is_a_duplicate() {
    let proxy = Running::new(ProxyOptions::default());
    let (sent, answers) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (sent, mut stream) = (sent.clone(), proxy.peer("server:dev"));
        thread::spawn(move || {
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            sent.send(answer).unwrap();
        });
    }
    let next = || answers.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(next(), [0x72, 0xf2, 0x0f, 0]);
    // The remaining server gets a client.
    let _client = proxy.peer("client:dev");
    assert_eq!(next(), [0x71, 0xf2, 0x0f, 0]);
}

/// Existing files of sessions are kept, even those of another proxy in the same folder.
#[test]
fn sessions_are_recorded_behind_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for old in [
        "session-7.server.bin",
        "session-2.client.bin",
        "session-x",
        "notes",
    ] {
        std::fs::write(path(old), "old").unwrap();
    }
    let proxy = Running::new({
        let mut options = ProxyOptions::default();
        options.capture = Some(folder.path().to_owned());
        options
    });
    let play = || {
        let (mut server, mut client) = (proxy.peer("server:dev"), proxy.peer("client:dev"));
        expect(&mut server, &hello("client:dev"));
        expect(&mut client, &hello("server:dev"));
        drop(client);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    };
    play();
    std::fs::write(path("session-9.client.bin"), "other").unwrap();
    play();
    let read = |name: &str| std::fs::read(path(name)).unwrap();
    for number in [8, 10] {
        let client = read(&format!("session-{number}.client.bin"));
        assert_eq!(client, hello("client:dev"));
    }
    assert_eq!(read("session-7.server.bin"), b"old");
    assert_eq!(read("session-9.client.bin"), b"other");
}

/// A session must continue if its folder for recordings was deleted.
#[test]
fn a_session_that_cannot_be_recorded_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = ProxyOptions::default();
    options.capture = Some(folder.path().to_owned());
    let server = ProxyServer::bind(any, options).unwrap();
    let (events, noted) = std::sync::mpsc::channel();
    let handle = server.handle().unwrap();
    let watch = move |event: &ProxyEvent| drop(events.send(event.clone()));
    let thread = thread::spawn(move || server.run(watch).unwrap());
    let proxy = Running {
        handle,
        thread: Some(thread),
    };
    let gone = folder.path().join("session-1.client.bin");
    drop(folder);
    let (mut server, mut client) = (proxy.peer("server:dev"), proxy.peer("client:dev"));
    expect(&mut client, &hello("server:dev"));
    expect(&mut server, &hello("client:dev"));
    client.write_all(&SHUTDOWN).unwrap();
    expect(&mut server, &SHUTDOWN);
    drop((server, client, proxy));
    let reasons: Vec<String> = noted
        .iter()
        .filter_map(|event| match event {
            ProxyEvent::Unrecorded(1, why) => Some(why),
            _ => None,
        })
        .collect();
    let path = gone.display().to_string();
    assert!(
        reasons.len() == 1 && reasons[0].contains(&path),
        "{reasons:?}"
    );
}

/// A proxy without memory for a thread must close the connection that needs it, and continue.
#[test]
#[cfg(all(feature = "cli", target_os = "linux"))]
fn a_proxy_without_a_thread_for_a_peer_goes_on() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    use std::io::BufRead as _;

    let mut proxy = serving::Serving::start(&["proxy", "--port", "0", "--web-port", "0"]);
    let web: SocketAddr = proxy.rest.rsplit(' ').next().unwrap().parse().unwrap();
    // The stack of each thread takes 2 MiB of the address space of the process.
    let process = Pid::from_child(&proxy.child);
    let size = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.child.id())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
        size.unwrap().trim_end_matches("kB").trim().parse().unwrap()
    };
    // Waits until the proxy has started all of its first threads.
    let mut kilobytes = 0;
    while kilobytes != size() {
        kilobytes = size();
        thread::sleep(Duration::from_millis(300));
    }
    let most = Some((kilobytes << 10) + (80 << 20));
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    prlimit(Some(process), Resource::As, limit).unwrap();
    let peer = |key: &str| {
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // Fails if the proxy has already closed the connection.
        let _ = stream.write_all(&hello(key));
        stream
    };
    let mut peers: Vec<TcpStream> = (0..60).map(|key| peer(&format!("server:{key}"))).collect();
    // A WebSocket peer needs more than one thread.
    for _ in 0..5 {
        let mut stream = TcpStream::connect(web).unwrap();
        let _ = stream.write_all(b"GET /ws HTTP/1.1\r\n");
        peers.push(stream);
    }
    let mut log = String::new();
    while !log.contains("there is no thread for it") {
        log.clear();
        assert_ne!(proxy.log.read_line(&mut log).unwrap(), 0, "it has ended");
    }
    drop(peers);
    // The places of closed peers are free again, as soon as the proxy has noticed.
    let is_served = || {
        let (mut server, mut client) = (peer("server:dev"), peer("client:dev"));
        // If only one of the two was accepted, this try must end soon.
        let soon = Some(Duration::from_secs(2));
        client.set_read_timeout(soon).unwrap();
        server.set_read_timeout(soon).unwrap();
        let mut answer = vec![0; hello("server:dev").len()];
        let done = client.read_exact(&mut answer).is_ok() && answer == hello("server:dev");
        done && server.read_exact(&mut answer).is_ok()
    };
    assert!((0..100).any(|_| {
        thread::sleep(Duration::from_millis(50));
        is_served()
    }));
    assert_eq!(proxy.child.try_wait().unwrap(), None);
}
