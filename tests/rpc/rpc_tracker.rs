//! A running tracker: the assignment of servers, the replies to its peers, and the limits of a peer that breaks a rule.

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

/// RPC-60, RPC-61, RPC-62: the highest priority is first, then the oldest request; servers are used in the order of their offers.
#[test]
fn requests_are_served_by_priority_and_age() {
    let mut tracker = schedule(5);
    for (client, priority) in [(1, 1), (2, 5), (3, 5), (4, -1)] {
        assert_eq!(
            replies(tracker.answer(client, request("dev", priority))),
            []
        );
    }
    for (port, client) in [(10, 2), (11, 3), (12, 1), (13, 4)] {
        let done = (0, TrackerReply::Success);
        let paired = (client, server("dev", port));
        assert_eq!(
            replies(tracker.answer(0, offer("dev", port))),
            [done, paired]
        );
    }
    for port in [20, 21] {
        tracker.answer(0, offer("dev", port));
    }
    // Another key is another queue.
    assert_eq!(replies(tracker.answer(1, request("other", 9))), []);
    for port in [20, 21] {
        assert_eq!(
            replies(tracker.answer(1, request("dev", 1))),
            [(1, server("dev", port))]
        );
    }
}

/// RPC-63: neither a server nor a client that has left takes part.
#[test]
fn what_a_closed_connection_had_is_withdrawn() {
    let mut tracker = schedule(4);
    tracker.answer(0, offer("dev", 10));
    tracker.answer(1, offer("dev", 11));
    tracker.close(0);
    assert_eq!(
        replies(tracker.answer(2, request("dev", 1))),
        [(2, server("dev", 11))]
    );
    tracker.answer(2, request("dev", 1));
    tracker.answer(3, request("dev", 1));
    tracker.close(2);
    let served = replies(tracker.answer(1, offer("dev", 12)));
    assert_eq!(served[1..], [(3, server("dev", 12))]);
}

/// RPC-65: an assigned server is no longer listed, and each connection sees its own.
#[test]
fn a_server_sees_which_of_its_keys_are_left() {
    let mut tracker = schedule(3);
    for (connection, port) in [(0, 10), (0, 11), (1, 12)] {
        tracker.answer(connection, offer("dev", port));
    }
    tracker.answer(2, request("dev", 1));
    for (connection, keys) in [(0, vec!["dev:11"]), (1, vec!["dev:12"]), (2, vec![])] {
        let keys = keys.into_iter().map(str::to_owned).collect();
        let reply = (connection, TrackerReply::MatchKeys(keys));
        let asked = tracker.answer(connection, TrackerRequest::PendingMatchKeys);
        assert_eq!(replies(asked), [reply]);
    }
}

#[test]
fn limits_close_out_who_goes_beyond_them() {
    let mut limits = TrackerLimits::default();
    limits.connections = 2;
    limits.waiting = 2;
    limits.keys = 2;
    limits.own_keys = 2;
    let mut tracker = TrackerSchedule::new(limits, String::new());
    assert!(tracker.open(0, "a") && tracker.open(1, "a") && !tracker.open(2, "a"));
    for _ in 0..2 {
        replies(tracker.answer(0, request("dev", 1)));
    }
    assert_eq!(tracker.answer(0, request("dev", 1)), TrackerOutcome::Excess);
    replies(tracker.answer(1, offer("other", 1)));
    assert_eq!(tracker.answer(1, offer("third", 1)), TrackerOutcome::Excess);
}

/// RPC-66: one peer uses up all keys and leaves; its keys make room for others.
#[test]
fn keys_of_a_peer_that_is_gone_make_room() {
    let mut limits = TrackerLimits::default();
    limits.keys = 300;
    limits.own_keys = 300;
    let mut tracker = TrackerSchedule::new(limits, String::new());
    for round in 0..3 {
        assert!(tracker.open(round, "a"));
        for key in 0..300 {
            let key = format!("round {round}, key {key}");
            let asked = match key.len() % 2 {
                0 => offer(&key, 1),
                _ => request(&key, 1),
            };
            replies(tracker.answer(round, asked));
        }
        assert!(tracker.open(99, "b"));
        assert_eq!(
            tracker.answer(99, offer("dev", 1)),
            TrackerOutcome::Excess,
            "the limit is reached"
        );
        tracker.close(99);
        tracker.close(round);
        assert_eq!(in_use(&tracker), 0);
    }
    assert!(tracker.open(9, "a"));
    replies(tracker.answer(9, offer("dev", 1)));
    replies(tracker.answer(9, request("dev", 1)));
    let queues = tracker.summary().queues;
    let keys: Vec<_> = queues.iter().map(|count| count.key.as_str()).collect();
    assert_eq!((keys, in_use(&tracker)), (vec!["dev"], 0), "after a match");
}

/// Returns the number of waiting offers and requests.
fn in_use(tracker: &TrackerSchedule) -> u64 {
    let queues = tracker.summary().queues.into_iter();
    queues.map(|count| count.free + count.pending).sum()
}

/// RPC-66: limits on the keys of one connection, and on the length of the texts that it leaves with the tracker.
#[test]
fn a_connection_has_few_keys_and_short_ones() {
    let own = TrackerLimits::default().own_keys;
    let mut tracker = schedule(6);
    for key in 0..own {
        replies(tracker.answer(0, request(&key.to_string(), 1)));
    }
    // A key that the connection uses already does not count again.
    replies(tracker.answer(0, request("0", 1)));
    assert_eq!(tracker.answer(0, offer("k", 1)), TrackerOutcome::Excess);
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
