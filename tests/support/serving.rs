//! Processes of `tvmspec serve`, `tracker` and `proxy`, which end with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A process that listens, and its log.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) log: Box<dyn BufRead + Send>,
    /// The output after its address.
    pub(crate) rest: String,
}

impl Serving {
    /// Starts `tvmspec` with these arguments. The first line of its output ends with an address, except for text after a comma.
    pub(crate) fn start(arguments: &[&str]) -> Serving {
        Serving::spawn(Command::new(env!("CARGO_BIN_EXE_tvmspec")).args(arguments))
    }

    fn spawn(command: &mut Command) -> Serving {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let log = Box::new(BufReader::new(child.stderr.take().expect("piped")));
        let (first, rest) = line.trim().split_once(", ").unwrap_or((line.trim(), ""));
        let address = first.rsplit(' ').next().and_then(|last| last.parse().ok());
        Serving {
            child,
            // A server at a proxy does not listen. The address is that of the proxy.
            address: address.unwrap_or_else(|| panic!("no address in {line:?}")),
            log,
            rest: rest.to_owned(),
        }
    }

    /// Starts `tvmspec serve` at any port.
    pub(crate) fn server(arguments: &[&str]) -> Serving {
        Serving::start(&[&["serve", "--port", "0"], arguments].concat())
    }

    /// Starts `tvmspec` like [`Serving::start`], with its files in `folder`.
    pub(crate) fn start_in(folder: &Path, arguments: &[&str]) -> Serving {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
        command.args(arguments).env("TMPDIR", folder);
        Serving::spawn(command.current_dir(folder))
    }

    /// Starts `tvmspec serve` at any port, with its files in `folder`.
    pub(crate) fn server_in(folder: &Path, arguments: &[&str]) -> Serving {
        Serving::start_in(folder, &[&["serve", "--port", "0"], arguments].concat())
    }

    /// Reads the log on a thread, so that its pipe is never full. Returns its lines.
    pub(crate) fn take_log(&mut self) -> Receiver<String> {
        let pipe = std::mem::replace(&mut self.log, Box::new(std::io::empty()));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in pipe.split(b'\n').map_while(Result::ok) {
                // After the receiver is gone the lines are of no use.
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        lines
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

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the next line of the log, except lines about sessions that begin.
    pub(crate) fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.log.read_line(&mut line).expect("a line");
            if !line.ends_with(": begins\n") {
                return line;
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Its sessions end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
