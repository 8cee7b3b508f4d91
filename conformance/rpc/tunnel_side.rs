//! An end of a tunnel: our own, or a peer that a script plays, and the files that it shows.

use super::peer::{self, PeerStream};
use super::session::patience;
use super::tunnel::{no_socket, wrong};
use crate::conformance::golden::golden;
use crate::conformance::op::OpError;
use crate::function::Error;
use crate::release::Release;
use crate::rpc::client::RemoteAddress;
use crate::rpc::tls::{self, TlsClientOptions, TlsIdentity, TlsServerOptions, TlsSource};
use crate::rpc::transport::RpcStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig};
use rustls::{ServerConnection, StreamOwned};
use serde_json::Value;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

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

/// Certificates and keys as files, whose names errors have.
pub(super) struct CertificateFolder {
    folder: tempfile::TempDir,
}

impl CertificateFolder {
    /// With the files that are named in `args`.
    pub(super) fn make(args: &Value) -> Result<CertificateFolder, OpError> {
        let folder = tempfile::tempdir().map_err(no_socket)?;
        let named = args.to_string();
        for name in FILES {
            // Files that no end names are left out: an error about one must not pass since another happens to be there.
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

    /// Where the files are.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The file of this name: a plain one, so that a case reaches no other.
    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name.replace(['/', '\\'], "_"))
    }

    /// A file for our own end, which reads it itself: what is wrong with it is the end's to say (RPC-110).
    fn source(&self, name: &str) -> TlsSource {
        TlsSource::File(self.file(name))
    }

    /// The content of a file, for ends by a script.
    fn content(&self, name: &str) -> Result<Vec<u8>, OpError> {
        std::fs::read(self.file(name)).map_err(no_socket)
    }
}

/// Who an end is, before it is connected.
pub(super) enum TunnelSide {
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
pub(super) enum TunnelEnd {
    /// A tunnel, the socket below, and whether the deadline of the handshake still holds for it.
    Open(Option<Box<dyn RpcStream>>, TcpStream, bool),
    /// No tunnel.
    Failed(Error),
    /// A script that is played.
    Peer(JoinHandle<Result<Vec<Value>, OpError>>),
}

impl TunnelSide {
    /// The server of a case: our own with certificate, key, authority of its clients and token, or a peer that `plays` steps, in plain or with
    /// the protocols of `alpn`. Our own is checked at its start, as the operator would see it.
    pub(super) fn server(form: &Value, place: &CertificateFolder) -> Result<TunnelSide, OpError> {
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

    /// The client of a case: our own by its options, or by an `address` that has them (RPC-110), or a peer as for a server.
    pub(super) fn client(form: &Value, place: &CertificateFolder) -> Result<TunnelSide, OpError> {
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
    pub(super) fn begin(self, socket: TcpStream, deadline: Instant) -> Result<TunnelEnd, OpError> {
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
                // Another handle of the socket would keep the connection open when the script has ended.
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
                // RPC-110: the deadline of the handshake must not end the session behind it.
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

/// Certificates and key of an end by a script, whatever is wrong with them: TLS alone judges.
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

/// The protocols by ALPN; none for an empty list, as clients of other programs.
fn protocols(alpn: &Value) -> Vec<Vec<u8>> {
    let list = alpn.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(Into::into).collect()
}

/// TLS cannot be set up by what the case states: the case is wrong, and no end is.
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
    // Stated here: a default of the process would be that of whoever set it first.
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
