//! Servers at a proxy.

use super::{add_one, connect, tracker};
use crate::support::serving::Serving;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tvmspec::function::ErrorKind;
use tvmspec::rpc::TrackerRequest;
use tvmspec::rpc::client::{Session, SessionOptions};
use tvmspec::rpc::server::await_pair;
use tvmspec::rpc::tracker::TrackerClient;

#[test]
fn rpc_94_a_server_at_a_proxy_serves_one_client_after_the_other() {
    let proxy = Serving::start(&["proxy", "--port", "0"]);
    let address = proxy.address.to_string();
    let mut server = Serving::start(&["serve", "--proxy", &address, "--key", "board"]);
    let mut options = SessionOptions::default();
    options.session_timeout = Some(50.0);
    for number in 1..=3 {
        let session = Session::connect("127.0.0.1", proxy.port(), "board", &options);
        let session = session.expect("a session");
        assert_eq!(session.server(), "server:board");
        assert_eq!(add_one(&session), Ok(42));
        session.close();
        let line = server.line();
        assert!(line.starts_with(&format!("session {number} ")), "{line}");
        assert!(line.contains("`client:board -timeout=50`"), "{line}");
    }
    // Two sessions at a time work as on any server.
    let one = Session::connect("127.0.0.1", proxy.port(), "board", &options).expect("one");
    let two = Session::connect("127.0.0.1", proxy.port(), "board", &options).expect("two");
    assert_eq!((add_one(&one), add_one(&two)), (Ok(42), Ok(42)));
}

/// RPC-94: a server must read the answer of a proxy without consuming a byte after it.
#[test]
fn rpc_94_what_a_proxy_answers_a_server() {
    let magic = 0x000f_f271_i32;
    let words =
        |words: &[i32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    for (answer, expected) in [
        (
            [words(&[magic, 8]), b"client:krest".to_vec()].concat(),
            Ok("client:k"),
        ),
        (words(&[magic + 1]), Err(ErrorKind::Connection)),
        (words(&[magic + 2]), Err(ErrorKind::Timeout)),
        (words(&[magic])[..3].to_vec(), Err(ErrorKind::Connection)),
    ] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let mut server = TcpStream::connect(listener.local_addr().expect("one")).expect("one");
        let (mut proxy, _) = listener.accept().expect("a server");
        std::io::Write::write_all(&mut proxy, &answer).expect("written");
        if expected.is_err() {
            proxy.shutdown(std::net::Shutdown::Write).expect("shut");
        }
        let found = await_pair(&mut server, "k");
        let mut hello = [0; 16];
        proxy.read_exact(&mut hello).expect("a hello");
        assert_eq!(hello[8..], *b"server:k");
        match expected {
            Ok(key) => {
                assert_eq!(found.as_deref(), Ok(key));
                let mut rest = [0; 4];
                server.read_exact(&mut rest).expect("it is left");
                assert_eq!(&rest, b"rest");
            }
            Err(kind) => assert_eq!(found.expect_err("none").kind(), kind),
        }
    }
}

#[test]
fn rpc_67_a_proxy_reports_its_servers_and_each_key_opens_one_session() {
    let (_tracker, address) = tracker();
    let proxy = Serving::start(&["proxy", "--port", "0", "--tracker", &address]);
    let at = proxy.address.to_string();
    let _servers: Vec<_> = (0..2)
        .map(|_| Serving::start(&["serve", "--proxy", &at, "--key", "board"]))
        .collect();
    let text = format!("rpc-tracker://{address}/board?wait=20");
    for _ in 0..2 {
        let one = connect(&text).expect("a session");
        let two = connect(&text).expect("a session");
        assert_eq!((add_one(&one), add_one(&two)), (Ok(42), Ok(42)));
    }
    let mut tracker = TrackerClient::connect(&*address).expect("a tracker");
    let tvmspec::rpc::TrackerReply::Summary(summary) =
        tracker.ask(&TrackerRequest::Summary).expect("a summary")
    else {
        panic!("no summary")
    };
    let [peer] = &summary.servers[..] else {
        panic!("{summary:?}")
    };
    assert_eq!(peer.key, "server:proxy[board]");
    assert_eq!(
        peer.address,
        Some((Some("127.0.0.1".to_owned()), proxy.port()))
    );
    // The plain key is not a match key.
    let options = SessionOptions::default();
    let began = Instant::now();
    let error = Session::connect("127.0.0.1", proxy.port(), "board", &options).expect_err("none");
    assert!(error.to_string().contains("no server has key"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
    // An unused key is replaced.
    let found = tracker
        .request("board", 1, Duration::from_secs(20))
        .expect("a server");
    let again = tracker
        .request("board", 1, Duration::from_secs(20))
        .expect("the other one");
    let third = tracker
        .request("board", 1, Duration::from_secs(30))
        .expect("one of both anew");
    assert_ne!(found.match_key, again.match_key);
    assert!(![&found, &again].contains(&&third));
    let stale = Session::connect("127.0.0.1", proxy.port(), &found.match_key, &options);
    let fresh = Session::connect("127.0.0.1", proxy.port(), &third.match_key, &options);
    assert_eq!(add_one(&fresh.expect("a session")), Ok(42));
    drop(stale);
}
