//! Server processes: ours and those of real TVM.

use super::OUR_PATIENCE;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tvmspec::rpc::client::{Session, SessionOptions};

/// A server in its own process.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) port: u16,
    /// Lines that it prints and logs.
    lines: Receiver<String>,
    /// Number of connections that it has accepted.
    pub(crate) accepted: u64,
}

impl ServerProcess {
    /// Starts the process, with `folder` for its files.
    ///
    /// # Errors
    ///
    /// A text if the process ends before it listens.
    pub(crate) fn start(command: &mut Command, folder: &Path) -> Result<ServerProcess, String> {
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
            // The script prints `port N`, `tvmspec serve` prints `serving on HOST:PORT`.
            let port = line.strip_prefix("port ");
            let port = port.or_else(|| line.strip_prefix("serving on ")?.rsplit(':').next());
            port?.trim().parse().ok()
        });
        server.port = port.ok_or("it ends before it listens")?;
        Ok(server)
    }

    /// Waits for a line for which `read` returns a value.
    pub(crate) fn line<T>(
        &self,
        patience: Duration,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if let Some(found) = read(&self.lines.recv_timeout(left).ok()?) {
                return Some(found);
            }
        }
    }

    /// Checks that an honest client is served.
    pub(crate) fn serves(&mut self, patience: Duration) -> Result<(), String> {
        let mut options = SessionOptions::default();
        options.connect_timeout = patience;
        options.timeout = Some(patience);
        self.accepted += 1;
        let session = Session::connect("127.0.0.1", self.port, "", &options);
        let session = session.map_err(|error| error.to_string())?;
        let sum = session.call("rpc.test.addone", (41,));
        match sum.map(i64::try_from) {
            Ok(Ok(42)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Returns the numbers of open files, threads and children.
    pub(crate) fn holds(&self) -> (usize, usize, usize) {
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

    /// Returns the resident memory, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process group includes the sessions, which outlive servers of TVM.
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Forwards the lines of a process, and keeps its pipe empty.
fn forward(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            // After the receiver is gone the lines are of no use.
            let _ = lines.send(line);
        }
    });
}
