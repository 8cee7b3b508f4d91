//! `tvmspec serve`: an RPC server. The server itself reads only the hello of a connection. Each client gets its own process, so that a
//! crash, a hang or a fork affects only its session.

use super::serve_lobby::{Lobby, NOT_STARTED};
use super::serve_peer::keep_alive;
use super::serve_running::{RunningSessions, drain_at_signal};
use super::serve_session::SessionArgs;
use super::serve_tracker::{MatchKeys, TrackerLine};
use super::session_log::{BEGINS, PROCESS_ENDED};
use super::{CliError, Exit, output};
use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::thread::Builder;
use std::time::Duration;
use tempfile::TempDir;
use tvmspec::conformance::adapter::program_command;
use tvmspec::function::ErrorKind;
use tvmspec::rpc::server::await_pair;
use tvmspec::rpc::threads::{self, STACK};

#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on; 0.0.0.0 for every address of this machine
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The first port to try; 0 for any free port
    #[arg(long, default_value_t = 9090)]
    port: u16,
    /// The last port to try
    #[arg(long, value_name = "PORT")]
    port_end: Option<u16>,
    /// The key that clients must send
    #[arg(long, default_value = "", value_parser = super::address::key)]
    key: String,
    /// Offer this server to the clients of a tracker, under --key. Each offer is for one client
    #[arg(long, value_name = "HOST:PORT", requires = "key", value_parser = super::address::host_port)]
    tracker: Option<String>,
    /// Get clients from a proxy, under --key, and do not listen on a port
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = super::address::host_port,
        requires = "key",
        conflicts_with = "tracker"
    )]
    proxy: Option<String>,
    /// The host that the tracker sends clients to [default: the address from which this server connects to the tracker]
    #[arg(long, value_name = "HOST", requires = "tracker")]
    custom_addr: Option<String>,
    /// The maximal number of concurrent sessions; other clients wait. Use 1 for measurements, because sessions slow each other down
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    #[command(flatten)]
    permits: SessionArgs,
}

/// The time that the tracker has for its first answer, before clients are served without it.
const FIRST_OFFER: Duration = Duration::from_secs(15);

/// Accepts clients until it is stopped.
pub(crate) fn run(mut args: ServeArgs) -> Result<Exit, CliError> {
    args.permits.fill_defaults();
    let program = program_command::words()?;
    let running = Arc::new(RunningSessions::new()?);
    if let Some(proxy) = args.proxy {
        drain_at_signal(running.clone())?;
        output::print(&format!("serving through {proxy}\n"))?;
        let line = ProxyLine {
            proxy,
            key: args.key,
            sessions: args.sessions as usize,
            program,
        };
        line.serve_waiting_clients(&args.permits, &running);
    }
    let listener = bind(args.host, args.port, args.port_end)?;
    drain_at_signal(running.clone())?;
    let address = listener.local_addr()?;
    let own_key = args.key.clone();
    let mut is_own: Arc<dyn Fn(&str) -> bool + Send + Sync> = Arc::new(move |key| key == own_key);
    if let Some(tracker) = &args.tracker {
        let keys = Arc::new(MatchKeys::default());
        let (heard, wait) = sync_channel(1);
        let line = TrackerLine {
            tracker: tracker.clone(),
            key: args.key.clone(),
            at: address,
            host: args.custom_addr.clone(),
            sessions: args.sessions as usize,
            keys: keys.clone(),
            running: running.clone(),
            is_warned: Cell::new(false),
            heard,
        };
        std::thread::spawn(move || line.stay_registered());
        // A program that reads the line below may ask the tracker for this server at once. If the tracker cannot be reached, the log
        // says so before that line.
        if wait.recv_timeout(FIRST_OFFER).is_err() {
            output::note(format_args!("tracker {tracker}: no answer yet"));
        }
        is_own = Arc::new(move |key| keys.contains(key));
    }
    let lobby = Arc::new(Lobby::default());
    let own = lobby.clone();
    Builder::new().spawn(move || own.fill(&listener, &is_own))?;
    output::print(&format!("serving on {address}\n"))?;
    loop {
        running.await_slot(args.sessions as usize);
        let client = lobby.next();
        // Drops the connection, so that the client sees its end and does not wait for a session.
        if running.is_draining() {
            continue;
        }
        let (number, peer) = (client.number, client.peer);
        let started = match client.is_gone() {
            Ok(true) => Err(io::Error::other("the client has left")),
            _ => {
                let session = SessionProcess {
                    number,
                    peer,
                    key: client.hello.key.into_owned(),
                    name: Some(args.key.clone()),
                };
                session.start(&program, client.stream, &args.permits, &running)
            }
        };
        if let Err(error) = started {
            output::note(format_args!(
                "session {number} from {peer}{NOT_STARTED}{error}"
            ));
        }
    }
}

/// A server that gets its clients from a proxy.
struct ProxyLine {
    /// The proxy, as `HOST:PORT`.
    proxy: String,
    key: String,
    /// The maximal number of concurrent sessions.
    sessions: usize,
    program: Vec<OsString>,
}

/// The pause after the proxy disconnects or rejects this server because another one has the key.
const PROXY_PAUSE: Duration = Duration::from_secs(2);

impl ProxyLine {
    /// Waits for clients, one at a time, because a proxy accepts only one waiting server for a key. The signal thread ends the process.
    fn serve_waiting_clients(&self, permits: &SessionArgs, running: &Arc<RunningSessions>) -> ! {
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
                        output::note(format_args!("session {number}{NOT_STARTED}{error}"));
                    }
                }
                // Ten minutes without a client are not reported.
                Err(error) if error.kind() == ErrorKind::Timeout => {}
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

    /// Returns a connection that the proxy has paired, and the key of the client.
    fn pair(&self) -> tvmspec::function::Result<(TcpStream, String)> {
        let gone = |error: io::Error| {
            tvmspec::function::Error::new(ErrorKind::Connection, error.to_string())
        };
        let mut stream = TcpStream::connect(&*self.proxy).map_err(gone)?;
        // A proxy that vanished sends no client. Without keep-alive, the server would never reconnect.
        keep_alive(&stream);
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
            key: client,
            name: None,
        };
        session.start(&self.program, stream, permits, running)
    }
}

/// Binds the first free port.
fn bind(host: IpAddr, first: u16, last: Option<u16>) -> Result<TcpListener, CliError> {
    let last = last.unwrap_or(first);
    // The message for an empty range: --port-end below --port.
    let mut why = format!("there is no port from {first} to {last}");
    for port in first..=last {
        match TcpListener::bind(SocketAddr::new(host, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => why = format!("{host}:{port}: {error}"),
        }
    }
    Err(CliError::Message(why))
}

/// A session to start.
struct SessionProcess {
    number: u64,
    peer: SocketAddr,
    /// The key from the hello of the client.
    key: String,
    /// The key of the server, with which the session answers; `None` if a proxy has answered.
    name: Option<String>,
}

impl SessionProcess {
    /// Starts the process of the session, and a thread that waits for its end.
    fn start(
        self,
        program: &[OsString],
        stream: TcpStream,
        permits: &SessionArgs,
        running: &Arc<RunningSessions>,
    ) -> io::Result<()> {
        let directory = running.session_directory()?;
        let mut command = program_command::command_of(program);
        command
            .arg("serve-session")
            .arg(format!("--number={}", self.number))
            .arg("--directory")
            .arg(directory.path())
            // Neither an argument nor an option of a client may contain NUL.
            .arg(format!("--client={}", self.key.replace('\0', "\u{fffd}")))
            .args(self.name.iter().map(|name| format!("--name={name}")))
            .args(permits.to_arguments())
            .current_dir(directory.path())
            // Temporary files of a compiler are removed together with the session, even if a signal ends both.
            .env("TMPDIR", directory.path())
            .stdin(Stdio::from(OwnedFd::from(stream)));
        // Output of functions goes to the log.
        command.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        let (number, peer) = (self.number, self.peer);
        let (started, start) = channel();
        let own = running.clone();
        // The thread is created before the process, because a process without a waiting thread would occupy its place for ever. If no
        // thread can be created now, the next client may succeed.
        threads::spawn(STACK, move || {
            if let Ok(child) = start.recv() {
                self.await_end(child, directory, &own);
            }
        })?;
        // Printed before the process starts, so that its own lines follow.
        output::note(format_args!("session {number} from {peer}{BEGINS}"));
        let child = running.spawn(&mut command)?;
        // The command holds the socket, and the client would not see the end of the session.
        drop(command);
        // The thread exists and waits for this message.
        let _ = started.send(child);
        Ok(())
    }

    /// Waits for the process, ends the processes that it started, and removes its files.
    fn await_end(self, mut child: Child, directory: TempDir, running: &RunningSessions) {
        let status = running.end(&mut child);
        drop(directory.close());
        match status {
            Ok(status) if status.success() => {}
            // A session that ends by itself writes this line itself.
            Ok(status) => output::note(format_args!(
                "session {} from {}: {PROCESS_ENDED}: {status}",
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
