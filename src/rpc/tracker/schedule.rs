//! Who gets which server: queues of offers and of requests, one pair for each key. No step looks at more of them than it changes.

use super::super::TrackerSummary;
use super::super::{TrackerCount, TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What one peer, and all of them, may keep a tracker busy with. Upstream has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackerLimits {
    /// Connections at the same time; one more is closed.
    pub connections: usize,
    /// Offers and requests of one connection that wait; one more closes it.
    pub waiting: usize,
    /// Keys in the summary; a request with one more closes its connection.
    pub keys: usize,
}

impl Default for TrackerLimits {
    fn default() -> TrackerLimits {
        TrackerLimits {
            connections: 20_000,
            waiting: 20_000,
            keys: 10_000,
        }
    }
}

/// What a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackerOutcome {
    /// These replies, each to the connection of that number.
    Replies(Vec<(u64, TrackerReply)>),
    /// The connection asked for more than [`TrackerLimits`] allow, and is closed.
    Excess,
    /// Success for the connection, and the end of the tracker (RPC-65).
    Stop,
}

/// The offers and requests of all connections.
pub struct TrackerSchedule {
    limits: TrackerLimits,
    stop_key: String,
    /// In the order in which their keys came up, as the summary lists them.
    queues: Vec<Queue>,
    by_key: HashMap<String, usize>,
    peers: BTreeMap<u64, Peer>,
    /// Counts offers and requests: what came first has the smaller number.
    arrivals: u64,
}

/// Those of one key. One of the two is empty, but while a request is answered.
struct Queue {
    key: String,
    /// RPC-62: by arrival.
    free: BTreeMap<u64, (u64, TrackerOffer)>,
    /// RPC-61: by priority, the highest first, then by arrival.
    pending: BTreeMap<QueuePosition, u64>,
}

type QueuePosition = (Reverse<i64>, u64);

/// A connection.
struct Peer {
    host: String,
    info: Option<TrackerPeer>,
    /// Queue and arrival of its offers, and of its requests their place.
    offers: BTreeSet<(u64, usize)>,
    requests: BTreeSet<(usize, QueuePosition)>,
}

impl TrackerSchedule {
    /// Without connections. Stop needs `stop_key` (RPC-65).
    pub fn new(limits: TrackerLimits, stop_key: String) -> TrackerSchedule {
        TrackerSchedule {
            limits,
            stop_key,
            queues: Vec::new(),
            by_key: HashMap::new(),
            peers: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// A peer has connected from `host`. Returns false, and does nothing, where there are too many.
    pub fn open(&mut self, connection: u64, host: &str) -> bool {
        if self.peers.len() >= self.limits.connections {
            return false;
        }
        let peer = Peer {
            host: host.to_owned(),
            info: None,
            offers: BTreeSet::new(),
            requests: BTreeSet::new(),
        };
        self.peers.insert(connection, peer);
        true
    }

    /// A peer is gone: its offers and requests are withdrawn (RPC-63).
    pub fn close(&mut self, connection: u64) {
        let Some(peer) = self.peers.remove(&connection) else {
            return;
        };
        for (arrival, queue) in peer.offers {
            self.queues[queue].free.remove(&arrival);
        }
        for (queue, place) in peer.requests {
            self.queues[queue].pending.remove(&place);
        }
    }

    /// What a request of an open connection leads to.
    pub fn answer(&mut self, connection: u64, request: TrackerRequest) -> TrackerOutcome {
        let done = || TrackerOutcome::Replies(vec![(connection, TrackerReply::Success)]);
        match request {
            TrackerRequest::Ping => done(),
            TrackerRequest::Stop(key) if key == self.stop_key => TrackerOutcome::Stop,
            TrackerRequest::Stop(_) => {
                TrackerOutcome::Replies(vec![(connection, TrackerReply::Fail)])
            }
            TrackerRequest::Put(offer) => self.put(connection, offer),
            TrackerRequest::Request { key, priority, .. } => {
                self.request(connection, key, priority)
            }
            TrackerRequest::UpdateInfo(info) => {
                if let Some(peer) = self.peers.get_mut(&connection) {
                    peer.info = Some(info);
                }
                done()
            }
            TrackerRequest::Summary => {
                let summary = TrackerReply::Summary(self.summary());
                TrackerOutcome::Replies(vec![(connection, summary)])
            }
            TrackerRequest::PendingMatchKeys => {
                let keys = TrackerReply::MatchKeys(self.match_keys(connection));
                TrackerOutcome::Replies(vec![(connection, keys)])
            }
        }
    }

    /// How many servers and requests there are (RPC-64).
    pub fn summary(&self) -> TrackerSummary {
        let queues = self.queues.iter().map(|queue| TrackerCount {
            key: queue.key.clone(),
            free: queue.free.len() as u64,
            pending: queue.pending.len() as u64,
        });
        let servers = self.peers.values().filter_map(|peer| {
            // RPC-64: what is no server's key is not listed.
            let info = peer.info.as_ref()?;
            let address = info.address.as_ref()?;
            let host = address.0.clone().unwrap_or_else(|| peer.host.clone());
            info.key.starts_with("server").then(|| TrackerPeer {
                key: info.key.clone(),
                address: Some((Some(host), address.1)),
            })
        });
        TrackerSummary {
            queues: queues.collect(),
            servers: servers.collect(),
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.peers.len()
    }

    /// The queue of a key; none where there are too many keys.
    fn queue(&mut self, key: &str) -> Option<usize> {
        if let Some(queue) = self.by_key.get(key) {
            return Some(*queue);
        }
        if self.queues.len() >= self.limits.keys {
            return None;
        }
        let queue = self.queues.len();
        self.by_key.insert(key.to_owned(), queue);
        self.queues.push(Queue {
            key: key.to_owned(),
            free: BTreeMap::new(),
            pending: BTreeMap::new(),
        });
        Some(queue)
    }

    fn put(&mut self, connection: u64, offer: TrackerOffer) -> TrackerOutcome {
        let arrival = self.arrival();
        let queue = self.queue(&offer.key);
        let most = self.limits.waiting;
        let (Some(queue), Some(peer)) = (queue, self.peers.get_mut(&connection)) else {
            return TrackerOutcome::Excess;
        };
        if peer.offers.len() >= most {
            return TrackerOutcome::Excess;
        }
        peer.offers.insert((arrival, queue));
        self.queues[queue].free.insert(arrival, (connection, offer));
        let mut replies = vec![(connection, TrackerReply::Success)];
        replies.extend(self.matched(queue));
        TrackerOutcome::Replies(replies)
    }

    fn request(&mut self, connection: u64, key: String, priority: i64) -> TrackerOutcome {
        let place = (Reverse(priority), self.arrival());
        let queue = self.queue(&key);
        let most = self.limits.waiting;
        let (Some(queue), Some(peer)) = (queue, self.peers.get_mut(&connection)) else {
            return TrackerOutcome::Excess;
        };
        if peer.requests.len() >= most {
            return TrackerOutcome::Excess;
        }
        peer.requests.insert((queue, place));
        self.queues[queue].pending.insert(place, connection);
        TrackerOutcome::Replies(self.matched(queue).into_iter().collect())
    }

    /// The reply to the first request of a queue, where it has an offer too (RPC-60).
    fn matched(&mut self, queue: usize) -> Option<(u64, TrackerReply)> {
        let Queue { free, pending, .. } = &mut self.queues[queue];
        if free.is_empty() {
            return None;
        }
        let (place, client) = pending.pop_first()?;
        let (arrival, (server, offer)) = free.pop_first()?;
        let host = self.peers.get_mut(&server).map(|peer| {
            // RPC-65 is of what is not handed out.
            peer.offers.remove(&(arrival, queue));
            peer.host.clone()
        });
        if let Some(peer) = self.peers.get_mut(&client) {
            peer.requests.remove(&(queue, place));
        }
        let reply = TrackerReply::Server {
            host: offer.host.or(host).unwrap_or_default(),
            port: offer.port,
            match_key: offer.match_key,
        };
        Some((client, reply))
    }

    fn match_keys(&self, connection: u64) -> Vec<String> {
        let offers = self.peers.get(&connection).map(|peer| &peer.offers);
        let offers = offers.into_iter().flatten();
        let keys = offers.filter_map(|(arrival, queue)| {
            let (_, offer) = self.queues[*queue].free.get(arrival)?;
            Some(offer.match_key.clone())
        });
        keys.collect()
    }

    fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}
