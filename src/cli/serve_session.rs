//! `tvmspec serve-session`: one session of `tvmspec serve`, in a separate process. The socket is its stdin.

use super::serve_lobby::write_answer;
use super::serve_memory::{bound_memory, default_memory, prefer_for_oom_kill};
use super::serve_peer::{await_departure, keep_alive};
use super::{CliError, Exit, output};
use crate::lock::lock;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::server::{ServerOptions, SessionReport, SessionWatch, serve_paired};
use tvmspec::rpc::transport::RpcStream;
use tvmspec::rpc::{HelloAnswer, Protocol};

/// Permissions and limits of a session.
#[derive(clap::Args, Clone)]
pub(super) struct SessionArgs {
    /// The release of the clients, 0.7 or later [default: detected for each client]
    #[arg(long, value_parser = served)]
    pub(super) release: Option<Release>,
    /// Load libraries that clients upload. Their code runs on this machine with all rights of this user
    #[arg(long)]
    allow_load: bool,
    /// Link uploads of `.o` and `.tar` with the compiler of --cc, and load the result
    #[arg(long, requires = "allow_load")]
    allow_link: bool,
    /// The compiler for --allow-link
    #[arg(
        long,
        value_name = "COMPILER",
        default_value = "cc",
        requires = "allow_link"
    )]
    cc: String,
    /// Also allow functions with these names, in addition to those that every server has; `*` stands for any text
    #[arg(long, value_name = "GLOB")]
    allow: Vec<String>,
    /// Allow clients to connect to this server through the session: HOST or HOST:PORT, `*` for any text. Off by default, because clients
    /// then reach servers that accept connections only from this machine
    #[arg(long, value_name = "GLOB")]
    allow_connect: Vec<String>,
    /// The maximal size of a packet
    #[arg(long, value_name = "BYTES", default_value_t = Protocol::LARGEST)]
    largest: u64,
    /// The maximal memory that a session may allocate at a time [default: 16 GiB, but at most half of the memory available at the start,
    /// or of the limit of the control group]
    #[arg(long, value_name = "BYTES")]
    memory: Option<u64>,
    /// The maximal memory of the session's process, including allocations of loaded code [default: twice --memory]
    #[arg(long, value_name = "BYTES")]
    process_memory: Option<u64>,
    /// The maximal total size of a session's uploads
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    uploads: u64,
    /// The maximal duration of a session in seconds; a client may state a shorter one. Without this limit, a client that stays active
    /// keeps its session for ever
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<f64>,
    /// The time without a request, in seconds, after which a session ends; 0 for no limit
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds_or_none)]
    idle: f64,
    /// Register and allow the functions that cases of the suite call, for `check --impl rpc:`
    #[arg(long, hide = true)]
    suite_functions: bool,
}

/// Parses a release whose clients are served (RPC-84).
fn served(text: &str) -> Result<Release, String> {
    let release: Release = text.parse()?;
    if release.minor() >= 7 {
        Ok(release)
    } else {
        // For older releases each session would end at its first byte, and the server itself would show no fault.
        Err("clients up to 0.6 have another protocol, which is not served".to_owned())
    }
}

/// Parses a time above 0, in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && Duration::try_from_secs_f64(seconds).is_ok() => Ok(seconds),
        _ => Err("not a number of seconds above 0".to_owned()),
    }
}

/// Parses a time in seconds, or 0.
fn seconds_or_none(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(0.0),
        _ => seconds(text).map_err(|_| "not a number of seconds, or 0".to_owned()),
    }
}

impl SessionArgs {
    /// Replaces missing options by defaults from the current state of the machine, so that each session gets as much as the first.
    pub(super) fn fill_defaults(&mut self) {
        self.memory.get_or_insert_with(default_memory);
    }

    /// Returns the options as command line arguments.
    pub(super) fn to_arguments(&self) -> Vec<String> {
        let mut all: Vec<String> = [("--largest", self.largest), ("--uploads", self.uploads)]
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        all.extend(self.memory.map(|bytes| format!("--memory={bytes}")));
        all.extend(
            self.process_memory
                .map(|bytes| format!("--process-memory={bytes}")),
        );
        all.extend(self.release.map(|release| format!("--release={release}")));
        all.push(format!("--idle={}", self.idle));
        all.extend(self.timeout.map(|timeout| format!("--timeout={timeout}")));
        all.extend(self.allow.iter().map(|glob| format!("--allow={glob}")));
        all.extend(
            self.allow_connect
                .iter()
                .map(|glob| format!("--allow-connect={glob}")),
        );
        all.extend(self.allow_load.then(|| "--allow-load".to_owned()));
        all.extend(self.suite_functions.then(|| "--suite-functions".to_owned()));
        if self.allow_link {
            all.extend(["--allow-link".to_owned(), format!("--cc={}", self.cc)]);
        }
        all
    }
}

#[derive(clap::Args)]
pub(crate) struct ServeSessionArgs {
    /// The number of the session, for its lines in the log
    #[arg(long)]
    number: u64,
    /// The directory for uploads
    #[arg(long)]
    directory: PathBuf,
    /// The key of the client
    #[arg(long)]
    client: String,
    /// The key for the answer to the client's hello, if that is not answered yet
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    permits: SessionArgs,
}

/// The duration of a call that nobody waits for, after which the session ends.
const DEPARTED: Duration = Duration::from_secs(2);

/// Serves the client on stdin, and writes one line with the result of the session to stderr.
pub(crate) fn run(args: ServeSessionArgs) -> Result<Exit, CliError> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // If the kernel does not support this, the session ends with its connection.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        // Processes that leave the group of the session and lose their parent become its children. When it ends, the server adopts
        // them.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    prefer_for_oom_kill();
    let memory = args.permits.memory.unwrap_or_else(default_memory);
    let all = args.permits.process_memory;
    bound_memory(all.unwrap_or_else(|| memory.saturating_mul(2)))?;
    let began = Instant::now();
    let stream = TcpStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let peer = stream.peer_addr().map_err(CliError::new)?;
    // A client waits for each answer, so that data must not be held back.
    stream.set_nodelay(true)?;
    keep_alive(&stream);
    let socket = stream.try_clone()?;
    let watch = Arc::new(SessionWatch::default());
    let mut permits = args.permits;
    if permits.suite_functions {
        tvmspec::conformance::register_rpc_functions();
        permits.allow.push("tvmspec.*".to_owned());
    }
    let mut options = ServerOptions::new(args.directory);
    options.release = permits.release;
    options.allow = permits.allow;
    options.allow_load = permits.allow_load;
    options.compiler = permits.allow_link.then_some(permits.cc);
    options.connect = permits.allow_connect;
    options.largest = permits.largest;
    options.memory = memory;
    options.uploads = permits.uploads;
    options.timeout = permits.timeout.map(Duration::from_secs_f64);
    options.idle = (permits.idle > 0.0).then(|| Duration::from_secs_f64(permits.idle));
    options.watch = Some(watch.clone());
    let is_written = Arc::new(Mutex::new(false));
    // Only one line, because two causes may end the session at the same time.
    let line = move |report: &str| {
        let mut is_written = lock(&is_written);
        if !std::mem::replace(&mut *is_written, true) {
            let time = duration_text(began.elapsed());
            output::note(format_args!(
                "session {} from {peer}: {report}, {time}",
                args.number
            ));
        }
    };
    let (mut second, last) = (stream.try_clone()?, stream.try_clone()?);
    let (ends, computes) = (line.clone(), watch.clone());
    std::thread::spawn(move || {
        if await_departure(&socket).is_err() {
            return;
        }
        // The thread of the session notices this itself when it reads or writes, and a short call may complete.
        std::thread::sleep(DEPARTED);
        loop {
            std::thread::sleep(DEPARTED / 8);
            if computes.computing().is_some_and(|time| time >= DEPARTED) {
                ends("the client left during a call");
                std::process::exit(0);
            }
        }
    });
    let ends = line.clone();
    std::thread::spawn(move || {
        watch.wait();
        // The thread of the session notices this itself while it waits for a packet.
        std::thread::sleep(Duration::from_millis(200));
        // Do not wait for a client that does not read.
        let _ = second.set_limit(Some(Duration::from_secs(1)));
        if watch.expire(&mut second) {
            ends("its time was over during a call");
        }
        second.end(true);
        std::process::exit(0);
    });
    if let Some(name) = args.name {
        write_answer(
            &stream,
            &HelloAnswer::Success(format!("server:{name}").into()),
        )?;
    }
    let report = serve_paired(stream, &args.client, &options);
    line(&text_of(&report));
    // A process that the client started may still hold the socket.
    last.end(true);
    // Exits without unloading the client's code, because nothing needs its finalizers.
    std::process::exit(0);
}

/// Formats the duration of a session for its line of the log.
fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => {
            let text = format!("{:.1}", time.as_secs_f64());
            format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
        }
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats the result of a session as a line.
fn text_of(report: &SessionReport) -> String {
    let SessionReport {
        key,
        release,
        requests,
        received,
        end,
        ..
    } = report;
    let release = match release {
        Some(release) => format!("as {release}"),
        None => "of any release".to_owned(),
    };
    let key = key.escape_debug();
    format!("`{key}` {release}, {requests} requests, {received} bytes, {end}")
}
