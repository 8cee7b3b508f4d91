//! A server that clients cannot reach: it connects to a proxy, and waits there for a client (RPC-94).

use super::super::{Hello, HelloAnswer, Progress};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::wire::{Cursor, Writer};
use std::io::{self, Read, Write};

/// Writes the hello of a server of `key` to a proxy, and waits for a client. Returns the client's key, with its options.
///
/// Bytes after the answer are not read: they belong to the session, which [`super::serve_paired`] serves.
///
/// # Errors
///
/// Returns a ConnectionError if another server waits under the key, or if the proxy is gone; a TimeoutError if no client came; RPC-04.
pub fn await_pair(proxy: &mut (impl Read + Write), key: &str) -> Result<String> {
    let mut out = Writer::new();
    let key = format!("server:{key}");
    Hello { key: key.into() }.write(&mut out)?;
    proxy
        .write_all(&out.into_bytes())
        .map_err(connection_error)?;
    let mut input: Vec<u8> = Vec::new();
    loop {
        let mut cursor = Cursor::new(&input);
        let missing = match HelloAnswer::read(&mut cursor, Release::LAST)? {
            Progress::Short(missing) => usize::try_from(missing).unwrap_or(usize::MAX),
            Progress::Whole(HelloAnswer::Success(client)) => return Ok(client.into_owned()),
            Progress::Whole(HelloAnswer::Duplicate) => {
                // RPC-94: released servers try five times, at intervals of five seconds, and then give up. Here the caller decides about
                // retries.
                return Err(Error::new(
                    ErrorKind::Connection,
                    "another server waits under this key",
                ));
            }
            Progress::Whole(HelloAnswer::Mismatch) => {
                return Err(Error::new(ErrorKind::Timeout, "no client came"));
            }
        };
        // RPC-03 bounds the number.
        let start = input.len();
        input.resize(start.saturating_add(missing), 0);
        let room = input.get_mut(start..).unwrap_or_default();
        proxy.read_exact(room).map_err(connection_error)?;
    }
}

/// Converts an error of the connection.
fn connection_error(error: io::Error) -> Error {
    Error::new(ErrorKind::Connection, format!("the proxy is gone: {error}"))
}
