//! A whole connection, as two streams of bytes: every message of both sides, and which releases speak like that (RPC-23).

use super::super::RPC_16;
use super::hello::{Hello, HelloAnswer};
use super::packet::Packet;
use super::protocol::{Protocol, Speaker};
use super::tracker::TrackerHello;
use super::tracker_reply::TrackerReply;
use super::tracker_request::TrackerRequest;
use crate::release::Release;
use crate::rule::{Findings, Violation};
use crate::wire::{Cursor, FieldVisitor, Span};

/// The first and last release of each form of the protocol, newest first: within one of them all bytes mean the same.
///
/// A form begins where packets, codes or values changed (RPC-20, RPC-23, RPC-43, RPC-47): 0.21 and 0.22 are two, because 0.22 renumbered
/// the objects.
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

/// The same of what a tracker and its peers write: RPC-56 came with 0.8.
const TRACKER_FORMS: [(u8, u8); 2] = [(8, 27), (3, 7)];

/// Whether a peer of a tracker wrote this, and no client.
fn is_of_tracker(client: &[u8]) -> bool {
    // RPC-01, RPC-50: the first four bytes are of one or the other.
    client.starts_with(&TrackerHello::MAGIC.to_le_bytes())
}

/// The first and last release of a form, and what a connection breaks of it first, if anything.
type OtherForm = (Release, Release, Option<(Speaker, Violation)>);

/// Both sides of a connection, read by the rules of one form of the protocol.
#[derive(Clone, Debug)]
pub struct Connection<'a> {
    /// The releases that speak like that: first and last.
    pub releases: (Release, Release),
    /// Why no other does: each other form, newest first, and what it breaks first, if anything.
    pub others: Vec<OtherForm>,
    /// What the client wrote.
    pub client: ConnectionSide<'a>,
    /// What the server wrote.
    pub server: ConnectionSide<'a>,
}

/// One side of a connection. Its messages and fields are read again when they are asked for, because they take many times the memory of their
/// bytes.
#[derive(Clone, Debug)]
pub struct ConnectionSide<'a> {
    /// Who wrote it.
    pub speaker: Speaker,
    /// What was odd.
    pub findings: Findings,
    /// Where the reading ends, if not with the bytes: a broken rule, or RPC-16 where the last message is cut off.
    pub broken: Option<Violation>,
    /// The end of the last whole message, in bytes from the start of the side; 0 without one.
    reach: u64,
    /// How many bytes each copy was asked for that this side answers, in order (RPC-27).
    asked: Vec<u64>,
    /// The messages, of which none is read yet.
    start: SideReader<'a>,
}

/// The messages of one side, each read when it is its turn: the offsets of its first byte and of the one behind it, and the message. Ends
/// where the bytes end or a rule is broken.
#[derive(Clone, Debug)]
pub struct ConnectionMessages<'s, 'a> {
    /// The message that was read last.
    reader: SideReader<'a>,
    /// The bytes that each copy was asked for that is not answered yet.
    asked: &'s [u64],
}

/// A message of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectionMessage<'a> {
    /// The first of a client.
    Hello(Hello<'a>),
    /// The first of a server.
    Answer(HelloAnswer<'a>),
    /// Any other.
    Packet(Packet<'a>),
    /// The first of both sides, where one is a tracker (RPC-50).
    TrackerHello,
    /// What a tracker was asked.
    TrackerRequest(TrackerRequest),
    /// What a tracker answered.
    TrackerReply(TrackerReply),
}

impl<'a> Connection<'a> {
    /// Reads a connection by the rules of `release`, and without one by those of the newest form that no byte of it breaks; of
    /// those that all break, the one that is read furthest.
    ///
    /// It always returns a connection: what is wrong with a side is in [`ConnectionSide::broken`].
    pub fn read(client: &'a [u8], server: &'a [u8], release: Option<Release>) -> Connection<'a> {
        let forms = if is_of_tracker(client) {
            TRACKER_FORMS.as_slice()
        } else {
            FORMS.as_slice()
        };
        let forms = forms
            .iter()
            .map(|(first, last)| (Release::of(*first), Release::of(*last)));
        // RPC-23: the version that both sides compare did not change with the encoding of values, so that all forms are tried. With a
        // stated release the others are read too, for what they break.
        let read = forms.map(|(first, last)| {
            let spoken = release.filter(|release| (first..=last).contains(release));
            let (client, server) = sides(client, server, spoken.unwrap_or(last));
            (first, last, client, server)
        });
        let mut best: Option<(u64, Connection<'a>)> = None;
        let mut others = Vec::new();
        for (first, last, client, server) in read {
            // With a stated release its form is the answer, whatever it breaks.
            let wanted = release.is_none_or(|release| (first..=last).contains(&release));
            let broken = first_broken(&client, &server);
            // Of forms that break something, the one that explains the most bytes of both sides comes nearest.
            let reach = match broken {
                None => u64::MAX,
                Some(_) => client.reach.saturating_add(server.reach),
            };
            // Only what is read further takes the place of a newer form: of equal ones the newest stays.
            let better = best.as_ref().is_none_or(|(furthest, _)| reach > *furthest);
            if !(wanted && better) {
                others.push((first, last, broken));
                continue;
            }
            let this = Connection {
                releases: (first, last),
                others: Vec::new(),
                client,
                server,
            };
            if let Some((_, before)) = best.replace((reach, this)) {
                let broken = first_broken(&before.client, &before.server);
                others.push((before.releases.0, before.releases.1, broken));
            }
        }
        // A form that was the best for a while was put behind older ones.
        others.sort_by_key(|(first, ..)| std::cmp::Reverse(*first));
        // Every release is of one form, so that there is a best one: this is never computed.
        let (_, mut connection) = best.unwrap_or_else(|| {
            let (client, server) = sides(client, server, Release::LAST);
            let releases = (Release::LAST, Release::LAST);
            let others = Vec::new();
            (
                0,
                Connection {
                    releases,
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

impl<'a> ConnectionSide<'a> {
    /// Every whole message, from the first on.
    pub fn messages(&self) -> ConnectionMessages<'_, 'a> {
        ConnectionMessages {
            reader: self.start.clone(),
            asked: &self.asked,
        }
    }
}

impl ConnectionMessages<'_, '_> {
    /// Calls `visit` with each field of the message that comes next, in the order of the bytes; of a message that is not whole with those in
    /// front of the fault.
    pub fn visit_fields(&self, visit: impl FnMut(Span)) {
        let mut reader = self.reader.clone();
        if reader.cursor.is_at_end() {
            return;
        }
        reader.spoken.awaited = self.asked.first().copied();
        let visitor = FieldVisitor::new(visit);
        let mut cursor = Cursor::visited(reader.cursor.rest(), &visitor).at(reader.cursor.offset());
        // What is wrong with the message is in `ConnectionSide::broken`.
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

/// The first rule that a side breaks, the client's before the server's. A capture may end anywhere: a last message that is cut off breaks
/// nothing (RPC-16).
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

/// Reads both sides by the rules of `release`: the client's first, because up to 0.6 the server's needs it (RPC-27).
fn sides<'a>(
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
    // RPC-20: CopyAck is written by servers, so that no length is awaited of the client.
    let client = side(reader(client, Speaker::Client), Vec::new());
    // RPC-27: up to 0.6 the answer to a copy is as long as what the client asked for, in the order in which it did.
    let asked = client.messages().filter_map(|(.., message)| match message {
        ConnectionMessage::Packet(Packet::CopyFromRemote(_, bytes)) => Some(bytes),
        _ => None,
    });
    let asked = match release.minor() {
        ..=6 => asked.collect(),
        _ => Vec::new(),
    };
    let server = side(reader(server, Speaker::Server), asked);
    (client, server)
}

/// Reads one side to its end or to the first broken rule, for its findings. `asked` holds how many bytes each copy was asked for, in order.
fn side(start: SideReader<'_>, asked: Vec<u64>) -> ConnectionSide<'_> {
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

/// The reader of one side, in front of a message.
#[derive(Clone, Debug)]
struct SideReader<'a> {
    /// The bytes that are not read yet.
    cursor: Cursor<'a>,
    /// Whether the next message is the first.
    is_first: bool,
    /// Whether the server is a tracker.
    has_tracker: bool,
    /// By which rules.
    spoken: Protocol,
}

impl<'a> SideReader<'a> {
    /// The next message with the offsets of its first byte and of the one behind it; `None` at the end. `asked` holds how many bytes each
    /// copy was asked for that is not answered yet. Behind a violation nothing can be read.
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
        // One answer for each request, in their order (RPC-10): this one is answered.
        if let (ConnectionMessage::Packet(Packet::CopyAck(_)), Some((_, rest))) =
            (&message, asked.split_first())
        {
            *asked = rest;
        }
        self.cursor = cursor;
        self.is_first = false;
        Some(Ok((start, self.cursor.offset(), message)))
    }

    /// The message at `cursor`, whole.
    fn message<'b>(
        &self,
        cursor: &mut Cursor<'b>,
        findings: &mut Findings,
    ) -> Result<ConnectionMessage<'b>, Violation> {
        if self.has_tracker {
            return self.tracker_message(cursor);
        }
        Ok(match (self.is_first, self.spoken.speaker) {
            // RPC-01, RPC-04: each side writes one message of its own form before the packets.
            (true, Speaker::Client) => {
                ConnectionMessage::Hello(Hello::read(cursor)?.whole(cursor)?)
            }
            (true, Speaker::Server) => {
                let answer = HelloAnswer::read(cursor, self.spoken.release)?;
                ConnectionMessage::Answer(answer.whole(cursor)?)
            }
            _ => {
                let packet = Packet::read(cursor, &self.spoken, findings)?;
                ConnectionMessage::Packet(packet.whole(cursor)?)
            }
        })
    }

    /// The message at `cursor` of a connection to a tracker, whole.
    fn tracker_message<'b>(
        &self,
        cursor: &mut Cursor<'b>,
    ) -> Result<ConnectionMessage<'b>, Violation> {
        Ok(match (self.is_first, self.spoken.speaker) {
            (true, _) => {
                TrackerHello::read(cursor)?.whole(cursor)?;
                ConnectionMessage::TrackerHello
            }
            (false, Speaker::Client) => {
                let request = TrackerRequest::read(cursor, self.spoken.release)?;
                ConnectionMessage::TrackerRequest(request.whole(cursor)?)
            }
            (false, Speaker::Server) => {
                ConnectionMessage::TrackerReply(TrackerReply::read(cursor)?.whole(cursor)?)
            }
        })
    }
}
