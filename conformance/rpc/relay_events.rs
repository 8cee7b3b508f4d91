//! Events that a tracker or a proxy reports in `rpc.relay`.

use super::session::patience;
use crate::lock::lock;
use crate::rpc::proxy::ProxyEvent;
use crate::rpc::relay_json as relay;
use crate::rpc::tracker::TrackerEvent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Recorder of the events of a tracker or a proxy.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Vec<Event>>>);

pub(super) enum Event {
    Tracker(TrackerEvent),
    Proxy(ProxyEvent),
}

impl Events {
    pub(super) fn note(&self, event: Event) {
        lock(&self.0).push(event);
    }

    /// Waits until `count` events were recorded; `None` if they do not come in time.
    pub(super) fn await_count(&self, count: usize) -> Option<()> {
        let until = Instant::now() + patience();
        // Polls, because events come from a thread of the server, which does not wake a case.
        while lock(&self.0).len() < count {
            if Instant::now() >= until {
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
        Some(())
    }

    /// Returns the events with the names of the peers, sorted, because concurrent events of several peers have no order. Events of unnamed
    /// peers are left out, such as the connection that wakes the listener at the end.
    pub(super) fn forms(&self, names: &BTreeMap<SocketAddr, String>) -> Vec<Value> {
        let events = lock(&self.0);
        let name = |address: &SocketAddr| names.get(address).map_or("", String::as_str);
        let mut forms: Vec<Value> = events
            .iter()
            .map(|event| match event {
                Event::Tracker(TrackerEvent::Opened(peer)) => json!(["opened", name(peer)]),
                Event::Tracker(TrackerEvent::Asked(peer, request)) => {
                    json!(["asked", name(peer), relay::from_tracker_request(request)])
                }
                Event::Tracker(TrackerEvent::Paired(peer, key)) => {
                    json!(["paired", name(peer), key])
                }
                Event::Tracker(TrackerEvent::Closed(peer, None)) => json!(["closed", name(peer)]),
                Event::Tracker(TrackerEvent::Closed(peer, Some(_))) => {
                    json!(["closed-out", name(peer)])
                }
                Event::Proxy(ProxyEvent::Waits(peer, key)) => json!(["waits", name(peer), key]),
                Event::Proxy(ProxyEvent::Begins(number, client, server)) => {
                    json!(["begins", number, name(client), name(server)])
                }
                Event::Proxy(ProxyEvent::Ends(number, client, server)) => {
                    json!(["ends", number, client, server])
                }
                Event::Proxy(ProxyEvent::Unrecorded(number, _)) => json!(["unrecorded", number]),
                Event::Proxy(ProxyEvent::Closed(peer, _)) => json!(["closed-out", name(peer)]),
                Event::Proxy(ProxyEvent::Tracker(_)) => json!(["no-tracker"]),
            })
            .filter(|form| form[1] != "")
            .collect();
        forms.sort_by_key(Value::to_string);
        forms
    }
}
