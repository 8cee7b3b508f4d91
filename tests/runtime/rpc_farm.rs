//! Servers that clients get to by a tracker, by a proxy, and by both.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

#[allow(dead_code, reason = "other tests read more of it")]
#[path = "../support/serving.rs"]
mod serving;

use serving::Serving;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use tvmspec::function::Error;
use tvmspec::rpc::client::{RemoteAddress, Session, SessionOptions, TrackerChoice};
use tvmspec::rpc::server::await_pair;
use tvmspec::rpc::tracker::{TrackedServer, TrackerClient};
use tvmspec::rpc::transport::{CLOSED, TIMEOUT};
use tvmspec::rpc::{TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest};

/// A tracker, and the text that names a server of it.
fn tracker() -> (Serving, String) {
    let tracker = Serving::start(&["tracker", "--port", "0"]);
    let address = tracker.address.to_string();
    (tracker, address)
}

fn connect(text: &str) -> Result<Session, Error> {
    RemoteAddress::parse(text)?.connect()
}

fn add_one(session: &Session) -> Result<i64, Error> {
    Ok(i64::try_from(
        &session.call("rpc.test.addone", [41_i64.into()])?,
    )?)
}

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
        // There is no other one while the session lasts.
        let late = connect(&format!("rpc-tracker://{address}/board?wait=0.2"));
        let late = late.expect_err("it is taken");
        assert_eq!(late.kind(), TIMEOUT);
        assert!(
            late.to_string().contains("no server of key `board`"),
            "{late}"
        );
    }
    // From the command line: the device is there as long as the command runs.
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
    assert_eq!(gone.kind(), CLOSED);
    assert!(gone.to_string().contains("tracker"), "{gone}");
}

/// What reads the first line requests the server at once.
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
    // A tracker that is not there holds no server back.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let mut server = Serving::server(&["--tracker", &address, "--key", "board"]);
    let line = server.line();
    assert!(line.starts_with(&format!("tracker {address}: ")), "{line}");
}

/// RPC-61: of those that wait, the one of the highest priority is first.
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
        let expected = TrackedServer {
            host: "127.0.0.1".to_owned(),
            port: 90,
            match_key: format!("board:{number}"),
        };
        assert_eq!(found, expected);
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no panic"));
}

/// A server that went away behind its offer is passed over.
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
    assert_eq!(connect(&other).expect_err("no server").kind(), TIMEOUT);
}

/// What is no tracker is an error that says so.
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

/// A server that the tracker hands out, and that is stopped: the connection begins, and nothing answers.
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
    assert_eq!(late.kind(), TIMEOUT);
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

#[test]
fn rpc_94_a_server_at_a_proxy_serves_one_client_after_the_other() {
    let proxy = Serving::start(&["proxy", "--port", "0"]);
    let address = proxy.address.to_string();
    let mut server = Serving::start(&["serve", "--proxy", &address, "--key", "board"]);
    let options = SessionOptions {
        session_timeout: Some(50.0),
        ..SessionOptions::default()
    };
    for number in 1..=3 {
        let session = Session::connect("127.0.0.1", proxy.port(), "board", &options);
        let session = session.expect("a session");
        assert_eq!(session.server(), "server:board");
        assert_eq!(add_one(&session), Ok(42));
        session.close();
        let line = server.line();
        assert!(line.starts_with(&format!("session {number} ")), "{line}");
        assert!(line.contains("`client:board -timeout=50`"), "{line}");
    }
    // Two sessions at a time, as anywhere.
    let one = Session::connect("127.0.0.1", proxy.port(), "board", &options).expect("one");
    let two = Session::connect("127.0.0.1", proxy.port(), "board", &options).expect("two");
    assert_eq!((add_one(&one), add_one(&two)), (Ok(42), Ok(42)));
}

/// RPC-94: what a proxy answers other servers with, and that no byte behind the answer is taken.
#[test]
fn rpc_94_what_a_proxy_answers_a_server() {
    let magic = 0x000f_f271_i32;
    let words =
        |words: &[i32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    for (answer, expected) in [
        (
            [words(&[magic, 8]), b"client:krest".to_vec()].concat(),
            Ok("client:k"),
        ),
        (words(&[magic + 1]), Err(CLOSED)),
        (words(&[magic + 2]), Err(TIMEOUT)),
        (words(&[magic])[..3].to_vec(), Err(CLOSED)),
    ] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let mut server = TcpStream::connect(listener.local_addr().expect("one")).expect("one");
        let (mut proxy, _) = listener.accept().expect("a server");
        std::io::Write::write_all(&mut proxy, &answer).expect("written");
        if expected.is_err() {
            proxy.shutdown(std::net::Shutdown::Write).expect("shut");
        }
        let found = await_pair(&mut server, "k");
        let mut hello = [0; 16];
        proxy.read_exact(&mut hello).expect("a hello");
        assert_eq!(hello[8..], *b"server:k");
        match expected {
            Ok(key) => {
                assert_eq!(found.as_deref(), Ok(key));
                let mut rest = [0; 4];
                server.read_exact(&mut rest).expect("it is left");
                assert_eq!(&rest, b"rest");
            }
            Err(kind) => assert_eq!(found.expect_err("none").kind(), kind),
        }
    }
}

#[test]
fn rpc_67_a_proxy_reports_its_servers_and_each_key_opens_one_session() {
    let (_tracker, address) = tracker();
    let proxy = Serving::start(&["proxy", "--port", "0", "--tracker", &address]);
    let at = proxy.address.to_string();
    let _servers: Vec<_> = (0..2)
        .map(|_| Serving::start(&["serve", "--proxy", &at, "--key", "board"]))
        .collect();
    let text = format!("rpc-tracker://{address}/board?wait=20");
    for _ in 0..2 {
        let one = connect(&text).expect("a session");
        let two = connect(&text).expect("a session");
        assert_eq!((add_one(&one), add_one(&two)), (Ok(42), Ok(42)));
    }
    let mut tracker = TrackerClient::connect(&*address).expect("a tracker");
    let tvmspec::rpc::TrackerReply::Summary(summary) =
        tracker.ask(&TrackerRequest::Summary).expect("a summary")
    else {
        panic!("no summary")
    };
    let [peer] = &summary.servers[..] else {
        panic!("{summary:?}")
    };
    assert_eq!(peer.key, "server:proxy[board]");
    assert_eq!(
        peer.address,
        Some((Some("127.0.0.1".to_owned()), proxy.port()))
    );
    // The plain key is no match key.
    let options = SessionOptions::default();
    let began = Instant::now();
    let error = Session::connect("127.0.0.1", proxy.port(), "board", &options).expect_err("none");
    assert!(error.to_string().contains("no server has key"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
    // A key that is not used is replaced.
    let found = tracker
        .request("board", 1, Duration::from_secs(20))
        .expect("a server");
    let again = tracker
        .request("board", 1, Duration::from_secs(20))
        .expect("the other one");
    let third = tracker
        .request("board", 1, Duration::from_secs(30))
        .expect("one of both anew");
    assert_ne!(found.match_key, again.match_key);
    assert!(![&found, &again].contains(&&third));
    let stale = Session::connect("127.0.0.1", proxy.port(), &found.match_key, &options);
    let fresh = Session::connect("127.0.0.1", proxy.port(), &third.match_key, &options);
    assert_eq!(add_one(&fresh.expect("a session")), Ok(42));
    drop(stale);
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

/// A server of a tracker that answers one hello and is gone then, as one that crashes in its first session.
fn dying_server(tracker: &str) -> std::thread::JoinHandle<()> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut client = TrackerClient::connect(tracker).expect("a tracker");
    let offer = tvmspec::rpc::TrackerOffer {
        key: "board".to_owned(),
        port,
        match_key: "board:dies".to_owned(),
        host: None,
    };
    client
        .order(&TrackerRequest::Put(offer))
        .expect("it is offered");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        // Nothing listens from here on.
        drop(listener);
        let mut hello = [0; 8];
        stream.read_exact(&mut hello).expect("a hello");
        drop(client);
    })
}

/// Waits until so many servers wait for clients.
fn until_free(tracker: &str, count: u64) {
    let mut client = TrackerClient::connect(tracker).expect("a tracker");
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let free: u64 = match client.ask(&TrackerRequest::Summary) {
            Ok(tvmspec::rpc::TrackerReply::Summary(summary)) => {
                summary.queues.iter().map(|queue| queue.free).sum()
            }
            other => panic!("{other:?}"),
        };
        if free >= count {
            return;
        }
        assert!(Instant::now() < until, "{free} servers are free");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What `check` reports of each case: its id and verdict.
fn verdicts(implementation: &str, more: &[&str]) -> (Vec<(String, String)>, String) {
    let order = [
        "check",
        "--impl",
        implementation,
        "--report",
        "json",
        "--timeout",
        "30",
        "--case",
        "rpc/session/*-0.27",
    ];
    let checked = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(order)
        .args(more)
        .output()
        .expect("a process");
    let noted = String::from_utf8_lossy(&checked.stderr).into_owned();
    let report = serde_json::from_slice::<serde_json::Value>(&checked.stdout);
    let report = report.unwrap_or_else(|error| panic!("{error}: {noted}"));
    let results = report["results"].as_array().expect("results").iter();
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let results = results.map(|result| (text(&result["case"]), text(&result["verdict"])));
    (results.collect(), noted)
}

/// The suite against three servers at once, of which one is killed, and one more that dies in its first session: each costs the case
/// that it had and no other, and the report has the order of the suite.
#[test]
fn a_farm_is_judged_as_one_server_is() {
    let served = ["--release", "0.27", "--suite-functions"];
    let alone = Serving::server(&served);
    let (expected, noted) = verdicts(&format!("rpc:{}@0.27", alone.address), &[]);
    let passed = expected.iter().filter(|(_, verdict)| verdict == "pass");
    assert!(passed.count() > 50, "{expected:?} {noted}");

    let (_tracker, address) = tracker();
    let served = [&["--tracker", &*address, "--key", "board"], &served[..]].concat();
    let servers = [(); 3].map(|()| Serving::server(&served));
    until_free(&address, 3);
    // RPC-62: behind the others, so that it has a case, and not the session that shows that there are servers.
    let dying = dying_server(&address);
    let [killed, _second, _third] = servers;
    let killer = std::thread::spawn(move || {
        let mut killed = killed;
        // One line for each session: it has had some, and may be in one.
        for _ in 0..3 {
            killed.line();
        }
        drop(killed);
    });
    let farm = format!("rpc-tracker:{address}/board?wait=30@0.27");
    let (found, noted) = verdicts(&farm, &["--jobs", "3"]);
    dying.join().expect("it died");
    killer.join().expect("it was killed");
    let ids = |list: &[(String, String)]| list.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&expected), ids(&found));
    let lost: Vec<_> = expected
        .iter()
        .zip(&found)
        .filter(|(alone, farm)| alone != farm)
        .collect();
    assert!(
        lost.iter().all(|(_, (_, verdict))| verdict == "crash"),
        "{lost:?} {noted}"
    );
    assert!((1..=2).contains(&lost.len()), "{lost:?} {noted}");
    assert_eq!(noted, "", "the others do the work");
}

/// A server that ends for good in the middle: the case that it had is charged, and the others were put to no server.
#[test]
fn a_server_that_is_gone_ends_the_run() {
    let server = Serving::server(&["--release", "0.27", "--suite-functions"]);
    let (listener, to) = (
        TcpListener::bind(("127.0.0.1", 0)).expect("a port"),
        server.address,
    );
    let address = listener.local_addr().expect("an address");
    // The first few sessions get to the server, and no later one.
    let front = std::thread::spawn(move || {
        for _ in 0..6 {
            let (client, _) = listener.accept().expect("a client");
            let server = TcpStream::connect(to).expect("a server");
            for (mut from, mut to) in [
                (client.try_clone(), server.try_clone()),
                (server.try_clone(), client.try_clone()),
            ]
            .map(|(from, to)| (from.expect("a file"), to.expect("a file")))
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    let checked = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["check", "--case", "rpc/session/*-0.27", "--report", "json"])
        .args(["--timeout", "30", "--impl", &format!("rpc:{address}@0.27")])
        .output()
        .expect("a process");
    front.join().expect("no panic");
    assert_eq!(checked.status.code(), Some(1));
    let report = serde_json::from_slice::<serde_json::Value>(&checked.stdout).expect("JSON");
    let problems = report["problems"].as_array().expect("a list");
    let [problem] = &problems[..] else {
        panic!("{problems:?}");
    };
    let problem = problem.as_str().expect("a text");
    assert!(
        problem.starts_with(&format!(
            "no testee is left: the RPC server at {address} is gone"
        )),
        "{problem}"
    );
    let results = report["results"].as_array().expect("a list");
    let named = |verdict: &str| {
        let named = results.iter().filter(|result| result["verdict"] == verdict);
        named.collect::<Vec<_>>()
    };
    assert_eq!(named("crash").len(), 1, "{:?}", named("crash"));
    assert!(named("pass").len() <= 6 && named("fail").is_empty());
    let skipped = named("skipped");
    let reasons = skipped
        .iter()
        .filter(|result| result.to_string().contains("not tried: the RPC server at "));
    assert!(reasons.count() > 20, "{skipped:?}");
}

/// What waits for a server that never comes is one job less, and without any of them nothing is judged.
#[test]
fn a_farm_without_servers_is_nothing() {
    let (_tracker, address) = tracker();
    let text = |implementation: &str, jobs: &str| {
        let checked = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["check", "--case", "rpc/session/*-0.27", "--impl"])
            .args([implementation, "--jobs", jobs])
            .output()
            .expect("a process");
        let text = String::from_utf8_lossy(&checked.stderr).into_owned();
        (checked.status.code(), text)
    };
    for jobs in ["1", "3"] {
        let (code, why) = text(&format!("rpc-tracker:{address}/board?wait=0.3@0.27"), jobs);
        assert_eq!(code, Some(2), "{why}");
        assert!(
            why.contains("no server of key `board` was free within 0.3 s"),
            "{why}"
        );
    }
    // With one server the others wait for their turn, and each gets it.
    let served = [
        "--tracker",
        &*address,
        "--key",
        "board",
        "--release",
        "0.27",
        "--suite-functions",
    ];
    let server = Serving::server(&served);
    let (found, noted) = verdicts(
        &format!("rpc-tracker:{address}/board?wait=30@0.27"),
        &[
            "--jobs",
            "3",
            "--case",
            "function/call/first-*",
            "--case",
            "device/copy-*",
            "--case",
            "tensor/dtype*",
        ],
    );
    assert_eq!(noted, "");
    let passed = |id: &str| {
        found
            .iter()
            .any(|(case, verdict)| case == id && verdict == "pass")
    };
    assert!(passed("function/call/first-dtype") && passed("device/copy-moves-exactly-its-bytes"));
    assert!(
        found.iter().all(|(_, verdict)| verdict != "crash"),
        "{found:?}"
    );
    drop(server);
    for (implementation, why) in [
        ("builtin", "one case at a time"),
        ("rpc:127.0.0.1:1", "one case at a time"),
        ("device:rpc://127.0.0.1:1#cpu:0", "one case at a time"),
        (
            "rpc-tracker:127.0.0.1:1/board",
            "no connection to the tracker",
        ),
        (
            "rpc-tracker:127.0.0.1:1",
            "needs the host and port of a tracker and a key",
        ),
    ] {
        let (code, printed) = text(implementation, "2");
        assert_eq!(code, Some(2), "{implementation}: {printed}");
        assert!(printed.contains(why), "{implementation}: {printed}");
    }
}
