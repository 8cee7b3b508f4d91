//! How the server of a session is started.

use super::functions;
use super::hop::{HopPlace, HopStart};
use crate::conformance::device::own_numbers::OF_SERVERS as NUMBER;
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

/// What a case wants of the server that it is put to.
#[derive(Debug, Default, Deserialize, PartialEq)]
// A misspelt option would start a server that a case is not about, and pass.
#[serde(default, deny_unknown_fields)]
pub(in crate::conformance) struct ServerStart {
    /// Whether it finds out how its clients write (RPC-84), and is not started for their release.
    finds_out: bool,
    key: Option<String>,
    allow: Option<Vec<String>>,
    allow_load: bool,
    memory: Option<u64>,
    uploads: Option<u64>,
    largest: Option<u64>,
    seconds: Option<f64>,
    /// Whose rules it serves by, where that is not the client's release.
    #[serde(deserialize_with = "from_text_if_any")]
    release: Option<Release>,
    /// Patterns of the servers that it goes on to (RPC-93), with `PORT` for the port of the next one.
    connect: Option<Vec<String>>,
    /// What is behind it.
    pub(super) hop: Option<HopStart>,
    /// Whether it has a device that is simulated, of number 95.
    pub(super) simulated: bool,
    /// Whether what it has of the session in the end is returned.
    pub(super) report: bool,
    /// Whether another thread may end the session.
    watch: bool,
    /// Whether it waits at a proxy (RPC-94).
    pub(super) paired: bool,
}

impl ServerStart {
    /// The key of its clients, and its own.
    pub(super) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// What is behind the last server.
    pub(super) fn last_hop(&self) -> Option<&HopStart> {
        match &self.hop {
            Some(HopStart::Serves(next)) => next.last_hop().or(self.hop.as_ref()),
            other => other.as_ref(),
        }
    }

    /// The options of our own server, for clients of `release`, with uploads in `folder` and the server `next` behind it.
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
        // RPC-93: without a pattern of the case the next server is allowed where there is one, and no other ever.
        let connect = list(&self.connect, &here[..usize::from(next.is_some())]);
        let port = next.map_or_else(String::new, |next| next.port.to_string());
        ServerOptions {
            keys: vec![self.key().to_owned()],
            name: self.key().to_owned(),
            // RPC-84: a case about a server that finds out starts it without a release, and one about a wrong one with that.
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
