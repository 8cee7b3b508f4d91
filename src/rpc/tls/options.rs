//! What both ends of a tunnel are configured with.

#[cfg(feature = "tls")]
use crate::function::{Error, ErrorKind, Result};
use std::ffi::OsString;
use std::path::PathBuf;

/// Certificates, a private key or a token: a file, or its content.
///
/// Certificates and keys are PEM; of a token blanks and ends of lines around it do not count.
#[derive(Clone, PartialEq, Eq)]
pub enum TlsSource {
    /// The path of a file, which is read when a connection begins.
    File(PathBuf),
    /// The content of a file.
    Content(Vec<u8>),
}

#[cfg(feature = "tls")]
impl TlsSource {
    /// What errors call it.
    pub(super) fn name(&self) -> String {
        match self {
            TlsSource::File(path) => format!("`{}`", path.display()),
            TlsSource::Content(_) => "a text".to_owned(),
        }
    }

    /// All of it.
    pub(super) fn read(&self) -> Result<Vec<u8>> {
        match self {
            TlsSource::Content(content) => Ok(content.clone()),
            TlsSource::File(path) => std::fs::read(path)
                .map_err(|error| Error::new(ErrorKind::Os, format!("{}: {error}", self.name()))),
        }
    }
}

/// Keys and tokens are in no log.
impl std::fmt::Debug for TlsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TlsSource::File(path) => write!(f, "TlsSource({path:?})"),
            TlsSource::Content(content) => write!(f, "TlsSource({} bytes)", content.len()),
        }
    }
}

/// Who an end is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsIdentity {
    /// Its certificate, and behind it those between it and the authority.
    pub certificates: TlsSource,
    /// The private key of the first certificate, without a password: PKCS#8, PKCS#1 or SEC1.
    pub key: TlsSource,
}

/// The end that connects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsClientOptions {
    /// Certificates of the authorities, one of which has signed the server's. Those of the system do not count.
    pub authorities: TlsSource,
    /// For servers that want a certificate of their clients.
    pub identity: Option<TlsIdentity>,
    /// For servers that want a token (RPC-111). It goes to no server without one.
    pub token: Option<TlsSource>,
}

/// The end that is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsServerOptions {
    /// Who the server is. Clients compare the name that they connect to with the names of the certificate.
    pub identity: TlsIdentity,
    /// Certificates of the authorities, one of which must have signed a client's; `None` where clients need no certificate.
    pub client_authorities: Option<TlsSource>,
    /// What a client must know (RPC-111).
    pub token: Option<TlsSource>,
}

impl TlsIdentity {
    /// Who proves with `key` that it is whom `certificates` name.
    pub fn new(certificates: TlsSource, key: TlsSource) -> TlsIdentity {
        TlsIdentity { certificates, key }
    }
}

impl TlsClientOptions {
    /// A client of servers with a certificate that one of `authorities` has signed, without a certificate and a token of its own.
    pub fn new(authorities: TlsSource) -> TlsClientOptions {
        TlsClientOptions {
            authorities,
            identity: None,
            token: None,
        }
    }
}

impl TlsServerOptions {
    /// A server that takes any client.
    pub fn new(identity: TlsIdentity) -> TlsServerOptions {
        TlsServerOptions {
            identity,
            client_authorities: None,
            token: None,
        }
    }
}

/// Where the options of a client are that its address does not state.
const VARIABLES: [(&str, &str); 4] = [
    ("tls-ca", "TVMSPEC_TLS_CA"),
    ("tls-cert", "TVMSPEC_TLS_CERT"),
    ("tls-key", "TVMSPEC_TLS_KEY"),
    ("token-file", "TVMSPEC_TOKEN_FILE"),
];

/// The files that an address names, each by the place of its option in [`VARIABLES`].
#[derive(Debug, Default)]
pub(in crate::rpc) struct TlsFiles([Option<PathBuf>; VARIABLES.len()]);

impl TlsFiles {
    /// Takes an option of an address; false for one that is no file of TLS.
    pub(in crate::rpc) fn set(&mut self, name: &str, value: &str) -> bool {
        let mut rows = VARIABLES.iter().zip(&mut self.0);
        match rows.find(|((option, _), _)| *option == name) {
            Some((_, file)) => {
                *file = Some(PathBuf::from(value));
                true
            }
            None => false,
        }
    }

    /// The options of a client; `variable` is the environment, where files are named that the address does not name.
    pub(in crate::rpc) fn into_options(
        self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> std::result::Result<TlsClientOptions, &'static str> {
        let mut files = self.0;
        for ((_, name), file) in VARIABLES.iter().zip(&mut files) {
            // A variable of nothing is how a shell takes one away for a command.
            let named = variable(name).filter(|value| !value.is_empty());
            *file = file.take().or_else(|| named.map(PathBuf::from));
        }
        let [authorities, certificates, key, token] = files.map(|file| file.map(TlsSource::File));
        let identity = match (certificates, key) {
            (None, None) => None,
            (Some(certificates), Some(key)) => Some(TlsIdentity { certificates, key }),
            _ => return Err("`tls-cert` and `tls-key` go together"),
        };
        Ok(TlsClientOptions {
            authorities: authorities
                .ok_or("no authority is named, by `tls-ca=FILE` or TVMSPEC_TLS_CA")?,
            identity,
            token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of that name.
    fn file(name: &str) -> TlsSource {
        TlsSource::File(name.into())
    }

    #[test]
    fn the_address_comes_before_the_environment() {
        let environment = |name: &str| (name != "TVMSPEC_TOKEN_FILE").then(|| name.into());
        let mut files = TlsFiles::default();
        assert!(!files.set("tls", "x"));
        assert!(files.set("tls-key", "own.key"));
        let options = files.into_options(environment).expect("complete");
        let identity = options.identity.expect("stated");
        assert_eq!(options.authorities, file("TVMSPEC_TLS_CA"));
        assert_eq!(identity.certificates, file("TVMSPEC_TLS_CERT"));
        assert_eq!((identity.key, options.token), (file("own.key"), None));
        // A variable without a value states nothing.
        let missing = TlsFiles::default().into_options(|_| Some(OsString::new()));
        assert!(missing.expect_err("no authority").contains("tls-ca"));
        let mut half = TlsFiles::default();
        assert!(half.set("tls-ca", "ca") && half.set("tls-cert", "own"));
        let half = half.into_options(|_| None).expect_err("no key");
        assert!(half.contains("tls-key"));
    }

    #[test]
    fn no_log_has_a_key() {
        let text = format!("{:?}", TlsSource::Content(b"secret".to_vec()));
        assert_eq!(text, "TlsSource(6 bytes)");
    }
}
