//! Random sessions with server processes: `tvmspec serve` with `--release` 0.27 and 0.16, and the servers of real TVM of these releases,
//! which get the same sessions. Our server must serve an honest client throughout, and must hold no more resources at the end than at
//! first. For the others the results are only counted.
//!
//! `TVMSPEC_PYTHON` names the Python of the wheel, `TVMSPEC_PYTHON_0_16` that of 0.16; a missing server has no column. The test takes two
//! seconds, or a minute if `TVMSPEC_THOROUGH` is set; `TVMSPEC_FUZZ_SECONDS` sets another time, and `--nocapture` shows the table.
//! `TVMSPEC_FUZZ_SEED` plays one session with each server.
#![cfg(all(target_os = "linux", feature = "cli", feature = "rpc"))]

mod servers;
mod session;
#[path = "../../src/cli/session_log.rs"]
mod session_log;

use crate::support::rpc_maker::{Chance, Heard, Maker};
use crate::support::test_scale::is_thorough;
use servers::ServerProcess;
use session::{End, Input, Tally, play};
use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;

/// Time limit for an answer or the end of a session of our server: the machine may be busy.
const OUR_PATIENCE: Duration = Duration::from_secs(60);

/// Time after which a server of real TVM counts as hanging.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of sessions after which an honest client connects to our server.
const HONEST: u64 = 25;

/// A server, and the results of its sessions.
struct Column {
    name: &'static str,
    release: u8,
    /// Python of a server of real TVM.
    python: Option<String>,
    folder: PathBuf,
    /// Path that no session may write.
    outside: PathBuf,
    /// Results by seed, from 1 on.
    ends: Vec<(Input, End)>,
    starts: usize,
}

impl Column {
    fn new(name: &'static str, release: u8, python: Option<String>, folder: &Path) -> Column {
        let own = folder.join(name.replace(' ', "-"));
        fs::create_dir_all(own.join("files")).expect("a folder");
        Column {
            name,
            release,
            python,
            folder: own.join("files"),
            // The path has the same length for all servers, so that the lengths of packets are equal.
            outside: folder.join(format!("{name:-<12}").replace(' ', "-")),
            ends: Vec::new(),
            starts: 0,
        }
    }

    fn start(&mut self) -> Result<ServerProcess, String> {
        self.starts += 1;
        let release = format!("0.{}", self.release);
        let Some(python) = &self.python else {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
            command.args(["serve", "--port", "0", "--release", &release]);
            command.args(["--memory", "67108864", "--uploads", "1048576"]);
            command.args(["--largest", "16777216"]);
            return ServerProcess::start(&mut command, &self.folder);
        };
        // The port was free a moment ago; if it is taken now, the script tries the next ones.
        let free = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let port = free.local_addr().map_err(|error| error.to_string())?.port();
        let port = port.min(60000).to_string();
        drop(free);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/real_server.py");
        // The server reserves as much memory as a packet states, and dumps core when it crashes.
        let bounded = "ulimit -v 33554432; ulimit -c 0; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", bounded, "sh", python]);
        command.arg(script).args([&port, "--ends"]);
        ServerProcess::start(&mut command, &self.folder)
    }

    fn is_ours(&self) -> bool {
        self.python.is_none()
    }

    /// Plays the session of a seed. Returns its input and its result.
    fn session(&self, seed: u64, server: &mut ServerProcess) -> (Input, End) {
        let mut chance = Chance(seed);
        let input = chance.pick(&Input::ALL);
        let release = match (input, self.release) {
            (Input::OtherEra, 27) => 16,
            (Input::OtherEra, _) => 27,
            (_, release) => release,
        };
        let mut maker = Maker {
            chance,
            release: Release::of(release),
            heard: Arc::new(Heard::default()),
            outside: self.outside.to_string_lossy().into_owned(),
            changes: if input == Input::Changed { 4 } else { 0 },
        };
        let patience = if self.is_ours() {
            OUR_PATIENCE
        } else {
            PATIENCE
        };
        let Ok(stream) = TcpStream::connect(("127.0.0.1", server.port)) else {
            return (input, End::Gone);
        };
        server.accepted += 1;
        let own = Release::of(self.release);
        let seen = play(stream, input, &mut maker, own, patience);
        let (code, is_gone) = if self.is_ours() {
            (our_code(server), false)
        } else {
            real_code(server, &seen)
        };
        let end = match code {
            _ if is_gone => End::Gone,
            None => End::Hung,
            _ if seen.is_late => End::Hung,
            Some(code) if code < 0 => End::Crashed,
            _ if seen.last_is_exception => End::Exception,
            Some(code) if code > 0 || seen.is_early => End::Closed,
            _ if seen.exceptions > 0 => End::Exception,
            _ if seen.has_code => End::Answered,
            _ => End::Closed,
        };
        (input, end)
    }

    /// Plays sessions until `until`. At the end our server must hold the same resources as before.
    fn run(&mut self, until: Instant) -> Result<String, String> {
        let mut server = self.start()?;
        let mut before = None;
        let mut seed = 0;
        while Instant::now() < until || (self.is_ours() && seed <= HONEST) {
            seed += 1;
            let (input, end) = self.session(seed, &mut server);
            self.ends.push((input, end));
            let is_lost = matches!(end, End::Gone | End::Hung);
            if !self.is_ours() {
                if is_lost {
                    drop(server);
                    server = self.start()?;
                }
                continue;
            }
            if is_lost || end == End::Crashed {
                return Err(format!("{}: seed {seed}: {end:?}", self.name));
            }
            if seed % HONEST == 0 {
                server
                    .serves(OUR_PATIENCE)
                    .map_err(|why| format!("{} after seed {seed}: {why}", self.name))?;
                our_code(&server);
                // By now each of its threads has run once.
                before.get_or_insert_with(|| (settled(&server), server.resident()));
            }
        }
        if !self.is_ours() {
            return Ok(format!("{} starts", self.starts));
        }
        server.serves(OUR_PATIENCE)?;
        our_code(&server);
        let ((fds, threads, children), memory) = before.ok_or("no honest client")?;
        let mut now = settled(&server);
        let end = Instant::now() + Duration::from_secs(30);
        while (now.0 > fds || now.1 > threads || now.2 > children) && Instant::now() < end {
            thread::sleep(Duration::from_millis(100));
            now = server.holds();
        }
        let grown = server.resident().saturating_sub(memory);
        let held = format!(
            "files, threads, children {now:?}, {:?} at first; {grown} KiB more",
            (fds, threads, children)
        );
        let is_same = now.0 <= fds && now.1 <= threads && now.2 <= children && grown < 32 << 10;
        // RPC-92: an upload stays in the directory of its session, which is removed with the session.
        let is_clean = !self.outside.exists() && fs::read_dir(&self.folder).is_ok_and(is_tidy);
        if is_same && is_clean {
            Ok(held)
        } else {
            Err(format!(
                "{}: {held}; files as they should be: {is_clean}",
                self.name
            ))
        }
    }

    /// Counts how the first `count` sessions of `input`, or of all inputs, ended.
    fn cell(&self, count: usize, input: Option<Input>) -> String {
        let ends = self.ends.iter().take(count);
        let ends = ends.filter(|(of, _)| input.is_none_or(|input| input == *of));
        let ends: Vec<End> = ends.map(|(_, end)| *end).collect();
        let mut text = String::new();
        for (end, name) in End::ALL {
            let number = ends.iter().filter(|other| **other == end).count();
            if number > 0 {
                let comma = if text.is_empty() { "" } else { ", " };
                write!(text, "{comma}{number} {name}").expect("a text");
            }
        }
        text
    }
}

/// Returns the server's resources once nothing of a session is left, or after a time limit.
fn settled(server: &ServerProcess) -> (usize, usize, usize) {
    let end = Instant::now() + Duration::from_secs(30);
    let mut last = server.holds();
    while last.2 > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
        last = server.holds();
    }
    // The thread that waited for the process ends shortly after it.
    thread::sleep(Duration::from_millis(200));
    server.holds()
}

/// Returns whether the server's directory is the only one, and contains only its lock.
fn is_tidy(entries: fs::ReadDir) -> bool {
    let entries: Vec<_> = entries.flatten().collect();
    let inside = |entry: &fs::DirEntry| fs::read_dir(entry.path()).map_or(9, Iterator::count);
    entries.len() == 1 && entries.iter().all(|entry| inside(entry) == 1)
}

/// Returns the result of the last session from our server's log: 0, or -1 if its process did not end by itself.
fn our_code(server: &ServerProcess) -> Option<i32> {
    let begin = format!("session {} from ", server.accepted);
    server.line(OUR_PATIENCE, |line| {
        let end = line.strip_prefix(&begin)?;
        if end.ends_with(session_log::BEGINS) {
            return None;
        }
        Some(if end.contains(session_log::PROCESS_ENDED) {
            -1
        } else {
            0
        })
    })
}

/// Returns the exit code of the session's process, and whether the server no longer serves clients.
fn real_code(server: &mut ServerProcess, seen: &Tally) -> (Option<i32>, bool) {
    let ended = |server: &ServerProcess| {
        server.line(PATIENCE, |line| match line {
            "gone" => Some(1),
            _ => line.strip_prefix("ended ")?.trim().parse().ok(),
        })
    };
    // Without success there is no process.
    let code = if seen.has_begun {
        ended(server)
    } else {
        Some(0)
    };
    if seen.has_begun && matches!(code, None | Some(0)) {
        return (code, false);
    }
    // The thread that accepts clients may have ended with it.
    let is_served = server.serves(PATIENCE).is_ok();
    let is_gone = !is_served || ended(server).is_none();
    (code, is_gone)
}

#[test]
fn servers_that_are_processes_outlive_random_sessions() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let folder = tempfile::tempdir().expect("a folder");
    let named = |name: &str| std::env::var(name).ok();
    let mut columns = vec![Column::new("ours 0.27", 27, None, folder.path())];
    let wheel = named("TVMSPEC_PYTHON");
    let older = named("TVMSPEC_PYTHON_0_16");
    columns.extend(wheel.map(|it| Column::new("wheel 0.27", 27, Some(it), folder.path())));
    columns.push(Column::new("ours 0.16", 16, None, folder.path()));
    columns.extend(older.map(|it| Column::new("TVM 0.16", 16, Some(it), folder.path())));
    if let Some(seed) = number("TVMSPEC_FUZZ_SEED") {
        for column in &mut columns {
            let mut server = column.start().expect("a server");
            println!("{}: {:?}", column.name, column.session(seed, &mut server));
        }
        return;
    }
    let usual = if is_thorough() { 60 } else { 2 };
    let lasts = Duration::from_secs(number("TVMSPEC_FUZZ_SECONDS").unwrap_or(usual));
    let until = Instant::now() + lasts;
    let reports: Vec<_> = thread::scope(|scope| {
        let runs = columns
            .iter_mut()
            .map(|column| scope.spawn(move || column.run(until)));
        let runs: Vec<_> = runs.collect();
        runs.into_iter()
            .map(|run| run.join().expect("no panic"))
            .collect()
    });
    // Compares the same sessions in all columns of a release: those that its slowest server has reached.
    let count = |release: u8| {
        let of = columns.iter().filter(|column| column.release == release);
        of.map(|column| column.ends.len())
            .filter(|count| *count > 0)
            .min()
            .unwrap_or(0)
    };
    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
    println!("| sessions | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
    let rows = Input::ALL.map(|input| (Some(input), input.name()));
    for (input, name) in rows.into_iter().chain([(None, "all of these")]) {
        let cells = columns
            .iter()
            .map(|column| column.cell(count(column.release), input));
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    for (column, report) in columns.iter().zip(&reports) {
        let ends = column.cell(usize::MAX, None);
        println!(
            "{}: seeds 1 to {}: {ends}; {report:?}",
            column.name,
            column.ends.len()
        );
    }
    for (column, report) in columns.iter().zip(reports) {
        if column.is_ours() {
            report.unwrap_or_else(|why| panic!("{why}"));
        }
    }
}
