//! Servers and clients of a released TVM, connected to our tracker.

#![cfg(all(feature = "rpc", feature = "runtime"))]

use crate::support::python;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::TrackerRequest;
use tvmspec::rpc::tracker::{TrackerHandle, TrackerLimits, TrackerServer};
use tvmspec::wire::Writer;

/// Process that is terminated at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Its worker is a separate process. The server ends it on SIGINT, but not on SIGKILL.
        let _ = Command::new("kill")
            .args(["-INT", &self.0.id().to_string()])
            .status();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tracker that is stopped at the end of the test.
struct Running(TrackerHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
    }
}

const CLIENT: &str = r#"
import os, sys, threading
from tvm import rpc
# A server that never comes must not keep the test.
threading.Timer(60, os._exit, [1]).start()
host, port = sys.argv[1].rsplit(":", 1)
tracker = rpc.connect_tracker(host, int(port))
for _ in range(2):
    remote = tracker.request("dev", session_timeout=30)
    assert remote.get_function("rpc.test.addone")(41) == 42
    del remote
print(tracker.text_summary(), flush=True)
os._exit(0)
"#;

#[test]
fn a_released_server_registers_and_a_released_client_gets_it() {
    let Some(python) = python::python("tvm, tvm.rpc, cloudpickle") else {
        return;
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = TrackerServer::bind(any, TrackerLimits::default()).unwrap();
    let tracker = Running(server.handle().unwrap());
    let thread = thread::spawn(move || server.run(|event| eprintln!("{event:?}")).unwrap());
    let address = tracker.0.address().to_string();
    let device = Command::new(&python)
        .args([
            "-m",
            "tvm.exec.rpc_server",
            "--host",
            "127.0.0.1",
            "--key",
            "dev",
        ])
        .args([
            "--port",
            "9500",
            "--port-end",
            "9900",
            "--tracker",
            &address,
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let device = Process(device);
    let printed = python::run(&python, CLIENT, &[address.as_ref()]);
    assert!(
        printed.contains("server:dev") && printed.contains("127.0.0.1"),
        "{printed}"
    );
    // A client waits for a key that no server has.
    let (host, port) = address.split_once(':').unwrap();
    let (host, port) = (host.to_owned(), port.parse().unwrap());
    let mut waiting = TcpStream::connect((host, port)).unwrap();
    waiting.write_all(b"\x71\xf2\x02\x00").unwrap();
    waiting.read_exact(&mut [0; 4]).unwrap();
    let mut out = Writer::new();
    let request = TrackerRequest::Request {
        key: "absent".to_owned(),
        user: String::new(),
        priority: 1,
    };
    request.write(Release::LAST, &mut out).unwrap();
    waiting.write_all(&out.into_bytes()).unwrap();
    // Waits until the server is available again after its session, and until the request has arrived.
    let row = |key: &str| {
        let queues = tracker.0.summary().queues.into_iter();
        let mut found = queues.filter(|count| count.key == key);
        found.next().map(|count| (count.free, count.pending))
    };
    let begin = Instant::now();
    while (row("dev"), row("absent")) != (Some((1, 0)), Some((0, 1))) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{:?}",
            tracker.0.summary()
        );
        thread::sleep(Duration::from_millis(10));
    }
    let table = Command::new(&python)
        .args([
            "-m",
            "tvm.exec.query_rpc_tracker",
            "--host",
            "127.0.0.1",
            "--port",
        ])
        .arg(tracker.0.address().port().to_string())
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("server:dev"), "{table}");
    let ours = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["tracker", "--query", &address])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&ours.stdout), table);
    // The columns of servers and requests: key, total, free and pending.
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for row in [["dev", "1", "1", "0"], ["absent", "0", "0", "1"]] {
        assert!(rows.iter().any(|line| line[..] == row), "{row:?}: {table}");
    }
    // RPC-63: entries of a disconnected server are removed.
    drop(device);
    let begin = Instant::now();
    while !tracker.0.summary().servers.is_empty() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "the server is still listed"
        );
        thread::yield_now();
    }
    // RPC-64: keys stay, even without a free server.
    let queues = tracker.0.summary().queues;
    let queues: Vec<_> = queues
        .iter()
        .map(|count| (&*count.key, count.free, count.pending))
        .collect();
    assert_eq!(queues, [("dev", 0, 0), ("absent", 0, 1)]);
    drop(waiting);
    tracker.0.stop();
    thread.join().unwrap();
}

/// Runs some cases of `rpc.relay` against the tracker and the proxy of the wheel, with the known failures.
/// `conformance/suites/rpc.sh` runs all of them.
#[cfg(feature = "cli")]
#[test]
fn a_released_tracker_and_proxy_answer_cases() {
    let Some(python) = python::python("tvm.rpc.tracker, tornado") else {
        return;
    };
    let root = env!("CARGO_MANIFEST_DIR");
    let mut check = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
    check
        .current_dir(root)
        .arg("check")
        .args(["--timeout", "100"]);
    for case in [
        "tracker-summary",
        "tracker-request-withdrawn",
        "tracker-pieces",
        "proxy-client-first",
        "proxy-web-parts",
    ] {
        check.args(["--case", &format!("rpc/relay/{case}")]);
    }
    check.arg("--impl").arg(format!(
        "exec:{python} conformance/testee/python/rpc_relay.py"
    ));
    check.args(["--known", "conformance/known/apache-tvm-relay-0.27.toml"]);
    let output = check.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    // The known deviation is reported, and the other cases pass.
    assert!(printed.contains("5 cases: 4 pass, 1 fail"), "{printed}");
}
