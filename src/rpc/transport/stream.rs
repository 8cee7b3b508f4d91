//! What a [`Transport`](super::Transport) is over.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

#[cfg(unix)]
use rustix::{io::Errno, net::RecvFlags};

/// What a [`Transport`](super::Transport) reads and writes: blocking, in both directions.
pub trait RpcStream: Read + Write + Send {
    /// Bounds each following read and write; `None` for no bound.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of setting the timeouts of a socket.
    fn set_limit(&self, limit: Option<Duration>) -> io::Result<()>;

    /// Reads bytes that have already arrived, without waiting. Returns `None` if there are none, or if the stream cannot tell.
    fn read_ready(&mut self, room: &mut [u8]) -> Option<io::Result<usize>> {
        let _ = room;
        None
    }

    /// The same stream for another thread, so that one reads while the other one writes; `None` where a stream has no such thing.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of duplicating a socket.
    fn twin(&self) -> io::Result<Option<Box<dyn RpcStream>>> {
        Ok(None)
    }

    /// Ends reading, also of a thread that waits in it; and writing, where `both`.
    fn end(&self, both: bool) {
        let _ = both;
    }
}

/// Sockets have all of it by the same names.
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

            fn twin(&self) -> io::Result<Option<Box<dyn RpcStream>>> {
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

/// What of a connection ends.
fn half(both: bool) -> Shutdown {
    if both { Shutdown::Both } else { Shutdown::Read }
}
