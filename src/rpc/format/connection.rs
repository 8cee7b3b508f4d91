//! A whole connection, as two streams of bytes: every message of both sides, and the releases that speak like that (RPC-23).

use super::super::RPC_16;
use super::hello::{Hello, HelloAnswer};
use super::packet::Packet;
use super::protocol::{Protocol, Speaker};
use super::tracker::TrackerHello;
use super::tracker_reply::TrackerReply;
use super::tracker_request::TrackerRequest;
use crate::release::{Release, Releases};
use crate::rule::{Findings, Violation};
use crate::wire::{Cursor, FieldVisitor, Span};

/// First and last release of each form of the protocol, newest first. Within one form, the bytes have the same meaning.
///
/// A form begins where packets, codes or values changed (RPC-20, RPC-23, RPC-43, RPC-47). 0.21 and 0.22 are two forms, because 0.22
/// renumbered the objects.
const FORMS: [(u8, u8); 9] = [
    (22, 27),
    (21, 21),
    (18, 20),
    (16, 17),
    (8, 15),
    (7, 7),
    (5, 6),
    (3, 4),
    (2, 2),
];

/// First and last release of each form of the tracker protocol: RPC-56 came with 0.8.
const TRACKER_FORMS: [(u8, u8); 2] = [(8, 27), (3, 7)];

/// Returns whether a peer of a tracker wrote these bytes, not a client.
fn is_of_tracker(client: &[u8]) -> bool {
    // RPC-01, RPC-50: the first four bytes tell the two apart.
    client.starts_with(&TrackerHello::MAGIC.to_le_bytes())
}

/// First and last release of a form, and the first rule of it that a connection breaks, if any.
type OtherForm = (Release, Release, Option<(Speaker, Violation)>);

/// Both sides of a connection, read by the rules of one form of the protocol.
#[derive(Clone, Debug)]
pub struct Connection<'a> {
    /// First and last release that speak like that.
    pub releases: (Release, Release),
    /// The release that the reader states. It decides the names of types.
    pub stated: Option<Release>,
    /// The reasons why no other form applies: each other form, newest first, with the first rule that the connection breaks, if any.
    pub others: Vec<OtherForm>,
    /// The client's side.
    pub client: ConnectionSide<'a>,
    /// The server's side.
    pub server: ConnectionSide<'a>,
}

/// One side of a connection. Its messages and fields are parsed again on each request, because they take many times the memory of their
/// bytes.
#[derive(Clone, Debug)]
pub struct ConnectionSide<'a> {
    /// The side that wrote the bytes.
    pub speaker: Speaker,
    /// Oddities that were found.
    pub findings: Findings,
    /// The violation that ended the reading, if any; RPC-16 if the last message is cut off.
    pub broken: Option<Violation>,
    /// End of the last complete message, in bytes from the start of the side; 0 without a message.
    reach: u64,
    /// Number of bytes that each copy requested which this side answers, in order (RPC-27).
    asked: Vec<u64>,
    /// Reader at the first message; nothing is read yet.
    start: SideReader<'a>,
}

/// The messages of one side, parsed lazily. An item is the offset of the message's first byte, the offset after its last byte, and the
/// message. Iteration ends with the bytes or at a broken rule.
#[derive(Clone, Debug)]
pub struct ConnectionMessages<'s, 'a> {
    /// Reader after the last message that was read.
    reader: SideReader<'a>,
    /// Number of bytes that each unanswered copy requested.
    asked: &'s [u64],
}

/// One message of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectionMessage<'a> {
    /// First message of a client.
    Hello(Hello<'a>),
    /// First message of a server.
    Answer(HelloAnswer<'a>),
    /// Any later message.
    Packet(Packet<'a>),
    /// First message of both sides of a connection to a tracker (RPC-50).
    TrackerHello,
    /// Request to a tracker.
    TrackerRequest(TrackerRequest),
    /// Reply of a tracker.
    TrackerReply(TrackerReply),
}

impl<'a> Connection<'a> {
    /// Reads a connection by the rules of `release`. Without a release, uses the newest form that no byte breaks. If every form is
    /// broken, uses the one that can be read furthest.
    ///
    /// Always returns a connection: the fault of a side is in [`ConnectionSide::broken`].
    pub fn read(client: &'a [u8], server: &'a [u8], release: Option<Release>) -> Connection<'a> {
        let forms = if is_of_tracker(client) {
            TRACKER_FORMS.as_slice()
        } else {
            FORMS.as_slice()
        };
        let forms = forms
            .iter()
            .map(|(first, last)| (Release::of(*first), Release::of(*last)));
        // RPC-23: the version that both sides compare did not change with the encoding of values, so all forms are tried. If a release
        // is stated, the other forms are also read, to report the rules that they break.
        let read = forms.map(|(first, last)| {
            let spoken = release.filter(|release| (first..=last).contains(release));
            let (client, server) = read_sides(client, server, spoken.unwrap_or(last));
            (first, last, client, server)
        });
        let mut best: Option<(u64, Connection<'a>)> = None;
        let mut others = Vec::new();
        for (first, last, client, server) in read {
            // With a stated release its form is the answer, even if it is broken.
            let wanted = release.is_none_or(|release| (first..=last).contains(&release));
            let broken = first_broken(&client, &server);
            // Among broken forms, the one that explains the most bytes of both sides fits best.
            let reach = match broken {
                None => u64::MAX,
                Some(_) => client.reach.saturating_add(server.reach),
            };
            // An older form replaces a newer one only if it reads further.
            let better = best.as_ref().is_none_or(|(furthest, _)| reach > *furthest);
            if !(wanted && better) {
                others.push((first, last, broken));
                continue;
            }
            let this = Connection {
                releases: (first, last),
                stated: release,
                others: Vec::new(),
                client,
                server,
            };
            if let Some((_, before)) = best.replace((reach, this)) {
                let broken = first_broken(&before.client, &before.server);
                others.push((before.releases.0, before.releases.1, broken));
            }
        }
        // A form that was the best for a while was pushed after older ones.
        others.sort_by_key(|(first, ..)| std::cmp::Reverse(*first));
        // Every release has a form, so that there always is a best one and this is never computed.
        let (_, mut connection) = best.unwrap_or_else(|| {
            let (client, server) = read_sides(client, server, Release::LAST);
            let releases = (Release::LAST, Release::LAST);
            let others = Vec::new();
            (
                0,
                Connection {
                    releases,
                    stated: release,
                    others,
                    client,
                    server,
                },
            )
        });
        connection.others = others;
        connection
    }
}

impl Connection<'_> {
    /// Returns the stated release. Without one, returns the range from the first to the last release whose form the bytes do not break.
    pub fn era(&self) -> Releases {
        if let Some(release) = self.stated {
            return Releases::between(release.minor(), release.minor());
        }
        let others = self.others.iter().filter(|(_, _, broken)| broken.is_none());
        let all = others.map(|(first, last, _)| (*first, *last));
        let (since, until) = all.fold(self.releases, |(since, until), (first, last)| {
            (since.min(first), until.max(last))
        });
        Releases { since, until }
    }
}

impl<'a> ConnectionSide<'a> {
    /// Returns every complete message, from the first on.
    pub fn messages(&self) -> ConnectionMessages<'_, 'a> {
        ConnectionMessages {
            reader: self.start.clone(),
            asked: &self.asked,
        }
    }
}

impl ConnectionMessages<'_, '_> {
    /// Calls `visit` with each field of the next message, in the order of the bytes. For an incomplete message, these are the fields before
    /// the fault.
    pub fn visit_fields(&self, visit: impl FnMut(Span)) {
        let mut reader = self.reader.clone();
        if reader.cursor.is_at_end() {
            return;
        }
        reader.spoken.awaited = self.asked.first().copied();
        let visitor = FieldVisitor::new(visit);
        let mut cursor =
            Cursor::visited(reader.cursor.rest(), &visitor).with_base(reader.cursor.offset());
        // The fault of the message is in `ConnectionSide::broken`.
        let _ = reader.message(&mut cursor, &mut Findings::default());
    }
}

impl<'a> Iterator for ConnectionMessages<'_, 'a> {
    type Item = (u64, u64, ConnectionMessage<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let read = self
            .reader
            .next(&mut self.asked, &mut Findings::default())?;
        read.ok()
    }
}

/// Returns the first rule that a side breaks, the client's before the server's. A capture may end anywhere, so that a truncated last
/// message breaks no rule here (RPC-16).
fn first_broken(
    client: &ConnectionSide<'_>,
    server: &ConnectionSide<'_>,
) -> Option<(Speaker, Violation)> {
    [client, server].into_iter().find_map(|side| {
        let broken = side
            .broken
            .as_ref()
            .filter(|broken| broken.rule() != RPC_16);
        broken.map(|broken| (side.speaker, broken.clone()))
    })
}

/// Reads both sides by the rules of `release`. The client's side comes first, because up to 0.6 the server's side depends on it (RPC-27).
fn read_sides<'a>(
    client: &'a [u8],
    server: &'a [u8],
    release: Release,
) -> (ConnectionSide<'a>, ConnectionSide<'a>) {
    let has_tracker = is_of_tracker(client);
    let reader = |bytes, speaker| SideReader {
        cursor: Cursor::new(bytes),
        is_first: true,
        has_tracker,
        spoken: Protocol::new(release, speaker),
    };
    // RPC-20: only servers write CopyAck, so that the client's side has no expected lengths.
    let client = read_side(reader(client, Speaker::Client), Vec::new());
    // RPC-27: up to 0.6 the answer to a copy has the length that the client requested, in the order of the requests.
    let asked = client.messages().filter_map(|(.., message)| match message {
        ConnectionMessage::Packet(Packet::CopyFromRemote(_, bytes)) => Some(bytes),
        _ => None,
    });
    let asked = match release.minor() {
        ..=6 => asked.collect(),
        _ => Vec::new(),
    };
    let server = read_side(reader(server, Speaker::Server), asked);
    (client, server)
}

/// Reads one side to its end or to the first broken rule, and collects its findings. `asked` holds the number of bytes that each copy
/// requested, in order.
fn read_side(start: SideReader<'_>, asked: Vec<u64>) -> ConnectionSide<'_> {
    let mut findings = Findings::default();
    let (mut reach, mut broken) = (0, None);
    let (mut reader, mut left) = (start.clone(), asked.as_slice());
    while let Some(read) = reader.next(&mut left, &mut findings) {
        match read {
            Ok((_, end, _)) => reach = end,
            Err(violation) => {
                broken = Some(violation);
                break;
            }
        }
    }
    ConnectionSide {
        speaker: start.spoken.speaker,
        findings,
        broken,
        reach,
        asked,
        start,
    }
}

/// The reader of one side, positioned before a message.
#[derive(Clone, Debug)]
struct SideReader<'a> {
    /// The bytes that are not read yet.
    cursor: Cursor<'a>,
    /// True if the next message is the first.
    is_first: bool,
    /// True if the server is a tracker.
    has_tracker: bool,
    /// The protocol whose rules apply.
    spoken: Protocol,
}

impl<'a> SideReader<'a> {
    /// Reads the next message. Returns it with the offset of its first byte and the offset after its last byte, or `None` at the end.
    /// `asked` holds the number of bytes that each unanswered copy requested. After a violation nothing more can be read.
    fn next(
        &mut self,
        asked: &mut &[u64],
        findings: &mut Findings,
    ) -> Option<Result<(u64, u64, ConnectionMessage<'a>), Violation>> {
        if self.cursor.is_at_end() {
            return None;
        }
        self.spoken.awaited = asked.first().copied();
        let start = self.cursor.offset();
        let mut cursor = self.cursor.clone();
        let message = match self.message(&mut cursor, findings) {
            Ok(message) => message,
            Err(violation) => return Some(Err(violation)),
        };
        // RPC-10: answers come in the order of the requests, so this one answers the first open request.
        if let (ConnectionMessage::Packet(Packet::CopyAck(_)), Some((_, rest))) =
            (&message, asked.split_first())
        {
            *asked = rest;
        }
        self.cursor = cursor;
        self.is_first = false;
        Some(Ok((start, self.cursor.offset(), message)))
    }

    /// Reads the complete message at `cursor`.
    fn message<'b>(
        &self,
        cursor: &mut Cursor<'b>,
        findings: &mut Findings,
    ) -> Result<ConnectionMessage<'b>, Violation> {
        if self.has_tracker {
            return self.tracker_message(cursor);
        }
        Ok(match (self.is_first, self.spoken.speaker) {
            // RPC-01, RPC-04: each side writes one message in a form that differs from packets.
            (true, Speaker::Client) => {
                ConnectionMessage::Hello(Hello::read(cursor)?.require_complete(cursor)?)
            }
            (true, Speaker::Server) => {
                let answer = HelloAnswer::read(cursor, self.spoken.release)?;
                ConnectionMessage::Answer(answer.require_complete(cursor)?)
            }
            _ => {
                let packet = Packet::read(cursor, &self.spoken, findings)?;
                ConnectionMessage::Packet(packet.require_complete(cursor)?)
            }
        })
    }

    /// Reads the complete message at `cursor` of a connection to a tracker.
    fn tracker_message<'b>(
        &self,
        cursor: &mut Cursor<'b>,
    ) -> Result<ConnectionMessage<'b>, Violation> {
        Ok(match (self.is_first, self.spoken.speaker) {
            (true, _) => {
                TrackerHello::read(cursor)?.require_complete(cursor)?;
                ConnectionMessage::TrackerHello
            }
            (false, Speaker::Client) => {
                let request = TrackerRequest::read(cursor, self.spoken.release)?;
                ConnectionMessage::TrackerRequest(request.require_complete(cursor)?)
            }
            (false, Speaker::Server) => ConnectionMessage::TrackerReply(
                TrackerReply::read(cursor)?.require_complete(cursor)?,
            ),
        })
    }
}
