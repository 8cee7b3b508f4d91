//! Packets and hellos that no client of TVM writes.

use super::{Server, framed, hello, init};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use tvmspec::rpc::Hello;

/// Returns a packet with a wrong length.
fn claimed(length: u64, rest: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), rest].concat()
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the code of a string in the encoding of `release`.
fn string(release: u8) -> i32 {
    if release < 21 { 11 } else { 8 }
}

/// Returns a GetGlobalFunc packet of one string, which states `length` as its length.
fn lookup(release: u8, length: u64, text: &[u8]) -> Vec<u8> {
    let head = words(&[1, string(release)]);
    framed(9, &[&head[..], &length.to_le_bytes(), text].concat())
}

/// The reaction of a server to a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It closes the connection.
    Ends,
    /// It answers with an exception, and continues.
    Rejects,
    /// It waits for the rest, and closes at the end of the stream.
    Waits,
    /// It answers with a value, or not at all, and continues.
    Goes,
}

/// Returns hostile packets of a client that has begun a session.
fn hostile(release: u8) -> Vec<(&'static str, Vec<u8>, Then)> {
    use Then::{Ends, Goes, Rejects, Waits};
    let handle = |token: u64| {
        let code = if release < 21 { 3 } else { 4 };
        let mut args = words(&[1, code]);
        if release < 21 {
            args = words(&[2, 3, 0]);
        }
        args.extend(token.to_le_bytes());
        if release < 21 {
            args.extend(10_i64.to_le_bytes());
        }
        args
    };
    let tensor = |ndim: i32| {
        let mut block = words(&[1, 7]);
        block.extend(0_u64.to_le_bytes());
        block.extend(words(&[1, 0, ndim, 0x0001_2002]));
        block.extend([0; 64]);
        framed(17, &block)
    };
    let alloc = |nbytes: i64, alignment: i64| {
        let (int, dtype) = (if release < 21 { 0 } else { 1 }, words(&[0x0001_2002, 0]));
        let device = words(&[1, 0]);
        let (nbytes, alignment) = (nbytes.to_le_bytes(), alignment.to_le_bytes());
        let body = if release < 21 {
            [
                &words(&[4, 6, 0, 0, 5])[..],
                &device,
                &nbytes,
                &alignment,
                &dtype,
            ]
            .concat()
        } else {
            [
                &words(&[4, 6])[..],
                &device,
                &words(&[int]),
                &nbytes,
                &words(&[int]),
                &alignment,
                &words(&[5]),
                &dtype,
            ]
            .concat()
        };
        framed(13, &body)
    };
    let call = |function: u64| framed(3, &[&function.to_le_bytes()[..], &[0; 4]].concat());
    vec![
        ("a length of 0", claimed(0, &[]), Goes),
        ("a length of 2^62", claimed(1 << 62, &[0; 64]), Ends),
        ("a length of 2^64 - 1", claimed(u64::MAX, &[0; 64]), Ends),
        ("a length of 1", claimed(1, &[0]), Ends),
        ("a length of 3", claimed(3, &[0; 3]), Ends),
        ("code 0", framed(0, &[]), Ends),
        ("code 22", framed(22, &[]), Ends),
        ("code 100", framed(100, &[]), Ends),
        ("code -1", framed(-1, &[]), Ends),
        ("a return", framed(4, &[0; 4]), Ends),
        ("an exception", framed(5, &[0; 4]), Ends),
        ("a copy's answer", framed(8, &[]), Ends),
        ("half of a packet", claimed(100, &[3, 0, 0, 0]), Waits),
        ("half of a length", vec![1, 0, 0], Waits),
        (
            "bytes left over",
            framed(3, &[&[0; 12][..], &[0; 4]].concat()),
            Ends,
        ),
        ("a shutdown with a body", framed(1, &[0; 4]), Ends),
        (
            "a string beyond the packet",
            lookup(release, 100, b"abc"),
            Ends,
        ),
        (
            "a string of 2^64 - 1",
            lookup(release, u64::MAX, &[7; 100_000]),
            Ends,
        ),
        (
            "a string of 2^32 + 3",
            lookup(release, (1 << 32) + 3, b"abc"),
            Ends,
        ),
        ("-1 dimensions", tensor(-1), Ends),
        ("2^31 - 1 dimensions", tensor(i32::MAX), Ends),
        ("-1 arguments", framed(9, &words(&[-1])), Ends),
        ("a million arguments", framed(9, &words(&[1_000_000])), Ends),
        ("an unknown type", framed(9, &words(&[1, 40])), Ends),
        (
            "a type that no packet has",
            framed(9, &words(&[1, 13, 0, 0])),
            Ends,
        ),
        (
            "a wrong type",
            framed(9, &[words(&[1, 6]), words(&[1, 0])].concat()),
            Rejects,
        ),
        ("too few arguments", framed(9, &words(&[0])), Rejects),
        ("a call of 0", call(0), Rejects),
        ("a call of an address", call(0x7fff_1234_5678), Rejects),
        ("freeing 0", framed(10, &handle(0)), Goes),
        (
            "freeing an address",
            framed(10, &handle(0x5555_1234)),
            Rejects,
        ),
        ("2^62 bytes of memory", alloc(1 << 62, 64), Rejects),
        ("an alignment of 3", alloc(16, 3), Goes),
        ("a second InitServer", init(), Rejects),
        (
            "another version",
            framed(2, &[&5_u64.to_le_bytes(), &b"0.9.0"[..], &[0; 4]].concat()),
            Rejects,
        ),
    ]
}

#[test]
fn rpc_82_hostile_packets_end_their_session_and_the_next_client_is_served() {
    let server = Server::start(&[]);
    for release in [8, 27] {
        for (name, bytes, then) in hostile(release) {
            let mut stream = server.greet("client:");
            stream.write_all(&init()).expect("written");
            let mut begun = [0; 12 + 4];
            stream.read_exact(&mut begun).expect("a session");
            // This request shows the encoding, so that the test can read the server's exceptions.
            stream
                .write_all(&lookup(release, 15, b"rpc.test.addone"))
                .expect("written");
            let mut found = [0; 28];
            stream.read_exact(&mut found).expect("a function");
            // The connection may be gone before the last byte.
            let _ = stream.write_all(&bytes);
            if then == Then::Waits {
                stream.shutdown(Shutdown::Write).expect("shut");
            }
            let code = |stream: &mut TcpStream| -> Option<i32> {
                let mut head = [0; 12];
                stream.read_exact(&mut head).ok()?;
                let length = u64::from_le_bytes(head[..8].try_into().expect("eight"));
                let mut body = vec![0; length as usize - 4];
                stream.read_exact(&mut body).ok()?;
                Some(i32::from_le_bytes(head[8..].try_into().expect("four")))
            };
            let goes_on = matches!(then, Then::Rejects | Then::Goes);
            if then == Then::Rejects {
                assert_eq!(code(&mut stream), Some(5), "{release} {name}");
            }
            if then == Then::Goes && name != "a length of 0" {
                assert_eq!(code(&mut stream), Some(4), "{release} {name}");
            }
            if goes_on {
                stream
                    .write_all(&lookup(release, 15, b"rpc.test.addone"))
                    .expect("written");
                assert_eq!(code(&mut stream), Some(4), "{release} {name}");
            } else {
                let mut rest = Vec::new();
                let ended = stream.read_to_end(&mut rest);
                let late = ended.as_ref().is_err_and(|error| {
                    matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    )
                });
                assert!(!late, "{release} {name}: {ended:?}");
            }
        }
        server.is_alive(release);
    }
}

#[test]
fn rpc_02_hostile_hellos_end_their_session_and_the_next_client_is_served() {
    let server = Server::start(&[]);
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
