//! How a connection becomes a WebSocket: a request and an answer of HTTP (RFC 6455, section 4).

use super::super::{RPC_74, RPC_75};
use super::protocol::Progress;
use super::sha1::sha1;
use crate::rule::{Kind, Rule, Violation};
use crate::wire::{Cursor, Writer, show};
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// The longest head of a request or answer that is read, in bytes (RPC-74, RPC-75).
const LONGEST: usize = 8192;

/// What a client writes so that the connection becomes a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketRequest {
    /// `/ws` at a proxy.
    pub path: String,
    /// The name by which the client reaches the proxy.
    pub host: String,
    /// 16 random bytes in base64, which the answer shows to have been read.
    pub key: String,
}

/// What makes the connection a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketAnswer {
    /// [`WebSocketRequest::accept`].
    pub accept: String,
}

impl WebSocketRequest {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// RPC-74: of kind malformed for what is no request for a WebSocket, missing without a header, unsupported for another version, limit
    /// for a long one.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Progress<WebSocketRequest>, Violation> {
        let start = cursor.offset();
        let head = match Head::read(cursor, RPC_74)? {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(head) => head,
        };
        let read = || {
            // RPC-74: the path is read and not compared here: which one is served is up to the proxy, who answers another with 404.
            let path = head
                .first
                .strip_prefix("GET ")
                .and_then(|rest| rest.strip_suffix(" HTTP/1.1"))
                .filter(|path| path.starts_with('/') && !path.contains(' '));
            let path = path.ok_or_else(|| {
                let message = format!("`{}` asks for no WebSocket", show(head.first.as_bytes()));
                RPC_74.broken(Kind::Malformed, start, message)
            })?;
            head.has_word("upgrade", "websocket")?;
            // RPC-74: as one word of several: browsers write `keep-alive, Upgrade`.
            head.has_word("connection", "upgrade")?;
            let version = head.header("sec-websocket-version")?;
            // RPC-74: the versions before 13 are drafts of RFC 6455, whose frames are laid out otherwise.
            RPC_74.require_as(Kind::Unsupported, version == "13", start, || {
                format!("version {version} of WebSocket")
            })?;
            let key = head.header("sec-websocket-key")?;
            let random = BASE64_STANDARD.decode(key).unwrap_or_default();
            RPC_74.require(random.len() == 16, start, || {
                format!("key `{key}` is not 16 bytes in base64")
            })?;
            Ok(WebSocketRequest {
                path: path.to_owned(),
                host: head.header("host")?.to_owned(),
                key: key.to_owned(),
            })
        };
        let request = read().map_err(|broken: Violation| broken.in_field("head"))?;
        Ok(Progress::Whole(request))
    }

    /// Writes the request.
    ///
    /// # Errors
    ///
    /// RPC-74 of kind malformed for a path, host or key that would end its line.
    pub fn write(&self, out: &mut Writer) -> Result<(), Violation> {
        let WebSocketRequest { path, host, key } = self;
        for text in [path, host, key] {
            let whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
            RPC_74.demand(Kind::Malformed, whole, || format!("`{text}` in a request"))?;
        }
        out.raw(
            format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            .as_bytes(),
        );
        Ok(())
    }

    /// What the answer must have: the SHA-1 of the key and of a text that RFC 6455 states, in base64 (RPC-75).
    pub fn accept(&self) -> String {
        let salted = format!("{}258EAFA5-E914-47DA-95CA-C5AB0DC85B11", self.key);
        BASE64_STANDARD.encode(sha1(salted.as_bytes()))
    }
}

impl WebSocketAnswer {
    /// Reads an answer; whether it is that to a request, [`WebSocketRequest::accept`] decides.
    ///
    /// # Errors
    ///
    /// RPC-75: of kind malformed for what makes no WebSocket, missing without a header, limit for a long one.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Progress<WebSocketAnswer>, Violation> {
        let start = cursor.offset();
        let head = match Head::read(cursor, RPC_75)? {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(head) => head,
        };
        let read = || {
            // RPC-75: what stands behind the number is for people, and may be missing.
            let status = head.first.strip_prefix("HTTP/1.1 101");
            let switched = status.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            RPC_75.require(switched, start, || {
                format!("`{}` makes no WebSocket", show(head.first.as_bytes()))
            })?;
            head.has_word("upgrade", "websocket")?;
            head.has_word("connection", "upgrade")?;
            Ok(WebSocketAnswer {
                accept: head.header("sec-websocket-accept")?.to_owned(),
            })
        };
        let answer = read().map_err(|broken: Violation| broken.in_field("head"))?;
        Ok(Progress::Whole(answer))
    }

    /// Writes the answer.
    ///
    /// # Errors
    ///
    /// RPC-75 of kind malformed for an `accept` that would end its line.
    pub fn write(&self, out: &mut Writer) -> Result<(), Violation> {
        let accept = &self.accept;
        let whole = !accept.is_empty() && accept.bytes().all(|byte| byte.is_ascii_graphic());
        RPC_75.demand(Kind::Malformed, whole, || {
            format!("`{accept}` in an answer")
        })?;
        out.raw(
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )
            .as_bytes(),
        );
        Ok(())
    }
}

/// The first line and the headers of a request or answer.
struct Head<'a> {
    rule: Rule,
    start: u64,
    first: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Head<'a> {
    /// Reads lines up to the first empty one.
    fn read(cursor: &mut Cursor<'a>, rule: Rule) -> Result<Progress<Head<'a>>, Violation> {
        const END: &[u8] = b"\r\n\r\n";
        let start = cursor.offset();
        let ahead = cursor.rest();
        // RPC-74, RPC-75: only so many bytes are searched for the end, so that a peer that never ends its head costs no more.
        let ahead = ahead.get(..LONGEST).unwrap_or(ahead);
        let Some(end) = ahead.windows(END.len()).position(|four| four == END) else {
            rule.require_as(Kind::Limit, ahead.len() < LONGEST, start, || {
                format!("a head of more than {LONGEST} bytes")
            })
            .map_err(|broken| broken.in_field("head"))?;
            // As many bytes as the end still lacks.
            let begun = (1..END.len()).rev().find(|count| {
                let begun = END.get(..*count).unwrap_or_default();
                ahead.ends_with(begun)
            });
            let more = END.len().saturating_sub(begun.unwrap_or_default());
            return Ok(Progress::Short(more as u64));
        };
        let bytes = cursor.take((end as u64).saturating_add(END.len() as u64), "head", rule)?;
        let lines = bytes.get(..end).unwrap_or_default();
        let bad = |what: &[u8]| {
            let message = format!("`{}` is not a line of a head", show(what));
            rule.broken(Kind::Malformed, start, message)
                .in_field("head")
        };
        // RFC 9110 has no other bytes in a head, and messages show parts of it as they are.
        let plain = |byte: &u8| (b' '..=b'~').contains(byte) || b"\t\r\n".contains(byte);
        let text = std::str::from_utf8(lines).ok();
        let Some(text) = text.filter(|text| text.as_bytes().iter().all(plain)) else {
            return Err(bad(lines));
        };
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| bad(line.as_bytes()))?;
            Ok((name, value.trim_matches([' ', '\t'])))
        });
        let headers = headers.collect::<Result<_, Violation>>()?;
        Ok(Progress::Whole(Head {
            rule,
            start,
            first,
            headers,
        }))
    }

    /// The value of the first header of this name, which is written in small letters here and anyhow there.
    fn header(&self, name: &str) -> Result<&'a str, Violation> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let message = format!("there is no header {name}");
            self.rule.broken(Kind::Missing, self.start, message)
        })
    }

    /// That one of the words of a header is `word`.
    fn has_word(&self, name: &str, word: &str) -> Result<(), Violation> {
        let value = self.header(name)?;
        let mut words = value.split(',').map(str::trim);
        let has = words.any(|other| other.eq_ignore_ascii_case(word));
        self.rule.require(has, self.start, || {
            format!("header {name} is `{value}`, not {word}")
        })
    }
}
