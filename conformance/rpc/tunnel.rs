//! `rpc.tunnel`: a client and a server put a connection into TLS, and bytes go through it.
//!
//! Either end is our own, or a peer that a script plays: in plain, or through TLS that knows nothing of RPC-110. Certificates and keys are
//! files of `golden/rpc/tls`. Why an end has no tunnel is a text of its own; a case looks for the parts that its user needs.

use super::functions;
use super::peer::{self, PeerStream, shown, up_to, word};
use super::session::{found, patience, texts};
use crate::conformance::case::entry::hex_bytes;
use crate::conformance::case::golden;
use crate::conformance::op::{Answer, OpError};
use crate::function::Error;
use crate::release::Release;
use crate::rpc::client::RemoteAddress;
use crate::rpc::server::{ServerOptions, SessionReport, serve};
use crate::rpc::tls::{self, TlsClientOptions, TlsIdentity, TlsServerOptions, TlsSource};
use crate::rpc::transport::RpcStream;
use crate::rule::Findings;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig};
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What files of `golden/rpc/tls` a folder gets.
const FILES: [&str; 17] = [
    "authority.pem",
    "broken.pem",
    "chain.pem",
    "client.pem",
    "elsewhere.pem",
    "end.key",
    "expired.pem",
    "future.pem",
    "locked.key",
    "nameless.pem",
    "namesake.pem",
    "old-client.pem",
    "other-authority.pem",
    "other.key",
    "self.pem",
    "server.pem",
    "stranger.pem",
];

/// How many bytes of a pattern go through a tunnel at most.
const LARGEST: usize = 8 << 20;

/// Both of our ends, or one of them and a peer.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let place = CertificateFolder::make(args)?;
    let texts = texts(args)?;
    let seconds = args.get("seconds").map_or(Some(10.0), Value::as_f64);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = limit.ok_or_else(|| wrong("seconds"))?;
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| wrong("value"))?;
    let server = TunnelSide::server(args.get("server").unwrap_or(&json!({})), &place)?;
    let client = TunnelSide::client(args.get("client").unwrap_or(&json!({})), &place)?;
    // What keeps an end from beginning is known before there is a connection.
    let failed = match (&server, &client) {
        (TunnelSide::Broken(error), _) => Some((Value::Null, raised(error, &texts))),
        (_, TunnelSide::Broken(error)) => Some((raised(error, &texts), Value::Null)),
        _ => None,
    };
    if let Some((client, server)) = failed {
        let value = json!({"client": client, "server": server, "value": []});
        return Ok(Answer::new(value, Findings::default()));
    }
    let (near, far) = sockets().map_err(no_socket)?;
    let deadline = Instant::now() + limit;
    let begins = thread::spawn(move || server.begin(far, deadline));
    let client = client.begin(near, deadline)?;
    let server = begins
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let mut through = Through {
        client,
        server,
        writers: Vec::new(),
        served: None,
        place,
    };
    let mut shown = Vec::new();
    for step in steps {
        shown.push(through.step(step)?);
    }
    let (client, server) = through.finish(&texts)?;
    let value = json!({"client": client, "server": server, "value": shown});
    Ok(Answer::new(value, Findings::default()))
}

fn wrong(what: &str) -> OpError {
    OpError::Unsupported(format!("`{what}` has another form"))
}

fn no_socket(error: io::Error) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// An error as it shows: the rule, or the kind, and which of `texts` are in its own.
fn raised(error: &Error, texts: &[&str]) -> Value {
    let has = found(&error.to_string(), texts);
    match error.violation() {
        Some(broken) => {
            json!({"breaks": broken.rule().id(), "kind": broken.kind().name(), "has": has})
        }
        None => json!({"raises": error.kind().as_str(), "has": has}),
    }
}

/// Both ends of a connection.
fn sockets() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

/// Certificates and keys as files, whose names errors have.
struct CertificateFolder {
    folder: tempfile::TempDir,
}

impl CertificateFolder {
    /// With the files that are named in `args`.
    fn make(args: &Value) -> Result<CertificateFolder, OpError> {
        let folder = tempfile::tempdir().map_err(no_socket)?;
        let named = args.to_string();
        for name in FILES {
            let is_default = ["authority.pem", "end.key", "server.pem"].contains(&name);
            let content = golden(&format!("rpc/tls/{name}"));
            if let Some(content) = content.filter(|_| is_default || named.contains(name)) {
                std::fs::write(folder.path().join(name), content).map_err(no_socket)?;
            }
        }
        if let Some(token) = args.get("token_file").and_then(Value::as_str) {
            std::fs::write(folder.path().join("token"), token).map_err(no_socket)?;
        }
        Ok(CertificateFolder { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The file of this name: a plain one, so that a case reaches no other.
    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name.replace(['/', '\\'], "_"))
    }

    fn source(&self, name: &str) -> TlsSource {
        TlsSource::File(self.file(name))
    }

    /// The content of a file, for ends by a script.
    fn content(&self, name: &str) -> Result<Vec<u8>, OpError> {
        std::fs::read(self.file(name)).map_err(no_socket)
    }
}

/// Who an end is, before it is connected.
enum TunnelSide {
    /// Our own client, and the name that it connects to.
    Client(TlsClientOptions, String),
    /// Our own server.
    Server(TlsServerOptions),
    /// A peer, through TLS or not.
    Peer(Option<Box<Connection>>, Vec<Value>),
    /// Our own, which cannot begin.
    Broken(Error),
}

/// What became of an end.
enum TunnelEnd {
    /// A tunnel, the socket below, and whether the deadline of the handshake still holds for it.
    Open(Option<Box<dyn RpcStream>>, TcpStream, bool),
    /// No tunnel.
    Failed(Error),
    /// A script that is played.
    Peer(JoinHandle<Result<Vec<Value>, OpError>>),
}

impl TunnelSide {
    fn server(form: &Value, place: &CertificateFolder) -> Result<TunnelSide, OpError> {
        let text = |name: &str| form.get(name).and_then(Value::as_str);
        if let Some(steps) = form.get("plays").and_then(Value::as_array) {
            let connection = match form.get("alpn") {
                None => None,
                Some(alpn) => Some(Box::new(scripted_server(form, alpn, place)?)),
            };
            return Ok(TunnelSide::Peer(connection, steps.clone()));
        }
        let options = TlsServerOptions {
            identity: TlsIdentity {
                certificates: place.source(text("certificate").unwrap_or("server.pem")),
                key: place.source(text("key").unwrap_or("end.key")),
            },
            client_authorities: text("client_authority").map(|name| place.source(name)),
            token: text("token").map(|token| TlsSource::Content(token.into())),
        };
        Ok(match tls::check(&options) {
            Ok(()) => TunnelSide::Server(options),
            Err(error) => TunnelSide::Broken(error),
        })
    }

    fn client(form: &Value, place: &CertificateFolder) -> Result<TunnelSide, OpError> {
        let text = |name: &str| form.get(name).and_then(Value::as_str);
        if let Some(steps) = form.get("plays").and_then(Value::as_array) {
            let connection = match form.get("alpn") {
                None => None,
                Some(alpn) => Some(Box::new(scripted_client(form, alpn, place)?)),
            };
            return Ok(TunnelSide::Peer(connection, steps.clone()));
        }
        if let Some(address) = text("address") {
            let folder = place.path().display().to_string();
            return Ok(
                match RemoteAddress::parse(&address.replace("DIR", &folder)) {
                    Ok(RemoteAddress { host, options, .. }) => match options.tls {
                        Some(tls) => TunnelSide::Client(tls, host),
                        None => return Err(wrong("address")),
                    },
                    Err(error) => TunnelSide::Broken(error),
                },
            );
        }
        let key = text("key").unwrap_or("end.key");
        let options = TlsClientOptions {
            authorities: place.source(text("authority").unwrap_or("authority.pem")),
            identity: text("certificate").map(|name| TlsIdentity {
                certificates: place.source(name),
                key: place.source(key),
            }),
            token: text("token").map(|token| TlsSource::Content(token.into())),
        };
        let name = text("name").unwrap_or("localhost");
        Ok(TunnelSide::Client(options, name.to_owned()))
    }

    /// The handshake of our own; a script begins to be played.
    fn begin(self, socket: TcpStream, deadline: Instant) -> Result<TunnelEnd, OpError> {
        let below = socket.try_clone().map_err(no_socket)?;
        let done = match self {
            TunnelSide::Client(options, name) => {
                let port = socket.peer_addr().map_err(no_socket)?.port();
                tls::connect(socket, (&name, port), &options, deadline)
            }
            TunnelSide::Server(options) => tls::accept(socket, &options, deadline),
            TunnelSide::Broken(error) => Err(error),
            TunnelSide::Peer(connection, steps) => {
                socket
                    .set_read_timeout(Some(patience()))
                    .map_err(no_socket)?;
                drop(below);
                return Ok(TunnelEnd::Peer(thread::spawn(move || {
                    let mut stream: Box<dyn PeerStream> = match connection.map(|at| *at) {
                        None => Box::new(socket),
                        Some(Connection::Client(at)) => Box::new(StreamOwned::new(at, socket)),
                        Some(Connection::Server(at)) => Box::new(StreamOwned::new(at, socket)),
                    };
                    peer::play(&steps, &mut *stream, Release::LAST)
                })));
            }
        };
        Ok(match done {
            Ok(stream) => {
                let is_limited = !matches!(below.read_timeout(), Ok(None));
                stream.set_limit(Some(patience())).map_err(no_socket)?;
                TunnelEnd::Open(Some(stream), below, is_limited)
            }
            Err(error) => TunnelEnd::Failed(error),
        })
    }
}

/// Certificates and the key of the first.
type Credentials = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn credentials(
    certificate: &str,
    key: &str,
    place: &CertificateFolder,
) -> Result<Credentials, OpError> {
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&place.content(certificate)?).collect();
    let key = PrivateKeyDer::from_pem_slice(&place.content(key)?);
    match (certificates, key) {
        (Ok(certificates), Ok(key)) => Ok((certificates, key)),
        _ => Err(wrong("certificate")),
    }
}

fn protocols(alpn: &Value) -> Vec<Vec<u8>> {
    let list = alpn.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(Into::into).collect()
}

fn unusable(error: &dyn std::fmt::Display) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// A client of TLS with these protocols, which trusts the authority of the cases.
fn scripted_client(
    form: &Value,
    alpn: &Value,
    place: &CertificateFolder,
) -> Result<Connection, OpError> {
    let mut roots = RootCertStore::empty();
    for certificate in credentials("authority.pem", "end.key", place)?.0 {
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots);
    let mut config = match form.get("certificate").and_then(Value::as_str) {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let (certificates, key) = credentials(name, "end.key", place)?;
            let config = builder.with_client_auth_cert(certificates, key);
            config.map_err(|error| unusable(&error))?
        }
    };
    config.alpn_protocols = protocols(alpn);
    let name = ServerName::try_from("localhost").map_err(|error| unusable(&error))?;
    let connection = ClientConnection::new(Arc::new(config), name);
    Ok(connection.map_err(|error| unusable(&error))?.into())
}

/// A server of TLS with these protocols.
fn scripted_server(
    form: &Value,
    alpn: &Value,
    place: &CertificateFolder,
) -> Result<Connection, OpError> {
    let name = form.get("certificate").and_then(Value::as_str);
    let (certificates, key) = credentials(name.unwrap_or("server.pem"), "end.key", place)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| unusable(&error))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| unusable(&error))?;
    config.alpn_protocols = protocols(alpn);
    let connection = ServerConnection::new(Arc::new(config));
    Ok(connection.map_err(|error| unusable(&error))?.into())
}

macro_rules! peer_stream {
    ($connection:ty) => {
        impl PeerStream for StreamOwned<$connection, TcpStream> {
            fn signal(&mut self, name: &str) -> bool {
                match name {
                    "keys" => self.conn.refresh_traffic_keys().is_ok() && self.flush().is_ok(),
                    "end" => {
                        self.conn.send_close_notify();
                        // A peer that is gone shows when it is read from.
                        let _ = self.flush();
                        true
                    }
                    _ => false,
                }
            }
        }
    };
}

peer_stream!(ClientConnection);
peer_stream!(ServerConnection);

/// Bytes through a tunnel, step by step.
struct Through {
    client: TunnelEnd,
    server: TunnelEnd,
    /// What writes while both ends do other things.
    writers: Vec<JoinHandle<()>>,
    /// The session of a server that serves.
    served: Option<JoinHandle<SessionReport>>,
    place: CertificateFolder,
}

impl Through {
    /// What a step reads.
    fn step(&mut self, step: &Value) -> Result<Value, OpError> {
        let none = || OpError::Unsupported(format!("{step} is no step"));
        let members = step.as_object().ok_or_else(none)?;
        let end = match members.get("end").and_then(Value::as_str) {
            Some("client") => &mut self.client,
            Some("server") => &mut self.server,
            _ => return Err(none()),
        };
        let TunnelEnd::Open(stream, below, _) = end else {
            return Ok(json!("none"));
        };
        if members.contains_key("close") {
            *stream = None;
            return Ok(Value::Null);
        }
        if members.contains_key("serves") {
            functions::register();
            let options = ServerOptions::new(self.place.path());
            let stream = stream.take().ok_or_else(none)?;
            self.served = Some(thread::spawn(move || serve(stream, &options)));
            return Ok(Value::Null);
        }
        let Some(stream) = stream else {
            return Ok(json!("none"));
        };
        match acted(members, stream, below, &mut self.writers) {
            Some(done) => done.or_else(|error| Ok(word(&error))),
            None => Err(none()),
        }
    }

    /// Ends everything, and shows what became of both ends.
    fn finish(mut self, texts: &[&str]) -> Result<(Value, Value), OpError> {
        for end in [&mut self.client, &mut self.server] {
            if let TunnelEnd::Open(stream, _, _) = end {
                *stream = None;
            }
        }
        let mut shown = Vec::new();
        for end in [self.client, self.server] {
            shown.push(match end {
                TunnelEnd::Open(_, _, true) => json!("limited"),
                TunnelEnd::Open(..) => json!("tunnel"),
                TunnelEnd::Failed(error) => raised(&error, texts),
                TunnelEnd::Peer(plays) => {
                    let read = plays.join();
                    json!(read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
                }
            });
        }
        for writer in self.writers {
            // A writer ends with its stream.
            drop(writer.join());
        }
        if let Some(served) = self.served {
            served
                .join()
                .map_err(|_| OpError::Unsupported("the session panics".to_owned()))?;
        }
        let server = shown.pop().unwrap_or_default();
        Ok((shown.pop().unwrap_or_default(), server))
    }
}

/// What an end does; `None` for a step of another form.
fn acted(
    step: &Map<String, Value>,
    stream: &mut Box<dyn RpcStream>,
    below: &TcpStream,
    writers: &mut Vec<JoinHandle<()>>,
) -> Option<io::Result<Value>> {
    let (what, of) = step.iter().find(|(name, _)| *name != "end")?;
    let count = || {
        let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
        count.filter(|count| *count <= LARGEST)
    };
    let bytes = || of.as_str().and_then(|hex| hex_bytes(hex).ok());
    let null = |done: io::Result<()>| done.map(|()| Value::Null);
    Some(match &**what {
        "write" => null(stream.write_all(&bytes()?)),
        "read" => {
            let count = count()?;
            Ok(shown(up_to(stream, count)))
        }
        "pattern" => {
            let content = pattern(count()?);
            match stream.twin() {
                Ok(Some(mut twin)) => {
                    // What does not get through is missing at the other end.
                    writers.push(thread::spawn(move || drop(twin.write_all(&content))));
                    Ok(Value::Null)
                }
                Ok(None) => Ok(json!("no twin")),
                Err(error) => Err(error),
            }
        }
        "read_pattern" => {
            let count = count()?;
            up_to(stream, count).map(|read| json!(read == pattern(count)))
        }
        "twin_ends" => match stream.twin() {
            Ok(Some(twin)) => {
                twin.end(of == &json!("both"));
                Ok(Value::Null)
            }
            Ok(None) => Ok(json!("no twin")),
            Err(error) => Err(error),
        },
        "limit" => {
            let limit = Duration::try_from_secs_f64(of.as_f64()?).ok()?;
            null(stream.set_limit(Some(limit)))
        }
        "below" => {
            let mut below = below;
            null(below.write_all(&bytes()?))
        }
        "cut" => null(below.shutdown(Shutdown::Write)),
        _ => return None,
    })
}

/// Bytes that show where one is missing.
fn pattern(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}
