//! A peer that a script plays: it writes bytes, and shows what it reads. It is what a server goes on to, or one end of a tunnel.

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
use std::time::{Duration, Instant};

/// The longest packet and record that a script reads.
const LARGEST: usize = 1 << 20;

/// A connection that a script is played over. Reads end after the patience that was set.
pub(super) trait PeerStream: Read + Write {
    /// What TLS does beside bytes: new keys, or its end. False for a stream that has no such thing.
    fn signal(&mut self, name: &str) -> bool {
        let _ = name;
        false
    }
}

impl PeerStream for TcpStream {}

/// Plays `steps`, and returns what they read, up to the one that nothing comes to in time. The connection ends when its owner drops it.
/// Packets are those of a client and a server of `release`.
pub(super) fn play(
    steps: &[Value],
    stream: &mut dyn PeerStream,
    release: Release,
) -> Result<Vec<Value>, OpError> {
    let mut shown = Vec::new();
    for step in steps {
        let read = played(step, stream, release)?;
        let is_late = read == "nothing";
        shown.push(read);
        if is_late {
            break;
        }
    }
    Ok(shown)
}

/// What a step reads.
fn played(step: &Value, stream: &mut dyn PeerStream, release: Release) -> Result<Value, OpError> {
    let none = || OpError::Unsupported(format!("{step} is not a step"));
    let mut members = step.as_object().into_iter().flatten();
    // A step does one thing: the members of an object have no order.
    let (Some((what, of)), None) = (members.next(), members.next()) else {
        return Err(none());
    };
    let bytes = || of.as_str().and_then(|hex| hex_bytes(hex).ok());
    match &**what {
        "hex" => {
            // A peer that is gone shows when it is read from.
            let _ = stream.write_all(&bytes().ok_or_else(none)?);
            Ok(Value::Null)
        }
        "trickle" => {
            let bytes = bytes().ok_or_else(none)?;
            for byte in bytes {
                if stream.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(Value::Null)
        }
        "wait" => {
            // A case that waits for longer holds up all that follow.
            let seconds = of
                .as_f64()
                .filter(|seconds| (0.0..=1.0).contains(seconds))
                .ok_or_else(none)?;
            std::thread::sleep(Duration::from_secs_f64(seconds));
            Ok(Value::Null)
        }
        "signal" => {
            if stream.signal(of.as_str().unwrap_or_default()) {
                Ok(Value::Null)
            } else {
                Err(none())
            }
        }
        "read" => {
            let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| *count <= LARGEST).ok_or_else(none)?;
            Ok(shown(up_to(stream, count)))
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
        // RFC 8446, 5.1: a type, a version, a length of two bytes, big-endian. The content of an alert is known, and not that of others.
        "record" => Ok(shown(up_to(stream, 5).and_then(|mut record| {
            let length = match record.as_slice() {
                [_, _, _, high, low] => usize::from(u16::from_be_bytes([*high, *low])),
                _ => 0,
            };
            record.extend(up_to(stream, length)?);
            const ALERT: u8 = 21;
            if record.first() != Some(&ALERT) {
                record.truncate(1);
            }
            Ok(record)
        }))),
        "end" => Ok(shown(up_to(stream, LARGEST))),
        // What an end writes in front of its end is its own choice.
        "skip" => Ok(match up_to(stream, LARGEST) {
            Ok(_) => Value::Null,
            Err(error) => word(&error),
        }),
        _ => Err(none()),
    }
}

/// The bytes of a packet, which has its length in front from 0.8 on (RPC-10).
fn packet(stream: &mut dyn PeerStream) -> io::Result<Vec<u8>> {
    let mut packet = up_to(stream, 8)?;
    let length = packet.first_chunk().copied().map_or(0, u64::from_le_bytes);
    // A server may state any length, up to 2^64: no more is read than a script may have.
    let length = usize::try_from(length).unwrap_or(LARGEST).min(LARGEST);
    packet.extend(up_to(stream, length)?);
    Ok(packet)
}

fn shown_packet(bytes: &[u8], release: Release) -> Result<Value, Violation> {
    let spoken = Protocol::new(release, Speaker::Client);
    let mut cursor = Cursor::new(bytes);
    let packet = Packet::read(&mut cursor, &spoken, &mut Findings::default())?;
    Ok(from_packet(&packet.whole(&cursor)?))
}

/// `count` bytes, or those in front of the end.
pub(super) fn up_to<S: Read + ?Sized>(stream: &mut S, count: usize) -> io::Result<Vec<u8>> {
    // One deadline for all pieces: a peer that writes a byte now and then would renew the time with each.
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

/// Bytes in hexadecimal, or why there are none.
pub(super) fn shown(read: io::Result<Vec<u8>>) -> Value {
    match read {
        Ok(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!(digits)
        }
        Err(error) => word(&error),
    }
}

/// What an error of a stream is called.
pub(super) fn word(error: &io::Error) -> Value {
    json!(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "nothing",
        // Of a tunnel: the connection below it has ended, and the tunnel has not.
        io::ErrorKind::UnexpectedEof => "cut",
        io::ErrorKind::InvalidData => "invalid",
        _ => "gone",
    })
}
