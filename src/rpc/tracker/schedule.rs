//! Assignment of servers to clients: one queue of offers and one of requests for each key. The cost of a step depends only on the entries
//! that it changes.

use super::super::{Hello, TrackerSummary};
use super::super::{TrackerCount, TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Limits on the work of a tracker, for one peer and for all of them. Upstream has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackerLimits {
    /// Maximum number of connections at the same time; a further one is closed.
    pub connections: usize,
    /// Maximum number of waiting offers, and of waiting requests, of one connection; a further one closes it.
    pub waiting: usize,
    /// Maximum number of keys of all connections together; a request with a further one closes its connection.
    pub keys: usize,
    /// Maximum number of keys of the waiting offers and requests of one connection; a further one closes it.
    pub own_keys: usize,
}

impl Default for TrackerLimits {
    fn default() -> TrackerLimits {
        TrackerLimits {
            connections: 20_000,
            waiting: 20_000,
            keys: 10_000,
            // A proxy offers all of its servers over one connection.
            own_keys: 1_000,
        }
    }
}

/// The effect of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackerOutcome {
    /// Replies, each with the number of its connection.
    Replies(Vec<(u64, TrackerReply)>),
    /// The connection exceeds [`TrackerLimits`] and is closed.
    Excess,
    /// The connection gets Success, and the tracker ends (RPC-65).
    Stop,
}

/// Offers and requests of all connections.
pub struct TrackerSchedule {
    limits: TrackerLimits,
    stop_key: String,
    /// Queues by number, in the order in which their keys appeared, which is the order of the summary. Unused queues are dropped when
    /// the limit is reached, so that a peer that has left takes no room from others.
    queues: BTreeMap<u64, KeyQueue>,
    by_key: HashMap<String, u64>,
    /// Number of connections that stated to be a server of a key. Such a queue is kept even if it is empty, because all of its servers may
    /// be in use.
    servers: HashMap<String, usize>,
    peers: BTreeMap<u64, Peer>,
    /// Counter of offers, requests and queues: an earlier one has a smaller number.
    arrivals: u64,
}

debug_fields!(TrackerSchedule: arrivals);

/// Offers and requests of one key. One of the two is empty, except while a request is answered.
struct KeyQueue {
    key: String,
    /// Offers by arrival (RPC-62).
    free: BTreeMap<u64, (u64, TrackerOffer)>,
    /// Requests by priority, the highest first, then by arrival (RPC-61).
    pending: BTreeMap<QueuePosition, u64>,
}

type QueuePosition = (Reverse<i64>, u64);

/// A connection, and the information that its peer stated in UpdateInfo.
struct Peer {
    host: String,
    info: Option<TrackerPeer>,
    /// Arrival and queue of each of its offers, and below queue and position of each request.
    offers: BTreeSet<(u64, u64)>,
    requests: BTreeSet<(u64, QueuePosition)>,
    /// Number of its waiting offers and requests, by queue.
    queues: BTreeMap<u64, usize>,
}

impl Peer {
    fn wait(&mut self, queue: u64) {
        *self.queues.entry(queue).or_default() += 1;
    }

    fn wait_no_more(&mut self, queue: u64) {
        if let Some(count) = self.queues.get_mut(&queue) {
            *count -= 1;
            if *count == 0 {
                self.queues.remove(&queue);
            }
        }
    }

    /// Returns the key that this peer serves, if it is a server (RPC-55).
    fn server_of(&self) -> Option<&str> {
        self.info.as_ref()?.key.strip_prefix("server:")
    }
}

impl TrackerSchedule {
    /// Creates a schedule without connections. Stop must state `stop_key` (RPC-65).
    pub fn new(limits: TrackerLimits, stop_key: String) -> TrackerSchedule {
        TrackerSchedule {
            limits,
            stop_key,
            queues: BTreeMap::new(),
            by_key: HashMap::new(),
            servers: HashMap::new(),
            peers: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Adds a connection of a peer from `host`. Returns false, and does nothing, if there are too many.
    pub fn open(&mut self, connection: u64, host: &str) -> bool {
        if self.peers.len() >= self.limits.connections {
            return false;
        }
        let peer = Peer {
            host: host.to_owned(),
            info: None,
            offers: BTreeSet::new(),
            requests: BTreeSet::new(),
            queues: BTreeMap::new(),
        };
        self.peers.insert(connection, peer);
        true
    }

    /// Removes a connection, and withdraws its offers and requests (RPC-63).
    pub fn close(&mut self, connection: u64) {
        let Some(peer) = self.peers.remove(&connection) else {
            return;
        };
        // RPC-63: up to 0.4 offers stay. Later releases keep those of a peer that has sent no UpdateInfo, or whose match key has no colon.
        for (arrival, queue) in &peer.offers {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.free.remove(arrival);
            }
        }
        // RPC-63: in every release requests stay, so that the next server is assigned to a client that has left.
        for (queue, place) in &peer.requests {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.pending.remove(place);
            }
        }
        if let Some(key) = peer.server_of() {
            self.serves_no_more(key);
        }
    }

    /// Processes a request of an open connection.
    pub fn answer(&mut self, connection: u64, request: TrackerRequest) -> TrackerOutcome {
        let done = || TrackerOutcome::Replies(vec![(connection, TrackerReply::Success)]);
        match request {
            TrackerRequest::Ping => done(),
            TrackerRequest::Stop(key) if key == self.stop_key => TrackerOutcome::Stop,
            TrackerRequest::Stop(_) => {
                TrackerOutcome::Replies(vec![(connection, TrackerReply::Fail)])
            }
            TrackerRequest::Put(offer) => self.add_offer(connection, offer),
            TrackerRequest::Request { key, priority, .. } => {
                self.request(connection, key, priority)
            }
            TrackerRequest::UpdateInfo(info) => match self.update(connection, info) {
                Some(()) => done(),
                None => TrackerOutcome::Excess,
            },
            TrackerRequest::Summary => {
                let whole = self.summary();
                let count =
                    |summary: &TrackerSummary| (summary.queues.len(), summary.servers.len());
                let counted = count(&whole);
                let mut summary = within_a_message(whole);
                if count(&summary) != counted {
                    self.drop_unused();
                    summary = within_a_message(self.summary());
                }
                let summary = TrackerReply::Summary(summary);
                TrackerOutcome::Replies(vec![(connection, summary)])
            }
            TrackerRequest::PendingMatchKeys => {
                let keys = TrackerReply::MatchKeys(self.match_keys(connection));
                TrackerOutcome::Replies(vec![(connection, keys)])
            }
        }
    }

    /// Returns the numbers of servers and requests (RPC-64).
    pub fn summary(&self) -> TrackerSummary {
        let queues = self.queues.values().map(|queue| TrackerCount {
            key: queue.key.clone(),
            free: queue.free.len() as u64,
            pending: queue.pending.len() as u64,
        });
        let servers = self.peers.values().filter_map(|peer| {
            // RPC-64: compared with `server`, without the colon of RPC-55, as the releases do. Other peers are not listed.
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

    /// Returns whether the limit of connections is reached.
    pub(super) fn is_full(&self) -> bool {
        self.peers.len() >= self.limits.connections
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.peers.len()
    }

    /// Stores the information that a peer states about itself. Returns `None` if one of its texts is too long.
    fn update(&mut self, connection: u64, info: TrackerPeer) -> Option<()> {
        let host = info.address.as_ref().and_then(|(host, _)| host.as_deref());
        if !is_short(&info.key) || !host.is_none_or(is_short) {
            return None;
        }
        let peer = self.peers.get_mut(&connection)?;
        let before = peer.server_of().map(str::to_owned);
        peer.info = Some(info);
        if let Some(key) = peer.server_of() {
            *self.servers.entry(key.to_owned()).or_default() += 1;
        }
        if let Some(key) = before {
            self.serves_no_more(&key);
        }
        Some(())
    }

    /// Stops counting one server of the key, which has left or now serves another key.
    fn serves_no_more(&mut self, key: &str) {
        if let Some(count) = self.servers.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.servers.remove(key);
            }
        }
    }

    /// Drops the queues that are empty and whose key no server states. Clients look for a key in the summary after its server has left, as
    /// with trackers of TVM (RPC-64). Queues are therefore dropped only when room is short.
    fn drop_unused(&mut self) {
        let servers = &self.servers;
        self.queues.retain(|_, queue| {
            !queue.free.is_empty() || !queue.pending.is_empty() || servers.contains_key(&queue.key)
        });
        let queues = &self.queues;
        self.by_key.retain(|_, number| queues.contains_key(number));
    }

    /// Returns the number of the queue for one more offer or request of the connection, or `None` if that exceeds a limit.
    fn queue(&mut self, connection: u64, key: &str, waits: fn(&Peer) -> usize) -> Option<u64> {
        let found = self.by_key.get(key).copied();
        let peer = self.peers.get(&connection)?;
        let is_own = found.is_some_and(|queue| peer.queues.contains_key(&queue));
        if !is_short(key)
            || waits(peer) >= self.limits.waiting
            || (!is_own && peer.queues.len() >= self.limits.own_keys)
        {
            return None;
        }
        if found.is_some() {
            return found;
        }
        if self.queues.len() >= self.limits.keys {
            self.drop_unused();
        }
        if self.queues.len() >= self.limits.keys {
            return None;
        }
        // RPC-61: arrivals are counted. Up to 0.7 the clock of the tracker decides the order, and the clock may be set back.
        let number = self.arrival();
        self.by_key.insert(key.to_owned(), number);
        let queue = KeyQueue {
            key: key.to_owned(),
            free: BTreeMap::new(),
            pending: BTreeMap::new(),
        };
        self.queues.insert(number, queue);
        Some(number)
    }

    /// Adds an offer. It waits unless a request for its key is waiting (RPC-60). The server is answered first, then the client.
    fn add_offer(&mut self, connection: u64, offer: TrackerOffer) -> TrackerOutcome {
        let arrival = self.arrival();
        if !is_short(&offer.match_key) || !offer.host.as_deref().is_none_or(is_short) {
            return TrackerOutcome::Excess;
        }
        let queue = self.queue(connection, &offer.key, |peer| peer.offers.len());
        let Some(number) = queue else {
            return TrackerOutcome::Excess;
        };
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.offers.insert((arrival, number));
            peer.wait(number);
        }
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.free.insert(arrival, (connection, offer));
        }
        let mut replies = vec![(connection, TrackerReply::Success)];
        replies.extend(self.matched(number));
        TrackerOutcome::Replies(replies)
    }

    /// Adds a request. It waits without a reply until a server of its key is free (RPC-60).
    fn request(&mut self, connection: u64, key: String, priority: i64) -> TrackerOutcome {
        let place = (Reverse(priority), self.arrival());
        let queue = self.queue(connection, &key, |peer| peer.requests.len());
        let Some(number) = queue else {
            return TrackerOutcome::Excess;
        };
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.requests.insert((number, place));
            peer.wait(number);
        }
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.pending.insert(place, connection);
        }
        TrackerOutcome::Replies(self.matched(number).into_iter().collect())
    }

    /// Assigns the first offer of a queue to its first request, if it has both, and returns the reply (RPC-60).
    fn matched(&mut self, number: u64) -> Option<(u64, TrackerReply)> {
        let KeyQueue { free, pending, .. } = self.queues.get_mut(&number)?;
        if free.is_empty() {
            return None;
        }
        // RPC-61: the map reverses priorities, so that the highest comes first. Among equal priorities, the earliest arrival comes
        // first.
        let (place, client) = pending.pop_first()?;
        let (arrival, (server, offer)) = free.pop_first()?;
        let host = self.peers.get_mut(&server).map(|peer| {
            // RPC-65 lists only offers that were not assigned.
            peer.offers.remove(&(arrival, number));
            peer.wait_no_more(number);
            peer.host.clone()
        });
        if let Some(peer) = self.peers.get_mut(&client) {
            peer.requests.remove(&(number, place));
            peer.wait_no_more(number);
        }
        let reply = TrackerReply::Server {
            host: offer.host.or(host).unwrap_or_default(),
            port: offer.port,
            match_key: offer.match_key,
        };
        Some((client, reply))
    }

    /// Returns the match keys of the waiting offers of a connection. A server whose match key is missing offers itself again (RPC-65).
    fn match_keys(&self, connection: u64) -> Vec<String> {
        let offers = self.peers.get(&connection).map(|peer| &peer.offers);
        let offers = offers.into_iter().flatten();
        let keys = offers.filter_map(|(arrival, queue)| {
            let (_, offer) = self.queues.get(queue)?.free.get(arrival)?;
            Some(offer.match_key.clone())
        });
        keys.collect()
    }

    fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}

/// Returns whether a stored text is at most as long as a session key may be (RPC-03). Clients connect to a server with its match key.
fn is_short(text: &str) -> bool {
    text.len() <= Hello::LONGEST as usize
}

/// Removes the last keys and the last servers from a summary that is too long for a message (RPC-52). Without a reply, the connection
/// of the requesting peer would end.
fn within_a_message(mut summary: TrackerSummary) -> TrackerSummary {
    let mut room = LONGEST_SUMMARY;
    // Counts, member names and punctuation together are shorter than these constants.
    let queues = summary.queues.iter();
    let queues = count_fitting(queues.map(|count| 80 + escaped(&count.key)), &mut room);
    summary.queues.truncate(queues);
    room += LONGEST_SUMMARY;
    let servers = summary.servers.iter().map(|peer| {
        let host = peer.address.as_ref().and_then(|(host, _)| host.as_deref());
        50 + escaped(&peer.key) + host.map_or(0, escaped)
    });
    let servers = count_fitting(servers, &mut room);
    summary.servers.truncate(servers);
    summary
}

/// Maximum length of the keys of a summary, in bytes. Keys and servers together may take twice as much.
const LONGEST_SUMMARY: usize = (1 << 19) - 100;

/// Returns how many of these lengths, from the first on, fit into `room` together, and subtracts them from it.
fn count_fitting(lengths: impl Iterator<Item = usize>, room: &mut usize) -> usize {
    let fits = lengths.map_while(|length| {
        *room = room.checked_sub(length)?;
        Some(())
    });
    fits.count()
}

/// Returns an upper bound of the length of a text in JSON, in bytes. A character that must be escaped takes six (RPC-53).
fn escaped(text: &str) -> usize {
    let bytes = text.chars().map(|letter| match letter {
        '"' | '\\' | '\0'..='\x1f' => 6,
        letter if letter.is_ascii() => 1,
        letter => 6 * letter.len_utf16(),
    });
    bytes.sum()
}
