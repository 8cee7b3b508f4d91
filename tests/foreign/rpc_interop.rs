//! Our clients and servers paired with those of real TVM. Each pair is a line of `conformance/reports/rpc-pairings.md`.
//!
//! The tests need these variables:
//!
//! * `TVMSPEC_PYTHON`: a Python with apache-tvm 0.27.
//! * `TVMSPEC_PYTHON_0_16`: a Python with the package `hhb-tvm` 3.2.3, which is 0.16.dev0.
//! * `TVMSPEC_PYTHON_0_8`: a Python command that imports the package of tag 0.8, with a runtime that was built with USE_RPC.

#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

mod client;

use crate::support::python::python;
use crate::support::skip::skipped;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Server in a separate process, which ends when this value is dropped.
struct ServerProcess {
    child: Child,
    port: u16,
}

impl ServerProcess {
    /// Starts `tests/interop/real_server.py` with `python`.
    fn real(python: &str) -> ServerProcess {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
        // The port was free a moment ago. If it is taken, the script tries the following ports.
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = free.local_addr().expect("an address").port().min(60000);
        drop(free);
        let mut command = Command::new(python);
        command
            .arg(root.join("real_server.py"))
            .arg(port.to_string());
        ServerProcess::start(command)
    }

    fn start(mut command: Command) -> ServerProcess {
        // A separate process group, because TVM's servers leave workers running.
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let mut child = spawned.expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            // The script prints `port N`, and `tvmspec serve` prints `serving on HOST:PORT`.
            let port = line.strip_prefix("port ");
            let port = port.or_else(|| line.strip_prefix("serving on ")?.rsplit(':').next());
            port?.trim().parse().ok()
        });
        let Some(port) = port else {
            let _ = child.kill();
            panic!("the server ends before it listens: {:?}", child.wait());
        };
        // Drains the remaining output, because a full pipe would block the server.
        std::thread::spawn(move || lines.for_each(drop));
        ServerProcess { child, port }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// An available release: its Python, and a library of it whose function adds 1 to float32 tensors.
struct Peer {
    python: String,
    library: &'static str,
    function: &'static str,
}

impl Peer {
    /// Finds the release. If it is not available, reports that the test is skipped and returns `None`.
    fn find(release: u8) -> Option<Peer> {
        let (library, function) = match release {
            27 => ("module/host-0.27.so", "main"),
            16 => ("eras/0.16/host.so", "add1"),
            _ => ("module/host-0.8.so", "add1"),
        };
        let python = match release {
            27 => python("tvm, tvm_ffi, numpy")?,
            _ => {
                let variable = format!("TVMSPEC_PYTHON_0_{release}");
                match std::env::var(&variable) {
                    Ok(python) => python,
                    Err(_) => {
                        skipped(format_args!(
                            "{variable} names no Python with TVM 0.{release}"
                        ));
                        return None;
                    }
                }
            }
        };
        Some(Peer {
            python,
            library,
            function,
        })
    }

    /// Runs `tests/interop/real_client.py` and returns its report for each step with a server, or for the connection if it fails.
    fn client(&self, server: &ServerProcess, hop: Option<&ServerProcess>) -> Vec<(String, String)> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/real_client.py");
        let mut command = Command::new(&self.python);
        command.arg(script).arg(server.port.to_string());
        command.arg(golden(self.library)).arg(self.function);
        command.args(hop.map(|hop| hop.port.to_string()));
        let output = command.output().expect("a process");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let steps = printed.lines().filter_map(|line| line.split_once(": "));
        let steps: Vec<_> = steps
            .map(|(step, outcome)| (step.to_owned(), outcome.to_owned()))
            .collect();
        assert!(
            !steps.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        steps
    }
}

/// Starts our server with the features that clients commonly use.
fn our_server() -> ServerProcess {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
    command.args(["serve", "--port", "0", "--allow-load"]);
    ServerProcess::start(command)
}

/// Prints a line of the table, and returns the steps that failed.
fn row(client: &str, server: &str, steps: &[(String, String)]) -> Vec<String> {
    let failed = steps.iter().filter(|(_, outcome)| outcome != "ok");
    let failed: Vec<String> = failed
        .map(|(step, outcome)| format!("{step}: {outcome}"))
        .collect();
    let good = steps.iter().filter(|(_, outcome)| outcome == "ok");
    let good: Vec<&str> = good.map(|(step, _)| step.as_str()).collect();
    println!(
        "| {client} | {server} | {} | {} |",
        good.join(", "),
        failed.join("; ")
    );
    failed
}

/// Runs a client of a release with a server of that release and with ours. The results differ only where that release's server
/// fails.
fn real_client(release: u8) {
    let Some(peer) = Peer::find(release) else {
        return;
    };
    let client = format!("0.{release}");
    let ours = our_server();
    let failed = row(&client, "ours", &peer.client(&ours, None));
    assert!(failed.is_empty(), "{failed:?}");
    let theirs = ServerProcess::real(&peer.python);
    // The two servers differ only in the known deviations.
    let failed = row(&client, &client, &peer.client(&theirs, None));
    let known = |line: &String| release == 16 && line.starts_with("exception: ");
    assert!(failed.iter().all(known), "{failed:?}");
    // Chains of two servers: TVM's through TVM's, and TVM's to ours.
    let second = ServerProcess::real(&peer.python);
    let steps = peer.client(&theirs, Some(&second));
    let failed = row(&client, &format!("{client}, {client}"), &steps);
    assert!(failed.iter().all(known), "{failed:?}");
    let steps = peer.client(&theirs, Some(&ours));
    let failed = row(&client, &format!("{client}, ours"), &steps);
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn a_client_of_0_27_uses_our_server() {
    real_client(27);
}

#[test]
fn a_client_of_0_16_uses_our_server() {
    real_client(16);
}

#[test]
fn a_client_of_0_8_uses_our_server() {
    real_client(8);
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}
