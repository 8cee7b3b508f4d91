//! The options of a server in a tunnel, for `tvmspec serve` and for the process of each session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tvmspec::rpc::tls::{TlsIdentity, TlsServerOptions, TlsSource};

/// Who the server is, and whom it admits.
#[derive(clap::Args, Clone)]
pub(super) struct ServeTlsArgs {
    /// Speak TLS, to clients of this program alone: their devices are rpc+tls://HOST:PORT/KEY?tls-ca=FILE#cpu:0. FILE has the certificate
    /// of this server in PEM, and behind it those between it and the authority; it is read for each session
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM, without a password
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Admit only clients with a certificate (tls-cert and tls-key of their devices) that an authority of FILE has signed
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Admit only clients that know the token in FILE (token-file of their devices)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    token_file: Option<PathBuf>,
}

impl ServeTlsArgs {
    /// What the tunnel is made of; `None` for a server in plain.
    pub(super) fn options(&self) -> Option<TlsServerOptions> {
        let source = |path: &Option<PathBuf>| path.clone().map(TlsSource::File);
        let identity = TlsIdentity::new(source(&self.tls_cert)?, source(&self.tls_key)?);
        let mut options = TlsServerOptions::new(identity);
        options.client_authorities = source(&self.tls_client_ca);
        options.token = source(&self.token_file);
        Some(options)
    }

    /// The same on the command line of a process that runs elsewhere.
    pub(super) fn to_arguments(&self) -> impl Iterator<Item = OsString> {
        let all = [
            ("--tls-cert=", &self.tls_cert),
            ("--tls-key=", &self.tls_key),
            ("--tls-client-ca=", &self.tls_client_ca),
            ("--token-file=", &self.token_file),
        ];
        all.into_iter().filter_map(|(option, path)| {
            // Not a `String`: a path need not be UTF-8.
            let mut argument = OsString::from(option);
            // The process of a session runs in a directory of its own, where a relative path leads elsewhere.
            argument.push(absolute(path.as_ref()?));
            Some(argument)
        })
    }
}

/// A path that is the same in any directory.
fn absolute(path: &Path) -> PathBuf {
    // Fails for a path of nothing, and where there is no current directory: then no path is better.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
