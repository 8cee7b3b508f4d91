//! A whole connection, as two streams of bytes: every message of both sides, and which releases speak like that (RPC-23).

use super::super::RPC_16;
use super::hello::{Hello, HelloAnswer};
use super::packet::Packet;
use super::protocol::{Protocol, Speaker};
use crate::release::Release;
use crate::rule::{Findings, Violation};
use crate::wire::{Cursor, Span, Trace};
use std::collections::VecDeque;

/// The first and last release of each form of the protocol, newest first: within one of them all bytes mean the same.
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

/// One side of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionSide<'a> {
    /// Who wrote it.
    pub speaker: Speaker,
    /// Every whole message, with the offsets of its first byte and of the one behind it.
    pub messages: Vec<(u64, u64, ConnectionMessage<'a>)>,
    /// Every field, in the order of the bytes.
    pub fields: Vec<Span>,
    /// What was odd.
    pub findings: Findings,
    /// Where the reading ends, if not with the bytes: a broken rule, or RPC-16 where the last message is cut off.
    pub broken: Option<Violation>,
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
}

impl<'a> Connection<'a> {
    /// Reads a connection by the rules of `release`, and without one by those of the newest form that no byte of it breaks; of
    /// those that all break, the one that is read furthest.
    pub fn read(client: &'a [u8], server: &'a [u8], release: Option<Release>) -> Connection<'a> {
        let forms = FORMS.map(|(first, last)| (Release::of(first), Release::of(last)));
        let read = forms.map(|(first, last)| {
            let spoken = release.filter(|release| (first..=last).contains(release));
            let (client, server) = sides(client, server, spoken.unwrap_or(last));
            (first, last, client, server)
        });
        let mut best: Option<(u64, Connection<'a>)> = None;
        let mut others = Vec::new();
        for (first, last, client, server) in read {
            let wanted = release.is_none_or(|release| (first..=last).contains(&release));
            let broken = first_broken(&client, &server);
            let reach = match broken {
                None => u64::MAX,
                Some(_) => client.reach().saturating_add(server.reach()),
            };
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
        others.sort_by_key(|(first, ..)| std::cmp::Reverse(*first));
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

impl ConnectionSide<'_> {
    /// Where the last whole message ends.
    fn reach(&self) -> u64 {
        self.messages.last().map_or(0, |(_, end, _)| *end)
    }
}

/// A capture may end anywhere: a last message that is cut off breaks nothing.
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

fn sides<'a>(
    client: &'a [u8],
    server: &'a [u8],
    release: Release,
) -> (ConnectionSide<'a>, ConnectionSide<'a>) {
    let client = side(
        client,
        Protocol::new(release, Speaker::Client),
        VecDeque::new(),
    );
    // RPC-27: up to 0.6 the answer to a copy is as long as what the client asked for, in the order in which it did.
    let asked = client
        .messages
        .iter()
        .filter_map(|(.., message)| match message {
            ConnectionMessage::Packet(Packet::CopyFromRemote(_, bytes)) => Some(*bytes),
            _ => None,
        });
    let asked = asked.collect();
    let server = side(server, Protocol::new(release, Speaker::Server), asked);
    (client, server)
}

fn side<'a>(bytes: &'a [u8], mut spoken: Protocol, mut asked: VecDeque<u64>) -> ConnectionSide<'a> {
    let trace = Trace::new();
    let (mut messages, mut findings) = (Vec::new(), Findings::default());
    let mut broken = None;
    let mut cursor = Cursor::new(bytes);
    while !cursor.is_at_end() && broken.is_none() {
        spoken.awaited = asked.front().copied();
        let (start, first) = (cursor.offset(), messages.is_empty());
        // Once more for the fields: what is read from a cursor with a trace lives no longer than the trace.
        let mut traced = Cursor::traced(cursor.rest(), &trace).at(start);
        let _ = message(&mut traced, first, &spoken, &mut Findings::default());
        match message(&mut cursor, first, &spoken, &mut findings) {
            Ok(message) => {
                if let ConnectionMessage::Packet(Packet::CopyAck(_)) = &message {
                    asked.pop_front();
                }
                messages.push((start, cursor.offset(), message));
            }
            Err(violation) => broken = Some(violation),
        }
    }
    ConnectionSide {
        speaker: spoken.speaker,
        messages,
        fields: trace.into_spans(),
        findings,
        broken,
    }
}

/// The next message, whole.
fn message<'b>(
    cursor: &mut Cursor<'b>,
    first: bool,
    spoken: &Protocol,
    findings: &mut Findings,
) -> Result<ConnectionMessage<'b>, Violation> {
    Ok(match (first, spoken.speaker) {
        (true, Speaker::Client) => ConnectionMessage::Hello(Hello::read(cursor)?.whole(cursor)?),
        (true, Speaker::Server) => {
            let answer = HelloAnswer::read(cursor, spoken.release)?;
            ConnectionMessage::Answer(answer.whole(cursor)?)
        }
        _ => {
            let packet = Packet::read(cursor, spoken, findings)?;
            ConnectionMessage::Packet(packet.whole(cursor)?)
        }
    })
}
