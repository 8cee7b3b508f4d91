//! Detection of whether the peer of a session's connection is still there, as far as the system knows.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// The time without traffic after which the system probes the peer.
const SILENCE: Duration = Duration::from_secs(30);

/// The time that it waits for each answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The number of missing answers after which the connection is closed: about a minute after the last sign of the peer.
const QUESTIONS: u32 = 3;

/// Enables keep-alive. A machine that lost its power or its network sends nothing, not even the end of the connection.
pub(super) fn keep_alive(stream: &TcpStream) {
    // If one of these fails, the session works without it, and its time limits still apply.
    let _ = sockopt::set_tcp_keepidle(stream, SILENCE);
    let _ = sockopt::set_tcp_keepintvl(stream, ANSWER);
    let _ = sockopt::set_tcp_keepcnt(stream, QUESTIONS);
    let _ = sockopt::set_socket_keepalive(stream, true);
}

/// Returns when the peer has closed its side, or has vanished. Unread bytes from before make no difference.
pub(super) fn await_departure(stream: &TcpStream) -> io::Result<()> {
    loop {
        let mut looked = [PollFd::new(stream, CLOSED)];
        match poll(&mut looked, None) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The event that the peer will write nothing more, as after a close.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;

/// Other systems report it as the end of the connection.
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;
