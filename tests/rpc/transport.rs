//! Transports over pairs of sockets.
#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

use std::borrow::Cow;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tvmspec::function::ErrorKind;
use tvmspec::release::Release;
use tvmspec::rpc::rules::RPC_16;
use tvmspec::rpc::server::SessionEnd;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    CopyTarget, Hello, HelloAnswer, PackedValue, Packet, Protocol, Speaker, TensorBlock,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::Writer;

/// Size in bytes from which the content of a packet is written without a copy.
const LARGE: usize = 16 << 10;

/// Returns both ends, and the protocol of the bytes that the first one writes.
fn ends(release: Release) -> (Transport, Transport, Protocol) {
    let (one, other) = UnixStream::pair().expect("a pair");
    let spoken = Protocol::new(release, Speaker::Client);
    (Transport::new(one), Transport::new(other), spoken)
}

fn copy(content: &[u8], release: Release) -> Packet<'_> {
    if release.minor() == 7 {
        let to = CopyTarget::Flat(7, 3, Device::CPU, Dtype::UINT8);
        return Packet::CopyToRemote(to, Cow::Borrowed(content));
    }
    let block = TensorBlock {
        data: 7,
        device: Device::CPU,
        dtype: Dtype::UINT8,
        shape: vec![content.len() as i64],
        byte_offset: 0,
    };
    Packet::CopyToRemote(CopyTarget::Block(block), Cow::Borrowed(content))
}

#[test]
fn a_packet_of_any_size_arrives_as_it_was_written() {
    let sizes = [0, 1, LARGE - 1, LARGE, 3 << 20];
    for release in [Release::of(7), Release::of(8), Release::of(27)] {
        let (mut one, mut other, spoken) = ends(release);
        let writer = std::thread::spawn(move || {
            for size in sizes {
                let content: Vec<u8> = (0..size).map(|at| at as u8).collect();
                one.write_packet(&copy(&content, release), &spoken)
                    .expect("written");
            }
            one.write_packet(&Packet::KeepAlive, &spoken)
                .expect("written");
        });
        for size in sizes {
            let content: Vec<u8> = (0..size).map(|at| at as u8).collect();
            let packet = other.read_packet(&spoken, &mut Findings::default());
            assert!(
                packet.expect("read").as_ref() == Some(&copy(&content, release)),
                "{size}"
            );
        }
        let mut findings = Findings::default();
        let last = other.read_packet(&spoken, &mut findings).expect("read");
        assert_eq!(last, Some(Packet::KeepAlive));
        writer.join().expect("no panic");
        assert!(
            other
                .read_packet(&spoken, &mut findings)
                .expect("an end")
                .is_none()
        );
    }
}

#[test]
fn a_stream_that_ends_inside_of_a_packet_breaks_rpc_16_there() {
    let (mut one, other) = UnixStream::pair().expect("a pair");
    let spoken = Protocol::new(Release::of(27), Speaker::Client);
    let mut out = Writer::new();
    let packet = Packet::CallFunc(1, vec![PackedValue::Int(3)]);
    packet.write(&spoken, &mut out).expect("a packet");
    one.write_all(&out.into_bytes()[..20]).expect("written");
    drop(one);
    let read = Transport::new(other)
        .read_packet(&spoken, &mut Findings::default())
        .map(drop);
    let error = read.expect_err("cut");
    let broken = error.violation().expect("a rule");
    assert_eq!((broken.rule(), broken.offset()), (RPC_16, Some(20)));
}

#[test]
fn a_deadline_ends_the_wait() {
    let (_one, mut other, spoken) = ends(Release::of(27));
    other.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
    let error = other
        .read_packet(&spoken, &mut Findings::default())
        .expect_err("late");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[test]
fn a_time_has_the_digits_that_a_reader_wants() {
    let texts = [
        (1994, "2 s"),
        (59_998, "60 s"),
        (1500, "1.5 s"),
        (299, "0.3 s"),
        (200, "0.2 s"),
        (5, "0.005 s"),
        (600_000, "600 s"),
        (0, "0 s"),
    ];
    for (millis, text) in texts {
        let ended = SessionEnd::Idle(Duration::from_millis(millis)).to_string();
        assert_eq!(ended, format!("its client did nothing for {text}"));
    }
}

#[test]
fn hellos_and_answers_arrive() {
    let (mut one, mut other, _) = ends(Release::of(27));
    let hello = Hello {
        key: "client:key -timeout=3".into(),
    };
    one.write_hello(&hello).expect("written");
    assert_eq!(other.read_hello().expect("read"), hello);
    let answer = HelloAnswer::Success("server:key".into());
    other
        .write_answer(&answer, Release::of(27))
        .expect("written");
    assert_eq!(one.read_answer(Release::of(27)).expect("read"), answer);
}
