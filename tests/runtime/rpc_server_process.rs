//! `tvmspec serve`: what its clients do to a session, they do to that session alone.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

#[path = "../support/skip.rs"]
mod skip;

use skip::skipped;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::transport::{CLOSED, Transport};
use tvmspec::rpc::{Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;

/// A server, which ends with the test.
struct Server {
    child: Child,
    address: SocketAddr,
    log: BufReader<ChildStderr>,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["serve", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a line");
        let address = line.trim().strip_prefix("serving on ");
        let log = BufReader::new(child.stderr.take().expect("piped"));
        let address = address.expect(&line).parse().expect("an address");
        Server {
            child,
            address,
            log,
        }
    }

    /// A connection that takes 20 s at most.
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a limit");
        stream.set_write_timeout(limit).expect("a limit");
        stream
    }

    /// A connection with a hello that was answered.
    fn greet(&self, key: &'static str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&hello(key.as_bytes())).expect("written");
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..4], Hello::MAGIC.to_le_bytes());
        stream
    }

    /// A whole session of a client that does nothing wrong.
    fn is_alive(&self, release: u8) {
        let mut peer = Peer::of(self, release);
        let found = peer.look_up("rpc.test.addone");
        assert_ne!(found, 0);
        peer.transport
            .write_packet(&Packet::Shutdown, &peer.own)
            .expect("written");
        assert_eq!(peer.read(), PeerAnswer::Gone);
    }

    /// The next line of the log that is not about a session that begins.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.log.read_line(&mut line).expect("a line");
            if !line.ends_with(": begins\n") {
                return line;
            }
        }
    }
}

/// A client whose session has begun.
struct Peer {
    transport: Transport,
    own: Protocol,
    other: Protocol,
}

/// What came of a request.
#[derive(Debug, PartialEq)]
enum PeerAnswer {
    /// The last value.
    Value(PackedValue<'static>),
    /// The text of an exception.
    Raised(String),
    /// The connection has ended.
    Gone,
}

impl Peer {
    fn of(server: &Server, release: u8) -> Peer {
        let mut transport = Transport::tcp(server.connect()).expect("a socket");
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(20)));
        let key = Cow::Borrowed("client:");
        transport.write_hello(&Hello { key }).expect("written");
        let release = Release::of(release);
        let answer = transport.read_answer(release).expect("an answer");
        assert_eq!(answer, HelloAnswer::Success("server:".into()));
        let mut peer = Peer {
            transport,
            own: Protocol::new(release, Speaker::Client),
            other: Protocol::new(release, Speaker::Server),
        };
        let init = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
        assert_eq!(peer.ask(&init), PeerAnswer::Value(PackedValue::None));
        peer
    }

    fn ask(&mut self, packet: &Packet<'_>) -> PeerAnswer {
        self.transport
            .write_packet(packet, &self.own)
            .expect("written");
        self.read()
    }

    fn read(&mut self) -> PeerAnswer {
        let mut findings = Findings::default();
        let values = match self.transport.read_packet(&self.other, &mut findings) {
            Ok(None) => return PeerAnswer::Gone,
            Err(error) if error.kind() == CLOSED => return PeerAnswer::Gone,
            Ok(Some(Packet::Return(values))) => values,
            Ok(Some(Packet::Exception(values))) => {
                let [PackedValue::Str(text)] = &values[..] else {
                    panic!("{values:?}")
                };
                return PeerAnswer::Raised(String::from_utf8_lossy(text).into_owned());
            }
            other => panic!("{other:?}"),
        };
        PeerAnswer::Value(match values.last() {
            Some(PackedValue::Handle(token)) => PackedValue::Handle(*token),
            Some(PackedValue::Int(value)) => PackedValue::Int(*value),
            Some(PackedValue::Str(text)) => PackedValue::Str(text.to_vec().into()),
            _ => PackedValue::None,
        })
    }

    fn look_up(&mut self, name: &'static str) -> u64 {
        let name = text(name);
        handle(self.ask(&Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name])))
    }

    fn call(&mut self, name: &'static str, args: Vec<PackedValue<'static>>) -> PeerAnswer {
        let function = self.look_up(name);
        self.ask(&Packet::CallFunc(function, args))
    }
}

#[track_caller]
fn handle(outcome: PeerAnswer) -> u64 {
    match outcome {
        PeerAnswer::Value(PackedValue::Handle(token)) => token,
        other => panic!("{other:?}"),
    }
}

fn text(text: &'static str) -> PackedValue<'static> {
    PackedValue::Str(text.as_bytes().into())
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its sessions end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hello(key: &[u8]) -> Vec<u8> {
    let length = key.len() as i32;
    [&Hello::MAGIC.to_le_bytes()[..], &length.to_le_bytes(), key].concat()
}

/// A packet of any code and body.
fn framed(code: i32, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len() as u64;
    [&length.to_le_bytes()[..], &code.to_le_bytes(), body].concat()
}

/// A packet with a wrong length.
fn claimed(length: u64, rest: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), rest].concat()
}

/// InitServer without arguments.
fn init() -> Vec<u8> {
    framed(2, &[&5_u64.to_le_bytes(), &b"0.8.0"[..], &[0; 4]].concat())
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The code of a string in the encoding of `release`.
fn string(release: u8) -> i32 {
    if release < 21 { 11 } else { 8 }
}

/// A GetGlobalFunc of one string, with `length` as its length.
fn lookup(release: u8, length: u64, text: &[u8]) -> Vec<u8> {
    let head = words(&[1, string(release)]);
    framed(9, &[&head[..], &length.to_le_bytes(), text].concat())
}

/// What a server does behind a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It closes the connection.
    Ends,
    /// It answers with an exception, and goes on.
    Rejects,
    /// It waits for what follows, and closes at its end.
    Waits,
    /// It answers with a value, or not at all, and goes on.
    Goes,
}

/// Facts, section 6: packets of a client that has begun a session.
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
        let body = match release < 21 {
            true => [
                &words(&[4, 6, 0, 0, 5])[..],
                &device,
                &nbytes,
                &alignment,
                &dtype,
            ]
            .concat(),
            false => [
                &words(&[4, 6])[..],
                &device,
                &words(&[int]),
                &nbytes,
                &words(&[int]),
                &alignment,
                &words(&[5]),
                &dtype,
            ]
            .concat(),
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
            // The server learns the encoding, so that its exceptions can be read.
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
        ("a key that is no UTF-8", hello(&[0xff; 7])),
        ("a timeout that is none", hello(b"client: -timeout=abc")),
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

#[test]
fn a_silent_client_holds_no_other_back() {
    let server = Server::start(&["--sessions", "2"]);
    let _silent = server.connect();
    server.is_alive(27);
    server.is_alive(8);
}

#[test]
fn each_session_has_a_line_in_the_log() {
    let mut server = Server::start(&[]);
    server.is_alive(27);
    let line = server.line();
    assert!(line.starts_with("session 1 from 127.0.0.1:"), "{line}");
    assert!(line.contains("`client:` as 0.27, 2 requests"), "{line}");
    assert!(line.contains("ended by the client"), "{line}");
    drop(server.connect());
    let mut line = String::new();
    server.log.read_line(&mut line).expect("a line");
    assert!(line.starts_with("session 2 from"), "{line}");
    assert!(line.ends_with(": begins\n"), "{line}");
    let line = server.line();
    assert!(line.starts_with("session 2 from"), "{line}");
}

#[test]
fn rpc_84_a_release_whose_clients_are_not_served_is_no_option() {
    for (release, starts) in [("0.2", false), ("0.6", false), ("0.7", true)] {
        // The port is no port, so that what starts ends there.
        let server = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args([
                "serve",
                "--release",
                release,
                "--port",
                "9",
                "--port-end",
                "8",
            ])
            .output()
            .expect("a process");
        let text = String::from_utf8_lossy(&server.stderr);
        assert_eq!(server.status.code(), Some(2), "{text}");
        let why = match starts {
            true => "there is no port",
            false => "clients up to 0.6 have another protocol, which is not served",
        };
        assert!(text.contains(why), "{release}: {text}");
    }
}

#[test]
fn rpc_83_a_call_that_takes_too_long_is_ended() {
    // The pause of a time evaluator is a call that no client can end.
    let mut server = Server::start(&["--timeout", "0.5"]);
    let mut peer = Peer::of(&server, 27);
    let evaluator = evaluator(&mut peer, 10, 60_000);
    match peer.ask(&Packet::CallFunc(evaluator, vec![PackedValue::Int(1)])) {
        PeerAnswer::Raised(text) => assert!(text.starts_with("RPCSessionTimeoutError: "), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.read(), PeerAnswer::Gone);
    let line = server.line();
    assert!(line.contains("its time was over during a call"), "{line}");
    server.is_alive(27);
}

/// A time evaluator that pauses `times` - 1 times or more, each `pause` ms: a call that no client can end. What it times is a function of
/// the server itself.
fn evaluator(peer: &mut Peer, times: i64, pause: i64) -> u64 {
    let mut args = vec![PackedValue::None, text("rpc.test.addone")];
    args.extend([1, 0, 1, times, 0, 1, pause, 1, 0].map(PackedValue::Int));
    args.push(text(""));
    handle(peer.call("runtime.RPCTimeEvaluator", args))
}

#[test]
fn a_call_whose_client_has_left_is_ended() {
    let mut server = Server::start(&["--sessions", "1"]);
    for with_shutdown in [false, true] {
        let mut peer = Peer::of(&server, 27);
        let evaluator = evaluator(&mut peer, 10, 60_000);
        let call = Packet::CallFunc(evaluator, vec![PackedValue::Int(1)]);
        peer.transport
            .write_packet(&call, &peer.own)
            .expect("written");
        // What is not read hides the end of the connection from a reader.
        if with_shutdown {
            peer.transport
                .write_packet(&Packet::Shutdown, &peer.own)
                .expect("written");
        }
        drop(peer);
        let line = server.line();
        assert!(line.contains("the client left during a call"), "{line}");
        server.is_alive(27);
        let line = server.line();
        assert!(line.contains("ended by the client"), "{line}");
    }
}

#[test]
fn a_client_that_asks_nothing_is_not_waited_for() {
    let mut server = Server::start(&["--sessions", "1", "--idle", "3"]);
    let mut peer = Peer::of(&server, 27);
    // It asks, for longer than that.
    let evaluator = evaluator(&mut peer, 3, 2500);
    let call = Packet::CallFunc(evaluator, vec![PackedValue::Int(1)]);
    assert!(matches!(peer.ask(&call), PeerAnswer::Value(_)));
    match peer.read() {
        PeerAnswer::Raised(text) => assert!(text.contains("client did nothing for 3 s"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.read(), PeerAnswer::Gone);
    let line = server.line();
    assert!(line.contains("its client did nothing for 3 s"), "{line}");
    server.is_alive(8);
}

/// Whether the system asks the other end of this machine's connection whether it is there, by the ports of both ends.
#[cfg(target_os = "linux")]
fn is_kept_alive(own: u16, other: u16) -> bool {
    let stated = std::fs::read_to_string("/proc/net/tcp").expect("the connections");
    stated.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, near, far, _, _, timer, ..] = fields[..] else {
            return false;
        };
        let is_of = |end: &str, port: u16| end.ends_with(&format!(":{port:04X}"));
        is_of(near, own) && is_of(far, other) && timer.starts_with("02:")
    })
}

#[test]
#[cfg(target_os = "linux")]
fn a_peer_that_vanished_is_found_out() {
    let until = Instant::now() + Duration::from_secs(20);
    let server = Server::start(&[]);
    let client = server.greet("client:");
    let port = client.local_addr().expect("an address").port();
    while !is_kept_alive(server.address.port(), port) {
        assert!(Instant::now() < until, "a client");
        std::thread::sleep(Duration::from_millis(20));
    }
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = proxy.local_addr().expect("an address");
    let mut server = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["serve", "--key", "k", "--proxy", &at.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .expect("a server");
    let (_stream, from) = proxy.accept().expect("a server");
    while !is_kept_alive(from.port(), at.port()) {
        assert!(Instant::now() < until, "a proxy");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill().expect("killed");
    server.wait().expect("an end");
}

#[test]
#[cfg(target_os = "linux")]
fn where_memory_runs_out_sessions_end_first() {
    let server = Server::start(&[]);
    let _client = server.greet("client:");
    // The thread that starts sessions is the first.
    let children = format!("/proc/{0}/task/{0}/children", server.child.id());
    let children = std::fs::read_to_string(children).expect("a list");
    let session = children.split_whitespace().next().expect("a session");
    let order = |process: &str| {
        let order = std::fs::read_to_string(format!("/proc/{process}/oom_score_adj"));
        order.expect("a number").trim().to_owned()
    };
    assert_eq!(order(session), "1000");
    assert_ne!(order(&server.child.id().to_string()), "1000");
}

#[test]
fn clients_that_are_sent_elsewhere_are_a_warning() {
    use tvmspec::rpc::tracker::{TrackerLimits, TrackerServer};
    // Without a packet: the address by which this machine would get there.
    let far = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.77:9")?;
        socket.local_addr()
    });
    let Some(own) = far.ok().map(|far| far.ip()).filter(|ip| !ip.is_loopback()) else {
        return skipped("this machine has no address but its own");
    };
    let tracker = TrackerServer::bind(SocketAddr::new(own, 0), TrackerLimits::default());
    let tracker = tracker.expect("a tracker");
    let handle = tracker.handle().expect("a handle");
    let place = handle.address().to_string();
    std::thread::spawn(move || tracker.run(|_| {}));
    let warning = format!(
        "the tracker sends clients to {own}, and this server listens at 127.0.0.1 alone: --host {own}"
    );
    let with = |more: &[&str]| {
        let arguments = [&["--tracker", &place, "--key", "k"], more].concat();
        let mut server = Server::start(&arguments);
        // The line of a session that was begun behind the warning.
        drop(server.connect());
        server.line()
    };
    assert!(with(&[]).contains(&warning), "{}", with(&[]));
    for right in [["--host", "0.0.0.0"], ["--custom-addr", "127.0.0.1"]] {
        let line = with(&right);
        assert!(line.starts_with("session 1 from"), "{line}");
    }
}

#[test]
fn a_signal_waits_for_the_sessions_and_a_second_one_ends_them() {
    let mut server = Server::start(&[]);
    let mut stream = server.greet("client:");
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let line = server.line();
    assert!(line.starts_with("waiting for 1 sessions"), "{line}");
    // The session is served to its end.
    stream.write_all(&init()).expect("written");
    let mut begun = [0; 16];
    stream.read_exact(&mut begun).expect("a session");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(server.child.wait().expect("an end").success());
}

#[test]
fn a_directory_that_was_removed_is_made_anew() {
    let server = Server::start(&[]);
    let mut peer = Peer::of(&server, 27);
    let path = match peer.call("tvm.rpc.server.workpath", vec![text("a.so")]) {
        PeerAnswer::Value(PackedValue::Str(path)) => path,
        other => panic!("{other:?}"),
    };
    let path = std::path::PathBuf::from(String::from_utf8(path.into_owned()).expect("UTF-8"));
    let session = path.parent().expect("that of the session");
    let all = session.parent().expect("that of the server").to_owned();
    assert!(all.join("lock").exists(), "{}", all.display());
    drop(peer);
    std::fs::remove_dir_all(&all).expect("removed");
    server.is_alive(27);
    server.is_alive(8);
}

#[test]
#[cfg(target_os = "linux")]
fn a_system_without_a_thread_costs_one_session() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let mut server = Server::start(&[]);
    let pid = Pid::from_child(&server.child);
    let size = || -> u64 {
        let stated = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
        let stated = stated.expect("a process");
        let line = stated.lines().find_map(|line| line.strip_prefix("VmSize:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number.expect("a size").parse::<u64>().expect("a number") << 10
    };
    // What it has begun to begin with is there.
    let mut before = 0;
    while before != size() {
        before = size();
        std::thread::sleep(Duration::from_millis(300));
    }
    let bound = |current| {
        let limit = Rlimit {
            current,
            maximum: getrlimit(Resource::As).maximum,
        };
        prlimit(Some(pid), Resource::As, limit).expect("a limit");
    };
    // Less than a stack has.
    bound(Some(before + (256 << 10)));
    let mut rest = Vec::new();
    let _ = server.connect().read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
    let line = server.line();
    assert!(line.starts_with("session 1 from 127.0.0.1:"), "{line}");
    assert!(line.contains(": not started: "), "{line}");
    bound(getrlimit(Resource::As).current);
    server.is_alive(27);
}

/// Code of a client: starts a process that outlives its call, and returns its number.
const FORKS: &str = "
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
typedef struct { int32_t type_index; uint32_t padding; int64_t value; } Any;
int __tvm_ffi_fork(void* self, const Any* args, int32_t count, Any* result) {
    pid_t pid = fork();
    if (pid == 0) { for (;;) pause(); }
    result->type_index = 1;
    result->padding = 0;
    result->value = pid;
    return 0;
}
int __tvm_ffi_escape(void* self, const Any* args, int32_t count, Any* result) {
    int ends[2];
    pid_t last = 0;
    if (pipe(ends)) return 0;
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        pid_t second = fork();
        if (second == 0) { setsid(); for (;;) pause(); }
        write(ends[1], &second, sizeof second);
        _exit(0);
    }
    read(ends[0], &last, sizeof last);
    result->type_index = 1;
    result->padding = 0;
    result->value = last;
    return 0;
}
int __tvm_ffi_hungry(void* self, const Any* args, int32_t count, Any* result) {
    size_t size = (size_t)1 << 30;
    char* memory = malloc(size);
    result->type_index = 1;
    result->padding = 0;
    result->value = memory != 0;
    if (memory) for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
    free(memory);
    return 0;
}
int __tvm_ffi_crash(void* self, const Any* args, int32_t count, Any* result) {
    _exit(77);
}
";

#[test]
fn what_a_session_started_ends_with_it_and_so_do_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, library) = (folder.path().join("a.c"), folder.path().join("a.so"));
    std::fs::write(&source, FORKS).expect("written");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        return skipped("`cc` compiles nothing here");
    }
    let content = std::fs::read(&library).expect("a library");
    let mut server = Server::start(&["--allow-load", "--process-memory", "536870912"]);
    for (start, last, log) in [
        ("fork", None, "closed by the client"),
        ("fork", Some("crash"), "exit status: 77"),
        // What leaves the group of the session ends with it, where the system lets a process be found.
        #[cfg(target_os = "linux")]
        ("escape", None, "closed by the client"),
        #[cfg(target_os = "linux")]
        ("escape", Some("crash"), "exit status: 77"),
    ] {
        let mut peer = Peer::of(&server, 27);
        let upload = vec![text("a.so"), PackedValue::Bytes(content.clone().into())];
        peer.call("tvm.rpc.server.upload", upload);
        let path = peer.call("tvm.rpc.server.workpath", vec![text("a.so")]);
        let PeerAnswer::Value(PackedValue::Str(path)) = path else {
            panic!("{path:?}")
        };
        let path = std::path::PathBuf::from(String::from_utf8(path.into_owned()).expect("UTF-8"));
        assert!(path.exists());
        let module = peer.call("tvm.rpc.server.load_module", vec![text("a.so")]);
        let module = PackedValue::Module(handle(module));
        let run = |peer: &mut Peer, name: &'static str| {
            let look = vec![module.clone(), text(name), PackedValue::Bool(0)];
            let function = handle(peer.call("tvm.rpc.server.ModuleGetFunction", look));
            peer.ask(&Packet::CallFunc(function, Vec::new()))
        };
        // RPC-86: memory that the code of a client takes is bounded as well.
        #[cfg(target_os = "linux")]
        assert_eq!(
            run(&mut peer, "hungry"),
            PeerAnswer::Value(PackedValue::Int(0))
        );
        let PeerAnswer::Value(PackedValue::Int(forked)) = run(&mut peer, start) else {
            panic!("no process")
        };
        let forked = rustix::process::Pid::from_raw(forked as i32).expect("a number");
        rustix::process::test_kill_process(forked).expect("it runs");
        if let Some(name) = last {
            assert_eq!(run(&mut peer, name), PeerAnswer::Gone);
        }
        drop(peer);
        let line = server.line();
        assert!(line.contains(log), "{line}");
        // The line of a session comes before its end, and its end is what frees its place.
        let until = Instant::now() + Duration::from_secs(20);
        while rustix::process::test_kill_process(forked).is_ok() && !is_zombie(forked) {
            assert!(Instant::now() < until, "{forked:?} runs on");
            std::thread::yield_now();
        }
        while path.parent().is_some_and(|folder| folder.exists()) {
            assert!(Instant::now() < until, "{} is there", path.display());
            std::thread::yield_now();
        }
    }
    server.is_alive(27);
}

/// A process that was killed and that its new parent has not waited for.
fn is_zombie(process: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}
