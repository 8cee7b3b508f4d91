//! Stress test of servers and a tracker with many clients. Some clients, sessions and servers are killed, and the tracker is restarted:
//! nothing is left, and the next client is served.
//!
//! The test takes a few seconds, or a minute if `TVMSPEC_THOROUGH` is set.
#![cfg(all(target_os = "linux", feature = "cli", feature = "rpc"))]

use crate::support::test_scale::is_thorough;
use std::borrow::Cow;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::tracker::TrackerClient;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker, TrackerReply,
    TrackerRequest, TrackerSummary,
};
use tvmspec::rule::Findings;

/// A process of `tvmspec` that listens, with its files in a folder of the test.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(folder: &Path, arguments: &[&str]) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(arguments)
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit(' ').next();
        let address = address.and_then(|address| address.parse().ok());
        Process {
            child,
            address: address.unwrap_or_else(|| panic!("no address in {line:?}")),
        }
    }

    fn server(folder: &Path, arguments: &[&str]) -> Process {
        Process::start(folder, &[&["serve", "--port", "0"], arguments].concat())
    }

    /// Returns the numbers of open files and threads, which must not include those of ended sessions.
    fn holds(&self) -> (usize, usize) {
        let count = |what: &str| {
            let entries = fs::read_dir(format!("/proc/{}/{what}", self.child.id()));
            entries.map_or(0, Iterator::count)
        };
        (count("fd"), count("task"))
    }

    /// Returns the resident memory, in KiB.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the process numbers of the sessions of all servers whose files are in `folder`.
fn sessions(folder: &Path) -> Vec<u32> {
    let folder = folder.to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").expect("processes");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_session = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("serve-session") && line.contains(&folder)
    };
    numbers.filter(is_session).collect()
}

/// A client that writes packets itself, because a process may have any number of those.
struct Peer {
    transport: Transport,
    own: Protocol,
    other: Protocol,
}

impl Peer {
    /// Begins a session. The error is the reason why there is no session.
    fn begin(address: (&str, u16), key: &str, release: u8) -> Result<Peer, String> {
        let message = |error: &dyn std::fmt::Display| error.to_string();
        let stream = TcpStream::connect(address).map_err(|error| message(&error))?;
        let mut transport = Transport::tcp(stream).map_err(|error| message(&error))?;
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(60)));
        let key = Cow::Owned(format!("client:{key}"));
        let hello = transport.write_hello(&Hello { key });
        hello.map_err(|error| message(&error))?;
        let release = Release::of(release);
        let answer = transport.read_answer(release);
        if !matches!(&answer, Ok(HelloAnswer::Success(_))) {
            return Err(format!("{answer:?}"));
        }
        let mut peer = Peer {
            transport,
            own: Protocol::new(release, Speaker::Client),
            other: Protocol::new(release, Speaker::Server),
        };
        peer.ask(&Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new()))?;
        Ok(peer)
    }

    /// Writes a request. Returns the last value of its answer.
    fn ask(&mut self, packet: &Packet<'_>) -> Result<Option<i64>, String> {
        let message = |error: tvmspec::function::Error| error.to_string();
        self.transport
            .write_packet(packet, &self.own)
            .map_err(message)?;
        let mut findings = Findings::default();
        let answer = self.transport.read_packet(&self.other, &mut findings);
        match answer.map_err(message)? {
            Some(Packet::Return(values)) => Ok(match values.last() {
                Some(PackedValue::Int(value)) => Some(*value),
                Some(PackedValue::Handle(token)) => i64::try_from(*token).ok(),
                _ => None,
            }),
            Some(other) => Err(format!("{other:?}")),
            None => Err("the server is gone".to_owned()),
        }
    }

    fn call(&mut self, name: &str, args: Vec<PackedValue<'static>>) -> Result<Option<i64>, String> {
        let name = PackedValue::Str(name.as_bytes().to_vec().into());
        let found = self.ask(&Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name]))?;
        let function = found.and_then(|found| u64::try_from(found).ok());
        self.ask(&Packet::CallFunc(function.unwrap_or(0), args))
    }

    fn add_one(&mut self) -> Result<(), String> {
        match self.call("rpc.test.addone", vec![PackedValue::Int(41)])? {
            Some(42) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Uploads a file, so that the session's directory is not empty.
    fn upload(&mut self, bytes: usize) -> Result<(), String> {
        let name = PackedValue::Str(b"a.bin".as_slice().into());
        let content = PackedValue::Bytes(vec![7; bytes].into());
        self.call("tvm.rpc.server.upload", vec![name, content])
            .map(drop)
    }

    fn end(mut self) {
        let _ = self.transport.write_packet(&Packet::Shutdown, &self.own);
    }
}

/// Waits until `is` returns true.
#[track_caller]
fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_hundred_sessions_are_served_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Process::server(folder.path(), &["--sessions", "250"]);
    let began = Instant::now();
    let (fds, threads) = server.holds();
    let begin = |number: u32| {
        let release = if number.is_multiple_of(2) { 8 } else { 27 };
        let mut peer = Peer::begin(("127.0.0.1", server.address.port()), "", release)?;
        peer.upload(1000)?;
        Ok(peer)
    };
    let parts: Vec<Vec<Peer>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|part| {
                let begin = &begin;
                scope.spawn(move || (0..25).map(|number| begin(part * 25 + number)).collect())
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        joined.collect::<Result<_, String>>().expect("200 sessions")
    });
    assert_eq!(sessions(folder.path()).len(), 200);
    for mut peer in parts.into_iter().flatten() {
        peer.add_one().expect("it is served");
        peer.end();
    }
    wait_until("sessions are left", || sessions(folder.path()).is_empty());
    wait_until("files or threads are left", || {
        let (now_fds, now_threads) = server.holds();
        now_fds <= fds && now_threads <= threads
    });
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

/// A random number generator with the same sequence in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        // Knuth's constants for 64 bits.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Plays clients until `over`. Counts the sessions without a failure.
fn clients(seed: u64, tracker: u16, plain: u16, over: &AtomicBool, served: &AtomicU64) {
    let mut chance = Chance(seed);
    while !over.load(Ordering::SeqCst) {
        let release = [8, 16, 27][chance.below(3) as usize];
        // Errors here come from killed processes; the checks at the end find real faults.
        let peer = if chance.below(2) == 0 {
            Peer::begin(("127.0.0.1", plain), "", release)
        } else {
            let found = TrackerClient::connect(("127.0.0.1", tracker))
                .and_then(|mut tracker| tracker.request("farm", 1, Duration::from_secs(1)));
            found
                .map_err(|error| error.to_string())
                .and_then(|found| Peer::begin((&found.host, found.port), &found.match_key, release))
        };
        let Ok(mut peer) = peer else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        match chance.below(5) {
            // A client that is killed: between packets, inside a packet, and before an answer.
            0 => drop(peer),
            1 => {
                let _ = peer.transport.write_hello(&Hello { key: "half".into() });
            }
            2 => {
                let packet = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
                let _ = peer.transport.write_packet(&packet, &peer.own);
            }
            _ => {
                let size = chance.below(100_000) as usize;
                if peer.upload(size).and_then(|()| peer.add_one()).is_ok() {
                    peer.end();
                    served.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    }
}

fn summary(tracker: u16) -> Option<TrackerSummary> {
    let mut tracker = TrackerClient::connect(("127.0.0.1", tracker)).ok()?;
    match tracker.ask(&TrackerRequest::Summary) {
        Ok(TrackerReply::Summary(summary)) => Some(summary),
        _ => None,
    }
}

#[test]
fn kills_of_clients_sessions_servers_and_the_tracker_leave_nothing_behind() {
    let lasts = Duration::from_secs(if is_thorough() { 60 } else { 4 });
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut tracker = Process::start(folder, &["tracker", "--port", "0", "--silent"]);
    let port = tracker.address.port();
    let at = format!("127.0.0.1:{port}");
    let arguments = ["--tracker", &at, "--key", "farm", "--sessions", "6"];
    let start = || Process::server(folder, &arguments);
    let mut farm = [start(), start(), start()];
    // This server lives throughout: at the end it must hold the same resources as at the beginning.
    let plain = Process::server(folder, &["--sessions", "12"]);
    let plain_port = plain.address.port();
    let settle = || {
        let begin = || Peer::begin(("127.0.0.1", plain_port), "", 27);
        let peers: Vec<_> = (0..4).map(|_| begin().expect("a session")).collect();
        peers.into_iter().for_each(Peer::end);
    };
    settle();
    wait_until("sessions are left", || sessions(folder).is_empty());
    thread::sleep(Duration::from_millis(100));
    let (held, memory) = (plain.holds(), plain.resident());
    let (over, served) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let threads: Vec<_> = (0..6)
        .map(|seed| {
            let (over, served) = (over.clone(), served.clone());
            thread::spawn(move || clients(seed, port, plain_port, &over, &served))
        })
        .collect();
    let mut chance = Chance(27);
    let began = Instant::now();
    let (mut kills, mut turn, mut is_restarted) = (0, 0, false);
    while began.elapsed() < lasts {
        thread::sleep(Duration::from_millis(100));
        turn += 1;
        let there = sessions(folder);
        if !there.is_empty() {
            let victim = there[chance.below(there.len() as u64) as usize];
            let victim = rustix::process::Pid::from_raw(victim as i32).expect("a number");
            kills += i32::from(
                rustix::process::kill_process(victim, rustix::process::Signal::KILL).is_ok(),
            );
        }
        if turn % 10 == 0 {
            farm[chance.below(3) as usize] = start();
        }
        if !is_restarted && began.elapsed() > lasts / 2 {
            is_restarted = true;
            drop(tracker);
            tracker = Process::start(
                folder,
                &["tracker", "--port", &port.to_string(), "--silent"],
            );
            assert_eq!(tracker.address.port(), port);
        }
    }
    over.store(true, Ordering::SeqCst);
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no panic"));
    let served = served.load(Ordering::SeqCst);
    assert!(served > 0 && kills > 0, "{served} sessions, {kills} kills");
    println!("{served} sessions, {kills} sessions killed");
    wait_until("sessions are left", || sessions(folder).is_empty());
    // The tracker lists each running server once, and no requests.
    wait_until("the tracker still lists ended servers or requests", || {
        summary(port).is_some_and(|summary| {
            let farm = summary.queues.iter().find(|queue| queue.key == "farm");
            summary.servers.len() == 3
                && farm.is_some_and(|farm| (farm.free, farm.pending) == (3, 0))
        })
    });
    // The next server removes the files that killed servers have left. Its own are removed as well, because it ends by a signal.
    let mut next = Process::server(folder, &[]);
    let number = rustix::process::Pid::from_child(&next.child);
    rustix::process::kill_process(number, rustix::process::Signal::INT).expect("a signal");
    assert!(next.child.wait().expect("an end").success());
    // Every server has one directory, which contains the lock.
    let mut left = Vec::new();
    wait_until("directories are left", || {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let count = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
        left = entries.map(|entry| count(entry.path())).collect();
        left == [1; 4]
    });
    wait_until("files or threads are left", || {
        let (now, before) = (plain.holds(), held);
        now.0 <= before.0 && now.1 <= before.1
    });
    let grown = plain.resident().saturating_sub(memory);
    assert!(grown < 32 << 10, "{grown} KiB more than before");
    settle();
    let mut found = TrackerClient::connect(("127.0.0.1", port)).expect("the tracker");
    let found = found
        .request("farm", 1, Duration::from_secs(20))
        .expect("a server");
    let mut peer = Peer::begin((&found.host, found.port), &found.match_key, 27).expect("a session");
    peer.add_one().expect("it is served");
}
