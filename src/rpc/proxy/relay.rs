//! Bytes of two connections, each to the other, and a copy of them in files.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::thread;

/// What a client and a server write, each in a file of its own: `NAME.client.bin`, `NAME.server.bin`.
pub(super) struct SessionCapture {
    pub(super) client: File,
    pub(super) server: File,
}

impl SessionCapture {
    /// Both files, in `folder`; one that is there is not overwritten.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub(super) fn new(folder: &Path, name: &str) -> io::Result<SessionCapture> {
        let file = |side: &str| File::create_new(folder.join(format!("{name}.{side}.bin")));
        Ok(SessionCapture {
            client: file("client")?,
            server: file("server")?,
        })
    }
}

/// Passes on what both write until both are at their end. Returns how many bytes the client and the server wrote.
///
/// # Errors
///
/// There is no thread for one of both directions. Then both are ended.
pub(super) fn relay(
    client: &TcpStream,
    server: &TcpStream,
    record: Option<SessionCapture>,
) -> io::Result<(u64, u64)> {
    let (mut from_client, mut from_server) = match record {
        Some(record) => (Some(record.client), Some(record.server)),
        None => (None, None),
    };
    thread::scope(|scope| {
        let answers = move || copy(server, client, &mut from_server);
        let answers = thread::Builder::new().spawn_scoped(scope, answers);
        let answers = answers.inspect_err(|_| {
            shut(client);
            shut(server);
        })?;
        let requests = copy(client, server, &mut from_client);
        Ok((requests, answers.join().unwrap_or_default()))
    })
}

/// Passes on one direction. An end is passed on as one; an error ends both directions.
fn copy(mut from: &TcpStream, mut to: &TcpStream, record: &mut Option<File>) -> u64 {
    let mut piece = vec![0; 64 << 10];
    let mut passed = 0;
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => {
                let _ = to.shutdown(Shutdown::Write);
                return passed;
            }
            Ok(count) => count,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        // Recorded first: what the other side did not take is what one wants to see.
        let written = record
            .as_mut()
            .map_or(Ok(()), |file| file.write_all(&piece[..count]));
        if written.is_err() || to.write_all(&piece[..count]).is_err() {
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
