//! Peers that use a WebSocket.

use super::{Running, expect, hello};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};
use tvmspec::rpc::proxy::ProxyOptions;

/// Connects to the port for WebSockets.
fn connected(proxy: &Running) -> TcpStream {
    let stream = TcpStream::connect(proxy.handle.web_address().unwrap()).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    stream
}

/// Connects, and opens a WebSocket.
fn web_peer(proxy: &Running) -> WebSocket<TcpStream> {
    let opened = tungstenite::client("ws://localhost/ws", connected(proxy));
    opened.unwrap_or_else(|error| panic!("{error}")).0
}

/// Reads binary messages until they have `count` bytes: message boundaries mean nothing (RPC-76).
fn stream_bytes(web: &mut WebSocket<TcpStream>, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        match web.read().unwrap() {
            Message::Binary(data) => bytes.extend_from_slice(&data),
            other => panic!("{other:?}"),
        }
    }
    bytes
}

fn with_web() -> Running {
    Running::new({
        let mut options = ProxyOptions::default();
        options.web = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        options
    })
}

#[test]
fn rpc_76_a_server_by_a_web_socket_and_a_client_are_connected() {
    let proxy = with_web();
    let mut server = web_peer(&proxy);
    let greeting = hello("server:dev");
    // In three messages, as upstream's server in a browser writes them, with a Ping between them.
    server
        .send(Message::binary(greeting[..4].to_vec()))
        .unwrap();
    server
        .send(Message::Ping(b"there?".to_vec().into()))
        .unwrap();
    assert_eq!(
        server.read().unwrap(),
        Message::Pong(b"there?".to_vec().into())
    );
    server.send(Message::Pong(Vec::new().into())).unwrap();
    server
        .send(Message::binary(greeting[4..8].to_vec()))
        .unwrap();
    server
        .send(Message::binary(greeting[8..].to_vec()))
        .unwrap();
    let mut client = proxy.peer("client:dev");
    expect(&mut client, &hello("server:dev"));
    assert_eq!(stream_bytes(&mut server, 18), hello("client:dev"));
    let large: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    client.write_all(&large).unwrap();
    assert!(stream_bytes(&mut server, large.len()) == large);
    server.send(Message::binary(large.clone())).unwrap();
    expect(&mut client, &large);
    drop(client);
    let Message::Close(Some(end)) = server.read().unwrap() else {
        panic!("no Close")
    };
    assert_eq!(end.code, CloseCode::Normal);
    assert_eq!(server.get_mut().read(&mut [0]).unwrap(), 0);
}

/// A Pong is written between messages of the other thread, never inside one.
#[test]
fn rpc_76_pongs_do_not_cut_messages() {
    let proxy = with_web();
    let mut server = web_peer(&proxy);
    server.send(Message::binary(hello("server:dev"))).unwrap();
    let mut client = proxy.peer("client:dev");
    expect(&mut client, &hello("server:dev"));
    assert_eq!(stream_bytes(&mut server, 18), hello("client:dev"));
    let large: Vec<u8> = (0..4_000_000_u32).map(|at| (at % 251) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| client.write_all(&large).unwrap());
        let (mut bytes, mut pongs) = (Vec::new(), 0);
        while bytes.len() < large.len() || pongs == 0 {
            server.send(Message::Ping(vec![1].into())).unwrap();
            match server.read().unwrap() {
                Message::Binary(data) => bytes.extend_from_slice(&data),
                Message::Pong(_) => pongs += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(bytes == large);
    });
}

#[test]
fn non_web_socket_request_is_answered_and_closed() {
    let proxy = with_web();
    let good = "GET /ws HTTP/1.1\r\nHost: a:1\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (head, status) in [
        (good.replace("/ws", "/other"), "404"),
        (format!("{good}Origin: http://b:1\r\n"), "403"),
        (format!("{good}Origin: http://a:2\r\n"), "403"),
        (format!("{good}Origin: null\r\n"), "403"),
        (good.replace("13", "12"), "400"),
        (good.replace("Upgrade: websocket", "Upgrade: h2c"), "400"),
        (good.replace("GET", "POST"), "400"),
        (good.replace("HTTP/1.1", "HTTP/1.0"), "400"),
        (good.replace("Host: a:1", "no header"), "400"),
        (format!("{good}X: {}\r\n", "y".repeat(9000)), "400"),
        (format!("{good}Origin: http://a:1\r\n"), "101"),
        (format!("{good}ORIGIN:https://A:1 \r\n"), "101"),
    ] {
        let mut peer = connected(&proxy);
        let _ = peer.write_all(format!("{head}\r\n").as_bytes());
        let mut answer = [0; 12];
        peer.read_exact(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(answer, format!("HTTP/1.1 {status}"), "{head}");
    }
    let bomb = u64::MAX.to_be_bytes();
    let beyond = ((16_u64 << 20) + 1).to_be_bytes();
    for (what, bytes) in [
        (
            "text",
            &[0x81, 0x85, 0, 0, 0, 0, b'h', b'e', b'l', b'l', b'o'][..],
        ),
        ("without a mask", &[0x82, 0x01, 0x00]),
        ("flags", &[0xf2, 0x80, 0, 0, 0, 0]),
        ("an unknown opcode", &[0x83, 0x80, 0, 0, 0, 0]),
        (
            "the largest length",
            &[&[0x82, 0xff], &bomb[..], &[0; 4]].concat(),
        ),
        (
            "longer than 16 MiB",
            &[&[0x82, 0xff], &beyond[..], &[0; 4]].concat(),
        ),
        ("a Ping in parts", &[0x09, 0x80, 0, 0, 0, 0]),
        (
            "a long Ping",
            &[&[0x89, 0xfe, 0x00, 0x7e, 0, 0, 0, 0], &[0; 126][..]].concat(),
        ),
    ] {
        let mut peer = web_peer(&proxy);
        let began = Instant::now();
        peer.get_mut().write_all(bytes).unwrap();
        let mut rest = Vec::new();
        let _ = peer.get_mut().read_to_end(&mut rest);
        assert!(rest.len() <= 4, "{what}: {rest:?}");
        // The proxy waits ten seconds for a hello, so that a faster end comes from the broken frame.
        assert!(began.elapsed() < Duration::from_secs(5), "{what}");
    }
}
