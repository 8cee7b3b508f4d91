//! Stress test of servers and a tracker with many clients. Some clients, sessions and servers are killed, and the tracker is restarted:
//! nothing is left, and the next client is served.
//!
//! The test takes a few seconds, or a minute if `TVMSPEC_THOROUGH` is set.
#![cfg(all(target_os = "linux", feature = "cli", feature = "rpc"))]

use crate::support::rpc_peer::{Peer, PeerAnswer};
use crate::support::serving::Serving;
use crate::support::test_scale::is_thorough;
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::rpc::tracker::TrackerClient;
use tvmspec::rpc::{Hello, PackedValue, Packet, TrackerReply, TrackerRequest, TrackerSummary};

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

fn add_one(peer: &mut Peer) -> Result<(), String> {
    match peer.call("rpc.test.addone", vec![PackedValue::Int(41)]) {
        PeerAnswer::Value(PackedValue::Int(42)) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Uploads a file, so that the session's directory is not empty.
fn upload(peer: &mut Peer, bytes: usize) -> Result<(), String> {
    let name = PackedValue::Str(b"a.bin".as_slice().into());
    let content = PackedValue::Bytes(vec![7; bytes].into());
    match peer.call("tvm.rpc.server.upload", vec![name, content]) {
        PeerAnswer::Value(_) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn end(mut peer: Peer) {
    let _ = peer.transport.write_packet(&Packet::Shutdown, &peer.own);
}

/// Starts a server whose log is not read.
fn server(folder: &Path, arguments: &[&str]) -> Serving {
    let mut server = Serving::server_in(folder, arguments);
    drop(server.take_log());
    server
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
    let server = server(folder.path(), &["--sessions", "250"]);
    let began = Instant::now();
    let (fds, threads, _) = server.holds();
    let begin = |number: u32| {
        let release = if number.is_multiple_of(2) { 8 } else { 27 };
        let mut peer = Peer::begin(("127.0.0.1", server.address.port()), "", release)?;
        upload(&mut peer, 1000)?;
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
        add_one(&mut peer).expect("it is served");
        end(peer);
    }
    wait_until("sessions are left", || sessions(folder.path()).is_empty());
    wait_until("files or threads are left", || {
        let (now_fds, now_threads, _) = server.holds();
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
            found.map_err(|error| error.to_string()).and_then(|found| {
                Peer::begin((found.host.as_str(), found.port), &found.match_key, release)
            })
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
                if upload(&mut peer, size)
                    .and_then(|()| add_one(&mut peer))
                    .is_ok()
                {
                    end(peer);
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
    let mut tracker = Serving::start_in(folder, &["tracker", "--port", "0", "--silent"]);
    let port = tracker.address.port();
    let at = format!("127.0.0.1:{port}");
    let arguments = ["--tracker", &at, "--key", "farm", "--sessions", "6"];
    let start = || server(folder, &arguments);
    let mut farm = [start(), start(), start()];
    // This server lives throughout: at the end it must hold the same resources as at the beginning.
    let plain = server(folder, &["--sessions", "12"]);
    let plain_port = plain.address.port();
    let settle = || {
        let begin = || Peer::begin(("127.0.0.1", plain_port), "", 27);
        let peers: Vec<_> = (0..4).map(|_| begin().expect("a session")).collect();
        peers.into_iter().for_each(end);
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
            tracker = Serving::start_in(
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
    let mut next = server(folder, &[]);
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
    let mut peer =
        Peer::begin((found.host.as_str(), found.port), &found.match_key, 27).expect("a session");
    add_one(&mut peer).expect("it is served");
}
