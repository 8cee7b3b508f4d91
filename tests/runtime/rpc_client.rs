//! The client against servers of this test, which answer as it states.

#![cfg(all(feature = "rpc", feature = "runtime"))]

use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tvmspec::device::{Device, Manager};
use tvmspec::function::Error;
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::rpc::client::{RemoteAddress, Session, SessionOptions};
use tvmspec::rpc::transport::{CLOSED, TIMEOUT, Transport};
use tvmspec::rpc::{
    Hello, HelloAnswer, PackedValue as V, Packet, Protocol, RpcCode, Speaker, TensorBlock,
    TrackerHello,
};
use tvmspec::rule::Findings;
use tvmspec::wire::Cursor;

/// The port of a server that answers each request with what `answer` makes of it, and its thread.
fn server(
    release: u8,
    mut answer: impl FnMut(&Packet<'_>) -> Option<Packet<'static>> + Send + 'static,
) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = move || {
        let (stream, _) = listener.accept().expect("a client");
        let release = Release::of(release);
        let mut transport = Transport::tcp(stream).expect("a socket");
        let hello = transport.read_hello().expect("a hello");
        let mut seen = vec![hello.key.into_owned()];
        let success = HelloAnswer::Success("server:test".into());
        transport.write_answer(&success, release).expect("written");
        let client = Protocol::new(release, Speaker::Client);
        let own = Protocol::new(release, Speaker::Server);
        loop {
            let mut findings = Findings::default();
            let Ok(Some(request)) = transport.read_packet(&client, &mut findings) else {
                return seen;
            };
            seen.push(match &request {
                Packet::SystemCall(code, args) => format!("{} {args:?}", code.name()),
                other => format!("{other:?}"),
            });
            let reply = match &request {
                Packet::Shutdown => return seen,
                Packet::InitServer(..) => Some(Packet::Return(vec![V::None])),
                other => answer(other),
            };
            match reply {
                Some(reply) => transport.write_packet(&reply, &own).expect("written"),
                // A server that does not answer any more, and keeps the connection.
                None => std::thread::sleep(Duration::from_secs(2)),
            }
        }
    };
    (port, std::thread::spawn(serve))
}

fn connect(port: u16, release: Option<u8>) -> Result<Session, Error> {
    let options = SessionOptions {
        release: release.map(Release::of),
        timeout: Some(Duration::from_millis(300)),
        session_timeout: Some(2.5),
        ..SessionOptions::default()
    };
    Session::connect("127.0.0.1", port, "key", &options)
}

/// What a function of the server returns where it answers a call with these values.
fn outcome(values: Vec<V<'static>>) -> Result<String, Error> {
    let (port, _) = server(27, move |request| {
        Some(match request {
            Packet::CallFunc(..) => Packet::Return(values.clone()),
            Packet::SystemCall(RpcCode::GetGlobalFunc, _) => Packet::Return(vec![V::Handle(7)]),
            _ => Packet::Return(vec![V::None]),
        })
    });
    let session = connect(port, None)?;
    Ok(format!("{:?}", session.call("f", [])?.type_index()))
}

#[test]
fn the_first_answer_shows_the_era() {
    for (release, stated, spoken) in [
        (27, None, Some(27)),
        (8, None, Some(20)),
        (8, Some(8), Some(8)),
        (19, Some(8), Some(8)),
        (8, Some(27), None),
        (27, Some(16), None),
    ] {
        let (port, served) = server(release, |_| Some(Packet::Return(vec![V::None])));
        let session = connect(port, stated);
        match spoken {
            Some(minor) => {
                let session = session.expect("a session");
                assert_eq!(session.release(), Release::of(minor));
                assert_eq!(session.server(), "server:test");
            }
            // RPC-100: and not an answer that is misread.
            None => {
                let error = session.expect_err("another era");
                let broken = error.violation().expect("a rule");
                assert_eq!(broken.rule().id(), "RPC-100", "{error}");
            }
        }
        let seen = served.join().expect("no panic");
        assert_eq!(seen[0], "client:key -timeout=2.5");
    }
}

#[test]
fn a_result_has_one_of_the_forms_of_its_code() {
    let good = [
        (vec![V::Int(0), V::None], 0),
        (vec![V::Int(1), V::Int(5)], 1),
        (vec![V::Int(2), V::Bool(1)], 2),
        (vec![V::Int(3), V::Float(0.5)], 3),
        (vec![V::Int(65), V::Str(b"a text"[..].into())], 11),
        (vec![V::Int(68), V::Handle(5)], 68),
        (vec![V::Int(73), V::Handle(5)], 73),
    ];
    for (values, index) in good {
        assert_eq!(outcome(values.clone()), Ok(index.to_string()), "{values:?}");
    }
    let block = TensorBlock {
        data: 64,
        device: Device::CPU,
        dtype: tvmspec::device::Dtype::FLOAT32,
        shape: vec![-1],
        byte_offset: 0,
    };
    for values in [
        vec![],
        vec![V::None],
        vec![V::Int(1)],
        vec![V::Int(1), V::Int(1), V::Int(1)],
        vec![V::Int(70), V::Tensor(block.clone()), V::Handle(1)],
        vec![V::Int(70), V::Tensor(block)],
        vec![V::Int(1 << 40), V::None],
    ] {
        let error = outcome(values.clone()).expect_err("RPC-101");
        let broken = error.violation().expect("a rule");
        assert_eq!(broken.rule().id(), "RPC-101", "{values:?}: {error}");
    }
}

#[test]
fn a_tensor_of_the_host_goes_there_and_comes_back() {
    let (port, served) = server(27, |request| {
        Some(match request {
            Packet::CallFunc(..) => Packet::Return(vec![V::Int(0), V::None]),
            Packet::SystemCall(RpcCode::GetGlobalFunc, _) => Packet::Return(vec![V::Handle(7)]),
            Packet::SystemCall(RpcCode::DevAllocData, _) => Packet::Return(vec![V::Handle(4096)]),
            Packet::CopyFromRemote(_, bytes) => {
                Packet::CopyAck(vec![1; usize::try_from(*bytes).expect("few")].into())
            }
            _ => Packet::Return(vec![V::None]),
        })
    });
    let session = connect(port, Some(27)).expect("a session");
    let tensor = Tensor::from_slice(&[7_u8; 3], &[3]).expect("a tensor");
    session
        .call("f", [tensor.clone().into()])
        .expect("a result");
    assert_eq!(tensor.to_vec::<u8>().expect("bytes"), [1; 3]);
    // RPC-102: memory of another device of this process is nothing that a server can be passed.
    drop(session);
    let seen = served.join().expect("no panic").join("\n");
    let order = [
        "DevAllocData",
        "CopyToRemote",
        "CallFunc",
        "CopyFromRemote",
        "DevFreeData",
        "FreeHandle",
        "Shutdown",
    ];
    let places: Vec<_> = order.map(|word| seen.find(word)).into();
    assert!(
        places.is_sorted() && places.iter().all(Option::is_some),
        "{seen}"
    );
}

#[test]
fn a_late_answer_ends_the_session_and_nothing_else() {
    let (port, _) = server(27, |_| None);
    let session = connect(port, Some(27)).expect("a session");
    let late = session.function("f").expect_err("no answer");
    assert_eq!(late.kind(), TIMEOUT);
    let gone = session.function("f").expect_err("the session has ended");
    assert_eq!(gone.kind(), "ConnectionError", "{gone}");
    let device = session.device(Device::CPU).expect("a device");
    drop(session);
    let api = Manager::global()
        .api(device.kind)
        .expect("the API of sessions");
    let error = api.set_device(device).expect_err("no session any more");
    assert!(error.message().contains("no session"), "{error}");
}

/// The port of something that is no server: it writes `answer` to each client and closes the connection, or keeps it where `keeps`.
fn stranger(answer: &'static [u8], keeps: bool) -> u16 {
    use std::io::Write as _;
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            stream.write_all(answer).expect("written");
            if keeps {
                kept.push(stream);
            }
        }
    });
    port
}

fn named(text: &str) -> Error {
    let address = RemoteAddress::parse(text).expect("an address");
    address.connect().expect_err(text)
}

#[test]
fn the_timeout_of_a_name_bounds_its_connection() {
    let port = stranger(b"", true);
    let began = Instant::now();
    let error = named(&format!("rpc://127.0.0.1:{port}/board?timeout=0.3"));
    assert_eq!(error.kind(), TIMEOUT, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("within 0.3 s") && text.contains("key `board`"),
        "{text}"
    );
    let error = named(&format!("rpc-tracker://127.0.0.1:{port}/board?timeout=0.3"));
    assert_eq!(error.kind(), TIMEOUT, "{error}");
    assert!(error.to_string().contains("within 0.3 s"), "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    let limit = |query: &str| {
        let address = RemoteAddress::parse(&format!("rpc://a:1?{query}")).expect("an address");
        (address.options.timeout, address.options.connect_timeout)
    };
    let seconds = Duration::from_secs;
    assert_eq!(limit("timeout=2"), (Some(seconds(2)), seconds(2)));
    // A long one is for what requests compute.
    assert_eq!(limit("timeout=600"), (Some(seconds(600)), seconds(60)));
    assert_eq!(limit(""), (None, seconds(60)));
}

#[test]
fn what_is_no_server_is_named_with_the_rule_that_it_breaks() {
    let answers: [(&[u8], &str, &str); 5] = [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "RPC-04",
            "an HTTP server",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "RPC-04", "an SSH server"),
        (&[0x71, 0xf2, 2, 0], "RPC-04", "rpc-tracker://HOST:PORT/KEY"),
        (&[21, 3, 3, 0, 2, 2, 10], "RPC-04", "rpc+tls://"),
        (b"what", "RPC-04", "no answer to a hello"),
    ];
    for (answer, rule, what) in answers {
        let error = named(&format!("rpc://127.0.0.1:{}/key", stranger(answer, true)));
        let broken = error.violation().expect("a rule");
        assert_eq!(
            (broken.rule().id(), broken.offset()),
            (rule, Some(0)),
            "{error}"
        );
        assert!(error.to_string().contains(what), "{error}");
    }
    let answers: [(&[u8], &str); 2] = [
        (b"HTTP/1.1 400", "an HTTP server"),
        (b"71 f2 02 00", "no tracker"),
    ];
    for (answer, what) in answers {
        let error = named(&format!(
            "rpc-tracker://127.0.0.1:{}/key",
            stranger(answer, true)
        ));
        let broken = error.violation().expect("a rule");
        assert_eq!(
            (broken.rule().id(), broken.offset()),
            ("RPC-50", Some(0)),
            "{error}"
        );
        assert!(error.to_string().contains(what), "{error}");
    }
    // Closed without a byte; where it had not read the hello by then, the system reports a reset, which breaks no rule.
    let port = stranger(b"", false);
    let error = named(&format!("rpc://127.0.0.1:{port}/key"));
    let place = format!("127.0.0.1:{port} closes the connection and answers nothing");
    assert!(error.to_string().contains(&place), "{error}");
    let broken = error.violation().map(|broken| broken.rule().id());
    assert!(
        broken == Some("RPC-16") || error.kind() == CLOSED,
        "{error}"
    );
    let error = named(&format!("rpc-tracker://127.0.0.1:{port}/key"));
    assert!(
        error
            .to_string()
            .contains("the name is rpc://HOST:PORT/KEY"),
        "{error}"
    );
}

#[test]
fn a_server_names_the_client_that_is_none() {
    for (bytes, what) in [
        (b"GET / HTTP/1.1", "speaks HTTP"),
        (b"POST /x HTTP/1", "speaks HTTP"),
        (b"\x16\x03\x01\0\0\0\0\0\0\0\0\0\0\0", "speaks TLS"),
        (b"\x71\xf2\x02\0\0\0\0\0\0\0\0\0\0\0", "that of a tracker"),
    ] {
        let broken = Hello::read(&mut Cursor::new(bytes)).expect_err("no hello");
        assert_eq!((broken.rule().id(), broken.offset()), ("RPC-01", Some(0)));
        assert!(broken.message().contains(what), "{broken}");
    }
    let hello = Hello::MAGIC.to_le_bytes();
    let broken = TrackerHello::read(&mut Cursor::new(&hello)).expect_err("no tracker");
    assert_eq!((broken.rule().id(), broken.offset()), ("RPC-50", Some(0)));
    assert!(
        broken.message().contains("a session with a server"),
        "{broken}"
    );
}

#[cfg(unix)]
#[test]
fn a_session_goes_over_any_stream() {
    use std::os::unix::net::UnixStream;
    use tvmspec::rpc::client::RemoteHop;
    use tvmspec::rpc::server::{ServerOptions, SessionEnd, serve};
    for release in [None, Some(8), Some(27)] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ServerOptions::new(folder.path());
        let (own, other) = UnixStream::pair().expect("a pair");
        let served = std::thread::spawn(move || serve(other, &options));
        let mut options = SessionOptions {
            release: release.map(Release::of),
            ..SessionOptions::default()
        };
        let session = Session::over(own, "", &options).expect("a session");
        let sum = session.call("rpc.test.addone", [41_i64.into()]);
        assert_eq!(i64::try_from(sum.expect("a sum")), Ok(42), "{release:?}");
        session.close();
        let report = served.join().expect("no panic");
        assert!(
            matches!(report.end, SessionEnd::Shutdown),
            "{:?}",
            report.end
        );
        // The names of servers between are written before an answer shows the encoding.
        options.hops.push(RemoteHop {
            host: "board".into(),
            port: 1,
            key: String::new(),
        });
        if release.is_none() {
            let (own, _other) = UnixStream::pair().expect("a pair");
            let error = Session::over(own, "", &options).expect_err("no release");
            let broken = error.violation().expect("a rule");
            assert_eq!(broken.rule().id(), "RPC-100", "{error}");
        }
    }
}

#[test]
fn an_address_is_read_or_says_what_is_wrong() {
    let address =
        RemoteAddress::parse("rpc://[::1]:9090?release=0.8&via=a:1/k&session-timeout=3#cuda:1");
    let address = address.expect("an address");
    assert_eq!(
        (&*address.host, address.port, &*address.key),
        ("::1", 9090, "")
    );
    assert_eq!(address.device, Device::cuda(1));
    assert_eq!(address.options.release, Some(Release::of(8)));
    assert_eq!(
        (&*address.options.hops[0].host, address.options.hops[0].port),
        ("a", 1)
    );
    for text in [
        "cpu:0",
        "rpc://",
        "rpc://host",
        "rpc://host:99999",
        "rpc://:1",
        "rpc://host:1/a key",
        "rpc://host:1?release=9.9",
        "rpc://host:1?timeout=-1",
        "rpc://host:1?what=1",
        "rpc://host:1#nothing",
    ] {
        assert!(RemoteAddress::parse(text).is_err(), "{text}");
    }
}

/// Without a timeout a call waits for as long as its server takes: another thread ends it.
#[test]
fn a_call_that_hangs_is_ended_by_another_thread() {
    for (end, reason) in [
        (Session::cancel as fn(&Session), "the session was cancelled"),
        (Session::close, "the session was closed"),
    ] {
        let (calls, called) = std::sync::mpsc::channel();
        let (finish, wait) = std::sync::mpsc::channel::<()>();
        let (port, served) = server(27, move |request| match request {
            Packet::SystemCall(RpcCode::GetGlobalFunc, _) => {
                Some(Packet::Return(vec![V::Handle(7)]))
            }
            Packet::CallFunc(..) => {
                calls.send(()).expect("the test runs");
                // Until the test is over.
                let _ = wait.recv();
                None
            }
            _ => Some(Packet::Return(vec![V::None])),
        });
        let options = SessionOptions::default();
        let session = Session::connect("127.0.0.1", port, "key", &options).expect("a session");
        let hanging = session.clone();
        let call = std::thread::spawn(move || hanging.call("f", []));
        called.recv().expect("the call is there");
        end(&session);
        // The server answers only when this is dropped, so that what returns here did not wait for it.
        let error = call.join().expect("no panic").expect_err("no answer");
        assert_eq!((error.kind(), error.message()), (CLOSED, reason));
        let next = session.call("f", []).expect_err("it has ended");
        assert_eq!((next.kind(), next.message()), (CLOSED, reason));
        drop(finish);
        drop(session);
        served.join().expect("the server sees the end");
    }
}

/// A session without a call that waits ends at the next use.
#[test]
fn a_cancelled_session_has_ended() {
    let (port, served) = server(27, |_| Some(Packet::Return(vec![V::None])));
    let session = connect(port, Some(27)).expect("a session");
    session.cancel();
    // The server sees the end while the session is still held.
    let seen = served.join().expect("no panic");
    assert!(!seen.contains(&"Shutdown".to_owned()), "{seen:?}");
    let error = session.call("f", []).expect_err("it has ended");
    assert_eq!(error.kind(), CLOSED);
    // Closing what is cancelled changes nothing.
    session.close();
    let again = session.call("f", []).expect_err("it has ended");
    assert_eq!(again.message(), error.message());
}
