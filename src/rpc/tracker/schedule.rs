//! Who gets which server: queues of offers and of requests, one pair for each key. No step looks at more of them than it changes.

use super::super::{Hello, TrackerSummary};
use super::super::{TrackerCount, TrackerOffer, TrackerPeer, TrackerReply, TrackerRequest};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What one peer, and all of them, may keep a tracker busy with. Upstream has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackerLimits {
    /// Connections at the same time; one more is closed.
    pub connections: usize,
    /// Offers and requests of one connection that wait; one more closes it.
    pub waiting: usize,
    /// Keys that all connections together use; a request with one more closes its connection.
    pub keys: usize,
    /// Keys of the offers and requests of one connection that wait; one more closes it.
    pub own_keys: usize,
}

impl Default for TrackerLimits {
    fn default() -> TrackerLimits {
        TrackerLimits {
            connections: 20_000,
            waiting: 20_000,
            keys: 10_000,
            // A proxy offers the servers behind it over one connection.
            own_keys: 1_000,
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
    /// By number, in the order in which their keys came up, as the summary lists them. Where room is short, those without use are dropped: a
    /// peer that is gone takes none from others.
    queues: BTreeMap<u64, KeyQueue>,
    by_key: HashMap<String, u64>,
    /// How many connections have stated to be the server of a key. A queue of it stays, as all of them may be taken.
    servers: HashMap<String, usize>,
    peers: BTreeMap<u64, Peer>,
    /// Counts offers, requests and queues: what came first has the smaller number.
    arrivals: u64,
}

/// Those of one key. One of the two is empty, except while a request is answered.
struct KeyQueue {
    key: String,
    /// RPC-62: by arrival.
    free: BTreeMap<u64, (u64, TrackerOffer)>,
    /// RPC-61: by priority, the highest first, then by arrival.
    pending: BTreeMap<QueuePosition, u64>,
}

type QueuePosition = (Reverse<i64>, u64);

/// A connection, and what its peer stated of itself.
struct Peer {
    host: String,
    info: Option<TrackerPeer>,
    /// Arrival and queue of its offers, and of its requests queue and place.
    offers: BTreeSet<(u64, u64)>,
    requests: BTreeSet<(u64, QueuePosition)>,
    /// By queue: how many of its offers and requests are there.
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

    /// The key of which this is a server (RPC-55).
    fn server_of(&self) -> Option<&str> {
        self.info.as_ref()?.key.strip_prefix("server:")
    }
}

impl TrackerSchedule {
    /// Without connections. Stop needs `stop_key` (RPC-65).
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
            queues: BTreeMap::new(),
        };
        self.peers.insert(connection, peer);
        true
    }

    /// A peer is gone: its offers and requests are withdrawn (RPC-63).
    pub fn close(&mut self, connection: u64) {
        let Some(peer) = self.peers.remove(&connection) else {
            return;
        };
        // RPC-63: up to 0.4 offers stay, and later those of a peer that has sent no UpdateInfo, or whose match key has no colon.
        for (arrival, queue) in &peer.offers {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.free.remove(arrival);
            }
        }
        // RPC-63: in every release requests stay: the next server goes to a client that is gone.
        for (queue, place) in &peer.requests {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.pending.remove(place);
            }
        }
        if let Some(key) = peer.server_of() {
            self.serves_no_more(key);
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

    /// How many servers and requests there are (RPC-64).
    pub fn summary(&self) -> TrackerSummary {
        let queues = self.queues.values().map(|queue| TrackerCount {
            key: queue.key.clone(),
            free: queue.free.len() as u64,
            pending: queue.pending.len() as u64,
        });
        let servers = self.peers.values().filter_map(|peer| {
            // RPC-64: by `server` alone, without the colon that RPC-55 has behind it, as releases look at it.
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

    /// Whether there are as many connections as there may be.
    pub(super) fn is_full(&self) -> bool {
        self.peers.len() >= self.limits.connections
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.peers.len()
    }

    /// Takes over who a peer is; none where that is longer than any peer needs.
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

    /// A server of the key is gone, or has become one of another key.
    fn serves_no_more(&mut self, key: &str) {
        if let Some(count) = self.servers.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.servers.remove(key);
            }
        }
    }

    /// Drops the queues that hold nothing and whose key is no server's. Clients look for a key in the summary when its server is gone, as they do
    /// with trackers of TVM (RPC-64), so that this is for want of room alone.
    fn drop_unused(&mut self) {
        let servers = &self.servers;
        self.queues.retain(|_, queue| {
            !queue.free.is_empty() || !queue.pending.is_empty() || servers.contains_key(&queue.key)
        });
        let queues = &self.queues;
        self.by_key.retain(|_, number| queues.contains_key(number));
    }

    /// The number of the queue in which one more offer or request of the connection may wait; none where it is one too many.
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
        // RPC-61: arrivals are counted. Up to 0.7 the clock of the tracker decides which is the oldest, and may be set back.
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

    /// One more offer: it waits, unless a request of its key does (RPC-60). The server is answered first, then that client.
    fn put(&mut self, connection: u64, offer: TrackerOffer) -> TrackerOutcome {
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

    /// One more request: it waits without a reply until a server of its key is free (RPC-60).
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

    /// The reply to the first request of a queue, where it has an offer too (RPC-60).
    fn matched(&mut self, number: u64) -> Option<(u64, TrackerReply)> {
        let KeyQueue { free, pending, .. } = self.queues.get_mut(&number)?;
        if free.is_empty() {
            return None;
        }
        // RPC-61: the highest priority is first in the map, as its numbers are reversed there; of equal ones the lowest arrival.
        let (place, client) = pending.pop_first()?;
        let (arrival, (server, offer)) = free.pop_first()?;
        let host = self.peers.get_mut(&server).map(|peer| {
            // RPC-65 is of what is not handed out.
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

    /// The match keys of the offers of a connection that wait: a server asks, and offers itself again where its own is not among them (RPC-65).
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

/// Whether a text that is kept has at most as many bytes as a key of a session (RPC-03): a server is connected to with its match key.
fn is_short(text: &str) -> bool {
    text.len() <= Hello::LONGEST as usize
}

/// RPC-52: a summary that is longer than a message leaves out the last keys and the last servers. With an answer that is not written the
/// connection of the peer that asks would end.
fn within_a_message(mut summary: TrackerSummary) -> TrackerSummary {
    let mut room = LONGEST_SUMMARY;
    // The counts, the names of the members and what is between them are shorter than these numbers.
    let queues = summary.queues.iter();
    let queues = fitting(queues.map(|count| 80 + escaped(&count.key)), &mut room);
    summary.queues.truncate(queues);
    room += LONGEST_SUMMARY;
    let servers = summary.servers.iter().map(|peer| {
        let host = peer.address.as_ref().and_then(|(host, _)| host.as_deref());
        50 + escaped(&peer.key) + host.map_or(0, escaped)
    });
    let servers = fitting(servers, &mut room);
    summary.servers.truncate(servers);
    summary
}

/// How many bytes the keys of a summary have at most, and with these the servers twice as many.
const LONGEST_SUMMARY: usize = (1 << 19) - 100;

/// How many of these lengths, from the first on, are no more than `room` together. Takes them off it.
fn fitting(lengths: impl Iterator<Item = usize>, room: &mut usize) -> usize {
    let fits = lengths.map_while(|length| {
        *room = room.checked_sub(length)?;
        Some(())
    });
    fits.count()
}

/// How many bytes a text has in JSON at most: what is no plain letter is escaped with six (RPC-53).
fn escaped(text: &str) -> usize {
    let bytes = text.chars().map(|letter| match letter {
        '"' | '\\' | '\0'..='\x1f' => 6,
        letter if letter.is_ascii() => 1,
        letter => 6 * letter.len_utf16(),
    });
    bytes.sum()
}
