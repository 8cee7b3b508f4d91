//! A client of TVM 0.27 with `tvmspec serve`: the common requests of such a client. Needs a Python with apache-tvm 0.27.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

use crate::support::python::{python, run};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Process that is terminated at the end of the test, and the first line that it printed.
struct Server(Child, String);

impl Server {
    fn start(command: &mut Command) -> Server {
        // A separate process group, because TVM's servers leave workers running.
        let command = command.stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        Server(child, line)
    }

    fn serve(arguments: &[&str]) -> Server {
        let program = env!("CARGO_BIN_EXE_tvmspec");
        Server::start(
            Command::new(program)
                .args(["serve", "--port", "0"])
                .args(arguments),
        )
    }

    fn port(&self) -> &str {
        self.1.trim().rsplit(':').next().expect("a port")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

const CLIENT: &str = r#"
import sys, numpy, tvm
from tvm import rpc
library = sys.argv[2]
remote = rpc.connect("127.0.0.1", int(sys.argv[1]), session_timeout=100)
device = remote.cpu(0)
print(remote.get_function("rpc.test.addone")(41), remote.get_function("rpc.test.strcat")("abc", 11))
try: remote.get_function("rpc.test.except")("abc")
except tvm.error.RPCError as error: print(str(error).splitlines()[-1])
print(bool(device.exist), bool(remote.cuda(0).exist))
large = numpy.arange(4 << 20, dtype="float32")
first = tvm.runtime.tensor(large, device)
second = tvm.runtime.empty(large.shape, "float32", device)
first.copyto(second)
print((second.numpy() == large).all())
remote.upload(library)
print(remote.download("host.so") == open(library, "rb").read())
module = remote.load_module("host.so")
a = tvm.runtime.tensor(numpy.arange(4, dtype="float32"), device)
b = tvm.runtime.empty((4,), "float32", device)
module["add1"](a, b)
print(b.numpy().tolist())
times = module.time_evaluator("add1", device, number=3, repeat=2)(a, b).results
print(len(times), all(0 < time < 1 for time in times))
try: module["none"]
except AttributeError: print("no such function")
"#;

const ANSWERS: &str = "42 abc:11
ValueError: abc
True False
True
True
[1.0, 2.0, 3.0, 4.0]
2 True
no such function";

#[test]
fn a_client_of_0_27_uploads_loads_calls_and_copies() {
    let Some(python) = python("tvm, tvm.rpc, numpy") else {
        return;
    };
    let server = Server::serve(&["--allow-load"]);
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/eras/0.26/host.so");
    let printed = run(&python, CLIENT, &[Path::new(server.port()), &library]);
    assert_eq!(printed, ANSWERS);
}

const FIRST: &str = r#"
import sys
from tvm import rpc
requests = [
    lambda remote: remote.cpu(0).exist,
    lambda remote: remote.ext_dev(1).exist,
    lambda remote: remote.cpu(0).max_threads_per_block,
    lambda remote: remote.cpu(0).sync(),
    lambda remote: remote.cpu(0).create_raw_stream(),
    lambda remote: remote.get_function("rpc.test.addone")(41),
]
for request in requests:
    remote = rpc.connect("127.0.0.1", int(sys.argv[1]))
    print(request(remote), remote.get_function("rpc.test.addone")(41))
"#;

/// RPC-84: the server must answer the first request of a session, of any kind, in the client's layout.
#[test]
fn rpc_84_whatever_a_client_of_0_27_requests_first() {
    let Some(python) = python("tvm, tvm.rpc") else {
        return;
    };
    let server = Server::serve(&[]);
    let printed = run(&python, FIRST, &[Path::new(server.port())]);
    let lines: Vec<&str> = printed.lines().collect();
    let expected = ["True 42", "False 42", "None 42", "None 42", "0 42", "42 42"];
    assert_eq!(lines, expected);
}

const HOPS: &str = r#"
import sys, numpy, tvm
from tvm import rpc
first, second, library = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
remote = rpc.connect("127.0.0.1", first, session_constructor_args=["rpc.Connect", "127.0.0.1", second, "", False])
device = remote.cpu(0)
print(remote.get_function("rpc.test.addone")(41), remote.get_function("rpc.test.strcat")("abc", 11))
try: remote.get_function("rpc.test.except")("abc")
except tvm.error.RPCError as error: print(str(error).split()[-1])
large = numpy.arange(4 << 20, dtype="float32")
first = tvm.runtime.tensor(large, device)
print((first.numpy() == large).all())
remote.upload(library)
module = remote.load_module("host.so")
a = tvm.runtime.tensor(numpy.arange(4, dtype="float32"), device)
b = tvm.runtime.empty((4,), "float32", device)
module["add1"](a, b)
print(b.numpy().tolist())
times = module.time_evaluator("add1", device, number=3, repeat=2)(a, b).results
print(len(times), all(0 < time < 1 for time in times))
"#;

const HOPPED: &str = "42 abc:11
abc
True
[1.0, 2.0, 3.0, 4.0]
2 True";

/// A server of TVM 0.27 that prints its port.
const SERVER: &str = r#"
import sys
from tvm import rpc
server = rpc.Server(host="127.0.0.1", port=19090, port_end=29999, silent=True)
print("serving on 127.0.0.1:%d" % server.port, flush=True)
sys.stdin.read()
server.terminate()
"#;

#[test]
fn a_client_of_0_27_goes_through_our_server_to_ours_and_to_that_of_0_27() {
    let Some(python) = python("tvm, tvm.rpc, numpy") else {
        return;
    };
    let first = Server::serve(&["--allow-connect", "127.0.0.1"]);
    let ours = Server::serve(&["--allow-load"]);
    let theirs = Server::start(
        Command::new(&python)
            .args(["-c", SERVER])
            .stdin(Stdio::piped()),
    );
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/eras/0.26/host.so");
    for second in [&ours, &theirs] {
        let ports = [Path::new(first.port()), Path::new(second.port())];
        let printed = run(&python, HOPS, &[ports[0], ports[1], &library]);
        assert_eq!(printed, HOPPED, "through us to {}", second.1);
    }
}

const TRACKER: &str = r#"
from tvm.rpc.tracker import Tracker
tracker = Tracker("127.0.0.1", port=19190, port_end=29999, silent=True)
print("tracker on", "127.0.0.1:%d" % tracker.port, flush=True)
tracker.proc.join()
"#;

const REQUESTS: &str = r#"
import sys, time
from tvm import rpc
tracker = rpc.connect_tracker("127.0.0.1", int(sys.argv[1]))
for count in range(3):
    remote = tracker.request("board", session_timeout=60)
    print(remote.get_function("rpc.test.addone")(count))
    del remote
print([server["key"] for server in tracker.summary()["server_info"]])
"#;

#[test]
fn a_tracker_of_0_27_hands_the_server_out_again_and_again() {
    let Some(python) = python("tvm, tvm.rpc.tracker") else {
        return;
    };
    let tracker = Server::start(Command::new(&python).args(["-c", TRACKER]));
    let address = format!("127.0.0.1:{}", tracker.port());
    let _server = Server::serve(&["--tracker", &address, "--key", "board"]);
    let printed = run(&python, REQUESTS, &[Path::new(tracker.port())]);
    assert_eq!(printed, "1\n2\n3\n['server:board']");
}
