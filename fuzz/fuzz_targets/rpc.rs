//! Reads any bytes as messages of RPC peers. Nothing panics, and a message that reads is written back. Each prefix of it needs more bytes
//! and is not an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tvmspec::release::Release;
use tvmspec::rpc::{
    Connection, Hello, HelloAnswer, Packet, Progress, Protocol, Speaker, TrackerHello, TrackerReply, TrackerRequest,
};
use tvmspec::rule::{Findings, Violation};
use tvmspec::wire::{Cursor, Writer};

fuzz_target!(|data: &[u8]| {
    let [minor, side, form, bytes @ ..] = data else { return };
    let release = Release::of(2 + minor % 26);
    let speaker = if side % 2 == 0 { Speaker::Client } else { Speaker::Server };
    match form % 6 {
        0 => packets(bytes, &Protocol { awaited: Some(7), ..Protocol::new(release, speaker) }),
        1 => hello(bytes),
        2 => answer(bytes, release),
        3 => messages(bytes, TrackerHello::read, |hello, out| {
            hello.write(out);
            Ok(())
        }),
        4 => messages(bytes, |cursor| TrackerRequest::read(cursor, release), |request, out| request.write(release, out)),
        _ => messages(bytes, TrackerReply::read, TrackerReply::write),
    }
});

/// Reads packets one after another, as in a stream.
fn packets(bytes: &[u8], spoken: &Protocol) {
    let mut rest = bytes;
    loop {
        let mut cursor = Cursor::new(rest);
        let read = Packet::read(&mut cursor, spoken, &mut Findings::default());
        let packet = match read {
            Ok(Progress::Whole(packet)) => packet,
            Ok(Progress::Short(more)) => return assert!(more > 0 && cursor.offset() == 0),
            Err(_) => return,
        };
        let (whole, behind) = rest.split_at(rest.len() - cursor.remaining());
        let mut out = Writer::new();
        packet.write(spoken, &mut out).expect("a message that was read can be written");
        assert!(out.into_bytes() == whole, "write(read(b)) = b");
        for cut in 0..whole.len().min(200) {
            let cut = Packet::read(&mut Cursor::new(&whole[..cut]), spoken, &mut Findings::default());
            assert!(matches!(cut, Ok(Progress::Short(_))), "a beginning needs more");
        }
        rest = behind;
    }
}

fn hello(bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes);
    if let Ok(Progress::Whole(hello)) = Hello::read(&mut cursor) {
        let _ = (hello.timeout(), hello.match_key());
        let mut out = Writer::new();
        hello.write(&mut out).expect("a message that was read can be written");
        assert!(out.into_bytes() == bytes[..bytes.len() - cursor.remaining()], "write(read(b)) = b");
    }
}

fn answer(bytes: &[u8], release: Release) {
    let mut cursor = Cursor::new(bytes);
    if let Ok(Progress::Whole(answer)) = HelloAnswer::read(&mut cursor, release) {
        let mut out = Writer::new();
        answer.write(release, &mut out).expect("a message that was read can be written");
        assert!(out.into_bytes() == bytes[..bytes.len() - cursor.remaining()], "write(read(b)) = b");
    }
}

/// Checks messages that have more than one form. A written message reads as equal, and its prefixes need more bytes.
fn messages<T: PartialEq>(
    bytes: &[u8],
    read: impl Fn(&mut Cursor<'_>) -> Result<Progress<T>, Violation>,
    write: impl Fn(&T, &mut Writer) -> Result<(), Violation>,
) {
    let mut cursor = Cursor::new(bytes);
    match read(&mut cursor) {
        Ok(Progress::Whole(message)) => {
            let whole = &bytes[..bytes.len() - cursor.remaining()];
            for cut in 0..whole.len().min(200) {
                let cut = read(&mut Cursor::new(&whole[..cut]));
                assert!(matches!(cut, Ok(Progress::Short(_))), "a beginning needs more");
            }
            let mut out = Writer::new();
            // A request of 0.7 is read by the rules of 0.8, but not written by them.
            if write(&message, &mut out).is_ok() {
                let again = read(&mut Cursor::new(&out.into_bytes()));
                assert!(again.is_ok_and(|again| again == Progress::Whole(message)), "read(write(m)) = m");
            }
        }
        Ok(Progress::Short(more)) => assert!(more > 0 && cursor.offset() == 0),
        Err(_) => {}
    }
    let _ = Connection::read(bytes, bytes, None);
}
