//! Random packets of both encodings, with valid and invalid handles, some of them with changed bytes. Each session ends, none panics, and
//! the process needs no more memory than before.
//!
//! Here the session runs in a thread of the test; `rpc_process_fuzz` uses a server process. The test takes two seconds, or a minute if
//! `TVMSPEC_THOROUGH` is set; `TVMSPEC_FUZZ_SECONDS` sets another time. `TVMSPEC_FUZZ_SEED` repeats a session that failed.
#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

use crate::support::rpc_maker::{Chance, Heard, Maker};
use crate::support::test_scale::is_thorough;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::Hello;
use tvmspec::rpc::server::{ServerOptions, SessionEnd, serve};
use tvmspec::wire::Writer;

/// Plays one session.
fn session(seed: u64, folder: &Path) {
    let mut chance = Chance(seed);
    let release = Release::of(chance.pick(&[8, 16, 20, 21, 22, 27]));
    let (own_files, outside) = (folder.join("session"), folder.join("outside"));
    std::fs::create_dir_all(&own_files).expect("a folder");
    let mut options = ServerOptions::new(own_files);
    options.memory = 1 << 20;
    options.uploads = 1 << 20;
    options.largest = 1 << 20;
    options.release = (chance.below(2) == 0).then_some(release);
    let (mut own, other) = UnixStream::pair().expect("a pair");
    let server = thread::spawn(move || serve(other, &options));
    let key = if chance.below(50) == 0 {
        "client:x"
    } else {
        "client:"
    };
    let mut out = Writer::new();
    Hello { key: key.into() }.write(&mut out).expect("a hello");
    own.write_all(&out.into_bytes()).expect("written");
    // The answer is 71 f2 0f 00 and `server:` with its length; for another key only a code.
    let mut code = [0; 4];
    own.read_exact(&mut code).expect("an answer");
    if code == 0x000f_f271_i32.to_le_bytes() {
        own.read_exact(&mut [0; 11]).expect("the rest of it");
        let heard = Arc::new(Heard::default());
        let (reads, hears) = (own.try_clone().expect("a second"), heard.clone());
        let listener = thread::spawn(move || hears.listen(reads, release));
        let mut maker = Maker {
            chance,
            release,
            heard,
            outside: outside.to_string_lossy().into_owned(),
            changes: 6,
        };
        let mut bytes = maker.begin();
        for _ in 0..maker.chance.below(120) {
            bytes.extend(maker.bytes());
            // Several packets are written at once, as by a client that does not wait.
            if maker.chance.below(3) > 0 && own.write_all(&std::mem::take(&mut bytes)).is_err() {
                break;
            }
        }
        let _ = own.shutdown(Shutdown::Write);
        listener.join().expect("the client reads");
    }
    drop(own);
    let report = server
        .join()
        .unwrap_or_else(|_| panic!("the session of seed {seed} panics"));
    // RPC-92: no name leads out of the directory.
    let beside = std::fs::read_dir(folder).expect("a folder").count();
    assert_eq!(beside, 1, "seed {seed} writes beside its directory");
    if let SessionEnd::Failed(error) = &report.end {
        assert!(!error.to_string().is_empty(), "seed {seed}");
    }
}

/// Returns the resident memory of this process, in KiB; 0 if the system does not state it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn sessions_of_random_packets_end() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(seed) = number("TVMSPEC_FUZZ_SEED") {
        return session(seed, folder.path());
    }
    let usual = if is_thorough() { 60 } else { 2 };
    let lasts = Duration::from_secs(number("TVMSPEC_FUZZ_SECONDS").unwrap_or(usual));
    let (began, mut seed, mut before) = (Instant::now(), 0, 0);
    while began.elapsed() < lasts {
        seed += 1;
        let (done, ended) = channel();
        let path = folder.path().to_owned();
        let running = thread::spawn(move || {
            session(seed, &path);
            let _ = done.send(());
        });
        // A hang is a failure, because the client has closed the connection.
        match ended.recv_timeout(Duration::from_secs(60)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => panic!("the session of seed {seed} hangs"),
        }
        running.join().unwrap_or_else(|_| panic!("seed {seed}"));
        if seed == 20 {
            before = resident();
        }
    }
    assert!(seed > 20, "{seed} sessions");
    let grown = resident().saturating_sub(before);
    assert!(
        before == 0 || grown < 64 << 10,
        "{grown} KiB after {seed} sessions"
    );
    println!("{seed} sessions, {grown} KiB more than at first");
}
