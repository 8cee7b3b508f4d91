//! The start of a connection: the client's hello with its key, and the server's answer.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | magic, or the answer's code | i32 | RPC-01, RPC-04 |
//! | length of the key | i32 | RPC-02 |
//! | key | UTF-8 | RPC-02 |

use super::super::{RPC_01, RPC_02, RPC_03, RPC_04, RPC_05};
use super::protocol::{Progress, peek_value};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, ReadValue, Writer, show};
use std::borrow::Cow;

/// The first message of a client, and of a server to a proxy: its own role, and the key that it looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// `client:` or `server:`, the key that must match, and options after it.
    pub key: Cow<'a, str>,
}

impl<'a> Hello<'a> {
    /// The number that begins a session: `71 f2 0f 00`.
    ///
    /// As an answer it means success; the two numbers after it are the other answers (RPC-04).
    pub const MAGIC: i32 = 0x0ff271;

    /// The longest key that is read, in bytes (RPC-03).
    ///
    /// Upstream's servers collect up to 2 GiB before they look at a key.
    pub const LONGEST: i32 = 4096;

    /// Reads a hello.
    ///
    /// # Errors
    ///
    /// Returns RPC-01 for another magic; RPC-02 and RPC-03 for an invalid key.
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Progress<Hello<'a>>, Violation> {
        // Another magic is rejected as soon as its bytes have arrived, without waiting for the key (RPC-16).
        if let Progress::Whole(magic) = peek_value(cursor, "magic", i32::from_le_bytes) {
            magic.require(
                RPC_01,
                |magic| *magic == Hello::MAGIC,
                |magic| {
                    let other = match &magic.to_le_bytes() {
                        // A TLS handshake record of any version.
                        [22, 3, ..] => ": the client speaks TLS, and this server does not",
                        b"GET " | b"POST" | b"HEAD" => ": the client speaks HTTP",
                        // RPC-50: the first number of a client of a tracker.
                        [0x71, 0xf2, 2, 0] => ": the client takes this port for that of a tracker",
                        _ => "",
                    };
                    format!("magic {magic:#x} is of no RPC client{other}")
                },
            )?;
        }
        let key = match whole_key(cursor)? {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(length) => {
                // The cursor moves only now, after the whole key has arrived.
                cursor.i32("magic", RPC_01)?;
                read_key(cursor, length)?
            }
        };
        Ok(Progress::Whole(Hello { key }))
    }

    /// Writes the hello.
    ///
    /// # Errors
    ///
    /// Returns RPC-03 of kind limit for a key that our readers reject.
    pub fn write(&self, out: &mut Writer) -> Result<(), Violation> {
        out.i32(Hello::MAGIC);
        write_key(&self.key, out)
    }

    /// Returns the key that must match: the first word without its first seven letters (RPC-05).
    pub fn match_key(&self) -> &str {
        let first = self.key.split_whitespace().next();
        // `client:` and `server:` both have seven letters.
        first.and_then(|word| word.get(7..)).unwrap_or_default()
    }

    /// Returns the time limit of the whole session, in seconds, if an option after the key states one (RPC-05).
    ///
    /// # Errors
    ///
    /// Returns RPC-05 for a time that is not a finite number above 0.
    pub fn timeout(&self) -> Result<Option<f64>, Violation> {
        // RPC-05: servers of all releases skip a word that is not an option.
        let stated = self.key.split_whitespace().skip(1);
        let Some(text) = stated
            .filter_map(|word| word.strip_prefix("-timeout="))
            // RPC-05: of several timeouts the last counts, as in the servers of Python.
            .last()
        else {
            return Ok(None);
        };
        let seconds = text.parse::<f64>().ok();
        // Rust also parses `inf` and `nan` as numbers; neither is a valid time.
        let sound = seconds.is_some_and(|seconds| seconds.is_finite() && seconds > 0.0);
        RPC_05.demand(Kind::Malformed, sound, || {
            format!("-timeout=`{}` is not a time", show(text.as_bytes()))
        })?;
        Ok(seconds)
    }
}

/// The server's answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloAnswer<'a> {
    /// The session begins. The text is `server:` and the key of the server; from a proxy, the hello of the other side; empty in 0.2.
    Success(Cow<'a, str>),
    /// From a proxy: another server already waits under this key.
    Duplicate,
    /// The server has another key, or the proxy has no server of this key.
    Mismatch,
}

impl<'a> HelloAnswer<'a> {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// Returns RPC-04 for another code; RPC-02 and RPC-03 for an invalid key.
    pub fn read(
        cursor: &mut Cursor<'a>,
        release: Release,
    ) -> Result<Progress<HelloAnswer<'a>>, Violation> {
        let code = match peek_value(cursor, "code", i32::from_le_bytes) {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(code) => code,
        };
        // The three codes are consecutive; wrapping maps every other code to a number outside of 0 to 2.
        let answer = match code.wrapping_sub(Hello::MAGIC) {
            // RPC-04: nothing follows a code other than success.
            1 => HelloAnswer::Duplicate,
            2 => HelloAnswer::Mismatch,
            other => {
                code.require(
                    RPC_04,
                    |_| other == 0,
                    |code| {
                        let other = match &code.to_le_bytes() {
                            // A TLS alert of any version.
                            [21, 3, ..] => ": the server speaks TLS, and this client does not",
                            first => other_protocol_name(first),
                        };
                        format!("code {code:#x} is not an answer to a hello{other}")
                    },
                )?;
                if !has_key(release) {
                    cursor.i32("code", RPC_04)?;
                    return Ok(Progress::Whole(HelloAnswer::Success(Cow::Borrowed(""))));
                }
                let length = match whole_key(cursor)? {
                    Progress::Short(more) => return Ok(Progress::Short(more)),
                    Progress::Whole(length) => length,
                };
                cursor.i32("code", RPC_04)?;
                let key = read_key(cursor, length)?;
                return Ok(Progress::Whole(HelloAnswer::Success(key)));
            }
        };
        cursor.i32("code", RPC_04)?;
        Ok(Progress::Whole(answer))
    }

    /// Writes the answer.
    ///
    /// # Errors
    ///
    /// Returns RPC-03 of kind limit for a key that our readers reject.
    pub fn write(&self, release: Release, out: &mut Writer) -> Result<(), Violation> {
        let step = match self {
            HelloAnswer::Success(_) => 0,
            HelloAnswer::Duplicate => 1,
            HelloAnswer::Mismatch => 2,
        };
        out.i32(Hello::MAGIC.wrapping_add(step));
        match self {
            HelloAnswer::Success(key) if has_key(release) => write_key(key, out),
            _ => Ok(()),
        }
    }
}

/// Says which other protocol answers with these bytes instead of a server or a tracker; empty if the bytes do not show it.
pub(super) fn other_protocol_name(first: &[u8; 4]) -> &'static str {
    match first {
        b"HTTP" | b"<!DO" | b"<htm" => ": an HTTP server is at this port, and no RPC",
        b"SSH-" => ": an SSH server is at this port, and no RPC",
        [0x71, 0xf2, 2, 0] => {
            ": a tracker is at this port, whose servers are rpc-tracker://HOST:PORT/KEY"
        }
        _ => "",
    }
}

/// Returns whether the server's answer has a key. The server of 0.2 answers with only the code (RPC-04).
fn has_key(release: Release) -> bool {
    release.minor() >= 3
}

/// Returns the length of the key that follows the first four bytes of `cursor`, after the whole key has arrived. The cursor does not
/// move.
fn whole_key(cursor: &Cursor<'_>) -> Result<Progress<u64>, Violation> {
    let ahead = cursor.rest();
    let Some((_, behind)) = ahead.split_first_chunk::<4>() else {
        return Ok(Progress::Short(4_u64.saturating_sub(ahead.len() as u64)));
    };
    let Some((length, key)) = behind.split_first_chunk() else {
        return Ok(Progress::Short(4_u64.saturating_sub(behind.len() as u64)));
    };
    let place = cursor.offset().saturating_add(4);
    let length = ReadValue::new(i32::from_le_bytes(*length), place, "key_length");
    // RPC-02: Python's server reads -1 bytes here as nothing, fails on the key, and then accepts no more connections.
    length.require(
        RPC_02,
        |length| *length >= 0,
        |length| format!("a key has {length} bytes"),
    )?;
    // RPC-03: checked as soon as the length has arrived, without waiting for the key.
    let length = length.require_as(
        Kind::Limit,
        RPC_03,
        |length| *length <= Hello::LONGEST,
        |length| format!("a key of {length} bytes, {} are read", Hello::LONGEST),
    )?;
    let length = u64::try_from(length).unwrap_or_default();
    Ok(match length.checked_sub(key.len() as u64) {
        None | Some(0) => Progress::Whole(length),
        Some(more) => Progress::Short(more),
    })
}

/// Reads the length and the `length` bytes of the key, which [`whole_key`] checked.
fn read_key<'a>(cursor: &mut Cursor<'a>, length: u64) -> Result<Cow<'a, str>, Violation> {
    cursor.i32("key_length", RPC_02)?;
    let bytes = cursor.read("key", |cursor| cursor.take(length, "key", RPC_02))?;
    // The result borrows only if nothing had to be replaced, that is, if the bytes are UTF-8.
    let key = String::from_utf8_lossy(*bytes);
    // RPC-02: a key that is not UTF-8 ends the accepting thread of Python's server.
    bytes.require(
        RPC_02,
        |_| matches!(key, Cow::Borrowed(_)),
        |bytes| format!("key `{}` is not UTF-8", show(bytes)),
    )?;
    Ok(key)
}

/// Writes the length, an i32, and the key.
fn write_key(key: &str, out: &mut Writer) -> Result<(), Violation> {
    // A length that does not fit into an i32 is above the limit anyway.
    let length = i32::try_from(key.len()).unwrap_or(i32::MAX);
    RPC_03.demand(Kind::Limit, length <= Hello::LONGEST, || {
        format!("a key of {} bytes", key.len())
    })?;
    out.i32(length);
    out.raw(key.as_bytes());
    Ok(())
}
