//! Certificates and keys from PEM, with errors that name the file.

use super::options::{TlsIdentity, TlsSource};
use crate::function::{Error, ErrorKind, Result};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What is wrong with `source`.
fn wrong(source: &TlsSource, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Value, format!("{}: {why}", source.name()))
}

/// All certificates of a file.
///
/// # Errors
///
/// An OSError or a ValueError that names the file.
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
///
/// # Errors
///
/// As [`certificates`].
pub(super) fn authorities(source: &TlsSource) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for (at, certificate) in certificates(source)?.into_iter().enumerate() {
        roots.add(certificate).map_err(|error| {
            let why = format!("certificate {} is no authority's: {error}", at + 1);
            wrong(source, why)
        })?;
    }
    Ok(roots)
}

/// Certificates and the key of the first.
///
/// # Errors
///
/// As [`certificates`]; a ValueError for a file without a private key.
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
        other => wrong(&identity.certificates, other),
    }
}
