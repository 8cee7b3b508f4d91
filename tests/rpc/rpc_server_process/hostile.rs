//! Packets and hellos that no client of TVM writes, and that no case has.

use super::{PeerAnswer, framed, hello, init};
use crate::support::serving::Serving;
use std::io::{Read, Write};
use std::net::Shutdown;
use tvmspec::device::{Device, Dtype};
use tvmspec::rpc::{Hello, PackedValue, Packet, RpcCode};

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn rpc_82_hostile_packets_end_their_session_and_the_next_client_is_served() {
    let server = Serving::server(&[]);
    let lookup = |release: u8, length: [i32; 2], text: &[u8]| {
        let code = if release < 21 { 11 } else { 8 };
        framed(9, &[&words(&[1, code]), &words(&length), text].concat())
    };
    // A string that states a length beyond 32 bits, and a type that no packet has.
    let hostile = |release: u8| {
        let unknown = framed(9, &words(&[1, 13, 0, 0]));
        [lookup(release, [3, 1], b"abc"), unknown].map(|bytes| (release, bytes))
    };
    for (release, bytes) in [8, 27].into_iter().flat_map(hostile) {
        let mut stream = server.greet("client:");
        stream.write_all(&init()).expect("written");
        let mut begun = [0; 12 + 4];
        stream.read_exact(&mut begun).expect("a session");
        // This request shows the encoding.
        let shows = lookup(release, [15, 0], b"rpc.test.addone");
        stream.write_all(&shows).expect("written");
        stream.read_exact(&mut [0; 28]).expect("a function");
        // The connection may be gone before the last byte.
        let _ = stream.write_all(&bytes);
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let late = ended.as_ref().is_err_and(|error| {
            use std::io::ErrorKind::{TimedOut, WouldBlock};
            matches!(error.kind(), WouldBlock | TimedOut)
        });
        assert!(!late, "{bytes:?}: {ended:?}");
        server.is_alive(release);
        // An alignment of 3 is rounded up.
        let mut peer = server.peer(release);
        let [nbytes, alignment] = [16, 3].map(PackedValue::Int);
        let dtype = PackedValue::Dtype(Dtype::FLOAT32, 0);
        let args = vec![PackedValue::Device(Device::CPU), nbytes, alignment, dtype];
        let made = peer.ask(&Packet::SystemCall(RpcCode::DevAllocData, args));
        let is_made = matches!(made, PeerAnswer::Value(PackedValue::Handle(_)));
        assert!(is_made, "{made:?}");
    }
}

#[test]
fn rpc_02_hostile_hellos_end_their_session_and_the_next_client_is_served() {
    let server = Serving::server(&[]);
    let long = [&Hello::MAGIC.to_le_bytes()[..], &i32::MAX.to_le_bytes()].concat();
    let negative = [&Hello::MAGIC.to_le_bytes()[..], &(-1_i32).to_le_bytes()].concat();
    for (name, bytes) in [
        ("another magic", vec![1, 2, 3, 4, 0, 0, 0, 0]),
        ("no key", hello(b"")),
        ("another key", hello(b"client:other")),
        ("a server", hello(b"server:")),
        ("a key that is not UTF-8", hello(&[0xff; 7])),
        (
            "a timeout that is not a number",
            hello(b"client: -timeout=abc"),
        ),
        ("a timeout below 0", hello(b"client: -timeout=-1")),
        ("a key of 2 GiB", long),
        ("a key of -1", negative),
        ("half of a hello", hello(b"client:")[..9].to_vec()),
        ("nothing", Vec::new()),
    ] {
        let mut stream = server.connect();
        stream.write_all(&bytes).expect("written");
        if name == "half of a hello" || name == "nothing" {
            stream.shutdown(Shutdown::Write).expect("shut");
        }
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let mismatch = (Hello::MAGIC + 2).to_le_bytes();
        assert!(rest.is_empty() || rest == mismatch, "{name}: {rest:?}");
    }
    server.is_alive(27);
}
