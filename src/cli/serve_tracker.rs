//! The connection between `tvmspec serve` and a tracker. The server offers itself under a key for one client, asks whether the key was
//! handed out, and offers itself again (RPC-54 to RPC-57).

use super::output;
use super::serve_running::RunningSessions;
use crate::lock::lock;
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tvmspec::function::Error;
use tvmspec::rpc::tracker::TrackerClient;
use tvmspec::rpc::{TrackerOffer, TrackerPeer, TrackerRequest};

/// The interval between requests to the tracker, as in Python's servers.
const PERIOD: Duration = Duration::from_secs(2);

/// The time for which a session is reserved for a client with a key, as in Python's servers.
const RESERVED: Duration = Duration::from_secs(6);

/// The number of keys that were handed out and still open a session.
const REMEMBERED: usize = 64;

/// The match keys that clients may use.
#[derive(Default)]
pub(super) struct MatchKeys {
    keys: Mutex<VecDeque<String>>,
}

impl MatchKeys {
    /// Returns whether the key is one of the newest. A client with any other key wants another server.
    pub(super) fn contains(&self, key: &str) -> bool {
        let keys = lock(&self.keys);
        keys.iter().any(|own| own == key)
    }

    fn push(&self, key: String) {
        let mut keys = lock(&self.keys);
        keys.push_back(key);
        if keys.len() > REMEMBERED {
            keys.pop_front();
        }
    }
}

/// The offer of the server, and its tracker.
pub(super) struct TrackerLine {
    /// The tracker, as `HOST:PORT`.
    pub(super) tracker: String,
    /// The key that clients request from the tracker.
    pub(super) key: String,
    /// The address on which the server listens.
    pub(super) at: SocketAddr,
    /// The host that clients are sent to, if it differs from the address that the tracker sees.
    pub(super) host: Option<String>,
    /// The maximal number of concurrent sessions.
    pub(super) sessions: usize,
    pub(super) keys: Arc<MatchKeys>,
    pub(super) running: Arc<RunningSessions>,
    /// `true` after the warning that clients cannot reach the server was logged. It is logged only once, and not for each connection to
    /// the tracker.
    pub(super) is_warned: Cell<bool>,
    /// Receives a message when the tracker has the first offer, or when the log says why it has not.
    pub(super) heard: SyncSender<()>,
}

impl TrackerLine {
    /// Keeps the server registered with the tracker until the server drains, and reconnects to a tracker that has vanished.
    pub(super) fn stay_registered(&self) {
        let mut last = String::new();
        while !self.running.is_draining() {
            // `serve` returns when the server drains. The tracker withdraws an offer when its connection ends.
            let Err(error) = self.serve() else { return };
            let error = error.reason();
            // Logged once, because a tracker that is missing would fill the log.
            if error != last {
                output::note(format_args!("tracker {}: {error}", self.tracker));
                last = error;
            }
            self.signal_ready();
            self.running.pause(PERIOD);
        }
    }

    /// Reports that the tracker was reached, or that the log says why it was not.
    fn signal_ready(&self) {
        // After the first message the channel is full or closed, and nobody waits any more.
        let _ = self.heard.try_send(());
    }

    /// Warns if clients are sent to an address on which the server does not listen. They could not reach it, and nothing else would
    /// show this. `seen` is its address as the tracker sees it.
    fn warn(&self, seen: IpAddr) {
        let is_hidden = self.at.ip().is_loopback() && !seen.is_loopback();
        if is_hidden && self.host.is_none() && !self.is_warned.replace(true) {
            output::note(format_args!(
                "warning: the tracker sends clients to {seen}, and this server listens at {} alone: --host {seen}",
                self.at.ip()
            ));
        }
    }

    /// Serves one connection to the tracker.
    fn serve(&self) -> Result<(), Error> {
        let mut connection = TrackerClient::connect(&*self.tracker)?;
        self.warn(connection.local_addr()?.ip());
        let address = Some((self.host.clone(), self.at.port()));
        let key = format!("server:{}", self.key);
        connection.order(&TrackerRequest::UpdateInfo(TrackerPeer { key, address }))?;
        let mut offered: Option<String> = None;
        let mut taken: VecDeque<Instant> = VecDeque::new();
        while !self.running.is_draining() {
            let now = Instant::now();
            // A reservation expires, because its client may never connect.
            taken.retain(|since| now.duration_since(*since) < RESERVED);
            let busy = self.running.count() + taken.len();
            if offered.is_none() && busy < self.sessions {
                let match_key = format!("{}:{}", self.key, random());
                // Stored before it is handed out, because a client may connect before the tracker's answer arrives.
                self.keys.push(match_key.clone());
                connection.order(&TrackerRequest::Put(TrackerOffer {
                    key: self.key.clone(),
                    port: self.at.port(),
                    match_key: match_key.clone(),
                    host: self.host.clone(),
                }))?;
                offered = Some(match_key);
                self.signal_ready();
            }
            let before = self.running.count();
            self.running.pause(PERIOD);
            let pending = connection.pending_match_keys()?;
            // The session that began is the reserved one.
            for _ in before..self.running.count() {
                taken.pop_front();
            }
            if offered.as_ref().is_some_and(|key| !pending.contains(key)) {
                offered = None;
                // The client with the key has not connected yet, so that a session stays reserved for it.
                if self.running.count() <= before {
                    taken.push_back(Instant::now());
                }
            }
        }
        Ok(())
    }
}

/// Returns a random number from 0 to 1, as in the keys of Python's servers.
pub(super) fn random() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    number as f64 / u64::MAX as f64
}
