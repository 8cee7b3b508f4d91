//! The connection of a client to a server, and the errors for other services.

use std::net::TcpListener;
use std::time::{Duration, Instant};
use tvmspec::device::Device;
use tvmspec::function::{Error, ErrorKind};
use tvmspec::release::Release;
use tvmspec::rpc::client::{RemoteAddress, Session, SessionOptions};
use tvmspec::rpc::{Hello, TrackerHello};
use tvmspec::wire::Cursor;

/// Starts a service that is not a server: it writes `answer` to each client, and then closes the connection unless `keeps`. Returns its
/// port.
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
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("within 0.3 s") && text.contains("key `board`"),
        "{text}"
    );
    let error = named(&format!("rpc-tracker://127.0.0.1:{port}/board?timeout=0.3"));
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
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
    // A long timeout is meant for the computation of requests.
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
        (&[21, 3, 3, 0, 2, 2, 10], "RPC-04", "speaks TLS"),
        (b"what", "RPC-04", "not an answer to a hello"),
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
    // The service closes the connection without a byte. If it has not read the hello by then, the system reports a reset, which breaks no
    // rule.
    let port = stranger(b"", false);
    let error = named(&format!("rpc://127.0.0.1:{port}/key"));
    let place = format!("127.0.0.1:{port} closes the connection and answers nothing");
    assert!(error.to_string().contains(&place), "{error}");
    let broken = error.violation().map(|broken| broken.rule().id());
    assert!(
        broken == Some("RPC-16") || error.kind() == ErrorKind::Connection,
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
        let mut options = SessionOptions::default();
        options.release = release.map(Release::of);
        let session = Session::over(own, "", &options).expect("a session");
        let sum = session.call("rpc.test.addone", (41,));
        assert_eq!(i64::try_from(sum.expect("a sum")), Ok(42), "{release:?}");
        session.close();
        let report = served.join().expect("no panic");
        assert!(
            matches!(report.end, SessionEnd::Shutdown),
            "{:?}",
            report.end
        );
        // The names of hops are written before an answer shows the encoding.
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
