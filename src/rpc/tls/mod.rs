//! A tunnel around a session, between two ends of this crate: TLS 1.3, as `rustls` has it. What TVM releases speak is plain.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `options` | [`TlsClientOptions`], [`TlsServerOptions`]: certificates, keys, a token | RPC-111 |
//! | `handshake` | both ends of it, up to the byte that admits the client; feature `tls` | RPC-110 |
//! | `token` | what the client knows, and how it is compared; feature `tls` | RPC-111 |
//! | `stream` | bytes through the tunnel, by two threads; feature `tls` | |
//! | `certificates` | what is read from PEM; feature `tls` | |
//! | `failure` | why a handshake fails, in a sentence; feature `tls` | |
//!
//! [`connect`] and [`accept`] take a socket and return a stream for [`Transport`](super::transport::Transport) and
//! [`server::serve`](super::server::serve). Without the feature `tls` they return an error that says so.

#[cfg(feature = "tls")]
mod certificates;
#[cfg(feature = "tls")]
mod failure;
#[cfg(feature = "tls")]
mod handshake;
mod options;
#[cfg(feature = "tls")]
mod stream;
#[cfg(feature = "tls")]
mod token;

#[cfg(feature = "tls")]
pub use handshake::{accept, check, connect};
pub use options::{TlsClientOptions, TlsIdentity, TlsServerOptions, TlsSource};

pub(super) use options::TlsFiles;

#[cfg(not(feature = "tls"))]
pub use absent::{accept, check, connect};

/// In place of the tunnel in a build without one: callers need not know which features there are.
#[cfg(not(feature = "tls"))]
mod absent {
    use super::super::transport::RpcStream;
    use super::{TlsClientOptions, TlsServerOptions};
    use crate::function::{Error, ErrorKind, Result};
    use std::net::TcpStream;
    use std::time::Instant;

    /// What all of these return.
    fn absent() -> Error {
        Error::new(
            ErrorKind::Runtime,
            "this build of tvmspec has no TLS: its feature `tls` is off",
        )
    }

    /// Connects through TLS with the feature `tls`.
    pub fn connect(
        _: TcpStream,
        _: (&str, u16),
        _: &TlsClientOptions,
        _: Instant,
    ) -> Result<Box<dyn RpcStream>> {
        Err(absent())
    }

    /// Accepts a client through TLS with the feature `tls`.
    pub fn accept(_: TcpStream, _: &TlsServerOptions, _: Instant) -> Result<Box<dyn RpcStream>> {
        Err(absent())
    }

    /// Whether [`accept`] can begin, with the feature `tls`.
    pub fn check(_: &TlsServerOptions) -> Result<()> {
        Err(absent())
    }
}
