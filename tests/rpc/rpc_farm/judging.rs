//! The suite against the servers of a tracker.

use super::tracker;
use crate::support::serving::Serving;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use tvmspec::rpc::TrackerRequest;
use tvmspec::rpc::tracker::TrackerClient;

/// Starts a server of a tracker that answers one hello and then leaves, like one that crashes in its first session.
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

/// Waits until `count` servers wait for clients.
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

/// Runs `check`. Returns the id and verdict of each case, and the text on stderr.
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

/// Runs the suite against three servers at once, one of which is killed, and a further one that dies in its first session. Each of the two
/// loses only its current case, and the report has the order of the suite.
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
    // RPC-62: offered after the others, so that it gets a case, not the session that checks for servers.
    let dying = dying_server(&address);
    let [killed, _second, _third] = servers;
    let killer = std::thread::spawn(move || {
        let mut killed = killed;
        // One line for each session: the server has had some, and may be in one.
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

/// A server ends during a run and does not return: its current case must be a crash, and the others must be skipped.
#[test]
fn a_server_that_is_gone_ends_the_run() {
    let server = Serving::server(&["--release", "0.27", "--suite-functions"]);
    let (listener, to) = (
        TcpListener::bind(("127.0.0.1", 0)).expect("a port"),
        server.address,
    );
    let address = listener.local_addr().expect("an address");
    // Only the first few sessions reach the server.
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

/// A job that gets no server ends, and the others continue. Without any server no case is judged.
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
    // With one server the jobs wait for their turn, and each gets it.
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
