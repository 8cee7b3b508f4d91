//! The start of a session: the connection, the hello and its answer, and InitServer, whose answer shows the era.

use super::super::transport::Transport;
use super::super::{Hello, HelloAnswer, PackedValue, Packet, Protocol, RPC_100, Speaker};
use super::exception::far_error;
use super::link::{SpokenEra, unexpected};
use super::options::{RemoteHop, SessionOptions};
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::{Findings, Kind};
use std::borrow::Cow;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Connects to the first address of `host` that answers.
pub(in crate::rpc) fn connected(host: &str, port: u16, timeout: Duration) -> Result<TcpStream> {
    let gone = |error: std::io::Error| {
        let text = format!("no connection to {host}:{port}: {error}");
        Error::new(ErrorKind::Connection, text)
    };
    let deadline = Instant::now() + timeout;
    let mut last = std::io::Error::other("the name has no address");
    for address in (host, port).to_socket_addrs().map_err(gone)? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            last = std::io::ErrorKind::TimedOut.into();
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(gone(last))
}

/// Writes the hello and reads its answer. Returns the server's name for itself.
pub(in crate::rpc) fn shake_hands(
    transport: &mut Transport,
    key: &str,
    options: &SessionOptions,
) -> Result<String> {
    let answer = greet(transport, key, options)?;
    accepted_server_name(answer, key)
}

/// Writes the hello and reads its answer, even if the answer is a rejection.
pub(super) fn greet(
    transport: &mut Transport,
    key: &str,
    options: &SessionOptions,
) -> Result<HelloAnswer<'static>> {
    let timeout = options
        .session_timeout
        .map(|seconds| format!(" -timeout={seconds}"));
    let hello = format!("client:{key}{}", timeout.unwrap_or_default());
    transport.write_hello(&Hello { key: hello.into() })?;
    transport.read_answer(options.release.unwrap_or(Release::LAST))
}

/// Returns the server's name for itself if it accepts the hello.
pub(super) fn accepted_server_name(answer: HelloAnswer<'_>, key: &str) -> Result<String> {
    match answer {
        HelloAnswer::Success(server) => Ok(server.into_owned()),
        // RPC-04: a proxy writes it to servers; no server writes it to a client.
        HelloAnswer::Duplicate => Err(Error::new(
            ErrorKind::Connection,
            format!("key `{key}` is taken"),
        )),
        HelloAnswer::Mismatch => {
            let text = format!(
                "no server has key `{key}`: a server is named with the key that it was started with, as rpc://HOST:PORT/KEY"
            );
            Err(Error::new(ErrorKind::Connection, text))
        }
    }
}

/// Writes InitServer and reads its answer, which shows the era (RPC-100).
pub(super) fn begin(
    transport: &mut Transport,
    release: Release,
    stated: bool,
    hops: &[RemoteHop],
) -> Result<SpokenEra> {
    // RPC-23: the version has not changed since 0.8.
    let version: &[u8] = match release.minor() {
        7 => b"0.7.0",
        _ => b"0.8.0",
    };
    let spoken = Protocol::new(release, Speaker::Client);
    let legacy = release.minor() <= 20;
    // 0.8 has no logging flag. If the release is unknown, the later form is tried first; a rejected form leaves both sides in step
    // (RPC-22).
    let forms: &[bool] = match (stated, legacy) {
        _ if hops.is_empty() => &[true],
        (true, _) if release.minor() <= 8 => &[false],
        (false, true) => &[true, false],
        _ => &[true],
    };
    let mut failed = None;
    for flag in forms {
        let args = constructor(hops, *flag);
        let request = Packet::InitServer(Cow::Borrowed(version), args);
        transport.write_packet(&request, &spoken)?;
        let era = server_era(transport, release, stated)?;
        let read =
            transport.read_packet(&era.protocol(Speaker::Server), &mut Findings::default())?;
        match read {
            // RPC-84: any value is accepted: a server that does not know the encoding yet writes no value.
            Some(Packet::Return(_)) => return Ok(era),
            Some(Packet::Exception(values)) => {
                // If both forms fail, the first exception is more useful, because most releases have the first form.
                let error = far_error(&values);
                failed = failed.or(Some(error));
            }
            Some(other) => return Err(unexpected("InitServer", &other)),
            None => {
                return Err(Error::new(
                    ErrorKind::Connection,
                    "the server ends the session",
                ));
            }
        }
    }
    Err(failed.unwrap_or_else(|| Error::new(ErrorKind::Connection, "the server ends the session")))
}

/// Returns the arguments that create the session: none for a session of the server itself, otherwise a function and its arguments
/// (RPC-22).
fn constructor(hops: &[RemoteHop], flag: bool) -> Vec<PackedValue<'_>> {
    let mut args = Vec::new();
    for hop in hops {
        let text = |text: &'_ str| PackedValue::Str(Cow::Owned(text.as_bytes().to_vec()));
        args.push(text("rpc.Connect"));
        args.push(text(&hop.host));
        args.push(PackedValue::Int(i64::from(hop.port)));
        args.push(text(&hop.key));
        if flag {
            // The logging flag of a channel. 0.21 dropped it, and it was a bool from 0.18 on, but all servers accept an integer.
            args.push(PackedValue::Int(0));
        }
    }
    args
}

/// Detects the era from the first answer, without consuming it (RPC-100). The answer is one value, either None or a text, and the codes
/// of both differ between the eras.
pub(in crate::rpc) fn server_era(
    transport: &mut Transport,
    release: Release,
    stated: bool,
) -> Result<SpokenEra> {
    let spoken = Protocol::new(release, Speaker::Server);
    let bytes = transport.peek_packet(&spoken)?.unwrap_or_default();
    let word = |at: usize| {
        let word = bytes.get(at..)?.first_chunk()?;
        Some(i32::from_le_bytes(*word))
    };
    // The code, the number of values, and the code of the first value. Both eras have them at the same offsets.
    let ffi = match (word(8), word(12), word(16)) {
        (Some(4), Some(1), Some(0)) | (Some(5), Some(1), Some(8)) => Some(true),
        (Some(4), Some(1), Some(4)) | (Some(5), Some(1), Some(11)) => Some(false),
        _ => None,
    };
    let own = release.minor() >= 21;
    // RPC-84: an answer that shows no encoding comes from a server that adopts ours.
    let theirs = ffi.unwrap_or(own);
    if stated {
        // RPC-100: a client of TVM assumes its own encoding for the first answer, and then fails with a check of the remaining bytes.
        RPC_100.demand(Kind::Unsupported, theirs == own, || {
            let era = |ffi| if ffi {
"0.21 and later"
} else {
"0.20 and earlier"
};
            format!(
                "the server speaks as releases {} do, and this session was to be spoken as {release} does",
                era(theirs)
            )
        })?;
        return Ok(SpokenEra { release, stated });
    }
    let release = if theirs {
        Release::LAST
    } else {
        // The newest release of the era: it reads everything that the others write.
        Release::of(20)
    };
    Ok(SpokenEra { release, stated })
}
