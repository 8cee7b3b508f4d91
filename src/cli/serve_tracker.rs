//! The line between `tvmspec serve` and a tracker: the server offers itself under a key that is good for one client, asks whether the key
//! was handed out, and offers itself anew (RPC-54 to RPC-57).

use super::output;
use super::serve_running::RunningSessions;
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tvmspec::function::Error;
use tvmspec::rpc::tracker::TrackerClient;
use tvmspec::rpc::{TrackerOffer, TrackerPeer, TrackerRequest};

/// How often the tracker is asked, as by the servers of Python.
const PERIOD: Duration = Duration::from_secs(2);

/// How long a client that got a key has a session kept free for it, as by the servers of Python.
const RESERVED: Duration = Duration::from_secs(6);

/// How many keys that were handed out still open a session.
const REMEMBERED: usize = 64;

/// The match keys that clients may come with.
#[derive(Default)]
pub(super) struct MatchKeys {
    keys: Mutex<VecDeque<String>>,
}

impl MatchKeys {
    /// Whether this is one of the newest. A client with any other wants another server.
    pub(super) fn contains(&self, key: &str) -> bool {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().any(|own| own == key)
    }

    fn push(&self, key: String) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push_back(key);
        if keys.len() > REMEMBERED {
            keys.pop_front();
        }
    }
}

/// What is offered, and where.
pub(super) struct TrackerLine {
    /// The tracker, as `HOST:PORT`.
    pub(super) tracker: String,
    /// What clients ask the tracker for.
    pub(super) key: String,
    /// Where the server listens.
    pub(super) at: SocketAddr,
    /// The host that clients are sent to, where it is not the one that the tracker sees.
    pub(super) host: Option<String>,
    /// How many sessions there are at a time.
    pub(super) sessions: usize,
    pub(super) keys: Arc<MatchKeys>,
    pub(super) running: Arc<RunningSessions>,
    /// Whether the log has that clients do not reach the server: once, and not for each connection to the tracker.
    pub(super) is_warned: Cell<bool>,
    /// Hears when the tracker has the first offer, or the log why it has not.
    pub(super) heard: SyncSender<()>,
}

impl TrackerLine {
    /// Keeps the server in the tracker until the server drains: a tracker that is gone is looked for again.
    pub(super) fn keep(&self) {
        let mut last = String::new();
        while !self.running.is_draining() {
            // It returns when the server drains. The tracker withdraws an offer when its connection ends.
            let Err(error) = self.serve() else { return };
            let error = error.reason();
            // A tracker that is not there would fill the log.
            if error != last {
                output::note(format_args!("tracker {}: {error}", self.tracker));
                last = error;
            }
            self.is_heard();
            self.running.pause(PERIOD);
        }
    }

    /// The tracker was reached, or the log has why it was not.
    fn is_heard(&self) {
        // Full or closed behind the first time, and nothing waits any more.
        let _ = self.heard.try_send(());
    }

    /// A server that clients are sent to and do not reach looks as good as one that has none. `seen` is its address, as the tracker has it.
    fn warn(&self, seen: IpAddr) {
        let is_hidden = self.at.ip().is_loopback() && !seen.is_loopback();
        if is_hidden && self.host.is_none() && !self.is_warned.replace(true) {
            output::note(format_args!(
                "warning: the tracker sends clients to {seen}, and this server listens at {} alone: --host {seen}",
                self.at.ip()
            ));
        }
    }

    /// One connection.
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
            // A client that never comes does not hold its session for ever.
            taken.retain(|since| now.duration_since(*since) < RESERVED);
            let busy = self.running.count() + taken.len();
            if offered.is_none() && busy < self.sessions {
                let match_key = format!("{}:{}", self.key, random());
                // Known before it is handed out: a client may be here before the tracker's answer is.
                self.keys.push(match_key.clone());
                connection.order(&TrackerRequest::Put(TrackerOffer {
                    key: self.key.clone(),
                    port: self.at.port(),
                    match_key: match_key.clone(),
                    host: self.host.clone(),
                }))?;
                offered = Some(match_key);
                self.is_heard();
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
                // The client that has the key is not here yet: a session stays free for it.
                if self.running.count() <= before {
                    taken.push_back(Instant::now());
                }
            }
        }
        Ok(())
    }
}

/// A number from 0 to 1, as the keys of Python's servers have it.
pub(super) fn random() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    number as f64 / u64::MAX as f64
}
