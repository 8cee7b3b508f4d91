//! Streams that a [`Transport`](super::Transport) can use.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

#[cfg(unix)]
use rustix::{io::Errno, net::RecvFlags};

/// A blocking stream in both directions, which a [`Transport`](super::Transport) reads and writes.
pub trait RpcStream: Read + Write + Send {
    /// Bounds each later read and write; `None` for no bound.
    ///
    /// # Errors
    ///
    /// Returns [`io::Error`] of setting the timeouts of a socket.
    fn set_limit(&self, limit: Option<Duration>) -> io::Result<()>;

    /// Reads bytes that have already arrived. Returns `None` if no byte has arrived. A stream that cannot tell waits, like `read`.
    fn read_ready(&mut self, room: &mut [u8]) -> Option<io::Result<usize>> {
        Some(self.read(room))
    }

    /// Duplicates the stream for another thread, so that one reads while the other writes. Returns `None` if the stream cannot be
    /// duplicated.
    ///
    /// # Errors
    ///
    /// Returns [`io::Error`] of duplicating a socket.
    fn duplicate(&self) -> io::Result<Option<Box<dyn RpcStream>>> {
        Ok(None)
    }

    /// Ends reading, also for a thread that waits in a read. If `both`, also ends writing.
    fn end(&self, both: bool) {
        let _ = both;
    }
}

/// Both kinds of sockets have the same methods.
macro_rules! socket_stream {
    ($socket:ty) => {
        impl RpcStream for $socket {
            fn set_limit(&self, limit: Option<Duration>) -> io::Result<()> {
                self.set_read_timeout(limit)?;
                self.set_write_timeout(limit)
            }

            #[cfg(unix)]
            fn read_ready(&mut self, room: &mut [u8]) -> Option<io::Result<usize>> {
                received(rustix::net::recv(&*self, room, RecvFlags::DONTWAIT))
            }

            fn duplicate(&self) -> io::Result<Option<Box<dyn RpcStream>>> {
                Ok(Some(Box::new(self.try_clone()?)))
            }

            fn end(&self, both: bool) {
                // Fails only for a socket whose connection is gone.
                let _ = self.shutdown(half(both));
            }
        }
    };
}

socket_stream!(TcpStream);
#[cfg(unix)]
socket_stream!(std::os::unix::net::UnixStream);

/// Converts the result of a `recv` that does not wait.
#[cfg(unix)]
fn received(result: rustix::io::Result<(usize, usize)>) -> Option<io::Result<usize>> {
    match result {
        Ok((read, _)) => Some(Ok(read)),
        Err(Errno::AGAIN | Errno::INTR) => None,
        Err(error) => Some(Err(error.into())),
    }
}

/// Returns which directions of a connection end.
fn half(both: bool) -> Shutdown {
    if both { Shutdown::Both } else { Shutdown::Read }
}
