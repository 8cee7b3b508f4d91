//! Peers that write requests and read no replies: other peers do not wait for them.

use super::process::{Peer, Running};
use super::{offer, request, server};
use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};
use tvmspec::rpc::{TrackerReply, TrackerRequest};

/// More time than a tracker needs if it does not wait for the peers of this file. It tries for 10 s to write to such a peer.
const SOON: Duration = Duration::from_secs(6);

/// Writes requests for summaries, and reads no reply, until the system takes no more bytes.
fn flood(peer: &mut Peer) {
    peer.stream.set_nonblocking(true).expect("a mode");
    let requests = b"\x03\x00\x00\x00[6]".repeat(1000);
    for _ in 0..200 {
        match peer.stream.write(&requests) {
            // The last request is incomplete, so that later bytes would not be read as a request.
            Ok(count) if count < requests.len() => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    peer.stream.set_nonblocking(false).expect("a mode");
}

/// Starts a tracker, with a peer that makes its summary long.
fn with_keys() -> (Running, Peer) {
    let tracker = Running::new();
    let mut keys = tracker.peer();
    for number in 0..900 {
        let key = format!("{number}{}", "k".repeat(60));
        assert_eq!(keys.ask(&offer(&key, 9)), TrackerReply::Success);
    }
    (tracker, keys)
}

#[test]
fn requests_of_a_peer_that_left_are_dropped() {
    let (tracker, keys) = with_keys();
    let mut flooding = tracker.peer();
    flood(&mut flooding);
    let mut other = tracker.peer();
    let began = Instant::now();
    assert_eq!(other.ask(&TrackerRequest::Ping), TrackerReply::Success);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    drop((flooding, keys, other));
    let began = Instant::now();
    drop(tracker);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_tracker_ends_while_replies_are_not_taken() {
    let (tracker, _keys) = with_keys();
    let mut flooding: Vec<Peer> = (0..8).map(|_| tracker.peer()).collect();
    flooding.iter_mut().for_each(flood);
    let began = Instant::now();
    drop(tracker);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// RPC-60: the client gets its server when it reads again, but the server is answered at once.
#[test]
fn a_server_does_not_wait_for_a_client_that_takes_no_reply() {
    let (tracker, _keys) = with_keys();
    let (mut client, mut device) = (tracker.peer(), tracker.peer());
    client.send(&request("dev", 1));
    flood(&mut client);
    // The tracker writes to the client until the system takes no more bytes.
    std::thread::sleep(Duration::from_millis(500));
    let began = Instant::now();
    assert_eq!(device.ask(&offer("dev", 9)), TrackerReply::Success);
    assert_eq!(device.ask(&TrackerRequest::Ping), TrackerReply::Success);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    while client.reply() != server("dev", 9) {}
}
