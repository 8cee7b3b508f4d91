//! Proxies, servers at proxies and clients of TVM 0.27, with ours in the place of each. Needs a Python with apache-tvm 0.27. The
//! server for browsers also needs the npm packages `@mlc-ai/web-runtime` and `ws` in the folder that `TVMSPEC_WEB_RUNTIME` names.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

use crate::support::python::{python, run};
use crate::support::serving::Serving;
use crate::support::skip::skipped;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tvmspec::release::Release;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{Hello, HelloAnswer, PackedValue, Packet, Protocol, Speaker};

/// Running script in a separate process group, because TVM's processes leave workers running.
struct Script(Child, String);

impl Script {
    /// Starts the script and waits for the first line that it prints.
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

/// A server of 0.27 that connects to a proxy.
const SERVER: &str = r#"
import sys
from tvm import rpc
server = rpc.Server(host="127.0.0.1", port=int(sys.argv[1]), key="board", is_proxy=True, silent=True)
print("there", flush=True)
sys.stdin.read()
"#;

/// A server of 0.27 that connects over a WebSocket, like one in a browser.
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

/// TVM's server for browsers. The package has no WebAssembly runtime, so the script prints the code that a client sends for it.
const BROWSER_SERVER: &str = r#"
const { RPCServer } = require("@mlc-ai/web-runtime");
WebAssembly.instantiate = (bytes) => {
    console.log(bytes.byteLength, new Uint8Array(bytes).every((byte, at) => byte === at % 251));
    process.exit(0);
};
new RPCServer(`ws://${process.argv[1]}/ws`, "board", () => ({}), () => {});
"#;

/// Returns the folder with the packages for node, or the reason why it is missing.
fn web_runtime() -> Result<PathBuf, String> {
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|out| out.status.success()) {
        return Err("`node` is not installed".to_owned());
    }
    let folder = std::env::var_os("TVMSPEC_WEB_RUNTIME");
    let folder = folder.ok_or("TVMSPEC_WEB_RUNTIME names no folder")?;
    let modules = Path::new(&folder).join("node_modules");
    for name in ["@mlc-ai/web-runtime", "ws"] {
        if !modules.join(name).is_dir() {
            return Err(format!("{} has no {name}", modules.display()));
        }
    }
    Ok(modules)
}

#[test]
fn rpc_76_the_server_for_browsers_waits_at_our_proxy() {
    let modules = match web_runtime() {
        Ok(modules) => modules,
        Err(why) => return skipped(why),
    };
    let proxy = Serving::start(&["proxy", "--port", "0", "--web-port", "0"]);
    let web = proxy.rest.rsplit(' ').next().expect("an address");
    let mut server = Command::new("node")
        .args(["-e", BROWSER_SERVER, web])
        .env("NODE_PATH", modules)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let socket = TcpStream::connect(proxy.address).expect("the proxy listens");
    let mut client = Transport::tcp(socket).expect("a socket");
    let key = Cow::Borrowed("client:board");
    client.write_hello(&Hello { key }).expect("written");
    // The proxy answers after the server has connected.
    let answer = client.read_answer(Release::LAST).expect("an answer");
    assert_eq!(answer, HelloAnswer::Success("server:board".into()));
    let code: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let arguments = vec![
        PackedValue::Str(b"rpc.WasmSession".as_slice().into()),
        PackedValue::Bytes(Cow::Borrowed(&code)),
    ];
    let init = Packet::InitServer(Cow::Borrowed(b"0.8.0"), arguments);
    let spoken = Protocol::new(Release::LAST, Speaker::Client);
    client.write_packet(&init, &spoken).expect("written");
    let mut printed = String::new();
    let mut out = server.stdout.take().expect("piped");
    out.read_to_string(&mut printed).expect("text");
    assert_eq!(printed.trim(), "3000000 true");
    assert!(server.wait().expect("it ends").success());
}
