//! Bytes of two connections, each to the other as they are (RPC-73), and a copy of them in files.

use super::super::{Speaker, threads};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What a client and a server write, each in a file of its own: `NAME.client.bin`, `NAME.server.bin`.
pub(super) struct SessionCapture<'a> {
    client: SideCapture,
    server: SideCapture,
    /// Where a record ends that cannot be written, with the reason.
    ended: &'a (dyn Fn(String) + Sync),
    /// Neither side is recorded any more: half a session is not what one reads.
    is_over: AtomicBool,
}

struct SideCapture {
    path: PathBuf,
    file: File,
}

impl<'a> SessionCapture<'a> {
    /// Both files, in `folder`; one that is there is not overwritten.
    pub(super) fn new(
        folder: &Path,
        name: &str,
        ended: &'a (dyn Fn(String) + Sync),
    ) -> io::Result<SessionCapture<'a>> {
        let side = |side: &str| {
            let path = folder.join(format!("{name}.{side}.bin"));
            match File::create_new(&path) {
                Ok(file) => Ok(SideCapture { path, file }),
                Err(why) => Err(io::Error::new(
                    why.kind(),
                    format!("{}: {why}", path.display()),
                )),
            }
        };
        Ok(SessionCapture {
            client: side("client")?,
            server: side("server")?,
            ended,
            is_over: AtomicBool::new(false),
        })
    }

    /// Records bytes of one side. Where that fails the record ends, and what is recorded goes on.
    pub(super) fn write(&self, of: Speaker, bytes: &[u8]) {
        let side = match of {
            Speaker::Client => &self.client,
            Speaker::Server => &self.server,
        };
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        if let Err(why) = (&side.file).write_all(bytes)
            && !self.is_over.swap(true, Ordering::Relaxed)
        {
            (self.ended)(format!("{}: {why}", side.path.display()));
        }
    }
}

/// The highest N of the files `session-N.*` in a folder; 0 without any.
pub(super) fn last_recorded(folder: &Path) -> u64 {
    // A folder that cannot be read shows when a file is made in it.
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = files.filter_map(|file| {
        let name = file.file_name();
        let rest = name.to_str()?.strip_prefix("session-")?;
        // A number that no proxy reaches is no session's.
        rest.split('.').next()?.parse::<u32>().ok()
    });
    numbers.max().map_or(0, u64::from)
}

/// Passes on what both write until both are at their end. Returns how many bytes the client and the server wrote.
pub(super) fn relay(
    client: &TcpStream,
    server: &TcpStream,
    record: Option<&SessionCapture<'_>>,
) -> io::Result<(u64, u64)> {
    thread::scope(|scope| {
        let answers = move || copy(server, client, Speaker::Server, record);
        let answers = threads::spawn_scoped(scope, answers);
        let answers = answers.inspect_err(|_| {
            shut(client);
            shut(server);
        })?;
        let requests = copy(client, server, Speaker::Client, record);
        Ok((requests, answers.join().unwrap_or_default()))
    })
}

/// Passes on one direction. An end is passed on as one; an error ends both directions.
fn copy(
    mut from: &TcpStream,
    mut to: &TcpStream,
    side: Speaker,
    record: Option<&SessionCapture<'_>>,
) -> u64 {
    let mut piece = vec![0; 64 << 10];
    let mut passed = 0;
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => {
                // RPC-73: this direction alone: the other side may still answer what it has read.
                let _ = to.shutdown(Shutdown::Write);
                return passed;
            }
            Ok(count) => count,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        // Recorded first: what the other side did not take is what one wants to see.
        if let Some(record) = record {
            record.write(side, &piece[..count]);
        }
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
        passed += count as u64;
    }
    shut(from);
    shut(to);
    passed
}

/// Ends a connection in both directions. Fails only where it is gone.
pub(super) fn shut(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
