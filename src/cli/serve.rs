//! `tvmspec serve`: an RPC server. It accepts connections and reads nothing of them: each goes to a process of its own, so that what a
//! client does to its session, a crash, a hang, a fork, is done to that session alone.

use super::serve_directory::ServerDirectory;
use super::serve_session::SessionArgs;
use super::serve_tracker::{MatchKeys, TrackerLine};
use super::{CliError, Exit, output};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tvmspec::rpc::server::await_pair;
use tvmspec::rpc::transport::{CLOSED, TIMEOUT};

/// Any client that reaches the port may use what the options allow. Without --allow-load that is files of its own, memory and the
/// functions of servers; with it, everything that this user may do.
///
/// The first line of stdout is `serving on HOST:PORT`. Each session has a line on stderr when it ends. Ctrl-C waits for the sessions that
/// run; a second one ends them.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on; every address of the machine is 0.0.0.0
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port, or the first that is tried; 0 is any that is free
    #[arg(long, default_value_t = 9090)]
    port: u16,
    /// The last port that is tried
    #[arg(long, value_name = "PORT")]
    port_end: Option<u16>,
    /// The key that clients must have
    #[arg(long, default_value = "")]
    key: String,
    /// Offer this server to the clients of a tracker, under --key; each offer is good for one client
    #[arg(long, value_name = "HOST:PORT", requires = "key")]
    tracker: Option<String>,
    /// Wait for clients at a proxy, under --key, and listen at no port
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "key",
        conflicts_with = "tracker"
    )]
    proxy: Option<String>,
    /// The host that the tracker sends clients to; without it, the address that this server's connection to the tracker comes from
    #[arg(long, value_name = "HOST", requires = "tracker")]
    custom_addr: Option<String>,
    /// How many sessions there are at a time; other clients wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    #[command(flatten)]
    permits: SessionArgs,
}

/// Accepts clients until it is stopped.
///
/// # Errors
///
/// No port can be had, or no process can be started for sessions.
pub(crate) fn run(args: ServeArgs) -> Result<Exit, CliError> {
    let program = std::env::current_exe()?;
    let running = Arc::new(RunningSessions::new()?);
    if let Some(proxy) = args.proxy {
        drain_at_signal(running.clone())?;
        writeln!(io::stdout(), "serving through {proxy}")?;
        let line = ProxyLine {
            proxy,
            key: args.key,
            sessions: args.sessions as usize,
            program,
        };
        line.keep(&args.permits, &running);
    }
    let listener = bind(args.host, args.port, args.port_end)?;
    drain_at_signal(running.clone())?;
    let address = listener.local_addr()?;
    let mut out = io::stdout();
    writeln!(out, "serving on {address}")?;
    out.flush()?;
    let keys = args.tracker.map(|tracker| {
        let keys = Arc::new(MatchKeys::default());
        let line = TrackerLine {
            tracker,
            key: args.key.clone(),
            port: address.port(),
            host: args.custom_addr,
            sessions: args.sessions as usize,
            keys: keys.clone(),
            running: running.clone(),
        };
        std::thread::spawn(move || line.keep());
        keys
    });
    let mut number = 0;
    loop {
        running.await_slot(args.sessions as usize);
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, or a client that is gone already: the next one may be served.
                output::note(format_args!("accept: {error}"));
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if running.is_draining() {
            continue;
        }
        number += 1;
        let session = SessionProcess {
            number,
            peer,
            keys: match &keys {
                Some(keys) => keys.list(),
                None => vec![args.key.clone()],
            },
            name: args.key.clone(),
            paired: None,
        };
        if let Err(error) = session.start(&program, stream, &args.permits, &running) {
            output::note(format_args!(
                "session {number} from {peer}: not started: {error}"
            ));
        }
    }
}

/// What a server does at a proxy.
struct ProxyLine {
    /// The proxy, as `HOST:PORT`.
    proxy: String,
    key: String,
    /// How many sessions there are at a time.
    sessions: usize,
    program: std::path::PathBuf,
}

/// How long a proxy that is gone, or has another server of the key, is left alone.
const PROXY_PAUSE: Duration = Duration::from_secs(2);

impl ProxyLine {
    /// Waits for clients, one at a time: a proxy has one server of a key that waits. The thread of the signal ends the process.
    fn keep(&self, permits: &SessionArgs, running: &Arc<RunningSessions>) -> ! {
        let mut last = String::new();
        let mut number = 0;
        loop {
            running.await_slot(self.sessions);
            if running.is_draining() {
                running.pause(PROXY_PAUSE);
                continue;
            }
            match self.pair() {
                Ok((stream, client)) => {
                    last.clear();
                    number += 1;
                    if let Err(error) = self.begin(number, stream, client, permits, running) {
                        output::note(format_args!("session {number}: not started: {error}"));
                    }
                }
                // Ten minutes without a client are nothing to report.
                Err(error) if error.kind() == TIMEOUT => {}
                Err(error) => {
                    let error = error.reason();
                    if error != last {
                        output::note(format_args!("proxy {}: {error}", self.proxy));
                        last = error;
                    }
                    running.pause(PROXY_PAUSE);
                }
            }
        }
    }

    /// A connection that the proxy has paired, and the key of the client.
    fn pair(&self) -> tvmspec::function::Result<(TcpStream, String)> {
        let gone = |error: io::Error| tvmspec::function::Error::new(CLOSED, error.to_string());
        let mut stream = TcpStream::connect(&*self.proxy).map_err(gone)?;
        let client = await_pair(&mut stream, &self.key)?;
        Ok((stream, client))
    }

    /// Starts the session.
    fn begin(
        &self,
        number: u64,
        stream: TcpStream,
        client: String,
        permits: &SessionArgs,
        running: &Arc<RunningSessions>,
    ) -> io::Result<()> {
        let session = SessionProcess {
            number,
            peer: stream.peer_addr()?,
            keys: Vec::new(),
            name: self.key.clone(),
            paired: Some(client),
        };
        session.start(&self.program, stream, permits, running)
    }
}

/// The first port that is free.
///
/// # Errors
///
/// None of them is.
fn bind(host: IpAddr, first: u16, last: Option<u16>) -> Result<TcpListener, CliError> {
    let last = last.unwrap_or(first);
    let mut why = format!("there is no port from {first} to {last}");
    for port in first..=last {
        match TcpListener::bind(SocketAddr::new(host, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => why = format!("{host}:{port}: {error}"),
        }
    }
    Err(CliError::Message(why))
}

/// A session that is to be started.
struct SessionProcess {
    number: u64,
    peer: SocketAddr,
    /// What the client must have behind `client:`, one of them.
    keys: Vec<String>,
    /// The same without what a tracker hands out with it.
    name: String,
    /// The key of the client that a proxy has paired with this server.
    paired: Option<String>,
}

impl SessionProcess {
    /// Starts the process of the session, and a thread that waits for its end.
    ///
    /// # Errors
    ///
    /// There is no directory, or no process.
    fn start(
        self,
        program: &std::path::Path,
        stream: TcpStream,
        permits: &SessionArgs,
        running: &Arc<RunningSessions>,
    ) -> io::Result<()> {
        // Readable by this user alone.
        let directory = running.directory.session()?;
        let mut command = Command::new(program);
        command
            .arg("serve-session")
            .arg(format!("--number={}", self.number))
            .arg("--directory")
            .arg(directory.path())
            .args(self.keys.iter().map(|key| format!("--key={key}")))
            .arg(format!("--name={}", self.name))
            .args(self.paired.iter().map(|key| format!("--paired={key}")))
            .args(permits.to_arguments())
            .current_dir(directory.path())
            .stdin(Stdio::from(OwnedFd::from(stream)))
            // What a function prints belongs to the log.
            .stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        let child = running.spawn(&mut command)?;
        // The command holds the socket: while it does, the client does not see the session end.
        drop(command);
        let running = running.clone();
        std::thread::spawn(move || self.await_end(child, directory, &running));
        Ok(())
    }

    /// Waits for the process, ends what it started, and removes its files.
    fn await_end(self, mut child: Child, directory: TempDir, running: &RunningSessions) {
        let status = running.end(&mut child);
        drop(directory.close());
        match status {
            Ok(status) if status.success() => {}
            // A session that ends by itself writes its own line.
            Ok(status) => output::note(format_args!(
                "session {} from {}: the process ended: {status}",
                self.number, self.peer
            )),
            Err(error) => output::note(format_args!(
                "session {} from {}: {error}",
                self.number, self.peer
            )),
        }
        running.free_slot();
    }
}

/// The sessions that run.
pub(super) struct RunningSessions {
    /// Where their files are.
    directory: ServerDirectory,
    state: Mutex<RunningSessionsState>,
    changed: Condvar,
}

#[derive(Default)]
struct RunningSessionsState {
    /// How many there are, those included whose files are being removed.
    count: usize,
    /// The processes, each the first of its group, that were not waited for.
    leaders: BTreeSet<u32>,
    is_draining: bool,
}

impl RunningSessions {
    /// None yet.
    ///
    /// # Errors
    ///
    /// There is no directory for their files.
    fn new() -> io::Result<RunningSessions> {
        adopt_orphans();
        Ok(RunningSessions {
            directory: ServerDirectory::new()?,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// The state, locked. A thread that panicked has left it whole.
    fn lock(&self) -> MutexGuard<'_, RunningSessionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are fewer than `most`.
    fn await_slot(&self, most: usize) {
        let mut state = self.lock();
        while state.count >= most {
            state = self.wait(state);
        }
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, RunningSessionsState>,
    ) -> MutexGuard<'a, RunningSessionsState> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// How many sessions there are.
    pub(super) fn count(&self) -> usize {
        self.lock().count
    }

    /// Waits for a session to begin or end, or for a signal, and not longer than `most`.
    pub(super) fn pause(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.lock(), most));
    }

    /// Whether no session begins any more.
    pub(super) fn is_draining(&self) -> bool {
        self.lock().is_draining
    }

    /// Starts a process in a group of its own.
    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = self.lock();
        // Under the lock: a signal finds every process that there is.
        let child = command.process_group(0).spawn()?;
        state.leaders.insert(child.id());
        state.count += 1;
        self.changed.notify_all();
        Ok(child)
    }

    /// Waits for a process and kills the rest of its group.
    fn end(&self, child: &mut Child) -> io::Result<ExitStatus> {
        if let Some(pid) = pid(child.id()) {
            // Looks without waiting for it: until then its number, and that of its group, goes to no other process.
            while let Err(rustix::io::Errno::INTR) = waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
            ) {}
        }
        self.lock().leaders.remove(&child.id());
        kill_group(child.id());
        let status = child.wait();
        self.end_orphans();
        status
    }

    /// Kills what sessions that are over have started and what left their groups: its parents are gone, so that it is a child of this
    /// process, and no session.
    fn end_orphans(&self) {
        // Each round finds what the round before has made a child of this process.
        for _ in 0..100 {
            // Under the lock: every session that was started is among them.
            let state = self.lock();
            let orphans = own_children();
            let orphans = orphans.filter(|number| !state.leaders.contains(number));
            let orphans: Vec<Pid> = orphans.filter_map(pid).collect();
            drop(state);
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                let _ = kill_process(orphan, Signal::KILL);
                // Fails where another thread was faster.
                let _ = waitpid(Some(orphan), WaitOptions::empty());
            }
        }
    }

    fn free_slot(&self) {
        self.lock().count -= 1;
        self.changed.notify_all();
    }
}

/// Processes whose parents are gone become children of this one, and not of the system's first: what a session leaves behind is found.
fn adopt_orphans() {
    // Where the kernel has no such thing, what leaves its group goes on.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The children of this process, by their numbers; nothing where the system does not list them.
fn own_children() -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| {
        let numbers = list.split_whitespace().map(str::parse);
        numbers.filter_map(Result::ok).collect::<Vec<u32>>()
    })
}

/// The number of a process as the system takes it; none for 0.
fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Kills a group by the number of its first process.
fn kill_group(leader: u32) {
    if let Some(group) = pid(leader) {
        // Fails only when all of it is gone.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// At the first signal no session begins any more, and the program ends with the last one; at the second, the sessions end.
fn drain_at_signal(running: Arc<RunningSessions>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let mut state = running.lock();
            if state.is_draining {
                state.leaders.iter().copied().for_each(kill_group);
                continue;
            }
            state.is_draining = true;
            running.changed.notify_all();
            let left = state.count;
            drop(state);
            if left > 0 {
                output::note(format_args!(
                    "waiting for {left} sessions; Ctrl-C again ends them"
                ));
            }
            let running = running.clone();
            std::thread::spawn(move || {
                let mut state = running.lock();
                while state.count > 0 {
                    state = running.wait(state);
                }
                running.directory.remove();
                std::process::exit(0);
            });
        }
    });
    Ok(())
}
