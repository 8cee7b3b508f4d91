//! Memory, directories, threads and processes: the resources that a session may lack, and those that it leaves.

use super::{Peer, PeerAnswer, text};
use crate::support::rpc_peer::handle;
use crate::support::serving::Serving;
use crate::support::skip::skipped;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};
use tvmspec::rpc::{PackedValue, Packet};

#[test]
#[cfg(target_os = "linux")]
fn out_of_memory_ends_sessions_first() {
    let server = Serving::server(&[]);
    let _client = server.greet("client:");
    // The main thread starts the sessions.
    let children = format!("/proc/{0}/task/{0}/children", server.child.id());
    let children = std::fs::read_to_string(children).expect("a list");
    let session = children.split_whitespace().next().expect("a session");
    let order = |process: &str| {
        let order = std::fs::read_to_string(format!("/proc/{process}/oom_score_adj"));
        order.expect("a number").trim().to_owned()
    };
    assert_eq!(order(session), "1000");
    assert_ne!(order(&server.child.id().to_string()), "1000");
}

#[test]
fn a_directory_that_was_removed_is_made_anew() {
    let server = Serving::server(&[]);
    let mut peer = server.peer(27);
    let path = match peer.call("tvm.rpc.server.workpath", vec![text("a.so")]) {
        PeerAnswer::Value(PackedValue::Str(path)) => path,
        other => panic!("{other:?}"),
    };
    let path = std::path::PathBuf::from(String::from_utf8(path.into_owned()).expect("UTF-8"));
    let session = path.parent().expect("that of the session");
    let all = session.parent().expect("that of the server").to_owned();
    assert!(all.join("lock").exists(), "{}", all.display());
    drop(peer);
    std::fs::remove_dir_all(&all).expect("removed");
    server.is_alive(27);
    server.is_alive(8);
}

#[test]
#[cfg(target_os = "linux")]
fn a_system_without_a_thread_costs_one_session() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let mut server = Serving::server(&[]);
    let pid = Pid::from_child(&server.child);
    let size = || -> u64 {
        let stated = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
        let stated = stated.expect("a process");
        let line = stated.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number.expect("a size").parse::<u64>().expect("a number") << 10
    };
    // Waits until the server has started all of its first threads.
    let mut before = 0;
    while before != size() {
        before = size();
        std::thread::sleep(Duration::from_millis(300));
    }
    let bound = |current| {
        let limit = Rlimit {
            current,
            maximum: getrlimit(Resource::As).maximum,
        };
        prlimit(Some(pid), Resource::As, limit).expect("a limit");
    };
    // Less memory than a stack needs.
    bound(Some(before + (256 << 10)));
    let mut rest = Vec::new();
    let _ = server.connect().read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
    let line = server.line();
    assert!(line.starts_with("session 1 from 127.0.0.1:"), "{line}");
    assert!(line.contains(": not started: "), "{line}");
    bound(getrlimit(Resource::As).current);
    server.is_alive(27);
}

/// Code of a client: it starts a process that outlives its call, and returns the process number.
const FORKS: &str = "
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
typedef struct { int32_t type_index; uint32_t padding; int64_t value; } Any;
int __tvm_ffi_fork(void* self, const Any* args, int32_t count, Any* result) {
    pid_t pid = fork();
    if (pid == 0) { for (;;) pause(); }
    result->type_index = 1;
    result->padding = 0;
    result->value = pid;
    return 0;
}
int __tvm_ffi_escape(void* self, const Any* args, int32_t count, Any* result) {
    int ends[2];
    pid_t last = 0;
    if (pipe(ends)) return 0;
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        pid_t second = fork();
        if (second == 0) { setsid(); for (;;) pause(); }
        write(ends[1], &second, sizeof second);
        _exit(0);
    }
    read(ends[0], &last, sizeof last);
    result->type_index = 1;
    result->padding = 0;
    result->value = last;
    return 0;
}
int __tvm_ffi_hungry(void* self, const Any* args, int32_t count, Any* result) {
    size_t size = (size_t)1 << 30;
    char* memory = malloc(size);
    result->type_index = 1;
    result->padding = 0;
    result->value = memory != 0;
    if (memory) for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
    free(memory);
    return 0;
}
int __tvm_ffi_crash(void* self, const Any* args, int32_t count, Any* result) {
    _exit(77);
}
";

#[test]
fn session_end_removes_processes_and_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, library) = (folder.path().join("a.c"), folder.path().join("a.so"));
    std::fs::write(&source, FORKS).expect("written");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        return skipped("`cc` compiles nothing here");
    }
    let content = std::fs::read(&library).expect("a library");
    let mut server = Serving::server(&["--allow-load", "--process-memory", "536870912"]);
    for (start, last, log) in [
        ("fork", None, "closed by the client"),
        ("fork", Some("crash"), "exit status: 77"),
        // A process that leaves the group of its session also ends with the session, if the system lets the server find it.
        #[cfg(target_os = "linux")]
        ("escape", None, "closed by the client"),
        #[cfg(target_os = "linux")]
        ("escape", Some("crash"), "exit status: 77"),
    ] {
        let mut peer = server.peer(27);
        let upload = vec![text("a.so"), PackedValue::Bytes(content.clone().into())];
        peer.call("tvm.rpc.server.upload", upload);
        let path = peer.call("tvm.rpc.server.workpath", vec![text("a.so")]);
        let PeerAnswer::Value(PackedValue::Str(path)) = path else {
            panic!("{path:?}")
        };
        let path = std::path::PathBuf::from(String::from_utf8(path.into_owned()).expect("UTF-8"));
        assert!(path.exists());
        let module = peer.call("tvm.rpc.server.load_module", vec![text("a.so")]);
        let module = PackedValue::Module(handle(module));
        let run = |peer: &mut Peer, name: &'static str| {
            let look = vec![module.clone(), text(name), PackedValue::Bool(0)];
            let function = handle(peer.call("tvm.rpc.server.ModuleGetFunction", look));
            peer.ask(&Packet::CallFunc(function, Vec::new()))
        };
        // RPC-86: the memory of a client's code is bounded as well.
        #[cfg(target_os = "linux")]
        assert_eq!(
            run(&mut peer, "hungry"),
            PeerAnswer::Value(PackedValue::Int(0))
        );
        let PeerAnswer::Value(PackedValue::Int(forked)) = run(&mut peer, start) else {
            panic!("no process")
        };
        let forked = rustix::process::Pid::from_raw(forked as i32).expect("a number");
        rustix::process::test_kill_process(forked).expect("it runs");
        if let Some(name) = last {
            assert_eq!(run(&mut peer, name), PeerAnswer::Gone);
        }
        drop(peer);
        let line = server.line();
        assert!(line.contains(log), "{line}");
        // The line of a session is written before its end, and only the end frees its resources.
        let until = Instant::now() + Duration::from_secs(20);
        while rustix::process::test_kill_process(forked).is_ok() && !is_zombie(forked) {
            assert!(Instant::now() < until, "{forked:?} runs on");
            std::thread::yield_now();
        }
        while path.parent().is_some_and(|folder| folder.exists()) {
            assert!(Instant::now() < until, "{} is there", path.display());
            std::thread::yield_now();
        }
    }
    server.is_alive(27);
}

/// Returns whether a process was killed, but not yet waited for by its new parent.
pub(super) fn is_zombie(process: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}
