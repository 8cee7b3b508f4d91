//! Peers that reach a proxy by a WebSocket: their frames become a connection as that of any other peer (RPC-74 .. RPC-79).

use super::super::{
    Progress, Protocol, Speaker, WebSocketAnswer, WebSocketFrame, WebSocketKind, WebSocketRequest,
    threads,
};
use super::relay::shut;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Where WebSockets are at a proxy (RPC-74).
const PATH: &str = "/ws";

/// What comes in of a head at a time.
const PIECE: usize = 64 << 10;

/// Answers the request of a WebSocket.
pub(super) fn upgrade(mut stream: &TcpStream, patience: Duration) -> Result<(), String> {
    let gone = |why: io::Error| why.to_string();
    stream.set_read_timeout(Some(patience)).map_err(gone)?;
    let mut input = Vec::new();
    let request = loop {
        let mut cursor = Cursor::new(&input);
        match WebSocketRequest::read(&mut cursor) {
            // Byte by byte: what follows the head are frames.
            Ok(Progress::Short(_)) => {
                let mut byte = [0];
                stream.read_exact(&mut byte).map_err(gone)?;
                input.extend(byte);
            }
            Ok(Progress::Whole(request)) => break request,
            Err(broken) => return reject(stream, "400 Bad Request", broken.to_string()),
        }
    };
    if request.path != PATH {
        let why = format!("there is no `{}`", request.path.escape_debug());
        return reject(stream, "404 Not Found", why);
    }
    // RPC-74: as proxies of releases do. A peer without `Origin` is no page, and passes.
    if let Some(origin) = foreign_origin(&input, &request.host) {
        let why = format!("a page of `{}`", origin.escape_debug());
        return reject(stream, "403 Forbidden", why);
    }
    let mut out = Writer::new();
    let answer = WebSocketAnswer {
        accept: request.accept(),
    };
    answer
        .write(&mut out)
        .map_err(|broken| broken.to_string())?;
    stream.write_all(&out.into_bytes()).map_err(gone)?;
    stream.set_read_timeout(None).map_err(gone)
}

/// RPC-74: the page that makes the request, where it is of another host than the proxy. A browser lets any page connect to this machine.
fn foreign_origin(head: &[u8], host: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, origin) = lines.find(|(name, _)| name.eq_ignore_ascii_case("origin"))?;
    let origin = origin.trim();
    let of = origin.split_once("://").map_or("", |(_, host)| host);
    (!of.eq_ignore_ascii_case(host)).then(|| origin.to_owned())
}

/// Answers without a WebSocket.
fn reject(mut stream: &TcpStream, status: &str, why: String) -> Result<(), String> {
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    // A peer that is gone learns nothing.
    let _ = stream.write_all(answer.as_bytes());
    Err(why)
}

/// A connection that carries what the frames of `stream` do, and the thread's end of it.
pub(super) fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let own = TcpStream::connect(listener.local_addr()?)?;
    let address = own.local_addr()?;
    // Another process of this machine may connect as well.
    let other = loop {
        let (other, peer) = listener.accept()?;
        if peer == address {
            break other;
        }
    };
    own.set_nodelay(true)?;
    other.set_nodelay(true)?;
    Ok((own, other))
}

/// Passes on the content of frames to `inner`, and what comes from there in frames, until either is at its end. Returns why, where the
/// peer broke a rule.
pub(super) fn bridge(web: &TcpStream, inner: &TcpStream) -> Option<String> {
    // Held while a frame is written.
    let writing = Mutex::new(());
    thread::scope(|scope| {
        let answers = || {
            let mut piece = vec![0; PIECE];
            let mut inner = inner;
            loop {
                match inner.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => {
                        let data = piece.get(..count).unwrap_or_default();
                        if write(web, &writing, WebSocketKind::Binary, data).is_err() {
                            break;
                        }
                    }
                    Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            // 1000: a normal end.
            let _ = write(web, &writing, WebSocketKind::Close, &1000_u16.to_be_bytes());
            shut(web);
        };
        let answers = threads::spawn_scoped(scope, answers);
        let why = match &answers {
            Ok(_) => frames(web, inner, &writing),
            Err(why) => Some(threads::none(why)),
        };
        shut(inner);
        shut(web);
        drop(answers.map(ScopedJoinHandle::join));
        why
    })
}

/// Reads frames and passes on their content.
fn frames(mut web: &TcpStream, mut inner: &TcpStream, writing: &Mutex<()>) -> Option<String> {
    let mut input = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let mut cursor = Cursor::new(&input);
        let frame = WebSocketFrame::read(&mut cursor, Speaker::Client, Protocol::LARGEST);
        let more = match frame.map_err(|broken| broken.to_string()) {
            Ok(Progress::Whole(frame)) => {
                let passed = match frame.kind {
                    // RPC-76: messages are one stream, so that a part needs nothing of what came before it.
                    WebSocketKind::More | WebSocketKind::Binary => inner.write_all(&frame.data),
                    WebSocketKind::Ping => write(web, writing, WebSocketKind::Pong, &frame.data),
                    WebSocketKind::Pong => Ok(()),
                    WebSocketKind::Close => return None,
                    WebSocketKind::Text => return Some("it writes text".to_owned()),
                };
                if passed.is_err() {
                    return None;
                }
                let taken = input.len() - cursor.remaining();
                drop(frame);
                input.drain(..taken);
                continue;
            }
            Ok(Progress::Short(more)) => usize::try_from(more).unwrap_or(usize::MAX),
            Err(why) => return Some(why),
        };
        // Not beyond the frame: what is kept is as much as came in of one, and is moved once.
        let mut missing = more;
        while missing > 0 {
            let room = piece.get_mut(..missing.min(PIECE)).unwrap_or_default();
            match web.read(room) {
                Ok(0) => return None,
                Ok(count) => {
                    input.extend_from_slice(room.get(..count).unwrap_or_default());
                    missing -= count;
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// Writes one frame.
fn write(
    mut web: &TcpStream,
    writing: &Mutex<()>,
    kind: WebSocketKind,
    data: &[u8],
) -> io::Result<()> {
    let frame = WebSocketFrame {
        kind,
        is_last: true,
        mask: None,
        data: Cow::Borrowed(data),
    };
    let mut out = Writer::new();
    let wrong = |broken: Violation| io::Error::other(broken.to_string());
    frame.write(Speaker::Server, &mut out).map_err(wrong)?;
    // RPC-79: a Pong is of the thread that reads, and must not begin inside of the other one's frame.
    let _one = writing.lock().unwrap_or_else(PoisonError::into_inner);
    web.write_all(&out.into_bytes())
}

#[cfg(test)]
mod unit {
    use super::foreign_origin;

    #[test]
    fn a_page_of_another_host_is_foreign() {
        let head = |origin: &str| format!("GET /ws HTTP/1.1\r\nHost: a:1\r\n{origin}\r\n\r\n");
        for (origin, foreign) in [
            ("X: y", None),
            ("Origin: http://a:1", None),
            ("ORIGIN:https://A:1 ", None),
            ("Origin: http://b:1", Some("http://b:1")),
            ("Origin: http://a:2", Some("http://a:2")),
            ("Origin: null", Some("null")),
        ] {
            let found = foreign_origin(head(origin).as_bytes(), "a:1");
            assert_eq!(found.as_deref(), foreign, "{origin}");
        }
    }
}
