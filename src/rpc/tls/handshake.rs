//! How a tunnel begins: the handshake of TLS, the token where the server has one, and the byte that admits the client.

use super::super::RPC_110;
use super::super::transport::RpcStream;
use super::certificates::{acceptable, authorities, identity, unfit};
use super::failure::{ClientEnd, ServerEnd};
use super::options::{TlsClientOptions, TlsServerOptions};
use super::stream::{TlsFailure, TlsStream};
use super::token::{Token, demand};
use crate::function::{Error, ErrorKind, Result};
use crate::rule::Kind;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

/// RPC-110: what a client without a token offers, and a server without one takes.
const PLAIN: &[u8] = b"tvm-rpc";

/// RPC-111: the same with a token.
const WITH_TOKEN: &[u8] = b"tvm-rpc-token";

/// RPC-110: the server admits the client.
const ADMITTED: u8 = 1;

/// RPC-111: the token is another one.
const OTHER_TOKEN: u8 = 0;

/// The algorithms of both ends: those of `ring`.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A tunnel to the server that `socket` is connected to, which has admitted this client. `place` is what was connected to: the server's
/// certificate has that name, or that address.
///
/// # Errors
///
/// An OSError or ValueError that names a file which cannot be used; a ConnectionError that says what either end does not accept; a
/// TimeoutError.
pub fn connect(
    socket: TcpStream,
    place: (&str, u16),
    options: &TlsClientOptions,
    deadline: Instant,
) -> Result<Box<dyn RpcStream>> {
    let end = ClientEnd { place, options };
    let config = client_config(options)?;
    let token = options.token.as_ref().map(Token::open).transpose()?;
    let name = ServerName::try_from(place.0.to_owned()).map_err(|_| {
        let text = format!("`{}` is not a name that a certificate has", place.0);
        Error::new(ErrorKind::Value, text)
    })?;
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| end.failed(TlsFailure::Tls(error, [0; 4])))?;
    prepare(&socket)?;
    let shaken = TlsStream::shake(socket, connection.into(), deadline);
    let mut stream = shaken.map_err(|stopped| end.failed(stopped))?;
    // RPC-110: in TLS 1.3 a client is through its handshake before the server has judged the client's certificate.
    let mut admitted = [0];
    let begin = || {
        stream.bound(deadline)?;
        // A server without a token learns none.
        if let Some(token) = token.filter(|_| stream.protocol().as_deref() == Some(WITH_TOKEN)) {
            token.write(&mut stream)?;
        }
        DeadlineReader(&mut stream, deadline).read_exact(&mut admitted)
    };
    begin().map_err(|error| end.failed(TlsFailure::behind(error)))?;
    match admitted {
        [ADMITTED] => unbounded(stream),
        [OTHER_TOKEN] => Err(end.says("the server has another token")),
        _ => Err(end.says("it speaks TLS, and is not an RPC server")),
    }
}

/// The tunnel of a client that has connected, and that is admitted.
///
/// # Errors
///
/// An OSError or ValueError that names a file which cannot be used; RPC-110 of kind malformed for a client that speaks no TLS, RPC-111 of
/// kind unsupported for one with another token; a ConnectionError that says what either end does not accept; a TimeoutError.
pub fn accept(
    socket: TcpStream,
    options: &TlsServerOptions,
    deadline: Instant,
) -> Result<Box<dyn RpcStream>> {
    let end = ServerEnd { options };
    let config = server_config(options)?;
    let token = options.token.as_ref().map(Token::open).transpose()?;
    let connection = ServerConnection::new(Arc::new(config))
        .map_err(|error| end.failed(TlsFailure::Tls(error, [0; 4])))?;
    prepare(&socket)?;
    let shaken = TlsStream::shake(socket, connection.into(), deadline);
    let mut stream = shaken.map_err(|stopped| end.failed(stopped))?;
    // A client that offers no protocol gets through the handshake with any.
    let wanted = if token.is_some() { WITH_TOKEN } else { PLAIN };
    if stream.protocol().as_deref() != Some(wanted) {
        let message = "the client speaks TLS, and no RPC through it";
        return Err(RPC_110.rejected(Kind::Unsupported, message).into());
    }
    if let Some(token) = token {
        let same = token.read_same(&mut DeadlineReader(&mut stream, deadline));
        let same = same.map_err(|error| end.failed(TlsFailure::behind(error)))?;
        if !same {
            // The client need not read it.
            let _ = stream.bound(deadline);
            let _ = stream.write_all(&[OTHER_TOKEN]);
        }
        demand(same)?;
    }
    let welcome = stream
        .bound(deadline)
        .and_then(|()| stream.write_all(&[ADMITTED]));
    welcome.map_err(|error| end.failed(TlsFailure::behind(error)))?;
    unbounded(stream)
}

/// Whether the files of a server can be used, so that it need not wait for a client to find out. A certificate that no client accepts can
/// not; who signed it and when it is valid are for clients to know.
///
/// # Errors
///
/// An OSError or ValueError that names a file.
pub fn check(options: &TlsServerOptions) -> Result<()> {
    server_config(options)?;
    acceptable(&options.identity, provider())?;
    options.token.as_ref().map(Token::open).transpose()?;
    Ok(())
}

/// Small packets go out at once.
fn prepare(socket: &TcpStream) -> Result<()> {
    // For the reason of `Transport::tcp`.
    socket.set_nodelay(true).map_err(gone)
}

/// The stream of a session, without the deadline of the handshake: a [`Transport`](super::super::transport::Transport) sets its own, and
/// takes away no other.
fn unbounded(stream: TlsStream) -> Result<Box<dyn RpcStream>> {
    stream.set_limit(None).map_err(gone)?;
    Ok(Box::new(stream))
}

/// What the system reports of a socket whose connection is gone.
fn gone(error: io::Error) -> Error {
    Error::new(
        ErrorKind::Connection,
        format!("the connection is gone: {error}"),
    )
}

/// What a client is set up with. With a token it offers both protocols: which the server takes shows whether it wants one (RPC-111).
fn client_config(options: &TlsClientOptions) -> Result<ClientConfig> {
    let roots = authorities(&options.authorities)?;
    // RPC-110: both ends are new, so that nothing speaks for an older version.
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots);
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let (certificates, key) = identity(own)?;
            let config = builder.with_client_auth_cert(certificates, key);
            config.map_err(|error| unfit(own, &error))?
        }
    };
    config.alpn_protocols = match options.token {
        Some(_) => vec![WITH_TOKEN.to_vec(), PLAIN.to_vec()],
        None => vec![PLAIN.to_vec()],
    };
    Ok(config)
}

/// What a server is set up with. With a token it takes one protocol alone, so that a client without one ends in the handshake (RPC-111).
fn server_config(options: &TlsServerOptions) -> Result<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(&error))?;
    let builder = match &options.client_authorities {
        None => builder.with_no_client_auth(),
        Some(source) => {
            let roots = Arc::new(authorities(source)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            let verifier = verifier.build().map_err(|error| {
                let text = format!("{}: {error}", source.name());
                Error::new(ErrorKind::Value, text)
            })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let (certificates, key) = identity(&options.identity)?;
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(|error| unfit(&options.identity, &error))?;
    let wanted = match options.token {
        Some(_) => WITH_TOKEN,
        None => PLAIN,
    };
    config.alpn_protocols = vec![wanted.to_vec()];
    // Each connection has a process of its own, which resumes nothing.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The library has no TLS 1.3: not with these algorithms.
fn unusable(error: &rustls::Error) -> Error {
    Error::new(ErrorKind::Runtime, error.to_string())
}

/// Reads until a deadline, which a peer that writes byte by byte does not put off.
struct DeadlineReader<'a>(&'a mut TlsStream, Instant);

impl Read for DeadlineReader<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.bound(self.1)?;
        self.0.read(room)
    }
}
