//! `tvmspec tracker --query`: the state of a tracker, printed like TVM's `query_rpc_tracker`.
#![cfg(feature = "cli")]

use super::process::Running;
use super::{offer, request};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tvmspec::rpc::{TrackerPeer, TrackerReply, TrackerRequest};

fn query(address: &str, words: &[&str]) -> Output {
    let tracker = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["tracker", "--query", address])
        .args(words)
        .output();
    tracker.unwrap()
}

fn info(key: &str, address: Option<(Option<&str>, u16)>) -> TrackerRequest {
    TrackerRequest::UpdateInfo(TrackerPeer {
        key: key.to_owned(),
        address: address.map(|(host, port)| (host.map(str::to_owned), port)),
    })
}

#[test]
fn servers_and_keys_are_printed_as_released_clients_do() {
    let tracker = Running::new();
    let address = tracker.address();
    let empty = query(&address, &[]);
    assert_eq!(
        String::from_utf8_lossy(&empty.stdout),
        format!("Tracker address {address}\n{EMPTY}")
    );
    let mut peers: Vec<_> = (0..4).map(|_| tracker.peer()).collect();
    for (peer, wish) in [
        (0, info("server:rpi4b", Some((Some("10.0.0.7"), 9090)))),
        (0, offer("rpi4b", 9090)),
        (1, info("server:android", Some((None, 5001)))),
        (1, offer("android", 5001)),
        (2, info("server:rpi4b", Some((Some("10.0.0.6"), 9091)))),
    ] {
        peers[peer].send(&wish);
        assert_eq!(peers[peer].reply(), TrackerReply::Success);
    }
    // The client waits for a server, so that there is no reply.
    peers[3].send(&request("a", 1));
    let begin = Instant::now();
    let output = loop {
        let output = query(&address, &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        if text.contains("\na ") || begin.elapsed() > Duration::from_secs(20) {
            break text;
        }
    };
    assert_eq!(output, format!("Tracker address {address}\n{FULL}"));
    let json = query(&address, &["--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        json["queue_info"]["rpi4b"],
        json!({ "free": 1, "pending": 0 })
    );
    assert_eq!(json["server_info"].as_array().unwrap().len(), 3);
}

/// The output of `tvm.exec.query_rpc_tracker` of 0.27, after the address. Up to 0.21 addresses are right-aligned.
const EMPTY: &str = "
Server List
------------------------------
server-address           key
------------------------------
------------------------------

Queue Status
---------------------------
key   total  free  pending
---------------------------
---------------------------

";

const FULL: &str = "
Server List
------------------------------
server-address           key
------------------------------
127.0.0.1:5001           server:android
10.0.0.7:9090            server:rpi4b
10.0.0.6:9091            server:rpi4b
------------------------------

Queue Status
-------------------------------
key       total  free  pending
-------------------------------
a         0      0     1     \x20
android   1      1     0     \x20
rpi4b     2      1     0     \x20
-------------------------------

";

#[test]
fn query_of_non_tracker_is_an_error() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let output = query(&address, &[]);
    assert_eq!(output.status.code(), Some(2));
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.contains("no connection to the tracker"), "{why}");
    let both = query(&address, &["--port", "9190"]);
    assert_eq!(both.status.code(), Some(2));
}
