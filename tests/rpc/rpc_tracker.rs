//! A running tracker: the limits of its peers, its summary, its speed, and peers that take no replies.

#![cfg(all(feature = "rpc", feature = "runtime"))]

mod flood;
mod process;
mod query;

use std::time::{Duration, Instant};
use tvmspec::rpc::tracker::{TrackerLimits, TrackerOutcome, TrackerSchedule};
use tvmspec::rpc::{TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest};
use tvmspec::wire::Writer;

fn offer(key: &str, port: u16) -> TrackerRequest {
    TrackerRequest::Put(TrackerOffer {
        key: key.to_owned(),
        port,
        match_key: format!("{key}:{port}"),
        host: None,
    })
}

fn request(key: &str, priority: i64) -> TrackerRequest {
    TrackerRequest::Request {
        key: key.to_owned(),
        user: String::new(),
        priority,
    }
}

fn server(key: &str, port: u16) -> TrackerReply {
    TrackerReply::Server {
        host: "127.0.0.1".to_owned(),
        port,
        match_key: format!("{key}:{port}"),
    }
}

fn schedule(connections: u64) -> TrackerSchedule {
    let mut schedule = TrackerSchedule::new(TrackerLimits::default(), "tracker:7".to_owned());
    for connection in 0..connections {
        assert!(schedule.open(connection, "127.0.0.1"));
    }
    schedule
}

fn replies(outcome: TrackerOutcome) -> Vec<(u64, TrackerReply)> {
    match outcome {
        TrackerOutcome::Replies(replies) => replies,
        other => panic!("{other:?}"),
    }
}

/// Returns the number of waiting offers and requests.
fn in_use(tracker: &TrackerSchedule) -> u64 {
    let queues = tracker.summary().queues.into_iter();
    queues.map(|count| count.free + count.pending).sum()
}

/// RPC-66: limits on the length of the texts that a connection leaves with the tracker.
#[test]
fn a_connection_has_short_keys() {
    let mut tracker = schedule(6);
    let long = |count: usize| "k".repeat(count);
    replies(tracker.answer(1, request(&long(4096), 1)));
    assert_eq!(
        tracker.answer(1, request(&long(4097), 1)),
        TrackerOutcome::Excess
    );
    let put = |match_key: String, host: Option<String>| {
        TrackerRequest::Put(TrackerOffer {
            key: "dev".to_owned(),
            port: 1,
            match_key,
            host,
        })
    };
    assert_eq!(
        tracker.answer(2, put(long(4097), None)),
        TrackerOutcome::Excess
    );
    assert_eq!(
        tracker.answer(3, put(long(1), Some(long(4097)))),
        TrackerOutcome::Excess
    );
    let peer = |key: String, host: Option<String>| {
        let address = Some((host, 1));
        TrackerRequest::UpdateInfo(TrackerPeer { key, address })
    };
    for asked in [peer(long(4097), None), peer(long(1), Some(long(4097)))] {
        assert_eq!(tracker.answer(4, asked), TrackerOutcome::Excess);
    }
}

/// RPC-64, RPC-66: a key stays while there is room, and makes room for others after its last server has left.
#[test]
fn a_key_stays_as_long_as_its_server() {
    let mut limits = TrackerLimits::default();
    limits.keys = 1;
    let mut tracker = TrackerSchedule::new(limits, String::new());
    for connection in 0..4 {
        assert!(tracker.open(connection, "a"));
    }
    let key = "server:dev".to_owned();
    let peer = |key: &str| TrackerPeer {
        key: key.to_owned(),
        address: Some((None, 9)),
    };
    let counts = |tracker: &TrackerSchedule| {
        let queues = tracker.summary().queues.into_iter();
        let counts = queues.map(|count| (count.key, count.free, count.pending));
        counts.collect::<Vec<_>>()
    };
    for server in [0, 1] {
        replies(tracker.answer(server, TrackerRequest::UpdateInfo(peer(&key))));
    }
    // Stated twice, it is still one server.
    replies(tracker.answer(0, TrackerRequest::UpdateInfo(peer(&key))));
    replies(tracker.answer(0, offer("dev", 9)));
    replies(tracker.answer(2, request("dev", 1)));
    let taken = [("dev".to_owned(), 0, 0)];
    assert_eq!(counts(&tracker), taken);
    tracker.close(0);
    assert_eq!(tracker.answer(3, request("k", 1)), TrackerOutcome::Excess);
    replies(tracker.answer(1, TrackerRequest::UpdateInfo(peer("server:other"))));
    // Clients of TVM expect this after the last server has ended.
    assert_eq!(counts(&tracker), taken);
    replies(tracker.answer(2, request("k", 1)));
    assert_eq!(counts(&tracker), [("k".to_owned(), 0, 1)]);
}

/// RPC-52, RPC-64: a summary always fits into one message.
#[test]
fn a_summary_fits_into_a_message() {
    let mut tracker = schedule(3_000);
    for connection in 0..3_000 {
        let key = format!("\u{1f600}\\\"{connection}{}", "\u{e9}".repeat(300));
        replies(tracker.answer(connection, request(&key, 1)));
        let peer = TrackerPeer {
            key: format!("server:{key}"),
            address: Some((Some("\u{1}".repeat(50)), u16::MAX)),
        };
        replies(tracker.answer(connection, TrackerRequest::UpdateInfo(peer)));
    }
    assert_eq!(tracker.summary().queues.len(), 3_000);
    let asked = replies(tracker.answer(0, TrackerRequest::Summary));
    let [(0, reply)] = &asked[..] else {
        panic!("{} replies", asked.len());
    };
    let mut out = Writer::new();
    reply.write(&mut out).unwrap();
    assert!(
        out.into_bytes().len() > 1_000_000,
        "it is as long as it may be"
    );
}

/// The cost of a step does not depend on the number of waiting requests: with a scan of all of them this would take minutes.
#[test]
fn ten_thousand_requests_and_a_thousand_servers_take_no_time() {
    let begin = Instant::now();
    let mut tracker = schedule(11_000);
    for client in 1_000..11_000 {
        tracker.answer(client, request("dev", client as i64 % 7));
    }
    for round in 0..10 {
        for connection in 0..1_000 {
            let served = replies(tracker.answer(connection, offer("dev", round)));
            assert_eq!(served.len(), 2);
        }
    }
    for connection in 0..11_000 {
        tracker.close(connection);
    }
    assert_eq!((tracker.connections(), in_use(&tracker)), (0, 0));
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}
