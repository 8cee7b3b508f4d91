//! Tunnels below a session: peers that are silent or slow, and cuts.

use super::{client, server, sockets, soon};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use tvmspec::function::ErrorKind;
use tvmspec::rpc::tls;
use tvmspec::rpc::transport::RpcStream;

/// Both ends of a tunnel, and the sockets below.
fn tunnel() -> ([Box<dyn RpcStream>; 2], [TcpStream; 2]) {
    let (one, other) = sockets();
    let below = [&one, &other].map(|socket| socket.try_clone().expect("a socket"));
    let accepting = std::thread::spawn(|| tls::accept(other, &server(), soon()));
    let one = tls::connect(one, ("127.0.0.1", 1), &client(), soon()).expect("a tunnel");
    let other = accepting.join().expect("no panic").expect("a tunnel");
    // The deadline of the handshake is none of the session.
    for socket in &below {
        assert_eq!(socket.read_timeout().expect("a socket"), None);
    }
    for stream in [&one, &other] {
        stream
            .set_limit(Some(Duration::from_secs(30)))
            .expect("a limit");
    }
    ([one, other], below)
}

#[test]
fn rpc_110_a_peer_that_is_silent_or_slow_is_not_waited_for() {
    let brief = Duration::from_millis(300);
    let (one, other) = sockets();
    let error = tls::accept(other, &server(), Instant::now() + brief).err();
    assert_eq!(error.expect("late").kind(), ErrorKind::Timeout);
    drop(one);
    let (one, other) = sockets();
    let error = tls::connect(one, ("127.0.0.1", 1), &client(), Instant::now() + brief).err();
    assert_eq!(error.expect("late").kind(), ErrorKind::Timeout);
    drop(other);
    // Byte by byte: none of them puts the deadline off. A record of a handshake of 16,000 bytes takes 80 seconds so.
    let (mut one, other) = sockets();
    let trickle = std::thread::spawn(move || {
        let mut written = one.write_all(&[22, 3, 1, 62, 128, 1, 0]);
        while written.is_ok() {
            std::thread::sleep(Duration::from_millis(5));
            written = one.write_all(&[0]);
        }
    });
    let error = tls::accept(other, &server(), Instant::now() + brief).err();
    assert!(error.is_some());
    trickle.join().expect("the connection has ended");
}

#[test]
fn both_ends_of_a_tunnel_write_at_once() {
    let (ends, _) = tunnel();
    let content: Vec<u8> = (0..8 << 20).map(|at| (at % 253) as u8).collect();
    std::thread::scope(|scope| {
        for mut stream in ends {
            let mut twin = stream.twin().expect("a twin").expect("a twin");
            let content = &content;
            // Neither reads before it has written much more than sockets hold.
            scope.spawn(move || twin.write_all(content).expect("written"));
            scope.spawn(move || {
                let mut back = vec![0; content.len()];
                stream.read_exact(&mut back).expect("read");
                assert!(back == *content);
            });
        }
    });
}

#[test]
fn a_tunnel_that_is_cut_is_none_that_ends() {
    let ([mut one, other], _below) = tunnel();
    drop(other);
    assert_eq!(one.read(&mut [0; 8]).expect("an end"), 0);
    // What is below ends, and the tunnel does not say so.
    let ([mut one, _other], [_, below]) = tunnel();
    below.shutdown(Shutdown::Write).expect("ended");
    let error = one.read(&mut [0; 8]).expect_err("cut off");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    // This end itself: a thread that waits for bytes hears of it.
    let ([mut one, _other], _below) = tunnel();
    let twin = one.twin().expect("a twin").expect("a twin");
    let waiting = std::thread::spawn(move || one.read(&mut [0; 8]));
    twin.end(false);
    assert_eq!(waiting.join().expect("no panic").expect("an end"), 0);
    // One byte of a record that is another one.
    let ([mut one, mut other], [_, mut below]) = tunnel();
    other.write_all(b"first").expect("written");
    let mut first = [0; 5];
    one.read_exact(&mut first).expect("read");
    below.write_all(&[23, 3, 3, 0, 32]).expect("written");
    below.write_all(&[7; 32]).expect("written");
    let error = loop {
        match one.read(&mut [0; 8]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => break other.expect_err("not of this tunnel"),
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}
