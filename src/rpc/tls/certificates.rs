//! Certificates and keys from PEM, with errors that name the file.

use super::failure::flaw;
use super::options::{TlsIdentity, TlsSource};
use crate::function::{Error, ErrorKind, Result};
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};
use std::sync::Arc;

/// What is wrong with `source`.
fn wrong(source: &TlsSource, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Value, format!("{}: {why}", source.name()))
}

/// All certificates of a file.
fn certificates(source: &TlsSource) -> Result<Vec<CertificateDer<'static>>> {
    let content = source.read()?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    let found = found.map_err(|error| wrong(source, error))?;
    if found.is_empty() {
        return Err(wrong(source, "it has no certificate in PEM"));
    }
    Ok(found)
}

/// The authorities of a file.
pub(super) fn authorities(source: &TlsSource) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for (at, certificate) in certificates(source)?.into_iter().enumerate() {
        roots.add(certificate).map_err(|error| {
            let why = format!(
                "certificate {} is not an authority's: {}",
                at + 1,
                words(&error)
            );
            wrong(source, why)
        })?;
    }
    Ok(roots)
}

/// Certificates and the key of the first.
pub(super) fn identity(
    identity: &TlsIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certificates = certificates(&identity.certificates)?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key.read()?).map_err(|_| {
        let why = "it has no private key in PEM, or one with a password";
        wrong(&identity.key, why)
    })?;
    Ok((certificates, key))
}

/// What `rustls` makes of an identity that is wrong.
pub(super) fn unfit(identity: &TlsIdentity, error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InconsistentKeys(_) => wrong(
            &identity.key,
            format!("it is not the key of {}", identity.certificates.name()),
        ),
        other => wrong(&identity.certificates, words(other)),
    }
}

/// Whether a client that trusts the right authority accepts the certificate of a server, as far as that shows without the authority.
///
/// Its time does not count: the clock here may be the one that is wrong, as on boards that have none, and clients look at their own.
pub(super) fn acceptable(identity: &TlsIdentity, provider: Arc<CryptoProvider>) -> Result<()> {
    let source = &identity.certificates;
    let chain = certificates(source)?;
    let rejected = |why: &CertificateError| {
        let why = format!("no client accepts it: {}", flaw(why));
        wrong(source, why)
    };
    let [own, between @ ..] = &chain[..] else {
        return Ok(());
    };
    // In the place of the authority the certificate that is nearest to it: what has signed that is not looked at.
    let mut roots = RootCertStore::empty();
    let last = between.last().unwrap_or(own);
    let added = roots.add(last.clone().into_owned());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let name = ServerName::try_from("localhost");
    // RPC-110: what cannot be judged here is left to the clients, and does not keep the server from its start.
    let (Ok(()), Ok(verifier), Ok(name)) = (added, verifier, name) else {
        return Ok(());
    };
    let mut time = UnixTime::now();
    // Once for either end of its time.
    for _ in 0..3 {
        let checked = verifier.verify_server_cert(own, between, &name, &[], time);
        let Err(rustls::Error::InvalidCertificate(why)) = checked else {
            break;
        };
        match why {
            CertificateError::ExpiredContext { not_after, .. } => time = not_after,
            CertificateError::NotValidYetContext { not_before, .. } => time = not_before,
            // Of the authority, and of the name that a client connects to.
            CertificateError::UnknownIssuer
            | CertificateError::BadSignature
            | CertificateError::NotValidForNameContext { .. } => break,
            why => return Err(rejected(&why)),
        }
    }
    let named = ParsedCertificate::try_from(own).and_then(|own| verify_server_name(&own, &name));
    match named {
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) if presented.is_empty() => Err(wrong(
            source,
            "no client accepts it: it has no name, which is a DNS or an IP of subjectAltName",
        )),
        _ => Ok(()),
    }
}

/// What `rustls` rejects.
fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => flaw(why),
        other => other.to_string(),
    }
}
