//! The line between a proxy and a tracker: each server that waits is offered under a key of its own (RPC-67).

use super::super::tracker::TrackerClient;
use super::super::{TrackerOffer, TrackerPeer, TrackerRequest};
use super::options::{ProxyEvent, ProxyWatch};
use super::peers::ProxyShared;
use crate::function::Result;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How often the tracker is asked, as by proxies of Python.
const PERIOD: Duration = Duration::from_secs(2);

/// How long a key that was handed out waits for its client, as at proxies of Python.
const RESERVED: Duration = Duration::from_secs(5);

/// Keeps the servers of the proxy in the tracker until the proxy ends: a tracker that is gone is looked for again.
pub(super) fn keep(shared: &ProxyShared, tracker: &str, port: u16, watch: &ProxyWatch) {
    let mut last = String::new();
    while !shared.is_stopping() {
        let Err(error) = report(shared, tracker, port) else {
            return;
        };
        let error = error.reason();
        // A tracker that is not there would fill the log.
        if error != last {
            watch(&ProxyEvent::Tracker(error.clone()));
            last = error;
        }
        shared.pause(PERIOD);
    }
}

/// One connection.
fn report(shared: &ProxyShared, tracker: &str, port: u16) -> Result<()> {
    let mut connection = TrackerClient::connect(tracker)?;
    // By match key: since when the tracker has it no more.
    let mut offered: HashMap<String, Option<Instant>> = HashMap::new();
    let mut stated = BTreeSet::new();
    while !shared.is_stopping() {
        let pending = connection.pending_match_keys()?;
        let now = Instant::now();
        for (_, taken) in offered.iter_mut().filter(|(key, _)| !pending.contains(key)) {
            // RPC-67: since the first look at which it was gone: a later one must not put the five seconds off.
            taken.get_or_insert(now);
        }
        // No peer came with the key: another one, so that the old one opens nothing.
        let late = |taken: &Option<Instant>| {
            taken.is_some_and(|taken| now.duration_since(taken) > RESERVED)
        };
        let stale = offered.iter().filter(|(_, taken)| late(taken));
        shared.rename(stale.map(|(key, _)| key.as_str()));
        let waiting = shared.servers();
        offered.retain(|key, _| waiting.iter().any(|(_, waits)| waits == key));
        for (key, match_key) in waiting {
            if offered.contains_key(&match_key) {
                continue;
            }
            // First: who sees the server in a queue sees its key in the list of servers.
            if stated.insert(key.clone()) {
                let keys: Vec<&str> = stated.iter().map(String::as_str).collect();
                let key = format!("server:proxy[{}]", keys.join(","));
                let address = Some((None, port));
                connection.order(&TrackerRequest::UpdateInfo(TrackerPeer { key, address }))?;
            }
            connection.order(&TrackerRequest::Put(TrackerOffer {
                key,
                port,
                match_key: match_key.clone(),
                // RPC-56: clients are sent to where the tracker sees this connection come from.
                host: None,
            }))?;
            offered.insert(match_key, None);
        }
        shared.pause(PERIOD);
    }
    Ok(())
}
