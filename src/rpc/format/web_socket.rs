//! Frames of a WebSocket (RFC 6455), in which a proxy's peers in browsers wrap the bytes of a session.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | end of a message, and what the frame is | u8 | RPC-76 |
//! | masked or not, and the length | u8, with u16 or u64 in network order where it is 126 or 127 | RPC-77, RPC-78 |
//! | mask, from clients | 4 bytes | RPC-77 |
//! | content | as many bytes | |

use super::super::{RPC_76, RPC_77, RPC_78, RPC_79};
use super::protocol::{Progress, Speaker};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// A frame of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketFrame<'a> {
    /// What it is.
    pub kind: WebSocketKind,
    /// Whether its message ends with it.
    pub is_last: bool,
    /// What its content is combined with, byte by byte; from clients alone (RPC-77).
    pub mask: Option<[u8; 4]>,
    /// The content, without the mask.
    pub data: Cow<'a, [u8]>,
}

/// What a frame of a WebSocket is (RPC-76).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketKind {
    /// 0: more of the message before it.
    More,
    /// 1: text, which no session has.
    Text,
    /// 2: bytes of a session.
    Binary,
    /// 8: the connection ends.
    Close,
    /// 9: a Pong with the same content is wanted.
    Ping,
    /// 10: the answer to Ping.
    Pong,
}

impl WebSocketKind {
    /// Every kind, in the order of the numbers.
    pub const ALL: [WebSocketKind; 6] = [
        WebSocketKind::More,
        WebSocketKind::Text,
        WebSocketKind::Binary,
        WebSocketKind::Close,
        WebSocketKind::Ping,
        WebSocketKind::Pong,
    ];

    /// The word of JSON forms.
    pub const fn name(self) -> &'static str {
        match self {
            WebSocketKind::More => "more",
            WebSocketKind::Text => "text",
            WebSocketKind::Binary => "binary",
            WebSocketKind::Close => "close",
            WebSocketKind::Ping => "ping",
            WebSocketKind::Pong => "pong",
        }
    }

    const fn number(self) -> u8 {
        match self {
            WebSocketKind::More => 0,
            WebSocketKind::Text => 1,
            WebSocketKind::Binary => 2,
            WebSocketKind::Close => 8,
            WebSocketKind::Ping => 9,
            WebSocketKind::Pong => 10,
        }
    }

    /// Close, Ping and Pong, which RPC-79 holds for.
    fn is_control(self) -> bool {
        self.number() >= 8
    }
}

impl<'a> WebSocketFrame<'a> {
    /// Reads a frame that `speaker` wrote, of at most `largest` bytes of content.
    ///
    /// # Errors
    ///
    /// RPC-76 for flags and kinds that are none, RPC-77 for the mask, RPC-78 for the length, RPC-79 for a control frame that is long or
    /// not whole.
    pub fn read(
        cursor: &mut Cursor<'a>,
        speaker: Speaker,
        largest: u64,
    ) -> Result<Progress<WebSocketFrame<'a>>, Violation> {
        let start = cursor.offset();
        let head = match FrameHead::read(cursor.rest(), speaker, largest, start) {
            Ok(Progress::Whole(head)) => head,
            Ok(Progress::Short(more)) => return Ok(Progress::Short(more)),
            Err((field, broken)) => return Err(broken.in_field(field)),
        };
        cursor.u8("kind", RPC_76)?;
        cursor.take(head.length_bytes, "length", RPC_78)?;
        let mask = match speaker {
            Speaker::Client => cursor.take(4, "mask", RPC_77)?.first_chunk().copied(),
            Speaker::Server => None,
        };
        // RPC-76: proxies of releases write one frame for each piece that came in, so that no packet of the session is known to end here.
        let data = cursor.take(head.length, "data", RPC_76)?;
        Ok(Progress::Whole(WebSocketFrame {
            kind: head.kind,
            is_last: head.is_last,
            mask,
            data: combined(data, mask),
        }))
    }

    /// Writes the frame; a frame with a mask is a client's.
    ///
    /// # Errors
    ///
    /// RPC-77 of kind malformed where `speaker` has a mask and must not, or the other way round; RPC-79 of kind malformed for a control
    /// frame that is long or not whole.
    pub fn write(&self, speaker: Speaker, out: &mut Writer) -> Result<(), Violation> {
        let right = self.mask.is_some() == (speaker == Speaker::Client);
        RPC_77.demand(Kind::Malformed, right, || {
            format!("a {} frame of the {}", self.kind.name(), speaker.name())
        })?;
        let length = self.data.len() as u64;
        let short = !self.kind.is_control() || (self.is_last && length < 126);
        RPC_79.demand(Kind::Malformed, short, || {
            format!("a {} frame of {length} bytes", self.kind.name())
        })?;
        let last = if self.is_last { 0x80 } else { 0 };
        out.u8(last | self.kind.number());
        let masked = if self.mask.is_some() { 0x80 } else { 0 };
        // RPC-78: the shortest form that holds the length.
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(length @ 0..126), _) => out.u8(masked | length),
            (_, Ok(length)) => {
                out.u8(masked | 126);
                out.raw(&length.to_be_bytes());
            }
            _ => {
                out.u8(masked | 127);
                out.raw(&length.to_be_bytes());
            }
        }
        if let Some(mask) = self.mask {
            out.raw(&mask);
        }
        out.raw(&combined(&self.data, self.mask));
        Ok(())
    }
}

/// `data` combined with the mask: the same takes it off again.
fn combined(data: &[u8], mask: Option<[u8; 4]>) -> Cow<'_, [u8]> {
    match mask {
        None => Cow::Borrowed(data),
        Some(mask) => {
            let masked = data.iter().zip(mask.iter().cycle());
            Cow::Owned(masked.map(|(byte, mask)| byte ^ mask).collect())
        }
    }
}

/// What a frame has in front of its mask.
struct FrameHead {
    kind: WebSocketKind,
    is_last: bool,
    length: u64,
    /// Of the length, with the byte that has the flag of the mask.
    length_bytes: u64,
}

impl FrameHead {
    /// Reads it, and sees that all of the frame is there.
    fn read(
        ahead: &[u8],
        speaker: Speaker,
        largest: u64,
        start: u64,
    ) -> Result<Progress<FrameHead>, (&'static str, Violation)> {
        let Some((first, behind)) = ahead.split_first() else {
            return Ok(Progress::Short(2));
        };
        let number = first & 0x0f;
        let kind = WebSocketKind::ALL
            .into_iter()
            .find(|kind| kind.number() == number);
        // RPC-76: the three bits are of extensions, and the upgrade (RPC-74) agrees on none.
        let Some(kind) = kind.filter(|_| first & 0x70 == 0) else {
            let message = format!("{first:#04x} is not a frame");
            let broken = RPC_76.broken(Kind::Malformed, start, message);
            return Err(("kind", broken));
        };
        let is_last = first & 0x80 != 0;
        RPC_79
            .require(is_last || !kind.is_control(), start, || {
                format!("a {} frame in parts", kind.name())
            })
            .map_err(|broken| ("kind", broken))?;
        let Some((second, behind)) = behind.split_first() else {
            return Ok(Progress::Short(1));
        };
        let place = start.saturating_add(1);
        let at_length = |broken| ("length", broken);
        // RPC-77: RFC 6455 masks what clients write, so that no proxy of HTTP between takes it for a request.
        let wanted = speaker == Speaker::Client;
        RPC_77
            .require((second & 0x80 != 0) == wanted, place, || {
                let with = if wanted { "without" } else { "with" };
                format!("a frame of the {} {with} a mask", speaker.name())
            })
            .map_err(at_length)?;
        let stated = second & 0x7f;
        RPC_79
            .require(stated < 126 || !kind.is_control(), place, || {
                format!("a long {} frame", kind.name())
            })
            .map_err(at_length)?;
        let (length, length_bytes, smallest) = match stated {
            126 => match behind.first_chunk() {
                None => return Ok(short(behind, 2)),
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 3, 126),
            },
            127 => match behind.first_chunk() {
                None => return Ok(short(behind, 8)),
                Some(length) => (u64::from_be_bytes(*length), 9, 1 << 16),
            },
            few => (u64::from(few), 1, 0),
        };
        RPC_78
            .require(length >= smallest, place, || {
                format!("a length of {length} in {length_bytes} bytes")
            })
            .and_then(|()| {
                RPC_78.require_as(Kind::Limit, length <= largest, place, || {
                    format!("a frame of {length} bytes, {largest} are read")
                })
            })
            .map_err(at_length)?;
        // The first byte, and the mask where there is one.
        let whole = length
            .saturating_add(length_bytes)
            .saturating_add(if wanted { 5 } else { 1 });
        let there = ahead.len() as u64;
        Ok(match whole.checked_sub(there) {
            None | Some(0) => Progress::Whole(FrameHead {
                kind,
                is_last,
                length,
                length_bytes,
            }),
            Some(more) => Progress::Short(more),
        })
    }
}

/// That `wanted` bytes are not all there.
fn short(there: &[u8], wanted: u64) -> Progress<FrameHead> {
    Progress::Short(wanted.saturating_sub(there.len() as u64))
}
