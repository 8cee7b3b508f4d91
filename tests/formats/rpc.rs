//! Messages of client and server: round trips, incomplete messages, complete real connections, and hostile bytes.
#![cfg(feature = "rpc")]

mod connections;

use proptest::prelude::*;
use std::borrow::Cow;
use tvmspec::release::Release;
use tvmspec::rpc::rules::RPC_03;
use tvmspec::rpc::{
    CopyTarget, Hello, HelloAnswer, PackedValue, Packet, Progress, Protocol, RpcCode, Speaker,
    TensorBlock, TrackerHello, TrackerReply, TrackerRequest, json,
};
use tvmspec::rule::{Findings, Kind};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::{Cursor, Writer};

fn spoken(minor: u8, speaker: Speaker) -> Protocol {
    Protocol {
        awaited: Some(5),
        ..Protocol::new(Release::of(minor), speaker)
    }
}

fn written(packet: &Packet<'_>, spoken: &Protocol) -> Option<Vec<u8>> {
    let mut out = Writer::new();
    packet.write(spoken, &mut out).ok()?;
    Some(out.into_bytes())
}

fn block() -> impl Strategy<Value = TensorBlock> {
    let shape = prop::collection::vec(any::<i64>(), 0..4);
    (
        any::<u64>(),
        any::<(i32, i32)>(),
        any::<(u8, u8, u16)>(),
        shape,
        any::<u64>(),
    )
        .prop_map(
            |(data, (kind, id), (code, bits, lanes), shape, byte_offset)| TensorBlock {
                data,
                device: Device { kind, id },
                dtype: Dtype { code, bits, lanes },
                shape,
                byte_offset,
            },
        )
}

fn bytes() -> impl Strategy<Value = Cow<'static, [u8]>> {
    prop::collection::vec(any::<u8>(), 0..12).prop_map(Cow::Owned)
}

fn value() -> impl Strategy<Value = PackedValue<'static>> {
    prop_oneof![
        Just(PackedValue::None),
        any::<i64>().prop_map(PackedValue::Int),
        any::<u64>().prop_map(PackedValue::Uint),
        any::<i64>().prop_map(PackedValue::Bool),
        (-1e300..1e300).prop_map(PackedValue::Float),
        any::<u64>().prop_map(PackedValue::Handle),
        (any::<u8>(), any::<u16>(), any::<i32>()).prop_map(|(bits, lanes, padding)| {
            let code = Dtype::FLOAT;
            PackedValue::Dtype(Dtype { code, bits, lanes }, padding)
        }),
        any::<(i32, i32)>().prop_map(|(kind, id)| PackedValue::Device(Device { kind, id })),
        block().prop_map(PackedValue::Tensor),
        bytes().prop_map(PackedValue::Str),
        bytes().prop_map(PackedValue::Bytes),
        any::<u64>().prop_map(PackedValue::Module),
        any::<u64>().prop_map(PackedValue::Function),
        (any::<u64>(), prop_oneof![Just(8), Just(71), Just(115)])
            .prop_map(|(handle, index)| PackedValue::Object(handle, index)),
        (bytes(), prop_oneof![Just(11), Just(65)])
            .prop_map(|(bytes, index)| PackedValue::StrObject(bytes, index)),
        (bytes(), prop_oneof![Just(12), Just(66)])
            .prop_map(|(bytes, index)| PackedValue::BytesObject(bytes, index)),
    ]
}

fn packet() -> impl Strategy<Value = Packet<'static>> {
    let values = || prop::collection::vec(value(), 0..5);
    let target = || {
        let flat = (any::<(u64, u64)>(), any::<(i32, i32)>()).prop_map(|((at, offset), device)| {
            let (kind, id) = device;
            CopyTarget::Flat(at, offset, Device { kind, id }, Dtype::FLOAT32)
        });
        prop_oneof![block().prop_map(CopyTarget::Block), flat]
    };
    let codes: Vec<RpcCode> = RpcCode::all()
        .filter(|code| code.is_system_call())
        .collect();
    let version = prop_oneof![Just(&b"0.7.0"[..]), Just(&b"0.8.0"[..])];
    prop_oneof![
        Just(Packet::KeepAlive),
        Just(Packet::Shutdown),
        (version, values()).prop_map(|(text, args)| Packet::InitServer(Cow::Borrowed(text), args)),
        (any::<u64>(), values()).prop_map(|(function, args)| Packet::CallFunc(function, args)),
        values().prop_map(Packet::Return),
        bytes().prop_map(|text| Packet::Exception(vec![PackedValue::Str(text)])),
        (target(), any::<u64>()).prop_map(|(from, bytes)| Packet::CopyFromRemote(from, bytes)),
        (target(), bytes()).prop_map(|(to, bytes)| Packet::CopyToRemote(to, bytes)),
        prop::collection::vec(any::<u8>(), 5).prop_map(|data| Packet::CopyAck(Cow::Owned(data))),
        (prop::sample::select(codes), values())
            .prop_map(|(code, args)| Packet::SystemCall(code, args)),
    ]
}

fn speaker() -> impl Strategy<Value = Speaker> {
    prop_oneof![Just(Speaker::Client), Just(Speaker::Server)]
}

proptest! {
    #[test]
    fn what_is_written_is_read(packet in packet(), minor in 2..=27_u8, speaker in speaker()) {
        let spoken = spoken(minor, speaker);
        if let Some(bytes) = written(&packet, &spoken) {
            let mut cursor = Cursor::new(&bytes);
            let read = Packet::read(&mut cursor, &spoken, &mut Findings::default()).unwrap();
            prop_assert_eq!(read, Progress::Whole(packet));
            prop_assert!(cursor.is_at_end());
        }
    }

    #[test]
    fn a_packet_is_that_of_its_json(packet in packet()) {
        prop_assert_eq!(json::to_packet(&json::from_packet(&packet)).unwrap(), packet);
    }

    #[test]
    fn a_beginning_needs_more(packet in packet(), minor in 2..=27_u8, speaker in speaker()) {
        let spoken = spoken(minor, speaker);
        for (bytes, cut) in written(&packet, &spoken).iter().flat_map(|bytes| (0..bytes.len()).map(move |cut| (bytes, cut))) {
            let mut cursor = Cursor::new(&bytes[..cut]);
            let read = Packet::read(&mut cursor, &spoken, &mut Findings::default()).unwrap();
            let Progress::Short(more) = read else {
                panic!("{cut} of {} bytes: {read:?}", bytes.len());
            };
            prop_assert!(more > 0 && cut as u64 + more <= bytes.len() as u64);
            prop_assert_eq!(cursor.offset(), 0);
        }
    }

    #[test]
    fn a_hello_is_read_back_and_its_beginnings_need_more(key in "(client|server):[a-z0-9:.]{0,20}( -timeout=[1-9])?") {
        let mut out = Writer::new();
        Hello { key: Cow::Borrowed(&key) }.write(&mut out).unwrap();
        let bytes = out.into_bytes();
        for cut in 0..bytes.len() {
            let read = Hello::read(&mut Cursor::new(&bytes[..cut])).unwrap();
            prop_assert!(matches!(read, Progress::Short(more) if cut as u64 + more <= bytes.len() as u64));
        }
        let read = Hello::read(&mut Cursor::new(&bytes)).unwrap();
        prop_assert_eq!(read, Progress::Whole(Hello { key: Cow::Borrowed(&key) }));
    }

    #[test]
    fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200), minor in 2..=27_u8, speaker in speaker()) {
        let spoken = spoken(minor, speaker);
        let mut framed = (bytes.len() as u64).to_le_bytes().to_vec();
        framed.extend(&bytes);
        for input in [&bytes, &framed] {
            let mut cursor = Cursor::new(input);
            if let Ok(Progress::Whole(packet)) = Packet::read(&mut cursor, &spoken, &mut Findings::default()) {
                let length = input.len() - cursor.remaining();
                let again = written(&packet, &spoken);
                prop_assert_eq!(again.as_deref(), Some(&input[..length]), "write(read(b)) = b");
            }
            let _ = Hello::read(&mut Cursor::new(input));
            let _ = HelloAnswer::read(&mut Cursor::new(input), Release::of(minor));
        }
    }
}

#[test]
fn stated_packet_size_is_not_reserved() {
    let mut call = Vec::new();
    call.extend(3_i32.to_le_bytes());
    call.extend(1_u64.to_le_bytes());
    call.extend(i32::MAX.to_le_bytes());
    let mut bytes = (call.len() as u64).to_le_bytes().to_vec();
    bytes.extend(&call);
    for minor in [8, 27] {
        let spoken = spoken(minor, Speaker::Client);
        let read = Packet::read(&mut Cursor::new(&bytes), &spoken, &mut Findings::default());
        assert_eq!(read.unwrap_err().kind(), Kind::Truncated);
    }
}

proptest! {
    #[test]
    fn what_a_tracker_hears_is_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
        framed.extend(&bytes);
        for input in [&bytes, &framed] {
            let _ = TrackerHello::read(&mut Cursor::new(input));
            let _ = TrackerRequest::read(&mut Cursor::new(input), Release::LAST);
            let _ = TrackerReply::read(&mut Cursor::new(input));
        }
    }
}

/// RPC-16: a reader that waits for too few bytes polls too often, and a reader that waits for too many never returns.
#[test]
fn a_beginning_states_how_many_bytes_it_needs() {
    let call = Packet::CallFunc(1, vec![PackedValue::Int(7)]);
    let framed = written(&call, &spoken(27, Speaker::Client)).unwrap();
    for cut in 0..framed.len() {
        let spoken = spoken(27, Speaker::Client);
        let read = Packet::read(
            &mut Cursor::new(&framed[..cut]),
            &spoken,
            &mut Findings::default(),
        );
        // RPC-10: the length comes first, and with it the end of the packet is known.
        let end = if cut < 8 { 8 } else { framed.len() };
        assert_eq!(read.unwrap(), Progress::Short((end - cut) as u64), "{cut}");
    }
    let unframed = written(&call, &spoken(6, Speaker::Client)).unwrap();
    for cut in 0..unframed.len() {
        let spoken = spoken(6, Speaker::Client);
        let read = Packet::read(
            &mut Cursor::new(&unframed[..cut]),
            &spoken,
            &mut Findings::default(),
        );
        // RPC-15: nothing after the code states how many bytes follow, so that one more byte may be the last.
        let more = if cut < 4 { 4 - cut } else { 1 };
        assert_eq!(read.unwrap(), Progress::Short(more as u64), "{cut}");
    }
    let (mut hello, mut answer) = (Writer::new(), Writer::new());
    let key = || Cow::Borrowed("client:a");
    Hello { key: key() }.write(&mut hello).unwrap();
    HelloAnswer::Success(key())
        .write(Release::LAST, &mut answer)
        .unwrap();
    let (hello, answer) = (hello.into_bytes(), answer.into_bytes());
    for cut in 0..hello.len() {
        // RPC-02: the length of the key comes after the first four bytes.
        let end = match cut {
            0..4 => 4,
            4..8 => 8,
            _ => hello.len(),
        };
        let wanted = (end - cut) as u64;
        let read = Hello::read(&mut Cursor::new(&hello[..cut])).unwrap();
        assert_eq!(read, Progress::Short(wanted), "hello, {cut}");
        let read = HelloAnswer::read(&mut Cursor::new(&answer[..cut]), Release::LAST).unwrap();
        assert_eq!(read, Progress::Short(wanted), "answer, {cut}");
    }
}

#[test]
fn a_key_that_no_reader_takes_is_not_written() {
    for (length, fits) in [(4096, true), (4097, false)] {
        let key = Cow::Owned("k".repeat(length));
        let hello = Hello {
            key: Cow::clone(&key),
        }
        .write(&mut Writer::new());
        let answer = HelloAnswer::Success(key).write(Release::LAST, &mut Writer::new());
        for written in [hello, answer] {
            let broken = written.err().map(|broken| (broken.rule(), broken.kind()));
            let wanted = (!fits).then_some((RPC_03, Kind::Limit));
            assert_eq!(broken, wanted, "{length}");
        }
    }
}

/// RPC-05: the first word is the key, even if it looks like an option.
#[test]
fn the_first_word_of_a_key_is_no_option() {
    for (key, timeout) in [
        ("-timeout=2", None),
        ("-timeout=x", None),
        ("-timeout=2 -timeout=3", Some(3.0)),
    ] {
        let hello = Hello {
            key: Cow::Borrowed(key),
        };
        assert_eq!(hello.timeout().unwrap(), timeout, "{key}");
    }
}
