//! Proxies, servers at proxies and clients of the real TVM, 0.27, with ours in the place of each. Needs a Python with apache-tvm 0.27.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

use crate::support::python::{python, run};
use crate::support::serving::Serving;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A script that goes on, in a group of its own: what TVM starts leaves workers behind.
struct Script(Child, String);

impl Script {
    /// Runs it, up to the first line that it prints.
    fn start(python: &str, script: &str, arguments: &[&str]) -> Script {
        let mut child = Command::new(python)
            .args(["-c", script])
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        Script(child, line.trim().to_owned())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

const PROXY: &str = r#"
import sys
from tvm.rpc.proxy import Proxy
proxy = Proxy("127.0.0.1", port=19600, port_end=29999)
print(proxy.port, flush=True)
sys.stdin.read()
"#;

/// A server of 0.27 at a proxy.
const SERVER: &str = r#"
import sys
from tvm import rpc
server = rpc.Server(host="127.0.0.1", port=int(sys.argv[1]), key="board", is_proxy=True, silent=True)
print("there", flush=True)
sys.stdin.read()
"#;

/// A server of 0.27 that comes by a WebSocket, as one in a browser does.
const WEB_SERVER: &str = r#"
import sys
from tvm.rpc.proxy import websocket_proxy_server
print("there", flush=True)
websocket_proxy_server("ws://" + sys.argv[1] + "/ws", key="board")
"#;

const CLIENT: &str = r#"
import sys, numpy, tvm
from tvm import rpc
host, port = sys.argv[1].split(":")
for count in range(int(sys.argv[3])):
    if sys.argv[2] == "tracker":
        remote = rpc.connect_tracker(host, int(port)).request("board", session_timeout=60)
    else:
        remote = rpc.connect(host, int(port), key="board", session_timeout=60)
    large = numpy.arange(1 << 20, dtype="float32") + count
    print(remote.get_function("rpc.test.addone")(count), (tvm.runtime.tensor(large, remote.cpu(0)).numpy() == large).all())
    del remote
"#;

fn client(python: &str, address: &str, by: &str, sessions: usize) {
    let count = sessions.to_string();
    let arguments = [address, by, &count].map(Path::new);
    let expected: Vec<String> = (1..=sessions)
        .map(|count| format!("{count} True"))
        .collect();
    assert_eq!(
        run(python, CLIENT, &arguments),
        expected.join("\n"),
        "{by} {address}"
    );
}

#[test]
fn rpc_94_our_server_waits_at_a_proxy_of_0_27() {
    let Some(python) = python("tvm, tvm.rpc, tornado") else {
        return;
    };
    let proxy = Script::start(&python, PROXY, &[]);
    let address = format!("127.0.0.1:{}", proxy.1);
    let _server = Serving::start(&["serve", "--proxy", &address, "--key", "board"]);
    client(&python, &address, "proxy", 3);
}

#[test]
fn rpc_71_servers_of_0_27_wait_at_our_proxy() {
    let Some(python) = python("tvm, tvm.rpc, tornado") else {
        return;
    };
    let proxy = Serving::start(&["proxy", "--port", "0", "--web-port", "0"]);
    let address = proxy.address.to_string();
    let server = Script::start(&python, SERVER, &[proxy.port().to_string().as_str()]);
    client(&python, &address, "proxy", 2);
    drop(server);
    let web = proxy.rest.rsplit(' ').next().expect("an address");
    let _server = Script::start(&python, WEB_SERVER, &[web]);
    client(&python, &address, "proxy", 1);
}

#[test]
fn rpc_67_a_tracker_has_servers_of_0_27_at_our_proxy() {
    let Some(python) = python("tvm, tvm.rpc, tornado") else {
        return;
    };
    let tracker = Serving::start(&["tracker", "--port", "0"]);
    let at = tracker.address.to_string();
    let proxy = Serving::start(&["proxy", "--port", "0", "--tracker", &at]);
    let _server = Script::start(&python, SERVER, &[proxy.port().to_string().as_str()]);
    client(&python, &at, "tracker", 2);
}
