//! Sessions that pass through one `tvmspec serve` to another one.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

use crate::support::serving::Serving;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tvmspec::device::Device;
use tvmspec::function::{Error, ErrorKind, Function};
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::rpc::client::{RemoteHop, Session, SessionOptions};
use tvmspec::rpc::server::{ServerOptions, SessionEnd, serve};
use tvmspec::rpc::transport::{RpcStream, Transport};
use tvmspec::rpc::{Hello, PackedValue, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;
use tvmspec::value::Any;

fn hop(server: &Serving, key: &str) -> RemoteHop {
    RemoteHop {
        host: "127.0.0.1".to_owned(),
        port: server.port(),
        key: key.to_owned(),
    }
}

fn connect(first: &Serving, release: Option<u8>, hops: &[RemoteHop]) -> Result<Session, Error> {
    let mut options = SessionOptions::default();
    options.release = release.map(Release::of);
    options.connect_timeout = Duration::from_secs(20);
    options.timeout = Some(Duration::from_secs(20));
    options.hops = hops.to_vec();
    Session::connect("127.0.0.1", first.port(), "", &options)
}

fn add_one(session: &Session) -> Result<i64, Error> {
    Ok(i64::try_from(&session.call("rpc.test.addone", (41,))?)?)
}

#[test]
fn rpc_93_a_session_whose_last_server_computes_is_one_that_asks() {
    let last = Serving::server(&[]);
    let mut first = Serving::server(&["--allow-connect", "*", "--idle", "3"]);
    let session = connect(&first, Some(27), &[hop(&last, "")]).expect("a session");
    let number = |number: i64| Any::from(number);
    // Three repetitions, each followed by a pause of 2.5 s.
    let args = [
        Any::none(),
        "rpc.test.addone".into(),
        number(1),
        number(0),
        number(1),
        number(3),
        number(0),
        number(1),
        number(2500),
        number(1),
        number(0),
        "".into(),
    ];
    let evaluator = session.call("runtime.RPCTimeEvaluator", args);
    let evaluator = Function::try_from(evaluator.expect("made")).expect("a function");
    let value = number(1);
    evaluator.call_packed(&[value.view()]).expect("times");
    let line = first.line();
    assert!(line.contains("its client did nothing for 3 s"), "{line}");
}

#[test]
fn rpc_93_a_session_through_two_servers_is_of_the_last_one() {
    let last = Serving::server(&["--key", "last"]);
    let middle = Serving::server(&["--allow-connect", "127.0.0.1"]);
    let mut first = Serving::server(&["--allow-connect", "*:*"]);
    for release in [None, Some(27), Some(16), Some(8)] {
        for hops in [
            vec![hop(&last, "last")],
            vec![hop(&middle, ""), hop(&last, "last")],
        ] {
            let session = connect(&first, release, &hops).expect("a session");
            assert_eq!(add_one(&session).expect("a number"), 42, "{release:?}");
            session.upload("a.bin", b"content").expect("uploaded");
            assert_eq!(session.download("a.bin").expect("there"), b"content");
            let bytes: Vec<u8> = (0..3 << 20).map(|at| (at % 251) as u8).collect();
            let here = Tensor::from_slice(&bytes, &[3 << 20]).expect("a tensor");
            let there = session.send(&here, Device::CPU).expect("sent");
            let back = session.fetch(&there).expect("fetched");
            assert!(back.to_vec::<u8>().expect("bytes") == bytes);
            let failed = session.call("rpc.test.except", ("why",));
            let failed = failed.expect_err("it raises");
            assert_eq!((failed.kind(), failed.message()), (ErrorKind::Value, "why"));
            assert_eq!(add_one(&session).expect("a number"), 42, "{release:?}");
        }
    }
    // The first server's line states the number of requests, all of which it passed on.
    let line = first.line();
    assert!(line.contains("requests"), "{line}");
}

/// The end of one connection must end the other one.
#[test]
fn rpc_93_a_session_ends_on_both_servers() {
    let mut last = Serving::server(&[]);
    let mut first = Serving::server(&["--allow-connect", "127.0.0.1"]);
    let session = connect(&first, Some(27), &[hop(&last, "")]).expect("a session");
    session.close();
    assert!(last.line().contains("ended by the client"));
    first.line();
    // The next server leaves.
    let session = connect(&first, Some(27), &[hop(&last, "")]).expect("a session");
    drop(last);
    let error = add_one(&session).expect_err("the server is gone");
    assert!(error.to_string().contains("ended"), "{error}");
    first.line();
}

/// A stream that cannot be read and written at the same time.
struct OneWay(UnixStream);

impl Read for OneWay {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for OneWay {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl RpcStream for OneWay {
    fn set_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.0.set_limit(limit)
    }
}

#[test]
fn rpc_93_a_stream_without_a_second_half_has_no_hop() {
    let last = Serving::server(&[]);
    let (own, other) = UnixStream::pair().expect("a pair");
    assert!(RpcStream::duplicate(&own).expect("a socket").is_some());
    let stream = OneWay(other);
    assert!(stream.duplicate().expect("no error").is_none());
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = ServerOptions::new(folder.path());
    options.connect = vec!["127.0.0.1".to_owned()];
    let session = std::thread::spawn(move || serve(stream, &options));
    let _client = begun(own, &last);
    let SessionEnd::Failed(error) = session.join().expect("no panic").end else {
        panic!("the session continues")
    };
    let broken = error.violation().map(|broken| broken.rule().id());
    assert_eq!(broken, Some("RPC-93"), "{error}");
}

/// Returns a client that has begun a session with `last`, through the server at the other end.
fn begun(own: UnixStream, last: &Serving) -> Transport {
    let mut transport = Transport::new(own);
    let key = "client:".into();
    transport.write_hello(&Hello { key }).expect("written");
    let release = Release::of(27);
    transport.read_answer(release).expect("an answer");
    let text = |text: &'static str| PackedValue::Str(text.as_bytes().into());
    let port = PackedValue::Int(last.port().into());
    let args = vec![text("rpc.Connect"), text("127.0.0.1"), port, text("")];
    let begin = Packet::InitServer(b"0.8.0".as_slice().into(), args);
    let spoken = Protocol::new(release, Speaker::Client);
    transport.write_packet(&begin, &spoken).expect("written");
    transport
}

/// RPC-82: the last packet states the reason, also if another server executes the session.
#[test]
fn rpc_82_a_packet_without_a_code_ends_a_session_with_a_hop() {
    let last = Serving::server(&[]);
    let (own, other) = UnixStream::pair().expect("a pair");
    let mut raw = own.try_clone().expect("a second");
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = ServerOptions::new(folder.path());
    options.connect = vec!["127.0.0.1".to_owned()];
    options.release = Some(Release::of(27));
    let session = std::thread::spawn(move || serve(other, &options));
    let mut client = begun(own, &last);
    let spoken = Protocol::new(Release::of(27), Speaker::Server);
    let mut findings = Findings::default();
    let begun = client.read_packet(&spoken, &mut findings);
    assert!(matches!(begun, Ok(Some(Packet::Return(_)))), "{begun:?}");
    // A length of 1 has no room for a code.
    raw.write_all(&1_u64.to_le_bytes()).expect("written");
    let words = client.read_packet(&spoken, &mut findings);
    let Ok(Some(Packet::Exception(values))) = words else {
        panic!("{words:?}")
    };
    let [PackedValue::Str(text)] = values.as_slice() else {
        panic!("{values:?}")
    };
    let text = String::from_utf8_lossy(text);
    assert!(text.contains("RPC-12"), "{text}");
    let SessionEnd::Failed(error) = session.join().expect("no panic").end else {
        panic!("the session continues")
    };
    let broken = error.violation().map(|broken| broken.rule().id());
    assert_eq!(broken, Some("RPC-12"), "{error}");
}

/// A server's report counts the packets that it passed on. An empty packet is not a request.
#[test]
fn requests_through_a_hop_are_counted() {
    let last = Serving::server(&[]);
    let (own, other) = UnixStream::pair().expect("a pair");
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = ServerOptions::new(folder.path());
    options.connect = vec!["127.0.0.1".to_owned()];
    options.release = Some(Release::of(27));
    let session = std::thread::spawn(move || serve(other, &options));
    let mut client = begun(own, &last);
    let [to, from] =
        [Speaker::Client, Speaker::Server].map(|speaker| Protocol::new(Release::of(27), speaker));
    let mut findings = Findings::default();
    let begun = client.read_packet(&from, &mut findings);
    assert!(matches!(begun, Ok(Some(Packet::Return(_)))), "{begun:?}");
    client
        .write_packet(&Packet::KeepAlive, &to)
        .expect("written");
    for _ in 0..2 {
        let name = PackedValue::Str(b"rpc.test.addone".as_slice().into());
        let request = Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name]);
        client.write_packet(&request, &to).expect("written");
        let answer = client.read_packet(&from, &mut findings);
        assert!(matches!(answer, Ok(Some(Packet::Return(_)))), "{answer:?}");
    }
    drop(client);
    let report = session.join().expect("no panic");
    assert_eq!(report.requests, 3);
}
