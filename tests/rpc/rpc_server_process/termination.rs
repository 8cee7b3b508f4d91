//! Calls and sessions that end early, or that do not end by themselves.

use super::resources::is_zombie;
use super::{Peer, PeerAnswer, init, text};
use crate::support::rpc_peer::handle;
use crate::support::serving::Serving;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::rpc::{PackedValue, Packet};

#[test]
fn a_silent_client_holds_no_other_back() {
    let server = Serving::server(&["--sessions", "2"]);
    let _silent = server.connect();
    server.is_alive(27);
    server.is_alive(8);
}

#[test]
fn rpc_83_a_call_that_takes_too_long_is_ended() {
    // A client cannot end a call during the pause of a time evaluator.
    let mut server = Serving::server(&["--timeout", "0.5"]);
    let mut peer = server.peer(27);
    let evaluator = evaluator(&mut peer, 10, 60_000);
    match peer.ask(&Packet::CallFunc(evaluator, vec![PackedValue::Int(1)])) {
        PeerAnswer::Raised(text) => assert!(text.starts_with("RPCSessionTimeoutError: "), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.read(), PeerAnswer::Gone);
    let line = server.line();
    assert!(line.contains("its time was over during a call"), "{line}");
    server.is_alive(27);
}

/// Creates a time evaluator that pauses at least `times` - 1 times, each time for `pause` ms: no client can end such a call. The measured
/// function is one of the server itself.
fn evaluator(peer: &mut Peer, times: i64, pause: i64) -> u64 {
    let mut args = vec![PackedValue::None, text("rpc.test.addone")];
    args.extend([1, 0, 1, times, 0, 1, pause, 1, 0].map(PackedValue::Int));
    args.push(text(""));
    handle(peer.call("runtime.RPCTimeEvaluator", args))
}

#[test]
fn a_call_whose_client_has_left_is_ended() {
    let mut server = Serving::server(&["--sessions", "1"]);
    for with_shutdown in [false, true] {
        let mut peer = server.peer(27);
        let evaluator = evaluator(&mut peer, 10, 60_000);
        let call = Packet::CallFunc(evaluator, vec![PackedValue::Int(1)]);
        peer.transport
            .write_packet(&call, &peer.own)
            .expect("written");
        // Unread bytes hide the end of the connection from a reader.
        if with_shutdown {
            peer.transport
                .write_packet(&Packet::Shutdown, &peer.own)
                .expect("written");
        }
        drop(peer);
        let line = server.line();
        assert!(line.contains("the client left during a call"), "{line}");
        server.is_alive(27);
        let line = server.line();
        assert!(line.contains("ended by the client"), "{line}");
    }
}

#[test]
fn a_client_that_asks_nothing_is_not_waited_for() {
    let mut server = Serving::server(&["--sessions", "1", "--idle", "3"]);
    let mut peer = server.peer(27);
    // The call takes longer than the idle time.
    let evaluator = evaluator(&mut peer, 3, 2500);
    let call = Packet::CallFunc(evaluator, vec![PackedValue::Int(1)]);
    assert!(matches!(peer.ask(&call), PeerAnswer::Value(_)));
    match peer.read() {
        PeerAnswer::Raised(text) => assert!(text.contains("client did nothing for 3 s"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.read(), PeerAnswer::Gone);
    let line = server.line();
    assert!(line.contains("its client did nothing for 3 s"), "{line}");
    server.is_alive(8);
}

/// Returns whether TCP keep-alive is on for the connection of these ports on this machine.
#[cfg(target_os = "linux")]
fn is_kept_alive(own: u16, other: u16) -> bool {
    let stated = std::fs::read_to_string("/proc/net/tcp").expect("the connections");
    stated.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, near, far, _, _, timer, ..] = fields[..] else {
            return false;
        };
        let is_of = |end: &str, port: u16| end.ends_with(&format!(":{port:04X}"));
        is_of(near, own) && is_of(far, other) && timer.starts_with("02:")
    })
}

#[test]
#[cfg(target_os = "linux")]
fn a_peer_that_vanished_is_found_out() {
    let until = Instant::now() + Duration::from_secs(20);
    let server = Serving::server(&[]);
    let client = server.greet("client:");
    let port = client.local_addr().expect("an address").port();
    while !is_kept_alive(server.address.port(), port) {
        assert!(Instant::now() < until, "a client");
        std::thread::sleep(Duration::from_millis(20));
    }
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = proxy.local_addr().expect("an address");
    let mut server = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["serve", "--key", "k", "--proxy", &at.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .expect("a server");
    let (_stream, from) = proxy.accept().expect("a server");
    while !is_kept_alive(from.port(), at.port()) {
        assert!(Instant::now() < until, "a proxy");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill().expect("killed");
    server.wait().expect("an end");
}

#[test]
fn a_signal_waits_for_the_sessions_and_a_second_one_ends_them() {
    let mut server = Serving::server(&[]);
    let mut stream = server.greet("client:");
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let line = server.line();
    assert!(line.starts_with("waiting for 1 sessions"), "{line}");
    // The session is served to its end.
    stream.write_all(&init()).expect("written");
    let mut begun = [0; 16];
    stream.read_exact(&mut begun).expect("a session");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(server.child.wait().expect("an end").success());
}

/// The call would not end by itself, and the signal comes only once: the next signal of a supervisor cannot be caught.
#[test]
fn sigterm_ends_sessions_and_their_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Serving::server_in(folder.path(), &[]);
    let mut peer = server.peer(27);
    let evaluator = evaluator(&mut peer, 10, 60_000);
    let call = Packet::CallFunc(evaluator, vec![PackedValue::Int(1)]);
    peer.transport
        .write_packet(&call, &peer.own)
        .expect("written");
    terminate(&mut server);
    assert_eq!(peer.read(), PeerAnswer::Gone);
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "in {}", folder.path().display());
}

/// Neither the compiler nor its temporary files are left.
#[test]
fn sigterm_ends_a_compiler() {
    let folder = tempfile::tempdir().expect("a folder");
    let (compiler, started) = (folder.path().join("cc"), folder.path().join("started"));
    let script = format!(
        "#!/bin/sh\necho half >\"$(mktemp)\"\necho $$ >'{0}.new'\nmv '{0}.new' '{0}'\nexec sleep 60\n",
        started.display()
    );
    std::fs::write(&compiler, script).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&compiler, mode).expect("a mode");
    let temporary = tempfile::tempdir().expect("a folder");
    let compiler = compiler.to_str().expect("UTF-8");
    let arguments = ["--allow-load", "--allow-link", "--cc", compiler];
    let mut server = Serving::server_in(temporary.path(), &arguments);
    let mut peer = server.peer(27);
    let upload = vec![text("a.o"), PackedValue::Bytes(b"object".as_slice().into())];
    peer.call("tvm.rpc.server.upload", upload);
    let load = peer.look_up("tvm.rpc.server.load_module");
    let call = Packet::CallFunc(load, vec![text("a.o")]);
    peer.transport
        .write_packet(&call, &peer.own)
        .expect("written");
    let until = Instant::now() + Duration::from_secs(20);
    let compiler = loop {
        if let Ok(number) = std::fs::read_to_string(&started) {
            break number.trim().parse().expect("a number");
        }
        assert!(Instant::now() < until, "no compiler is started");
        std::thread::sleep(Duration::from_millis(20));
    };
    let compiler = rustix::process::Pid::from_raw(compiler).expect("a process");
    terminate(&mut server);
    while rustix::process::test_kill_process(compiler).is_ok() && !is_zombie(compiler) {
        assert!(Instant::now() < until, "the compiler runs on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = std::fs::read_dir(temporary.path()).expect("a folder");
    let left: Vec<_> = left.flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Sends SIGTERM, and checks that the server ends long before the calls of its sessions would.
#[track_caller]
fn terminate(server: &mut Serving) {
    let pid = rustix::process::Pid::from_child(&server.child);
    let began = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    assert!(server.child.wait().expect("an end").success());
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}
