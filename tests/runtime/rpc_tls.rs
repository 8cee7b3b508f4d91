//! Sessions in a tunnel (RPC-110, RPC-111), and why there is none.
#![cfg(all(unix, feature = "cli", feature = "tls"))]

#[allow(dead_code, reason = "other tests read more of it")]
#[path = "../support/serving.rs"]
mod serving;
#[path = "../support/skip.rs"]
mod skip;

use serving::Serving;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tvmspec::device::Device;
use tvmspec::device::timer::Evaluator;
use tvmspec::function::{Error, ErrorKind};
use tvmspec::object::Tensor;
use tvmspec::rpc::client::{RemoteAddress, RemoteHop, RemoteTiming, Session, SessionOptions};
use tvmspec::rpc::tls::{self, TlsClientOptions, TlsIdentity, TlsServerOptions, TlsSource};
use tvmspec::rpc::transport::{CLOSED, RpcStream, TIMEOUT};
use tvmspec::value::{Any, dtype_from_text};

/// The path of a file that `golden/rpc/tls/make.sh` made.
fn path(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/rpc/tls/");
    format!("{folder}{name}")
}

fn file(name: &str) -> TlsSource {
    TlsSource::File(path(name).into())
}

fn golden(name: &str) -> String {
    format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn token(text: &str) -> Option<TlsSource> {
    Some(TlsSource::Content(text.as_bytes().to_vec()))
}

/// The certificate of this name; all are of one key.
fn identity(certificate: &str) -> TlsIdentity {
    TlsIdentity {
        certificates: file(certificate),
        key: file("end.key"),
    }
}

/// A client that trusts the authority of the tests.
fn client() -> TlsClientOptions {
    TlsClientOptions {
        authorities: file("authority.pem"),
        identity: None,
        token: None,
    }
}

fn server() -> TlsServerOptions {
    TlsServerOptions {
        identity: identity("server.pem"),
        client_authorities: None,
        token: None,
    }
}

/// A server with this certificate.
fn serving(certificate: &str, arguments: &[&str]) -> Serving {
    let certificate = format!("--tls-cert={}", path(certificate));
    let key = format!("--tls-key={}", path("end.key"));
    Serving::server(&[&[&*certificate, &*key], arguments].concat())
}

fn connect(server: &Serving, tls: Option<TlsClientOptions>) -> Result<Session, Error> {
    connect_by(server, tls, Vec::new())
}

fn connect_by(
    server: &Serving,
    tls: Option<TlsClientOptions>,
    hops: Vec<RemoteHop>,
) -> Result<Session, Error> {
    let options = SessionOptions {
        connect_timeout: Duration::from_secs(30),
        timeout: Some(Duration::from_secs(30)),
        hops,
        tls,
        ..SessionOptions::default()
    };
    Session::connect("localhost", server.port(), "", &options)
}

/// Numbers, a library, a function of it, a megabyte there and back, an exception.
fn use_all_of(session: &Session) -> Result<(), Error> {
    let sum = session.call("rpc.test.addone", [41_i64.into()])?;
    assert_eq!(i64::try_from(&sum)?, 42);
    let library = std::fs::read(golden("module/host-0.27.so")).expect("a library");
    session.upload("host.so", &library)?;
    assert!(session.download("host.so")? == library);
    let add = session.load_module("host.so")?.require("main")?;
    let input: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let output: Vec<f32> = (1..13).map(|at| at as f32).collect();
    let here = Tensor::from_slice(&input, &[12])?;
    let there = session.send(&here, Device::CPU)?;
    let float = dtype_from_text("float32").expect("a type");
    let result = session.empty(&[12], float, Device::CPU)?;
    add.call_with([there.into(), result.clone().into()])?;
    assert_eq!(session.fetch(&result)?.to_vec::<f32>()?, output);
    let bytes: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
    let here = Tensor::from_slice(&bytes, &[1 << 20])?;
    let there = session.send(&here, Device::CPU)?;
    assert!(session.fetch(&there)?.to_vec::<u8>()? == bytes);
    let failed = session.call("rpc.test.except", ["why".into()]);
    let failed = failed.expect_err("it raises");
    assert_eq!((failed.kind(), failed.message()), (ErrorKind::Value, "why"));
    Ok(())
}

#[test]
fn rpc_110_a_session_is_the_same_in_a_tunnel() {
    let secret = std::env::temp_dir().join(format!("tvmspec-tls-{}", std::process::id()));
    std::fs::write(&secret, "a secret\n").expect("written");
    let token_file = format!("--token-file={}", secret.display());
    let authority = format!("--tls-client-ca={}", path("authority.pem"));
    for (own, with_identity, with_token) in [
        (vec![], false, false),
        (vec![], true, true),
        (vec![&*authority], true, false),
        (vec![&*token_file], false, true),
        (vec![&*authority, &*token_file], true, true),
    ] {
        let mut server = serving("server.pem", &[&own[..], &["--allow-load"]].concat());
        let options = TlsClientOptions {
            identity: with_identity.then(|| identity("client.pem")),
            token: token("a secret").filter(|_| with_token),
            ..client()
        };
        let session = connect(&server, Some(options)).expect("a session");
        use_all_of(&session).expect("every step");
        drop(session);
        let line = server.line();
        assert!(line.contains("ended by the client"), "{own:?}: {line}");
    }
    std::fs::remove_file(secret).expect("removed");
}

#[test]
fn rpc_93_a_session_goes_on_from_a_tunnel_in_plain() {
    let last = Serving::server(&["--allow-load"]);
    let first = serving("server.pem", &["--allow-connect", "*"]);
    let hop = RemoteHop {
        host: "127.0.0.1".to_owned(),
        port: last.port(),
        key: String::new(),
    };
    let session = connect_by(&first, Some(client()), vec![hop]).expect("a session");
    use_all_of(&session).expect("every step");
}

#[test]
fn rpc_83_the_end_of_the_time_arrives_through_a_tunnel() {
    // A call that no client can end: another thread of the server writes that the time is over.
    let mut server = serving("server.pem", &["--timeout", "3"]);
    let session = connect(&server, Some(client())).expect("a session");
    let timing = RemoteTiming {
        evaluator: Evaluator {
            number: 1,
            repeat: 10,
            cooldown: Duration::from_secs(60),
            ..Evaluator::default()
        },
        ..RemoteTiming::default()
    };
    let one = Any::from(1_i64);
    let error = session.time(None, "rpc.test.addone", Device::CPU, &timing, &[one.view()]);
    let text = error.expect_err("its time is over").to_string();
    assert!(text.contains("session has expired"), "{text}");
    let line = server.line();
    assert!(line.contains("its time was over during a call"), "{line}");
}

/// A client that is rejected, what it reports, and what the server's line has.
struct Rejected<'a> {
    server: (&'a str, &'a [&'a str]),
    client: TlsClientOptions,
    reports: &'a str,
    logs: &'a str,
}

#[test]
fn rpc_110_an_end_that_is_not_accepted_is_named_at_both() {
    let secret = std::env::temp_dir().join(format!("tvmspec-other-{}", std::process::id()));
    std::fs::write(&secret, "a secret").expect("written");
    let token_file = format!("--token-file={}", secret.display());
    let authority = format!("--tls-client-ca={}", path("authority.pem"));
    let (with_token, with_authority): (&[&str], &[&str]) = (&[&token_file], &[&authority]);
    let of = |certificate: &str| TlsClientOptions {
        identity: Some(identity(certificate)),
        ..client()
    };
    for Rejected {
        server: (certificate, arguments),
        client: options,
        reports,
        logs,
    } in [
        Rejected {
            server: ("server.pem", &[]),
            client: TlsClientOptions {
                authorities: file("other-authority.pem"),
                ..client()
            },
            reports: "/other-authority.pem` has signed it",
            logs: "server.pem`: it knows no authority",
        },
        Rejected {
            server: ("expired.pem", &[]),
            client: client(),
            reports: "the certificate of the server is not accepted: it has expired",
            logs: "expired.pem`: it has expired",
        },
        Rejected {
            server: ("elsewhere.pem", &[]),
            client: client(),
            reports: "it is of board.example, and not of `localhost`",
            logs: "elsewhere.pem`: it is of another name",
        },
        Rejected {
            server: ("server.pem", with_authority),
            client: client(),
            reports: "the server wants a certificate of its clients: tls-cert and tls-key",
            logs: "the client has no certificate",
        },
        Rejected {
            server: ("server.pem", with_authority),
            client: of("stranger.pem"),
            reports: "stranger.pem`: it knows no authority that has signed it",
            logs: "no authority of `",
        },
        Rejected {
            server: ("server.pem", with_authority),
            client: of("old-client.pem"),
            reports: "old-client.pem`: it has expired",
            logs: "the certificate of the client is not accepted: it has expired",
        },
        // A certificate of a server is for servers alone.
        Rejected {
            server: ("server.pem", with_authority),
            client: of("server.pem"),
            reports: "does not accept the certificate",
            logs: "the certificate of the client is not accepted",
        },
        Rejected {
            server: ("server.pem", with_token),
            client: client(),
            reports: "the server wants a token of its clients: token-file",
            logs: "the client has no token",
        },
        Rejected {
            server: ("server.pem", with_token),
            client: TlsClientOptions {
                token: token("A secret"),
                ..client()
            },
            reports: "the server has another token",
            logs: "RPC-111: the client shows another token",
        },
    ] {
        let mut server = serving(certificate, arguments);
        let error = connect(&server, Some(options)).expect_err("rejected");
        let text = error.to_string();
        assert!(text.contains(reports), "{text}");
        assert!(text.contains("localhost:"), "{text}");
        assert_eq!(error.kind(), CLOSED);
        let line = server.line();
        assert!(
            line.contains(logs) && line.contains("TLS") || line.contains("RPC-111"),
            "{line}"
        );
    }
    std::fs::remove_file(secret).expect("removed");
}

#[test]
fn rpc_110_tls_and_plain_are_distinguished() {
    // A client in plain at a server in a tunnel.
    let mut server = serving("server.pem", &[]);
    let error = connect(&server, None).expect_err("no tunnel").to_string();
    assert!(error.contains("the server speaks TLS"), "{error}");
    let line = server.line();
    assert!(
        line.contains("RPC-110") && line.contains("the client speaks no TLS"),
        "{line}"
    );
    // Any other bytes.
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .expect("written");
    stream.read_to_end(&mut Vec::new()).expect("an end");
    let line = server.line();
    assert!(line.contains("the client speaks no TLS"), "{line}");
    // A client that goes.
    let stream = TcpStream::connect(server.address).expect("a connection");
    drop(stream);
    let line = server.line();
    assert!(line.contains("the client ends the connection"), "{line}");
    use_addone(&connect(&server, Some(client())).expect("the next client"));

    // A client in a tunnel at a server in plain.
    let mut plain = Serving::server(&[]);
    let error = connect(&plain, Some(client())).expect_err("no tunnel");
    let text = error.to_string();
    assert!(text.contains("begins with rpc:// then"), "{text}");
    let line = plain.line();
    assert!(
        line.contains("RPC-01") && line.contains("the client speaks TLS"),
        "{line}"
    );
    use_addone(&connect(&plain, None).expect("the next client"));
}

fn use_addone(session: &Session) {
    let sum = session.call("rpc.test.addone", [1_i64.into()]).expect("2");
    assert_eq!(i64::try_from(&sum), Ok(2));
}

/// Both ends of a connection.
fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let one = TcpStream::connect(address).expect("a connection");
    (one, listener.accept().expect("a client").0)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

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
    assert_eq!(error.expect("late").kind(), TIMEOUT);
    drop(one);
    let (one, other) = sockets();
    let error = tls::connect(one, ("127.0.0.1", 1), &client(), Instant::now() + brief).err();
    assert_eq!(error.expect("late").kind(), TIMEOUT);
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

#[test]
fn a_file_that_is_wrong_is_named() {
    let pem = |certificates: &str, key: &str| TlsServerOptions {
        identity: TlsIdentity {
            certificates: file(certificates),
            key: file(key),
        },
        ..server()
    };
    let tokens = |content: &str| TlsServerOptions {
        token: token(content),
        ..server()
    };
    assert_eq!(tls::check(&server()).err(), None);
    for (options, why) in [
        (pem("absent.pem", "end.key"), "absent.pem`: No such file"),
        (pem("server.pem", "absent.key"), "absent.key`: No such file"),
        (
            pem("make.sh", "end.key"),
            "make.sh`: it has no certificate in PEM",
        ),
        (
            pem("server.pem", "server.pem"),
            "server.pem`: it has no private key in PEM",
        ),
        (
            pem("server.pem", "other.key"),
            "other.key`: it is not the key of `",
        ),
        (
            pem("self.pem", "end.key"),
            "self.pem`: no client accepts it: it is that of an authority (CA:TRUE)",
        ),
        (
            pem("client.pem", "end.key"),
            "client.pem`: no client accepts it: it is for another use",
        ),
        (
            pem("nameless.pem", "end.key"),
            "nameless.pem`: no client accepts it: it has no name",
        ),
        (
            TlsServerOptions {
                client_authorities: Some(file("end.key")),
                ..server()
            },
            "end.key`: it has no certificate in PEM",
        ),
        (tokens(" \n"), "has no token"),
    ] {
        let error = tls::check(&options).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
    // Before a port is listened at.
    let started = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["serve", "--port=0", "--tls-key", &path("other.key")])
        .args(["--tls-cert", &path("server.pem")])
        .output()
        .expect("a process");
    assert_eq!(
        (started.status.code(), &*started.stdout),
        (Some(2), &b""[..])
    );
    let printed = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(
        printed.contains("other.key`: it is not the key of"),
        "{printed}"
    );
    // And those of a client.
    let (one, _other) = sockets();
    let options = TlsClientOptions {
        authorities: file("end.key"),
        ..client()
    };
    let error = tls::connect(one, ("127.0.0.1", 1), &options, soon()).err();
    let text = error.expect("no authority").to_string();
    assert!(
        text.contains("end.key`: it has no certificate in PEM"),
        "{text}"
    );
    let (one, _other) = sockets();
    let error = tls::connect(one, ("no name", 1), &client(), soon()).err();
    assert_eq!(error.expect("no name").kind(), ErrorKind::Value);
}

/// What clients judge alone: when a certificate is valid, and who signed it. The clock of a board may be the one that is wrong.
#[test]
fn a_server_starts_with_what_a_client_may_accept() {
    for certificate in [
        "server.pem",
        "chain.pem",
        "elsewhere.pem",
        "expired.pem",
        "future.pem",
    ] {
        let options = TlsServerOptions {
            identity: identity(certificate),
            ..server()
        };
        assert_eq!(tls::check(&options).err(), None, "{certificate}");
    }
}

/// Certificates that a server has exchanged behind its start, and those of another program: the words of a client.
#[test]
fn a_client_says_what_is_wrong_with_a_certificate() {
    for (certificate, authority, why) in [
        (
            "self.pem",
            "self.pem",
            "it is that of an authority (CA:TRUE)",
        ),
        ("client.pem", "authority.pem", "it is for another use"),
        (
            "nameless.pem",
            "authority.pem",
            "it is of no name, and not of `localhost`",
        ),
    ] {
        let (one, other) = sockets();
        let options = TlsServerOptions {
            identity: identity(certificate),
            ..server()
        };
        let serving = std::thread::spawn(move || tls::accept(other, &options, soon()).err());
        let options = TlsClientOptions {
            authorities: file(authority),
            ..client()
        };
        let error = tls::connect(one, ("localhost", 1), &options, soon()).err();
        let text = error.expect(why).to_string();
        let begin = "the certificate of the server is not accepted: ";
        assert!(text.contains(&format!("{begin}{why}")), "{text}");
        assert!(!text.contains("Other"), "{text}");
        let there = serving.join().expect("no panic").expect(why).to_string();
        assert!(there.contains(certificate), "{there}");
    }
}

/// The lines of `spec/rpc.md` make what a server and a client take.
#[test]
fn the_lines_of_openssl_make_a_tunnel() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skip::skipped("`openssl` is not installed");
    }
    let chapter = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/spec/rpc.md"));
    let chapter = chapter.expect("a chapter");
    let (_, lines) = chapter.split_once("```sh\nopenssl req").expect("lines");
    let (lines, _) = lines.split_once("```").expect("their end");
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("sh")
        .args(["-ec", &format!("openssl req{lines}")])
        .current_dir(folder.path())
        .output()
        .expect("a shell");
    assert!(made.status.success(), "{made:?}");
    let made = |name: &str| TlsSource::File(folder.path().join(name));
    let options = TlsServerOptions {
        identity: TlsIdentity {
            certificates: made("board.pem"),
            key: made("board.key"),
        },
        ..server()
    };
    assert_eq!(tls::check(&options).err(), None);
    for name in ["board", "192.168.7.2"] {
        let (one, other) = sockets();
        let options = options.clone();
        let serving = std::thread::spawn(move || tls::accept(other, &options, soon()).err());
        let options = TlsClientOptions {
            authorities: made("authority.pem"),
            ..client()
        };
        let error = tls::connect(one, (name, 1), &options, soon()).err();
        assert_eq!((error, serving.join().expect("no panic")), (None, None));
    }
}

#[test]
fn an_address_in_a_tunnel_names_its_files() {
    for text in [
        "rpc+tls://a:1/k?tls-ca=x&tls-cert=y&tls-key=z&token-file=t&timeout=3#cpu:0",
        "rpc-tracker+tls://a:1/k?tls-ca=x&tls-cert=y&tls-key=z&token-file=t&wait=3#cpu:0",
    ] {
        let (scheme, has_tracker) = match text.starts_with(RemoteAddress::TLS_SCHEME) {
            true => (RemoteAddress::TLS_SCHEME, false),
            false => (RemoteAddress::TRACKER_TLS_SCHEME, true),
        };
        assert!(text.starts_with(scheme) && RemoteAddress::is_remote(text));
        let address = RemoteAddress::parse(text).expect("an address");
        let source = |name: &str| TlsSource::File(name.into());
        let expected = TlsClientOptions {
            authorities: source("x"),
            identity: Some(TlsIdentity {
                certificates: source("y"),
                key: source("z"),
            }),
            token: Some(source("t")),
        };
        assert_eq!(address.options.tls, Some(expected));
        assert_eq!(address.tracker.is_some(), has_tracker);
    }
    let plain = RemoteAddress::parse("rpc://a:1").expect("an address");
    assert_eq!(plain.options.tls, None);
    for (text, why) in [
        ("rpc://a:1?tls-ca=x", "no option is called `tls-ca`"),
        ("rpc-tracker://a:1/k?token-file=x", "no option is called"),
        ("rpc+tls://a:1", "`tls-ca=FILE` or TVMSPEC_TLS_CA"),
        (
            "rpc+tls://a:1?tls-ca=x&tls-key=y",
            "`tls-cert` and `tls-key`",
        ),
        (
            "rpc+tls://a?tls-ca=x",
            "rpc+tls://HOST:PORT/KEY?tls-ca=FILE",
        ),
    ] {
        let error = RemoteAddress::parse(text).expect_err(text).to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// The command line with these arguments, in an environment that names the files of a client.
fn tvmspec(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(arguments)
        .env("TVMSPEC_TLS_CA", path("authority.pem"))
        .env("TVMSPEC_TLS_CERT", path("client.pem"))
        .env("TVMSPEC_TLS_KEY", path("end.key"))
        .output()
        .expect("a process");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {printed}");
    output
}

#[test]
fn commands_run_on_a_server_in_a_tunnel() {
    let authority = format!("--tls-client-ca={}", path("authority.pem"));
    let server = serving("server.pem", &["--allow-load", "--key=board", &authority]);
    let device = format!("rpc+tls://localhost:{}/board#cpu:0", server.port());
    for model in ["eras/0.16/graph", "eras/0.27/relax-vm"] {
        let (library, inputs) = (format!("{model}.so"), format!("{model}.io.npz"));
        let [library, inputs] = [library, inputs].map(|name| golden(&name));
        let run =
            |device: &str| tvmspec(&["run", "--device", device, "--inputs", &inputs, &library]);
        assert!(run(&device).stdout == run("cpu").stdout, "{model}");
    }
    let place = device.trim_end_matches("#cpu:0");
    let devices = tvmspec(&["devices", "--device", place]);
    let text = String::from_utf8_lossy(&devices.stdout).into_owned();
    assert!(text.contains("cpu:0"), "{text}");
    let judged = tvmspec(&[
        "check",
        "--case",
        "device/copy*",
        "--impl",
        &format!("device:{device}"),
    ]);
    let text = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(text.contains("0 fail") || text.contains("pass"), "{text}");
}
