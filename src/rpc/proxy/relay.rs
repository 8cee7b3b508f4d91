//! Relay between two connections, which passes the bytes on unchanged (RPC-73) and copies them to files.

use super::super::{Speaker, threads};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Recording of a session, one file for each side: `NAME.client.bin`, `NAME.server.bin`.
pub(super) struct SessionCapture<'a> {
    client: SideCapture,
    server: SideCapture,
    /// A function that is called with the reason when the recording cannot continue.
    ended: &'a (dyn Fn(String) + Sync),
    /// True if recording has ended for both sides, because the recording of one side alone is useless.
    is_over: AtomicBool,
}

struct SideCapture {
    path: PathBuf,
    file: File,
}

impl<'a> SessionCapture<'a> {
    /// Creates both files in `folder`; an existing file is never overwritten.
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

    /// Records bytes of one side. If that fails, the recording ends, but the session continues.
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

/// Returns the highest N of the files `session-N.*` in a folder; 0 if there are no such files.
pub(super) fn last_recorded(folder: &Path) -> u64 {
    // An unreadable folder is reported when a file is created in it.
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = files.filter_map(|file| {
        let name = file.file_name();
        let rest = name.to_str()?.strip_prefix("session-")?;
        // A number that does not fit into 32 bits cannot come from a proxy.
        rest.split('.').next()?.parse::<u32>().ok()
    });
    numbers.max().map_or(0, u64::from)
}

/// Passes on the bytes of both sides until both have ended. Returns how many bytes the client and the server wrote.
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

/// Passes on one direction. The end of a stream is passed on; an error ends both directions.
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
                // RPC-73: only this direction ends: the other side may still answer earlier requests.
                let _ = to.shutdown(Shutdown::Write);
                return passed;
            }
            Ok(count) => count,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        // Recorded first, because bytes that the other side did not accept are of most interest.
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

/// Ends a connection in both directions. Fails only if it is gone.
pub(super) fn shut(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
