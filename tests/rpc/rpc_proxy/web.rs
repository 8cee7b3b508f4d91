//! Peers by a WebSocket.

use super::{Running, expect, hello};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tvmspec::rpc::proxy::ProxyOptions;
use tvmspec::rpc::{
    Progress, Speaker, WebSocketAnswer, WebSocketFrame, WebSocketKind, WebSocketRequest,
};
use tvmspec::wire::{Cursor, Writer};

/// A peer at the port for WebSockets, behind the answer to its request.
fn web_peer(proxy: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.handle.web_address().unwrap()).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    let request = WebSocketRequest {
        path: "/ws".to_owned(),
        host: "localhost".to_owned(),
        key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
    };
    let mut out = Writer::new();
    request.write(&mut out).unwrap();
    stream.write_all(&out.into_bytes()).unwrap();
    let mut expected = Writer::new();
    let accept = request.accept();
    WebSocketAnswer { accept }.write(&mut expected).unwrap();
    expect(&mut stream, &expected.into_bytes());
    stream
}

/// A frame of a client, whose message ends with it.
fn frame(kind: WebSocketKind, data: &[u8]) -> Vec<u8> {
    let mut out = Writer::new();
    let frame = WebSocketFrame {
        kind,
        is_last: true,
        mask: Some([1, 2, 3, 4]),
        data: data.into(),
    };
    frame.write(Speaker::Client, &mut out).unwrap();
    out.into_bytes()
}

/// The next frame of the proxy.
fn next_frame(stream: &mut TcpStream) -> (WebSocketKind, Vec<u8>) {
    let mut input = Vec::new();
    loop {
        let mut cursor = Cursor::new(&input);
        match WebSocketFrame::read(&mut cursor, Speaker::Server, 1 << 20).unwrap() {
            Progress::Whole(frame) => return (frame.kind, frame.data.into_owned()),
            Progress::Short(more) => {
                let start = input.len();
                input.resize(start + more as usize, 0);
                stream.read_exact(&mut input[start..]).unwrap();
            }
        }
    }
}

/// What comes in frames up to `count` bytes: where a frame ends means nothing (RPC-76).
fn unframed(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let (kind, data) = next_frame(stream);
        assert_eq!(kind, WebSocketKind::Binary);
        bytes.extend(data);
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

/// RPC-74 to RPC-79: a peer by a WebSocket is a peer as any other.
#[test]
fn rpc_76_a_server_by_a_web_socket_and_a_client_are_connected() {
    let proxy = with_web();
    let mut server = web_peer(&proxy);
    let greeting = hello("server:dev");
    // In three frames, as upstream's server in a browser writes it, with a Ping between.
    server
        .write_all(&frame(WebSocketKind::Binary, &greeting[..4]))
        .unwrap();
    server
        .write_all(&frame(WebSocketKind::Ping, b"there?"))
        .unwrap();
    assert_eq!(
        next_frame(&mut server),
        (WebSocketKind::Pong, b"there?".to_vec())
    );
    server.write_all(&frame(WebSocketKind::Pong, b"")).unwrap();
    server
        .write_all(&frame(WebSocketKind::Binary, &greeting[4..8]))
        .unwrap();
    server
        .write_all(&frame(WebSocketKind::Binary, &greeting[8..]))
        .unwrap();
    let mut client = proxy.peer("client:dev");
    expect(&mut client, &hello("server:dev"));
    assert_eq!(unframed(&mut server, 18), hello("client:dev"));
    let large: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    client.write_all(&large).unwrap();
    assert!(unframed(&mut server, large.len()) == large);
    server
        .write_all(&frame(WebSocketKind::Binary, &large))
        .unwrap();
    expect(&mut client, &large);
    drop(client);
    assert_eq!(
        next_frame(&mut server),
        (WebSocketKind::Close, vec![3, 0xe8])
    );
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

#[test]
fn rpc_79_a_close_frame_ends_the_session_of_the_other_side() {
    let proxy = with_web();
    let mut client = web_peer(&proxy);
    client
        .write_all(&frame(WebSocketKind::Binary, &hello("client:dev")))
        .unwrap();
    let mut server = proxy.peer("server:dev");
    expect(&mut server, &hello("client:dev"));
    client.write_all(&frame(WebSocketKind::Close, &[])).unwrap();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

#[test]
fn what_is_no_web_socket_is_answered_and_closed() {
    let proxy = with_web();
    let good = "GET /ws HTTP/1.1\r\nHost: a:1\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (head, status) in [
        (good.replace("/ws", "/other"), "404"),
        (format!("{good}Origin: http://b:1\r\n"), "403"),
        (good.replace("13", "12"), "400"),
        (good.replace("Upgrade: websocket", "Upgrade: h2c"), "400"),
        (good.replace("GET", "POST"), "400"),
        (format!("{good}X: {}\r\n", "y".repeat(9000)), "400"),
        (format!("{good}Origin: http://a:1\r\n"), "101"),
    ] {
        let mut peer = TcpStream::connect(proxy.handle.web_address().unwrap()).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let _ = peer.write_all(format!("{head}\r\n").as_bytes());
        let mut answer = [0; 12];
        peer.read_exact(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(answer, format!("HTTP/1.1 {status}"), "{head}");
    }
    // Frames that are none end their own connection.
    for bytes in [
        frame(WebSocketKind::Text, b"hello"),
        vec![0x82, 0x01, 0x00],
        vec![0xf2, 0x80],
        [&[0x82, 0xff], &u64::MAX.to_be_bytes()[..]].concat(),
    ] {
        let mut peer = web_peer(&proxy);
        peer.write_all(&bytes).unwrap();
        let mut rest = Vec::new();
        let _ = peer.read_to_end(&mut rest);
        assert!(rest.len() <= 4, "{rest:?}");
    }
}
