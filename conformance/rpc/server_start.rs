//! Start options of the server of a session.

use super::functions;
use super::hop::{HopPlace, HopStart};
use crate::conformance::device::suite_device_types::OF_SERVERS as NUMBER;
use crate::conformance::form::from_text_if_any;
use crate::conformance::op::OpError;
use crate::device::manager;
use crate::device::simulated::Simulated;
use crate::release::Release;
use crate::rpc::server::ServerOptions;
use serde::Deserialize;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The options of a case for its server.
#[derive(Debug, Default, Deserialize, PartialEq)]
// A misspelt option must be rejected: it would start a different server than the case is about, and pass.
#[serde(default, deny_unknown_fields)]
pub(in crate::conformance) struct ServerStart {
    /// True if the server detects the release of its clients (RPC-84), instead of being started for it.
    finds_out: bool,
    key: Option<String>,
    allow: Option<Vec<String>>,
    allow_load: bool,
    memory: Option<u64>,
    uploads: Option<u64>,
    largest: Option<u64>,
    seconds: Option<f64>,
    /// Release whose rules the server follows, if it is not the client's.
    #[serde(deserialize_with = "from_text_if_any")]
    release: Option<Release>,
    /// Patterns of the servers to which it may connect (RPC-93), with `PORT` for the port of the next one.
    connect: Option<Vec<String>>,
    /// The peer to which it connects.
    pub(super) hop: Option<HopStart>,
    /// True if it has a simulated device, of number 95.
    pub(super) simulated: bool,
    /// True if the report of the session is returned.
    pub(super) report: bool,
    /// True if another thread may end the session.
    watch: bool,
    /// True if it waits at a proxy (RPC-94).
    pub(super) paired: bool,
}

impl ServerStart {
    /// Returns the key of its clients, which is also its own.
    pub(super) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// Returns the peer to which the last server connects.
    pub(super) fn last_hop(&self) -> Option<&HopStart> {
        match &self.hop {
            Some(HopStart::Serves(next)) => next.last_hop().or(self.hop.as_ref()),
            other => other.as_ref(),
        }
    }

    /// Returns the options of our own server, for clients of `release`, with uploads in `folder` and `next` as the next server.
    pub(super) fn options(
        &self,
        release: Release,
        folder: &Path,
        next: Option<&HopPlace>,
    ) -> ServerOptions {
        let plain = ServerOptions::new(folder);
        let list = |list: &Option<Vec<String>>, otherwise: &[String]| {
            list.clone().unwrap_or_else(|| otherwise.to_vec())
        };
        let all = [format!("{}*", functions::PREFIX)];
        let here = ["127.0.0.1".to_owned()];
        // RPC-93: without patterns in the case, only the next server is allowed, if there is one.
        let connect = list(&self.connect, &here[..usize::from(next.is_some())]);
        let port = next.map_or_else(String::new, |next| next.port.to_string());
        ServerOptions {
            keys: vec![self.key().to_owned()],
            name: self.key().to_owned(),
            // RPC-84: a case about detection starts the server without a release, a case about a wrong release with that one.
            release: (!self.finds_out).then_some(self.release.unwrap_or(release)),
            allow: list(&self.allow, &all),
            allow_load: self.allow_load,
            connect: connect
                .iter()
                .map(|pattern| pattern.replace("PORT", &port))
                .collect(),
            memory: self.memory.unwrap_or(plain.memory),
            uploads: self.uploads.unwrap_or(plain.uploads),
            largest: self.largest.unwrap_or(plain.largest),
            timeout: self
                .seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            watch: self.watch.then(Arc::default),
            ..plain
        }
    }
}

const NAME: &str = "suite_server";

/// Registers the simulated device of servers, once.
pub(super) fn simulated() -> Result<(), OpError> {
    static DEVICE: OnceLock<Result<(), String>> = OnceLock::new();
    let registered = DEVICE.get_or_init(|| {
        let device: &'static Simulated = Box::leak(Box::new(Simulated::new(1)));
        // SAFETY: the simulated device keeps the contract, as its own cases show.
        unsafe { manager::register_number(NUMBER, NAME, device) }.map_err(|error| error.to_string())
    });
    registered.clone().map_err(OpError::Unsupported)
}
