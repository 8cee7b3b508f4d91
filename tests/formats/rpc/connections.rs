//! Connections of real peers, byte for byte.

use super::spoken;
use std::borrow::Cow;
use std::path::PathBuf;
use tvmspec::release::Release;
use tvmspec::rpc::{
    Connection, ConnectionMessage, CopyTarget, Hello, HelloAnswer, PackedValue, Packet, Protocol,
    RpcCode, Speaker, TrackerHello,
};
use tvmspec::rule::Kind;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::Writer;

fn golden(name: &str, speaker: Speaker) -> Vec<u8> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let file = format!("golden/rpc/{name}.{}.bin", speaker.name());
    std::fs::read(root.join(file)).unwrap()
}

/// Name, release, and the forms of the protocol that all of its bytes match.
const CONNECTIONS: [(&str, u8, &[u8]); 7] = [
    ("full-0.27", 27, &[22]),
    ("full-0.8", 8, &[18, 16, 8]),
    ("two-hops-0.27", 27, &[22]),
    ("chunks-0.27", 27, &[22, 21]),
    ("timeout-0.27", 27, &[22, 21]),
    ("tracker-server-0.27", 27, &[8, 3]),
    ("tracker-client-0.27", 27, &[8, 3]),
];

/// Writes a message again.
fn rewrite_message(message: &ConnectionMessage<'_>, minor: u8, speaker: Speaker) -> Vec<u8> {
    let release = Release::of(minor);
    let mut out = Writer::new();
    match message {
        ConnectionMessage::Hello(hello) => hello.write(&mut out).unwrap(),
        ConnectionMessage::Answer(answer) => answer.write(release, &mut out).unwrap(),
        ConnectionMessage::Packet(packet) => {
            packet.write(&spoken(minor, speaker), &mut out).unwrap()
        }
        ConnectionMessage::TrackerHello => TrackerHello.write(&mut out),
        ConnectionMessage::TrackerRequest(request) => request.write(release, &mut out).unwrap(),
        ConnectionMessage::TrackerReply(reply) => reply.write(&mut out).unwrap(),
    }
    out.into_bytes()
}

#[test]
fn every_byte_of_real_connections_is_of_a_field_and_written_back() {
    for (name, minor, _) in CONNECTIONS {
        let (client, server) = (golden(name, Speaker::Client), golden(name, Speaker::Server));
        let read = Connection::read(&client, &server, Some(Release::of(minor)));
        let mut counts = Vec::new();
        for (side, bytes) in [(&read.client, &client), (&read.server, &server)] {
            assert_eq!(side.broken, None, "{name}");
            assert!(side.findings.is_empty(), "{name}: {:?}", side.findings);
            let (mut at, mut count) = (0, 0_u32);
            let mut messages = side.messages();
            loop {
                let fields = messages.clone();
                let Some((start, end, message)) = messages.next() else {
                    break;
                };
                fields.visit_fields(|field| {
                    let side = side.speaker.name();
                    assert_eq!(field.start, at, "{name}, {side}: {}", field.field);
                    at = field.end;
                });
                assert_eq!(at, end, "{name}");
                let own = &bytes[start as usize..end as usize];
                assert_eq!(rewrite_message(&message, minor, side.speaker), own);
                count += 1;
            }
            assert_eq!(at, bytes.len() as u64, "{name}");
            counts.push(count);
        }
        // Every request has one answer, except Shutdown and the last request of a session that timed out.
        assert!(counts[0].abs_diff(counts[1]) <= 2, "{name}: {counts:?}");
    }
}

#[test]
fn a_connection_shows_which_releases_speak_like_that() {
    for (name, _, forms) in CONNECTIONS {
        let (client, server) = (golden(name, Speaker::Client), golden(name, Speaker::Server));
        let read = Connection::read(&client, &server, None);
        let unbroken = read.others.iter().filter(|(.., broken)| broken.is_none());
        let mut found = vec![read.releases.0.minor()];
        found.extend(unbroken.map(|(first, ..)| first.minor()));
        assert_eq!(found, forms, "{name}");
    }
}

/// Up to 0.6, an answer to a copy has the requested length, which only the other side of the connection states.
#[test]
fn a_connection_of_0_6_is_read_by_what_its_client_asked_for() {
    let release = Release::of(6);
    let flat = |handle| CopyTarget::Flat(handle, 0, Device::CPU, Dtype::FLOAT32);
    let (mut client, mut server) = (Writer::new(), Writer::new());
    let key = || Cow::Borrowed("client:old");
    Hello { key: key() }.write(&mut client).unwrap();
    HelloAnswer::Success(key())
        .write(release, &mut server)
        .unwrap();
    for bytes in [3_u64, 0, 9] {
        let asked = Protocol::new(release, Speaker::Client);
        Packet::CopyFromRemote(flat(7), bytes)
            .write(&asked, &mut client)
            .unwrap();
        let answer = Packet::CopyAck(Cow::Owned(vec![1; bytes as usize]));
        answer
            .write(&Protocol::new(release, Speaker::Server), &mut server)
            .unwrap();
    }
    let (client, server) = (client.into_bytes(), server.into_bytes());
    let read = Connection::read(&client, &server, None);
    assert_eq!(read.releases, (Release::of(5), release));
    assert_eq!(
        (
            read.client.messages().count(),
            read.server.messages().count()
        ),
        (4, 4)
    );
    let cut = Connection::read(&client, &server[..server.len() - 1], None);
    assert_eq!(cut.releases, (Release::of(5), release));
    assert_eq!(cut.server.broken.unwrap().kind(), Kind::Truncated);
}

/// Bytes that no form of the protocol can read: a length of 2^64 - 1, and code -1.
const BROKEN: [u8; 8] = [0xff; 8];

#[test]
fn of_forms_that_are_all_broken_the_one_that_reads_most_is_the_answer() {
    let old = |speaker| spoken(20, speaker);
    let key = || Cow::Borrowed("client:old");
    let mut client = Writer::new();
    Hello { key: key() }.write(&mut client).unwrap();
    // RPC-28: a handle and an integer up to 0.20, only a handle from 0.21 on.
    let free = vec![PackedValue::Handle(1), PackedValue::Int(1)];
    Packet::SystemCall(RpcCode::FreeHandle, free)
        .write(&old(Speaker::Client), &mut client)
        .unwrap();
    client.raw(&BROKEN);
    let mut server = Writer::new();
    HelloAnswer::Success(key())
        .write(Release::of(20), &mut server)
        .unwrap();
    // Longer than the bytes of the client, because the bytes that both sides read are added.
    let text = vec![PackedValue::Str(Cow::Owned(vec![b'x'; 200]))];
    Packet::Exception(text)
        .write(&old(Speaker::Server), &mut server)
        .unwrap();
    server.raw(&BROKEN);
    let (client, server) = (client.into_bytes(), server.into_bytes());

    let read = Connection::read(&client, &server, None);
    assert_eq!(read.releases, (Release::of(18), Release::of(20)));
    assert_eq!(
        (
            read.client.messages().count(),
            read.server.messages().count()
        ),
        (2, 2)
    );
    // Each other form once, the newest first. If both sides break it, the client is named.
    let others: Vec<u8> = read
        .others
        .iter()
        .map(|(first, ..)| first.minor())
        .collect();
    assert_eq!(others, [22, 21, 16, 8, 7, 5, 3, 2]);
    for (first, _, broken) in &read.others {
        let (speaker, _) = broken.as_ref().unwrap();
        assert_eq!(*speaker, Speaker::Client, "{first}");
    }
    // A stated release is the answer, even if the bytes break its rules.
    let read = Connection::read(&client, &server, Some(Release::of(27)));
    assert_eq!(read.releases.0, Release::of(22));
    let others: Vec<u8> = read
        .others
        .iter()
        .map(|(first, ..)| first.minor())
        .collect();
    assert_eq!(others, [21, 18, 16, 8, 7, 5, 3, 2]);
    // If only the server breaks a rule, the server is named.
    let whole = &client[..client.len() - BROKEN.len()];
    let read = Connection::read(whole, &server, Some(Release::of(27)));
    let of_20 = read.others.iter().find(|(first, ..)| first.minor() == 18);
    let (speaker, _) = of_20.unwrap().2.as_ref().unwrap();
    assert_eq!(*speaker, Speaker::Server);
}

/// RPC-16: a capture that ends at any byte must be readable up to that byte.
#[test]
fn a_last_message_that_is_cut_off_breaks_no_form() {
    for (name, _, forms) in CONNECTIONS {
        let (client, server) = (golden(name, Speaker::Client), golden(name, Speaker::Server));
        let read = Connection::read(
            &client[..client.len() - 1],
            &server[..server.len() - 1],
            None,
        );
        let unbroken = read.others.iter().filter(|(.., broken)| broken.is_none());
        let mut found = vec![read.releases.0.minor()];
        found.extend(unbroken.map(|(first, ..)| first.minor()));
        assert!(
            forms.iter().all(|form| found.contains(form)),
            "{name}: {found:?}"
        );
    }
}
