//! Processes of `tvmspec serve`, `tracker` and `proxy`, which end with the test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A process that listens, and its log.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) log: BufReader<ChildStderr>,
    /// The output after its address.
    pub(crate) rest: String,
}

impl Serving {
    /// Starts `tvmspec` with these arguments. The first line of its output ends with an address, except for text after a comma.
    pub(crate) fn start(arguments: &[&str]) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let log = BufReader::new(child.stderr.take().expect("piped"));
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

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the next line of the log, except lines about sessions that begin.
    #[allow(dead_code, reason = "not every test reads a log")]
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
