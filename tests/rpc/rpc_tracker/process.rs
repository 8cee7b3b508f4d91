//! A listening tracker, and peers that connect to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tvmspec::release::Release;
use tvmspec::rpc::tracker::{TrackerHandle, TrackerLimits, TrackerServer};
use tvmspec::rpc::{Progress, TrackerReply, TrackerRequest};
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

/// RPC-53, RPC-66: nested lists, closed or not: slightly more levels than are read, and as many as fit. Only the connection ends.
#[test]
fn nested_lists_end_their_own_connection() {
    let tracker = Running::new();
    let mut other = tracker.peer();
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
        // A reset is an end as well: bytes after the invalid ones were never read.
        let _ = peer.stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{levels}");
        assert_eq!(other.ask(&TrackerRequest::Ping), TrackerReply::Success);
    }
}
