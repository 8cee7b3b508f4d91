//! Random sessions with servers that are processes: `tvmspec serve` by `--release` 0.27 and 0.16, and beside them the servers of real TVM of
//! these releases, which get the same sessions. Ours serves an honest client throughout and in the end holds what it held at first; what
//! becomes of the others is counted.
//!
//! The wheel is in the Python that `TVMSPEC_PYTHON` names, 0.16 in that of `TVMSPEC_PYTHON_0_16`; a server that is not here has no column.
//! A few seconds; with `TVMSPEC_FUZZ_SECONDS` as many as it says, and `--nocapture` shows the table. `TVMSPEC_FUZZ_SEED` is one session
//! with each server.
#![cfg(all(target_os = "linux", feature = "cli", feature = "rpc"))]

#[path = "../support/rpc_maker.rs"]
mod rpc_maker;
#[path = "../../src/cli/session_log.rs"]
mod session_log;

use rpc_maker::{Chance, Heard, Maker, lock};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::Hello;
use tvmspec::rpc::client::{Session, SessionOptions};
use tvmspec::wire::Writer;

/// How long an answer or the end of a session of ours may take: the machine may be busy.
const OUR_PATIENCE: Duration = Duration::from_secs(60);

/// How long one of real TVM may take until it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(10);

/// After how many sessions an honest client connects to ours.
const HONEST: u64 = 25;

/// What a session is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Hello,
    Packets,
    Changed,
    Cut,
    OtherEra,
}

impl Input {
    const ALL: [Input; 5] = [
        Input::Hello,
        Input::Packets,
        Input::Changed,
        Input::Cut,
        Input::OtherEra,
    ];

    fn name(self) -> &'static str {
        match self {
            Input::Hello => "hello that is none, of another key, with options",
            Input::Packets => "whole packets, arguments at random",
            Input::Changed => "one of four packets with bytes changed",
            Input::Cut => "whole packets, the last one cut off",
            Input::OtherEra => "packets of the other encoding",
        }
    }
}

/// How a session ends, by what its client sees and what the server reports of the session's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Every request has a result, or the hello its code; then the server closes behind the client.
    Answered,
    /// The same with exceptions among the results, or one as the last word.
    Exception,
    /// The server closes in front of the client, without an exception; or its process reports a failure.
    Closed,
    /// The process of the session ends by a signal.
    Crashed,
    /// Neither an answer nor an end in time.
    Hung,
    /// No client is served any more.
    Gone,
}

impl End {
    const ALL: [(End, &'static str); 6] = [
        (End::Answered, "answered"),
        (End::Exception, "exception"),
        (End::Closed, "closed"),
        (End::Crashed, "crash"),
        (End::Hung, "hang"),
        (End::Gone, "server gone"),
    ];
}

/// What a client has seen of a session.
#[derive(Default)]
struct Seen {
    /// The hello was answered: with success, or with another code.
    has_begun: bool,
    has_code: bool,
    /// The server was the first to close.
    is_early: bool,
    is_late: bool,
    exceptions: usize,
    last_is_exception: bool,
}

/// One session over a socket with a server of `release`.
fn play(
    stream: TcpStream,
    input: Input,
    maker: &mut Maker,
    release: Release,
    patience: Duration,
) -> Seen {
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(patience)).expect("a socket");
    stream.set_write_timeout(Some(patience)).expect("a socket");
    let mut seen = Seen::default();
    let mut own = &stream;
    let hello = match input {
        Input::Hello => maker.hello(),
        _ => {
            let mut out = Writer::new();
            let key = "client:".into();
            Hello { key }.write(&mut out).expect("a hello");
            out.into_bytes()
        }
    };
    // A server may close in front of the last byte.
    let _ = own.write_all(&hello);
    if input == Input::Hello {
        let _ = own.shutdown(Shutdown::Write);
    }
    match begins(own) {
        Ok(has_begun) => (seen.has_begun, seen.has_code) = (has_begun, true),
        Err(error) => seen.is_late = is_late(error.kind()),
    }
    if !seen.has_begun || input == Input::Hello {
        seen.is_late |= drain(own);
        return seen;
    }
    let (first, second) = (stream.try_clone(), stream.try_clone());
    let (first, second) = (first.expect("a twin"), second.expect("a twin"));
    let gone = Arc::new(AtomicBool::new(false));
    let (heard, over) = (maker.heard.clone(), gone.clone());
    let listener = thread::spawn(move || {
        heard.listen(first, release);
        let is_late = drain(&second);
        over.store(true, Ordering::SeqCst);
        is_late
    });
    let mut bytes = maker.begin();
    let count = 1 + maker.chance.below(40);
    for number in 1..=count {
        let mut packet = maker.bytes();
        if number == count && input == Input::Cut {
            let most = packet.len().max(1);
            packet.truncate(maker.chance.below(most));
        }
        bytes.extend(packet);
        // Some packets at once, as a client that does not wait writes them.
        let at_once = maker.chance.below(3) == 0 && number < count;
        if !at_once {
            let before = lock(&maker.heard.state).answers;
            if own.write_all(&std::mem::take(&mut bytes)).is_err() {
                break;
            }
            // For the handles in the answer; not every packet has one.
            let waits = maker.heard.changed.wait_timeout_while(
                lock(&maker.heard.state),
                Duration::from_millis(20),
                |state| state.answers == before && !state.is_over,
            );
            drop(waits);
        }
    }
    seen.is_early = gone.load(Ordering::SeqCst);
    let _ = own.shutdown(Shutdown::Write);
    seen.is_late |= listener.join().expect("the client reads");
    let state = lock(&maker.heard.state);
    (seen.exceptions, seen.last_is_exception) = (state.exceptions, state.last_is_exception);
    seen
}

/// Reads the answer to a hello: whether it is success.
fn begins(mut stream: &TcpStream) -> std::io::Result<bool> {
    let mut word = [0; 4];
    stream.read_exact(&mut word)?;
    if i32::from_le_bytes(word) != Hello::MAGIC {
        return Ok(false);
    }
    stream.read_exact(&mut word)?;
    let mut key = vec![0; i32::from_le_bytes(word).clamp(0, 4096) as usize];
    stream.read_exact(&mut key)?;
    Ok(true)
}

/// Reads to the end; whether there is none in time.
fn drain(mut stream: &TcpStream) -> bool {
    let mut piece = [0; 65536];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return is_late(error.kind()),
        }
    }
}

fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A server that is a process of its own.
struct ServerProcess {
    child: Child,
    port: u16,
    /// What it prints and logs.
    lines: Receiver<String>,
    /// How many connections it has accepted.
    accepted: u64,
}

impl ServerProcess {
    /// Starts it, with `folder` for its files.
    ///
    /// # Errors
    ///
    /// It ends before it listens.
    fn start(command: &mut Command, folder: &Path) -> Result<ServerProcess, String> {
        let mut child = command
            .env("TMPDIR", folder)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| error.to_string())?;
        let (sender, lines) = channel();
        forward(child.stdout.take().expect("piped"), sender.clone());
        forward(child.stderr.take().expect("piped"), sender);
        let mut server = ServerProcess {
            child,
            port: 0,
            lines,
            accepted: 0,
        };
        let port = server.line(OUR_PATIENCE, |line| {
            // `port N` of the script, `serving on HOST:PORT` of `tvmspec serve`.
            let port = line.strip_prefix("port ");
            let port = port.or_else(|| line.strip_prefix("serving on ")?.rsplit(':').next());
            port?.trim().parse().ok()
        });
        server.port = port.ok_or("it ends before it listens")?;
        Ok(server)
    }

    /// Waits for a line from which `read` makes something.
    fn line<T>(&self, patience: Duration, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if let Some(found) = read(&self.lines.recv_timeout(left).ok()?) {
                return Some(found);
            }
        }
    }

    /// Whether a client that does nothing wrong is served.
    fn serves(&mut self, patience: Duration) -> Result<(), String> {
        let options = SessionOptions {
            connect_timeout: patience,
            timeout: Some(patience),
            ..SessionOptions::default()
        };
        self.accepted += 1;
        let session = Session::connect("127.0.0.1", self.port, "", &options);
        let session = session.map_err(|error| error.to_string())?;
        let sum = session.call("rpc.test.addone", [41_i64.into()]);
        match sum.map(i64::try_from) {
            Ok(Ok(42)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Open files, threads and children.
    fn holds(&self) -> (usize, usize, usize) {
        let place = PathBuf::from(format!("/proc/{}", self.child.id()));
        let count = |what: &str| fs::read_dir(place.join(what)).map_or(0, Iterator::count);
        let threads = fs::read_dir(place.join("task")).into_iter().flatten();
        let children = threads.map(|thread| {
            let list = thread.map(|thread| fs::read_to_string(thread.path().join("children")));
            let list = list.ok().and_then(Result::ok).unwrap_or_default();
            list.split_whitespace().count()
        });
        (count("fd"), count("task"), children.sum())
    }

    /// Memory that is there, in KiB.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // With its sessions, which those of TVM leave behind.
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Sends the lines of a process, and keeps its pipe empty.
fn forward(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            // Whatever a function of the server prints is of no use.
            let _ = lines.send(line);
        }
    });
}

/// A server that sessions are played with, and what has become of them.
struct Column {
    name: &'static str,
    release: u8,
    /// The Python of a server of real TVM.
    python: Option<String>,
    folder: PathBuf,
    /// What no session may write.
    outside: PathBuf,
    /// By seed, from 1 on.
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
            // As long as that of any other, so that lengths are the same.
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
        // A port that was free a moment ago; the script goes on from there where it is taken.
        let free = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let port = free.local_addr().map_err(|error| error.to_string())?.port();
        let port = port.min(60000).to_string();
        drop(free);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/real_server.py");
        // It reserves what a packet says, and leaves its memory behind where it crashes.
        let bounded = "ulimit -v 33554432; ulimit -c 0; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", bounded, "sh", python]);
        command.arg(script).args([&port, "--ends"]);
        ServerProcess::start(&mut command, &self.folder)
    }

    fn is_ours(&self) -> bool {
        self.python.is_none()
    }

    /// The session of a seed, and how it ends.
    fn session(&self, seed: u64, server: &mut ServerProcess) -> (Input, End) {
        let mut chance = Chance(seed);
        let input = chance.one(&Input::ALL);
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
        let (code, is_gone) = match self.is_ours() {
            true => (our_code(server), false),
            false => real_code(server, &seen),
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

    /// Plays sessions until `until`; what ours holds is the same in the end.
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
                    .map_err(|why| format!("{} behind seed {seed}: {why}", self.name))?;
                our_code(&server);
                // Each of its threads has run once.
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
        // RPC-92: an upload stays in its session's directory, which is gone with it.
        let is_clean = !self.outside.exists() && fs::read_dir(&self.folder).is_ok_and(is_tidy);
        match is_same && is_clean {
            true => Ok(held),
            false => Err(format!(
                "{}: {held}; files as they should be: {is_clean}",
                self.name
            )),
        }
    }

    /// How many of the first `count` sessions of `input`, or of all, end each way.
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

/// What it holds once nothing of a session is left, or what it holds in spite of it.
fn settled(server: &ServerProcess) -> (usize, usize, usize) {
    let end = Instant::now() + Duration::from_secs(30);
    let mut last = server.holds();
    while last.2 > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
        last = server.holds();
    }
    // The thread that waited for the process ends behind it.
    thread::sleep(Duration::from_millis(200));
    server.holds()
}

/// Whether there is one directory, that of the server, with its lock in it and nothing else.
fn is_tidy(entries: fs::ReadDir) -> bool {
    let entries: Vec<_> = entries.flatten().collect();
    let inside = |entry: &fs::DirEntry| fs::read_dir(entry.path()).map_or(9, Iterator::count);
    entries.len() == 1 && entries.iter().all(|entry| inside(entry) == 1)
}

/// What the log of ours says of the session that was accepted last: 0, or -1 where its process has not ended by itself.
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

/// The exit code of the session's process, and whether no client is served any more.
fn real_code(server: &mut ServerProcess, seen: &Seen) -> (Option<i32>, bool) {
    let ended = |server: &ServerProcess| {
        server.line(PATIENCE, |line| match line {
            "gone" => Some(1),
            _ => line.strip_prefix("ended ")?.trim().parse().ok(),
        })
    };
    // Without success there is no process.
    let code = match seen.has_begun {
        true => ended(server),
        false => Some(0),
    };
    if seen.has_begun && matches!(code, None | Some(0)) {
        return (code, false);
    }
    // The thread that accepts may have ended with it.
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
    let lasts = Duration::from_secs(number("TVMSPEC_FUZZ_SECONDS").unwrap_or(3));
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
    // The same sessions in all columns of a release: those that its slowest server has got to.
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
