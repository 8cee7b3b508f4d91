//! Servers of a tracker: how a client names them, requests them and returns them.

use super::{add_one, connect, tracker};
use crate::support::serving::Serving;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};
use tvmspec::function::ErrorKind;
use tvmspec::rpc::client::{RemoteAddress, TrackerChoice};
use tvmspec::rpc::tracker::{TrackedServer, TrackerClient};
use tvmspec::rpc::{TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest};

#[test]
fn names_of_trackers_have_a_key_and_options_of_their_own() {
    assert_eq!(RemoteAddress::SCHEME, "rpc://");
    assert_eq!(RemoteAddress::TRACKER_SCHEME, "rpc-tracker://");
    let address = RemoteAddress::parse(
        "rpc-tracker://[::1]:9190/board?priority=-3&wait=0.5&release=0.8&timeout=2#cuda:1",
    );
    let address = address.expect("an address");
    let place = (&*address.host, address.port, &*address.key);
    assert_eq!(place, ("::1", 9190, "board"));
    let choice = TrackerChoice {
        priority: -3,
        wait: Duration::from_millis(500),
    };
    assert_eq!(address.tracker, Some(choice));
    assert_eq!(address.options.timeout, Some(Duration::from_secs(2)));
    let plain = RemoteAddress::parse("rpc-tracker://a:1/k").expect("an address");
    assert_eq!(plain.tracker, Some(TrackerChoice::default()));
    assert_eq!(
        RemoteAddress::parse("rpc://a:1/k").expect("one").tracker,
        None
    );
    assert!(RemoteAddress::is_remote("rpc-tracker://") && RemoteAddress::is_remote("rpc://"));
    assert!(!RemoteAddress::is_remote("cpu:0"));
    for (text, why) in [
        ("rpc-tracker://a:1", "no key"),
        ("rpc-tracker://a:1/", "no key"),
        ("rpc-tracker://a/k", "no host and port"),
        ("rpc://a:99999", "`99999` is not a port"),
        ("rpc://a:-1", "`-1` is not a port"),
        ("rpc://a:/k", "it has no port"),
        ("rpc://:1", "it has no host"),
        ("rpc://[::1:1", "a bracket is left open"),
        ("rpc://a:1/a b", "the key `a b` has a blank"),
        ("rpc://a:1/k?via=b:x", "no hop is `b:x`: `x` is not a port"),
        ("rpc-tracker://a:1/k?priority=high", "priority"),
        ("rpc-tracker://a:1/k?wait=-1", "seconds"),
        ("rpc-tracker://a:1/k?via=b:2", "`via` needs `release`"),
        ("rpc://a:1/k?priority=1", "no option is called `priority`"),
        ("rpc://a:1/k?wait=1", "no option is called `wait`"),
    ] {
        let error = RemoteAddress::parse(text).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let hop = "rpc-tracker://a:1/k?via=b:2&release=0.27";
    assert_eq!(
        RemoteAddress::parse(hop).expect("one").options.hops.len(),
        1
    );
}

#[test]
fn a_server_of_a_tracker_is_taken_and_returned() {
    let (tracker, address) = tracker();
    let _server = Serving::server(&["--tracker", &address, "--key", "board", "--sessions", "1"]);
    let text = format!("rpc-tracker://{address}/board?wait=20");
    for _ in 0..3 {
        let session = connect(&text).expect("a session");
        assert_eq!(add_one(&session), Ok(42));
        // There is no other server while the session lasts.
        let late = connect(&format!("rpc-tracker://{address}/board?wait=0.2"));
        let late = late.expect_err("it is taken");
        assert_eq!(late.kind(), ErrorKind::Timeout);
        assert!(
            late.to_string().contains("no server of key `board`"),
            "{late}"
        );
    }
    // On the command line, the device exists as long as the command runs.
    let devices = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["devices", "--device", &text])
        .output()
        .expect("a process");
    let printed = String::from_utf8_lossy(&devices.stdout).into_owned();
    assert!(
        devices.status.success() && printed.contains("cpu:0"),
        "{printed}"
    );
    drop(tracker);
    let gone = connect(&text).expect_err("no tracker");
    assert_eq!(gone.kind(), ErrorKind::Connection);
    assert!(gone.to_string().contains("tracker"), "{gone}");
}

/// A server must be available as soon as its first line is printed.
#[test]
fn a_server_is_offered_before_it_says_that_it_is_there() {
    let (_tracker, address) = tracker();
    for number in 0..3 {
        let key = format!("board-{number}");
        let _server = Serving::server(&["--tracker", &address, "--key", &key]);
        let mut client = TrackerClient::connect(&*address).expect("a tracker");
        let summary = client.ask(&TrackerRequest::Summary).expect("a summary");
        let TrackerReply::Summary(summary) = summary else {
            panic!("{summary:?}");
        };
        let queue = summary.queues.iter().find(|queue| queue.key == key);
        assert_eq!(queue.map(|queue| queue.free), Some(1), "{summary:?}");
    }
    // A missing tracker does not keep a server from serving.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let mut server = Serving::server(&["--tracker", &address, "--key", "board"]);
    let line = server.line();
    assert!(line.starts_with(&format!("tracker {address}: ")), "{line}");
}

/// RPC-61: of the waiting requests, the one of the highest priority is first.
#[test]
fn rpc_61_the_priority_of_a_name_is_that_of_its_request() {
    let (_tracker, address) = tracker();
    let mut offers = TrackerClient::connect(&*address).expect("a tracker");
    let (served, order) = std::sync::mpsc::channel();
    let threads: Vec<_> = [1, 7, 3]
        .into_iter()
        .map(|priority| {
            let (address, served) = (address.clone(), served.clone());
            std::thread::spawn(move || {
                let mut client = TrackerClient::connect(&*address).expect("a tracker");
                let wait = Duration::from_secs(20);
                let found = client.request("board", priority, wait).expect("a server");
                served.send((priority, found)).expect("heard");
            })
        })
        .collect();
    let until = Instant::now() + Duration::from_secs(20);
    let pending = |offers: &mut TrackerClient| match offers.ask(&TrackerRequest::Summary) {
        Ok(tvmspec::rpc::TrackerReply::Summary(summary)) => summary
            .queues
            .iter()
            .map(|queue| queue.pending)
            .sum::<u64>(),
        other => panic!("{other:?}"),
    };
    while pending(&mut offers) < 3 {
        assert!(Instant::now() < until, "no three requests");
    }
    for (number, priority) in [(1, 7), (2, 3), (3, 1)] {
        let offer = tvmspec::rpc::TrackerOffer {
            key: "board".to_owned(),
            port: 90,
            match_key: format!("board:{number}"),
            host: None,
        };
        offers.order(&TrackerRequest::Put(offer)).expect("done");
        let (got, found) = order.recv().expect("a server");
        assert_eq!(got, priority);
        let TrackedServer {
            host,
            port,
            match_key,
            ..
        } = found;
        assert_eq!((host.as_str(), port), ("127.0.0.1", 90));
        assert_eq!(match_key, format!("board:{number}"));
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no panic"));
}

/// A server that has left after its offer is skipped.
#[test]
fn the_next_server_is_taken_where_the_first_is_gone() {
    let (_tracker, address) = tracker();
    let mut dead = TrackerClient::connect(&*address).expect("a tracker");
    let port = {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        free.local_addr().expect("an address").port()
    };
    let offer = tvmspec::rpc::TrackerOffer {
        key: "board".to_owned(),
        port,
        match_key: "board:1".to_owned(),
        host: None,
    };
    dead.order(&TrackerRequest::Put(offer)).expect("done");
    let text = format!("rpc-tracker://{address}/board?wait=20");
    let server = Serving::server(&["--tracker", &address, "--key", "board"]);
    assert_eq!(add_one(&connect(&text).expect("a session")), Ok(42));
    drop(server);
    let other = format!("rpc-tracker://{address}/nobody?wait=0.2");
    assert_eq!(
        connect(&other).expect_err("no server").kind(),
        ErrorKind::Timeout
    );
}

/// The error must state that the peer is not a tracker.
#[test]
fn rpc_50_a_server_is_no_tracker() {
    let server = Serving::server(&["--key", "board"]);
    let error =
        connect(&format!("rpc-tracker://{}/board", server.address)).expect_err("no tracker");
    let text = error.to_string();
    assert!(
        text.contains("as servers and proxies do") && text.contains("rpc://HOST:PORT/KEY"),
        "{text}"
    );
    let mut server = server;
    let line = server.line();
    assert!(
        line.contains("RPC-01") && line.contains("that of a tracker"),
        "{line}"
    );
}

#[test]
fn a_name_of_the_wrong_kind_or_key_is_an_error_with_the_right_one() {
    let (_tracker, address) = tracker();
    let text = connect(&format!("rpc://{address}/board")).expect_err("a tracker");
    let text = text.to_string();
    assert!(
        text.contains("is a tracker") && text.contains(&format!("rpc-tracker://{address}/KEY")),
        "{text}"
    );
    let proxy = Serving::start(&["proxy", "--port", "0"]);
    let text = connect(&format!("rpc-tracker://{}/board", proxy.address)).expect_err("a proxy");
    assert!(
        text.to_string().contains("as servers and proxies do"),
        "{text}"
    );
    let none = format!("rpc-tracker://{address}/board?wait=0.2");
    let error = connect(&none).expect_err("no server");
    assert!(
        error.to_string().contains("the tracker has no servers"),
        "{error}"
    );
    let server = Serving::server(&["--tracker", &address, "--key", "board", "--sessions", "1"]);
    let other = connect(&format!("rpc://{}/bored", server.address)).expect_err("another key");
    let text = other.to_string();
    assert!(
        text.contains("no server has key `bored`") && text.contains("rpc://HOST:PORT/KEY"),
        "{text}"
    );
    let other = connect(&format!("rpc-tracker://{address}/bored?wait=0.2")).expect_err("none");
    assert!(
        other
            .to_string()
            .contains("no server of this key, but of `board`"),
        "{other}"
    );
    let taken = connect(&format!("rpc-tracker://{address}/board?wait=20")).expect("a session");
    let error = connect(&none).expect_err("it is taken");
    assert!(error.to_string().contains("has 1 of this key"), "{error}");
    drop(taken);
}

/// A stopped server that the tracker assigns: the connection is accepted, but nothing answers.
#[test]
fn a_server_that_hangs_is_in_the_error_of_the_tracker() {
    let (_tracker, address) = tracker();
    let hangs = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let place = hangs.local_addr().expect("an address");
    let mut own = TrackerClient::connect(&address).expect("a tracker");
    let (key, port) = ("board".to_owned(), place.port());
    own.order(&TrackerRequest::UpdateInfo(TrackerPeer {
        key: "server:board".to_owned(),
        address: Some((None, port)),
    }))
    .expect("a tracker");
    own.order(&TrackerRequest::Put(TrackerOffer {
        match_key: "board:1".to_owned(),
        host: None,
        key,
        port,
    }))
    .expect("a tracker");
    let late = connect(&format!("rpc-tracker://{address}/board?wait=4&timeout=0.5"));
    let late = late.expect_err("it answers nothing");
    assert_eq!(late.kind(), ErrorKind::Timeout);
    let text = late.to_string();
    for part in [
        "no server of key `board` was free within 4 s",
        "the tracker has 1 of this key",
        &format!("{place} was handed out and did not answer: "),
        "answers nothing within 0.5 s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_command_notes_what_it_waits_for() {
    let (_tracker, address) = tracker();
    let devices = |wait: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["devices", "--device"])
            .arg(format!("rpc-tracker://{address}/board?wait={wait}"))
            .output()
            .expect("a process");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = devices("3");
    let note =
        format!("waiting for a server of key `board` of the tracker at {address}, up to 3 s");
    assert_eq!(text.matches(&note).count(), 1, "{text}");
    assert!(
        text.contains("no server of key `board` was free within 3 s"),
        "{text}"
    );
    let text = devices("0.3");
    assert!(!text.contains("waiting"), "{text}");
}

#[test]
fn a_command_notes_that_a_server_answers_nothing() {
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = silent.local_addr().expect("an address");
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["devices", "--device"])
        .arg(format!("rpc://{address}/board?timeout=4"))
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stderr);
    let note = format!("waiting for the server at {address} to answer, up to 4 s");
    assert_eq!(text.matches(&note).count(), 1, "{text}");
    assert!(text.contains("answers nothing within 4 s"), "{text}");
}
