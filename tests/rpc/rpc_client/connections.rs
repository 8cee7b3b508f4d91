//! The connection of a client to a server, and the errors for other services.

use std::net::TcpListener;
use std::time::{Duration, Instant};
use tvmspec::device::Device;
use tvmspec::function::{Error, ErrorKind};
use tvmspec::release::Release;
use tvmspec::rpc::client::RemoteAddress;
use tvmspec::rpc::{Hello, TrackerHello};
use tvmspec::wire::Cursor;

/// Starts a service that is not a server: it writes `answer` to each client, and then closes the connection unless `keeps`. Returns its
/// port.
fn start_foreign_service(answer: &'static [u8], keeps: bool) -> u16 {
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
    let port = start_foreign_service(b"", true);
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
fn what_is_no_tracker_is_named_with_the_rule_that_it_breaks() {
    let answers: [(&[u8], &str); 2] = [
        (b"HTTP/1.1 400", "an HTTP server"),
        (b"71 f2 02 00", "no tracker"),
    ];
    for (answer, what) in answers {
        let port = start_foreign_service(answer, true);
        let error = named(&format!("rpc-tracker://127.0.0.1:{port}/key"));
        let broken = error.violation().expect("a rule");
        let place = (broken.rule().id(), broken.offset());
        assert_eq!(place, ("RPC-50", Some(0)), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    let port = start_foreign_service(b"", false);
    let error = named(&format!("rpc-tracker://127.0.0.1:{port}/key")).to_string();
    assert!(error.contains("the name is rpc://HOST:PORT/KEY"), "{error}");
    let hello = Hello::MAGIC.to_le_bytes();
    let broken = TrackerHello::read(&mut Cursor::new(&hello)).expect_err("no tracker");
    let text = broken.message();
    assert!(text.contains("a session with a server"), "{broken}");
}

#[test]
fn an_address_has_a_host_a_device_a_release_and_hops() {
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
}
