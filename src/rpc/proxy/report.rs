//! Connection of a proxy to a tracker: each waiting server is offered under its own match key (RPC-67).

use super::super::tracker::TrackerClient;
use super::super::{TrackerOffer, TrackerPeer, TrackerRequest};
use super::options::{ProxyEvent, ProxyWatch};
use super::peers::ProxyShared;
use crate::function::Result;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Interval at which the tracker is asked, as in Python's proxies.
const PERIOD: Duration = Duration::from_secs(2);

/// Time for which an assigned key is reserved for its client, as in Python's proxies.
const RESERVED: Duration = Duration::from_secs(5);

/// Offers the servers of the proxy to the tracker until the proxy stops. Reconnects when the tracker is gone.
pub(super) fn offer_servers(shared: &ProxyShared, tracker: &str, port: u16, watch: &ProxyWatch) {
    let mut last = String::new();
    while !shared.is_stopping() {
        let Err(error) = report(shared, tracker, port) else {
            return;
        };
        let error = error.reason();
        // Reported once, because a missing tracker would otherwise fill the log.
        if error != last {
            watch(&ProxyEvent::Tracker(error.clone()));
            last = error;
        }
        shared.pause(PERIOD);
    }
}

/// Serves one connection to the tracker.
fn report(shared: &ProxyShared, tracker: &str, port: u16) -> Result<()> {
    let mut connection = TrackerClient::connect(tracker)?;
    // By match key: the time since when the tracker no longer lists it.
    let mut offered: HashMap<String, Option<Instant>> = HashMap::new();
    let mut stated = BTreeSet::new();
    while !shared.is_stopping() {
        let pending = connection.pending_match_keys()?;
        let now = Instant::now();
        for (_, taken) in offered.iter_mut().filter(|(key, _)| !pending.contains(key)) {
            // RPC-67: the first time counts; a later one would extend the five seconds.
            taken.get_or_insert(now);
        }
        // No client came with the key, so that the server gets another one and the old key becomes invalid.
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
            // Reported before the offer. A client that sees the server in a queue must find its key in the list of servers.
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
                // RPC-56: clients are sent to the host from which the tracker sees this connection.
                host: None,
            }))?;
            offered.insert(match_key, None);
        }
        shared.pause(PERIOD);
    }
    Ok(())
}
