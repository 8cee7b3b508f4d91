//! A listening tracker, and peers that connect to it.

use super::{offer, request, server};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tvmspec::release::Release;
use tvmspec::rpc::tracker::{TrackerHandle, TrackerLimits, TrackerServer};
use tvmspec::rpc::{Progress, TrackerPeer, TrackerReply, TrackerRequest, TrackerSummary};
use tvmspec::wire::{Cursor, Writer};

/// A tracker on a thread, which ends with the test.
pub(super) struct Running {
    handle: TrackerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(super) fn new() -> Running {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = TrackerServer::bind(any, TrackerLimits::default()).unwrap();
        let handle = server.handle().unwrap();
        let thread = Some(thread::spawn(move || server.run(|_| ()).unwrap()));
        Running { handle, thread }
    }

    /// Returns HOST:PORT.
    #[cfg(feature = "cli")]
    pub(super) fn address(&self) -> String {
        self.handle.address().to_string()
    }

    /// Opens a connection, and exchanges the magic numbers.
    pub(super) fn peer(&self) -> Peer {
        let stream = TcpStream::connect(self.handle.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut peer = Peer {
            stream,
            input: Vec::new(),
        };
        let magic = [0x71, 0xf2, 2, 0];
        peer.stream.write_all(&magic).unwrap();
        let mut echo = [0; 4];
        peer.stream.read_exact(&mut echo).unwrap();
        assert_eq!(echo, magic);
        peer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        let ended = self.thread.take().unwrap().join();
        assert!(thread::panicking() || ended.is_ok());
    }
}

pub(super) struct Peer {
    pub(super) stream: TcpStream,
    input: Vec<u8>,
}

impl Peer {
    pub(super) fn send(&mut self, request: &TrackerRequest) {
        let mut out = Writer::new();
        request.write(Release::LAST, &mut out).unwrap();
        self.stream.write_all(&out.into_bytes()).unwrap();
    }

    pub(super) fn reply(&mut self) -> TrackerReply {
        loop {
            let mut cursor = Cursor::new(&self.input);
            if let Progress::Whole(reply) = TrackerReply::read(&mut cursor).unwrap() {
                let used = self.input.len() - cursor.remaining();
                self.input.drain(..used);
                return reply;
            }
            let mut piece = [0; 4096];
            let count = self.stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "the tracker has closed the connection");
            self.input.extend(&piece[..count]);
        }
    }

    pub(super) fn ask(&mut self, request: &TrackerRequest) -> TrackerReply {
        self.send(request);
        self.reply()
    }
}

#[test]
fn a_server_and_a_client_find_each_other() {
    let tracker = Running::new();
    let (mut device, mut client) = (tracker.peer(), tracker.peer());
    client.send(&request("dev", 1));
    // RPC-60: other requests on the connection of a waiting client are answered meanwhile.
    assert_eq!(client.ask(&TrackerRequest::Ping), TrackerReply::Success);
    let key = "server:dev".to_owned();
    let info = TrackerPeer {
        key: key.clone(),
        address: Some((None, 9)),
    };
    assert_eq!(
        device.ask(&TrackerRequest::UpdateInfo(info)),
        TrackerReply::Success
    );
    assert_eq!(device.ask(&offer("dev", 9)), TrackerReply::Success);
    assert_eq!(client.reply(), server("dev", 9));
    let TrackerReply::Summary(TrackerSummary { queues, servers }) =
        client.ask(&TrackerRequest::Summary)
    else {
        panic!("no summary");
    };
    assert_eq!((queues[0].free, queues[0].pending), (0, 0));
    // RPC-64: the host is that of the connection.
    let address = Some((Some("127.0.0.1".to_owned()), 9));
    assert_eq!(servers, [TrackerPeer { key, address }]);
}

/// RPC-66: a broken rule must end only the connection that broke it.
#[test]
fn what_breaks_a_rule_ends_its_own_connection() {
    let tracker = Running::new();
    let mut other = tracker.peer();
    for bytes in [
        &[0, 0, 0, 0][..],
        &[0xff, 0xff, 0xff, 0xff],
        &[1, 0, 16, 0],
        b"\x03\x00\x00\x00[1}",
        b"\x04\x00\x00\x00[99]",
        b"\x03\x00\x00\x00[3]",
        b"\x02\x00\x00\x00[]",
    ] {
        let mut peer = tracker.peer();
        peer.stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // A reset is an end as well: bytes after the invalid ones were never read.
        let _ = peer.stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{bytes:?}");
        assert_eq!(other.ask(&TrackerRequest::Ping), TrackerReply::Success);
    }
    // RPC-53: nested lists, closed or not: slightly more levels than are read, and as many as fit.
    for (levels, closed) in [
        (17, true),
        (64, false),
        (127, true),
        (400, false),
        (2000, true),
    ] {
        let mut text = vec![b'['; levels];
        text.extend(vec![b']'; if closed { levels } else { 0 }]);
        let mut peer = tracker.peer();
        let length = i32::try_from(text.len()).unwrap().to_le_bytes();
        peer.stream
            .write_all(&[&length[..], &text].concat())
            .unwrap();
        let mut rest = Vec::new();
        let _ = peer.stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{levels}");
        assert_eq!(other.ask(&TrackerRequest::Ping), TrackerReply::Success);
    }
    let mut stranger = TcpStream::connect(tracker.handle.address()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = stranger.read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert_eq!(other.ask(&TrackerRequest::Ping), TrackerReply::Success);
}

/// RPC-51: the boundaries between writes must have no effect.
#[test]
fn bytes_come_in_any_pieces() {
    let tracker = Running::new();
    let mut stream = TcpStream::connect(tracker.handle.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in b"\x71\xf2\x02\x00\x03\x00\x00\x00[1]" {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"\x71\xf2\x02\x00\x01\x00\x00\x000");
    // The magic number and a request in one write, which released trackers do not accept.
    let mut stream = TcpStream::connect(tracker.handle.address()).unwrap();
    stream
        .write_all(b"\x71\xf2\x02\x00\x03\x00\x00\x00[1]\x03\x00\x00\x00[7]")
        .unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[4..], b"\x01\x00\x00\x000\x02\x00\x00\x00[]");
}

/// RPC-65: Stop must be rejected without the key.
#[test]
fn stop_needs_the_key() {
    let mut tracker = Running::new();
    let mut peer = tracker.peer();
    let wrong = TrackerRequest::Stop("tracker:0".to_owned());
    assert_eq!(peer.ask(&wrong), TrackerReply::Fail);
    let right = TrackerRequest::Stop(tracker.handle.stop_key().to_owned());
    assert_eq!(peer.ask(&right), TrackerReply::Success);
    tracker
        .thread
        .replace(thread::spawn(|| ()))
        .unwrap()
        .join()
        .unwrap();
    let mut rest = Vec::new();
    assert_eq!(peer.stream.read_to_end(&mut rest).unwrap_or_default(), 0);
}
