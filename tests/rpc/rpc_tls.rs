//! Sessions in a tunnel (RPC-110, RPC-111), and why there is none.
#![cfg(all(unix, feature = "cli", feature = "tls"))]

mod acceptance;
mod files;
mod tunnels;

use crate::support::serving::Serving;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tvmspec::device::Device;
use tvmspec::function::{Error, ErrorKind};
use tvmspec::object::Tensor;
use tvmspec::rpc::client::{RemoteHop, RemoteTiming, Session, SessionOptions};
use tvmspec::rpc::tls::{TlsClientOptions, TlsIdentity, TlsServerOptions, TlsSource};
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
    TlsIdentity::new(file(certificate), file("end.key"))
}

/// A client that trusts the authority of the tests.
fn client() -> TlsClientOptions {
    TlsClientOptions::new(file("authority.pem"))
}

fn server() -> TlsServerOptions {
    TlsServerOptions::new(identity("server.pem"))
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
    let mut options = SessionOptions::default();
    options.connect_timeout = Duration::from_secs(30);
    options.timeout = Some(Duration::from_secs(30));
    options.hops = hops;
    options.tls = tls;
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
        let mut options = client();
        options.identity = with_identity.then(|| identity("client.pem"));
        options.token = token("a secret").filter(|_| with_token);
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
    let mut timing = RemoteTiming::default();
    timing.evaluator.number = 1;
    timing.evaluator.repeat = 10;
    timing.evaluator.cooldown = Duration::from_secs(60);
    let one = Any::from(1_i64);
    let error = session.time(None, "rpc.test.addone", Device::CPU, &timing, &[one.view()]);
    let text = error.expect_err("its time is over").to_string();
    assert!(text.contains("session has expired"), "{text}");
    let line = server.line();
    assert!(line.contains("its time was over during a call"), "{line}");
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
