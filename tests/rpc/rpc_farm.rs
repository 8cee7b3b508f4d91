//! Servers that clients reach through a tracker, through a proxy, or through both.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

mod judging;
mod proxies;
mod trackers;

use crate::support::serving::Serving;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;
use tvmspec::function::Error;
use tvmspec::rpc::client::{RemoteAddress, Session};

/// Starts a tracker. Returns it, and its address.
fn tracker() -> (Serving, String) {
    let tracker = Serving::start(&["tracker", "--port", "0"]);
    let address = tracker.address.to_string();
    (tracker, address)
}

fn connect(text: &str) -> Result<Session, Error> {
    RemoteAddress::parse(text)?.connect()
}

fn add_one(session: &Session) -> Result<i64, Error> {
    Ok(i64::try_from(&session.call("rpc.test.addone", (41,))?)?)
}

/// Ctrl-C ends a tracker and a proxy in order: the process ends by itself, and its peers see the end of their connections.
#[test]
fn a_signal_ends_a_tracker_and_a_proxy() {
    for command in ["tracker", "proxy"] {
        let mut serving = Serving::start(&[command, "--port", "0"]);
        let mut peer = TcpStream::connect(serving.address).expect("it listens");
        let limit = Some(Duration::from_secs(20));
        peer.set_read_timeout(limit).expect("a limit");
        let hello = 0x0002_f271_i32.to_le_bytes();
        std::io::Write::write_all(&mut peer, &hello).expect("written");
        if command == "tracker" {
            let mut answer = [0; 4];
            peer.read_exact(&mut answer).expect("an answer");
            assert_eq!(answer, hello);
        }
        let number = rustix::process::Pid::from_child(&serving.child);
        rustix::process::kill_process(number, rustix::process::Signal::INT).expect("a signal");
        if command == "tracker" {
            assert_eq!(peer.read(&mut [0]).expect("an end"), 0);
        }
        drop(peer);
        assert!(serving.child.wait().expect("an end").success(), "{command}");
    }
}
