//! A scripted peer: it writes bytes, and returns the bytes that it reads. A server connects to it as the next hop.

use super::session::patience;
use crate::conformance::golden::hex_bytes;
use crate::conformance::op::OpError;
use crate::release::Release;
use crate::rpc::json::{from_packet, to_packet};
use crate::rpc::{Packet, Protocol, Speaker};
use crate::rule::{Findings, Violation};
use crate::wire::{Cursor, Writer};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// The longest packet that a script reads, in bytes.
const LARGEST: usize = 1 << 20;

/// Plays `steps` and returns the data that they read. Stops at the first step whose bytes do not come before the socket's timeout.
/// The owner of the stream closes the connection. Packets are those of a client and a server of `release`.
pub(super) fn play(
    steps: &[Value],
    stream: &mut TcpStream,
    release: Release,
) -> Result<Vec<Value>, OpError> {
    let mut shown = Vec::new();
    for step in steps {
        let read = play_step(step, stream, release)?;
        let is_late = read == "nothing";
        shown.push(read);
        if is_late {
            break;
        }
    }
    Ok(shown)
}

/// Plays one step, and returns the data that it reads.
fn play_step(step: &Value, stream: &mut TcpStream, release: Release) -> Result<Value, OpError> {
    let none = || OpError::Unsupported(format!("{step} is not a step"));
    let mut members = step.as_object().into_iter().flatten();
    // A step does only one thing, because the members of an object have no order.
    let (Some((what, of)), None) = (members.next(), members.next()) else {
        return Err(none());
    };
    let bytes = || of.as_str().and_then(|hex| hex_bytes(hex).ok());
    match &**what {
        "hex" => {
            // A peer that is gone is noticed by the next read.
            let _ = stream.write_all(&bytes().ok_or_else(none)?);
            Ok(Value::Null)
        }
        "read" => {
            let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| *count <= LARGEST).ok_or_else(none)?;
            Ok(shown(read_up_to(stream, count)))
        }
        "packet" => Ok(match packet(stream) {
            Ok(bytes) if bytes.is_empty() => json!("end"),
            Ok(bytes) => shown_packet(&bytes, release)
                .unwrap_or_else(|broken| json!({"breaks": broken.rule().id()})),
            Err(error) => word(&error),
        }),
        "send" => {
            let mut out = Writer::new();
            let packet = to_packet(of)?;
            packet.write(&Protocol::new(release, Speaker::Server), &mut out)?;
            let _ = stream.write_all(&out.into_bytes());
            Ok(Value::Null)
        }
        "end" => Ok(shown(read_up_to(stream, LARGEST))),
        _ => Err(none()),
    }
}

/// Reads the bytes of a packet, which begins with its length from 0.7 on (RPC-10).
fn packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut packet = read_up_to(stream, 8)?;
    let length = packet.first_chunk().copied().map_or(0, u64::from_le_bytes);
    // A server may state any length up to 2^64, so that at most the limit of a script is read.
    let length = usize::try_from(length).unwrap_or(LARGEST).min(LARGEST);
    packet.extend(read_up_to(stream, length)?);
    Ok(packet)
}

fn shown_packet(bytes: &[u8], release: Release) -> Result<Value, Violation> {
    let spoken = Protocol::new(release, Speaker::Client);
    let mut cursor = Cursor::new(bytes);
    let packet = Packet::read(&mut cursor, &spoken, &mut Findings::default())?;
    Ok(from_packet(&packet.require_complete(&cursor)?))
}

/// Reads `count` bytes, or fewer if the stream ends before.
fn read_up_to(stream: &mut TcpStream, count: usize) -> io::Result<Vec<u8>> {
    // One deadline for all pieces: a peer that writes single bytes would otherwise renew the time with each.
    let until = Instant::now() + patience();
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    while read.len() < count {
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let room = piece.len().min(count - read.len());
        match stream.read(&mut piece[..room]) {
            Ok(0) => break,
            Ok(length) => read.extend_from_slice(&piece[..length]),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => break,
                _ => return Err(error),
            },
        }
    }
    Ok(read)
}

/// Returns bytes in hexadecimal, or the word for the error.
fn shown(read: io::Result<Vec<u8>>) -> Value {
    match read {
        Ok(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!(digits)
        }
        Err(error) => word(&error),
    }
}

/// Returns the word for an error of a stream.
fn word(error: &io::Error) -> Value {
    json!(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "nothing",
        _ => "gone",
    })
}
