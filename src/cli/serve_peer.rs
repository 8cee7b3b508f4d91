//! The other end of a session's connection, as far as the system knows of it: whether it is still there.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// After which silence the system asks the other end whether it is there.
const SILENCE: Duration = Duration::from_secs(30);

/// How long it waits for each answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How many answers stay out before the connection is gone: about a minute behind the last sign of the other end.
const QUESTIONS: u32 = 3;

/// Has the system look whether the other end is still there: of a machine that lost its power or its network nothing comes, not even an end.
pub(super) fn keep_alive(stream: &TcpStream) {
    // Where one of these fails, the session is as one without: its times still end it.
    let _ = sockopt::set_tcp_keepidle(stream, SILENCE);
    let _ = sockopt::set_tcp_keepintvl(stream, ANSWER);
    let _ = sockopt::set_tcp_keepcnt(stream, QUESTIONS);
    let _ = sockopt::set_socket_keepalive(stream, true);
}

/// Returns when the other end has closed its side, or is gone. Bytes that it wrote before and that are not read make no difference.
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

/// The other end writes nothing any more, as behind a close.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;

/// Other systems show it as the end of the connection.
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;
