//! Why a tunnel does not begin, in one sentence that names what is to be changed.

use super::super::{Hello, RPC_110};
use super::options::{TlsClientOptions, TlsServerOptions};
use super::stream::TlsFailure;
use crate::function::{Error, ErrorKind};
use crate::rule::Kind;
use rustls::{AlertDescription as Alert, CertificateError};

/// The end that connects, in its errors.
pub(super) struct ClientEnd<'a> {
    pub(super) place: (&'a str, u16),
    pub(super) options: &'a TlsClientOptions,
}

/// The end that is connected to, in its errors.
pub(super) struct ServerEnd<'a> {
    pub(super) options: &'a TlsServerOptions,
}

impl ClientEnd<'_> {
    /// An error that names the server.
    pub(super) fn says(&self, why: &str) -> Error {
        let (host, port) = self.place;
        Error::new(
            ErrorKind::Connection,
            format!("TLS with {host}:{port}: {why}"),
        )
    }

    /// Why there is no tunnel.
    pub(super) fn failed(&self, stopped: TlsFailure) -> Error {
        let why = match stopped {
            TlsFailure::Late => {
                let (host, port) = self.place;
                let text = format!("TLS with {host}:{port}: the server took too long");
                return Error::new(ErrorKind::Timeout, text);
            }
            // RPC-110: servers of TVM take the first bytes of TLS for a wrong magic and close, without an answer in TLS.
            TlsFailure::Socket(error) => format!(
                "the server ends the connection ({error}), as one that speaks no TLS does: its name begins with rpc:// then"
            ),
            TlsFailure::Tls(error, _) => self.reason(&error),
        };
        self.says(&why)
    }

    /// What the client's user can change, by what TLS reports: a certificate, the kind of server, a token, or nothing but its words.
    fn reason(&self, error: &rustls::Error) -> String {
        let options = self.options;
        match error {
            rustls::Error::InvalidCertificate(wrong) => {
                let why = certificate(wrong, &options.authorities.name());
                format!("the certificate of the server is not accepted: {why}")
            }
            // RPC-110: the server has answered, but not in TLS: a tracker, a proxy, or a service of another kind.
            rustls::Error::InvalidMessage(_) => {
                "the server speaks no TLS: its name begins with rpc:// then".to_owned()
            }
            rustls::Error::AlertReceived(alert) => match (alert, &options.identity) {
                (Alert::CertificateRequired, _) => {
                    "the server wants a certificate of its clients: tls-cert and tls-key".to_owned()
                }
                // RPC-111: a server with a token has a protocol of its own, which a client without one does not offer.
                (Alert::NoApplicationProtocol, _) => match options.token {
                    None => "the server wants a token of its clients: token-file".to_owned(),
                    Some(_) => "the server is for another protocol than RPC".to_owned(),
                },
                (alert, Some(own)) if is_of_certificate(*alert) => format!(
                    "the server does not accept the certificate {}: {}",
                    own.certificates.name(),
                    words(*alert)
                ),
                (alert, _) => format!("the server rejects the handshake: {}", words(*alert)),
            },
            other => other.to_string(),
        }
    }
}

impl ServerEnd<'_> {
    /// Why there is no tunnel.
    pub(super) fn failed(&self, stopped: TlsFailure) -> Error {
        let error = match stopped {
            TlsFailure::Late => {
                return Error::new(ErrorKind::Timeout, "TLS: the client took too long");
            }
            TlsFailure::Socket(error) => {
                let text = format!("TLS: the client ends the connection: {error}");
                return Error::new(ErrorKind::Connection, text);
            }
            // RPC-110: a client without a tunnel begins with the magic of its hello, which is no record of TLS.
            TlsFailure::Tls(_, first) if first == Hello::MAGIC.to_le_bytes() => {
                let text = "the client speaks no TLS, and this server nothing else";
                return RPC_110.broken(Kind::Malformed, 0, text).into();
            }
            TlsFailure::Tls(error, _) => error,
        };
        Error::new(
            ErrorKind::Connection,
            format!("TLS: {}", self.reason(&error)),
        )
    }

    /// The same for the operator of the server, of whom the client's certificate and token are asked.
    fn reason(&self, error: &rustls::Error) -> String {
        match error {
            rustls::Error::NoCertificatesPresented => "the client has no certificate".to_owned(),
            rustls::Error::InvalidCertificate(wrong) => {
                let authorities = self.options.client_authorities.as_ref();
                let authorities = authorities.map(|source| source.name()).unwrap_or_default();
                let why = certificate(wrong, &authorities);
                format!("the certificate of the client is not accepted: {why}")
            }
            // RPC-111: the same seen from here: the client offers no protocol with a token, so it has none.
            rustls::Error::NoApplicationProtocol if self.options.token.is_some() => {
                "the client has no token".to_owned()
            }
            rustls::Error::InvalidMessage(_) => "the client speaks no TLS".to_owned(),
            rustls::Error::AlertReceived(alert) if is_of_certificate(*alert) => format!(
                "the client does not accept the certificate {}: {}",
                self.options.identity.certificates.name(),
                words(*alert)
            ),
            rustls::Error::AlertReceived(alert) => {
                format!("the client rejects the handshake: {}", words(*alert))
            }
            other => other.to_string(),
        }
    }
}

/// What is wrong with a certificate of the peer, where `authorities` is the file of those that may have signed it.
fn certificate(wrong: &CertificateError, authorities: &str) -> String {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName => "it has another name".to_owned(),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "it is of {}, and not of `{}`",
            match presented.is_empty() {
                true => "no name".to_owned(),
                false => presented
                    .iter()
                    .map(|name| bare(name))
                    .collect::<Vec<_>>()
                    .join(", "),
            },
            expected.to_str()
        ),
        CertificateError::UnknownIssuer => format!("no authority of {authorities} has signed it"),
        CertificateError::BadSignature => {
            format!("an authority of {authorities} has its issuer's name, and did not sign it")
        }
        other => flaw(other),
    }
}

/// What is wrong with a certificate for every peer.
pub(super) fn flaw(wrong: &CertificateError) -> String {
    use CertificateError as Wrong;
    let text = match wrong {
        Wrong::BadEncoding => "it is broken",
        Wrong::Revoked => "it was revoked",
        Wrong::InvalidPurpose | Wrong::InvalidPurposeContext { .. } => {
            "it is for another use: extendedKeyUsage of a server is serverAuth, and of a client clientAuth"
        }
        Wrong::UnhandledCriticalExtension => "it has a critical extension that is unknown here",
        Wrong::UnsupportedSignatureAlgorithmContext { .. }
        | Wrong::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it is signed by an algorithm that is not accepted, such as one with SHA-1"
        }
        // What `webpki` finds and `rustls` has no name for.
        Wrong::Other(other) => match other.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "it is that of an authority (CA:TRUE), and a server or a client has one of its own that the authority has signed"
            }
            "EndEntityUsedAsCa" => {
                "it is signed by a certificate that is none of an authority (CA:FALSE)"
            }
            "UnsupportedCertVersion" => {
                "it is not of version 3 of X.509, as one without extensions"
            }
            "PathLenConstraintViolated" => {
                "more authorities are between than one of them allows (pathlen)"
            }
            "NameConstraintViolation" => "an authority between may not sign for its name",
            "EmptyEkuExtension" | "ExtensionValueInvalid" | "MalformedExtensions" => {
                "an extension of it is broken"
            }
            "SignatureAlgorithmMismatch" => "it states two algorithms of its signature",
            "MaximumPathDepthExceeded"
            | "MaximumPathBuildCallsExceeded"
            | "MaximumSignatureChecksExceeded" => "too many certificates are behind it",
            other => return format!("it breaks `{other}` of X.509"),
        },
        other => return other.to_string(),
    };
    text.to_owned()
}

/// A name of a certificate without what `webpki` puts around it: `DnsName("board")`, `IpAddress(127.0.0.1)`.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// Whether a peer writes the alert about a certificate.
fn is_of_certificate(alert: Alert) -> bool {
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::DecryptError
            | Alert::AccessDenied
    )
}

/// An alert, as RFC 8446 means it.
fn words(alert: Alert) -> String {
    match alert {
        Alert::CertificateExpired => "it has expired, or is not valid yet".to_owned(),
        Alert::UnknownCA => "it knows no authority that has signed it".to_owned(),
        Alert::BadCertificate => "it is of another name, or broken".to_owned(),
        Alert::CertificateUnknown => {
            "it cannot be used for this, as that of an authority".to_owned()
        }
        Alert::DecryptError => "its signature is wrong".to_owned(),
        other => format!("{other:?}"),
    }
}
