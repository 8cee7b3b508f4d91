//! Random sessions with `tvmspec serve`: with `--release` 0.27, with 0.16, and without a release, where each session is one of any
//! release. The server must serve an honest client throughout, and must hold no more resources at the end than at first.
//!
//! The test takes two seconds, or a minute if `TVMSPEC_THOROUGH` is set; `TVMSPEC_FUZZ_SECONDS` sets another time.
//! `TVMSPEC_FUZZ_SEED` plays one session with each server.
#![cfg(all(target_os = "linux", feature = "cli", feature = "rpc"))]

mod session;
#[path = "../../src/cli/session_log.rs"]
mod session_log;

use crate::support::rpc_maker::{Chance, Heard, Maker};
use crate::support::serving::Serving;
use crate::support::test_scale::is_thorough;
use session::{Input, play};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::client::{Session, SessionOptions};

/// Time limit for an answer or the end of a session: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of sessions after which an honest client connects to the server.
const HONEST: u64 = 25;

/// A server in its own process.
struct Server {
    process: Serving,
    /// The release whose clients it serves; any if `None`.
    release: Option<u8>,
    folder: PathBuf,
    /// Path that no session may write.
    outside: PathBuf,
    /// Lines of its log.
    log: Receiver<String>,
    /// Number of connections that it has accepted.
    accepted: u64,
}

impl Server {
    fn start(release: Option<u8>, folder: &Path) -> Server {
        let name = release.map_or("any".to_owned(), |minor| format!("0.{minor}"));
        let own = folder.join(&name);
        fs::create_dir_all(&own).expect("a folder");
        let mut arguments = vec!["--memory", "67108864", "--uploads", "1048576"];
        arguments.extend(["--largest", "16777216"]);
        if release.is_some() {
            arguments.extend(["--release", &name]);
        }
        let mut process = Serving::server_in(&own, &arguments);
        let log = process.take_log();
        Server {
            process,
            release,
            folder: own,
            outside: folder.join(format!("outside-{name}")),
            log,
            accepted: 0,
        }
    }

    /// Plays the session of a seed.
    fn session(&mut self, seed: u64) -> Result<(), &'static str> {
        let mut chance = Chance(seed);
        let input = chance.pick(&Input::ALL);
        let own = self
            .release
            .unwrap_or_else(|| chance.pick(&[8, 16, 20, 21, 22, 27]));
        let spoken = match (input, self.release) {
            (Input::OtherEra, Some(27)) => 16,
            (Input::OtherEra, Some(_)) => 27,
            _ => own,
        };
        let mut maker = Maker {
            chance,
            release: Release::of(spoken),
            heard: Arc::new(Heard::default()),
            outside: self.outside.to_string_lossy().into_owned(),
            changes: if input == Input::Changed { 4 } else { 0 },
        };
        let stream = TcpStream::connect(self.process.address);
        let stream = stream.map_err(|_| "the server is gone")?;
        self.accepted += 1;
        if play(stream, input, &mut maker, Release::of(own), PATIENCE) {
            return Err("it hangs");
        }
        self.ended()
    }

    /// Reads the result of the last session from the log.
    fn ended(&self) -> Result<(), &'static str> {
        let begin = format!("session {} from ", self.accepted);
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.log.recv_timeout(left);
            let line = line.map_err(|_| "its end is not in the log")?;
            if line.starts_with(&begin) && !line.ends_with(session_log::BEGINS) {
                let crashed = line.contains(session_log::PROCESS_ENDED);
                return if crashed { Err("it crashes") } else { Ok(()) };
            }
        }
    }

    /// Checks that an honest client is served.
    fn serves(&mut self) -> Result<(), String> {
        let mut options = SessionOptions::default();
        options.connect_timeout = PATIENCE;
        options.timeout = Some(PATIENCE);
        self.accepted += 1;
        let session = Session::connect("127.0.0.1", self.process.port(), "", &options);
        let sum = session.and_then(|session| session.call("rpc.test.addone", (41,)));
        match sum.map(i64::try_from) {
            Ok(Ok(42)) => Ok(self.ended()?),
            other => Err(format!("an honest client: {other:?}")),
        }
    }

    /// Returns the server's resources once nothing of a session is left, or after a time limit.
    fn wait_for_cleanup(&self) -> (usize, usize, usize) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.process.holds().2 > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        // The thread that waited for the process ends shortly after it.
        thread::sleep(Duration::from_millis(200));
        self.process.holds()
    }

    /// Plays sessions until `until`. At the end the server must hold the same resources as before.
    fn run(mut self, until: Instant) -> Result<String, String> {
        let mut before = None;
        let mut seed = 0;
        while Instant::now() < until || seed <= HONEST {
            seed += 1;
            let ended = self.session(seed);
            ended.map_err(|why| format!("seed {seed}: {why}"))?;
            if seed % HONEST == 0 {
                let served = self.serves();
                served.map_err(|why| format!("after seed {seed}: {why}"))?;
                // By now each of its threads has run once.
                before.get_or_insert_with(|| (self.wait_for_cleanup(), self.process.resident()));
            }
        }
        self.serves()?;
        let ((fds, threads, children), memory) = before.ok_or("no honest client")?;
        let mut now = self.wait_for_cleanup();
        let end = Instant::now() + Duration::from_secs(30);
        while (now.0 > fds || now.1 > threads || now.2 > children) && Instant::now() < end {
            thread::sleep(Duration::from_millis(100));
            now = self.process.holds();
        }
        let grown = self.process.resident().saturating_sub(memory);
        let held = format!(
            "{seed} sessions; files, threads, children {now:?}, {:?} at first; {grown} KiB more",
            (fds, threads, children)
        );
        let is_same = now.0 <= fds && now.1 <= threads && now.2 <= children && grown < 32 << 10;
        // RPC-92: an upload stays in the directory of its session, which is removed with the session.
        let is_clean = !self.outside.exists() && fs::read_dir(&self.folder).is_ok_and(is_tidy);
        if is_same && is_clean {
            Ok(held)
        } else {
            Err(format!("{held}; files as they should be: {is_clean}"))
        }
    }
}

/// Returns whether the server's directory is the only one, and contains only its lock.
fn is_tidy(entries: fs::ReadDir) -> bool {
    let entries: Vec<_> = entries.flatten().collect();
    let inside = |entry: &fs::DirEntry| fs::read_dir(entry.path()).map_or(9, Iterator::count);
    entries.len() == 1 && entries.iter().all(|entry| inside(entry) == 1)
}

#[test]
fn servers_that_are_processes_outlive_random_sessions() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let folder = tempfile::tempdir().expect("a folder");
    let releases = [Some(27), Some(16), None];
    let servers = releases.map(|release| Server::start(release, folder.path()));
    if let Some(seed) = number("TVMSPEC_FUZZ_SEED") {
        for mut server in servers {
            let ended = server.session(seed);
            println!("{:?}: {ended:?}", server.release);
        }
        return;
    }
    let usual = if is_thorough() { 60 } else { 2 };
    let lasts = Duration::from_secs(number("TVMSPEC_FUZZ_SECONDS").unwrap_or(usual));
    let until = Instant::now() + lasts;
    let reports = thread::scope(|scope| {
        let runs = servers.map(|server| scope.spawn(move || server.run(until)));
        runs.map(|run| run.join().expect("no panic"))
    });
    for (release, report) in releases.iter().zip(reports) {
        let held = report.unwrap_or_else(|why| panic!("server of {release:?}: {why}"));
        println!("server of {release:?}: {held}");
    }
}
