//! The peers of a proxy: their hellos, the waiting peers, and the sessions of paired peers.

use super::super::handshake::{Handshake, Handshakes, PATIENCE};
use super::super::{Hello, HelloAnswer, Speaker, threads};
use super::options::{ProxyEvent, ProxyOptions, ProxyWatch};
use super::relay::{SessionCapture, relay};
#[cfg(feature = "web")]
use super::web::{self, WebPeer};
use crate::lock::lock;
use crate::release::Release;
use crate::wire::Writer;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
#[cfg(feature = "web")]
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two checks of a waiting peer: whether it has left, and whether its time is over.
const TURN: Duration = Duration::from_millis(100);

/// State that the threads of a proxy share: the waiting peers, and whether the proxy is stopping.
pub(super) struct ProxyShared {
    pub(super) options: ProxyOptions,
    /// Waiting peers by side and key.
    pub(super) waiting: Mutex<HashMap<(Speaker, String), ProxyPeer>>,
    /// Notified when a server begins to wait, or the proxy stops.
    pub(super) changed: Condvar,
    pub(super) stopping: AtomicBool,
    /// Number of connections whose peers have sent a hello.
    pub(super) connections: AtomicUsize,
    /// Connections without a hello.
    pub(super) handshakes: Arc<Handshakes>,
    pub(super) sessions: Mutex<u64>,
}

/// One counted connection of a proxy. It is counted until it is dropped.
struct CountedConnection<'a>(&'a AtomicUsize);

impl<'a> CountedConnection<'a> {
    fn new(count: &'a AtomicUsize) -> CountedConnection<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        CountedConnection(count)
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A peer whose hello has been read.
pub(super) struct ProxyPeer {
    stream: Arc<TcpStream>,
    address: SocketAddr,
    key: String,
    /// True if the other side has been paired with it. From then on, its bytes belong to the session.
    is_taken: Arc<AtomicBool>,
}

impl ProxyShared {
    /// Stops accepting peers, and wakes those that wait.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.handshakes.close();
        self.changed.notify_all();
    }

    /// Returns whether the limit of connections is reached.
    pub(super) fn is_full(&self) -> bool {
        // A connection that was closed for others no longer counts, although its thread may still run.
        let count = self.connections.load(Ordering::SeqCst) + self.handshakes.count();
        count >= self.options.connections
    }

    /// Returns whether the proxy accepts no more peers.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Waits at most `most` for a server to arrive or for the proxy to stop.
    pub(super) fn pause(&self, most: Duration) {
        let waiting = lock(&self.waiting);
        if !self.is_stopping() {
            drop(self.changed.wait_timeout(waiting, most));
        }
    }

    /// Returns the waiting servers: the key under which each is offered, and its match key.
    pub(super) fn servers(&self) -> Vec<(String, String)> {
        let waiting = lock(&self.waiting);
        let servers = waiting
            .iter()
            .filter(|((side, _), _)| *side == Speaker::Server);
        let pairs = servers.map(|((_, match_key), _)| {
            let key = match_key.rsplit_once(':').map_or("", |(key, _)| key);
            (key.to_owned(), match_key.clone())
        });
        pairs.collect()
    }

    /// Gives the servers that wait under these match keys new match keys.
    pub(super) fn rename<'k>(&self, keys: impl Iterator<Item = &'k str>) {
        let mut waiting = lock(&self.waiting);
        for match_key in keys {
            let key = match_key.rsplit_once(':').map_or("", |(key, _)| key);
            if let Some(peer) = waiting.remove(&(Speaker::Server, match_key.to_owned())) {
                waiting.insert((Speaker::Server, single_use_key(key)), peer);
            }
        }
    }

    /// Serves a connection that requests a WebSocket. After the handshake it is a peer like any other.
    #[cfg(feature = "web")]
    pub(super) fn serve_web(
        &self,
        stream: Arc<TcpStream>,
        handshake: Handshake,
        address: SocketAddr,
        watch: &ProxyWatch,
    ) -> Result<(), String> {
        let gone = |why: io::Error| why.to_string();
        stream.set_nodelay(true).map_err(gone)?;
        let peer = WebPeer::accept(stream, PATIENCE)?;
        let (own, other) = web::pair().map_err(gone)?;
        thread::scope(|scope| {
            let bridge = move || peer.relay_messages(&own);
            let bridge = threads::spawn_scoped(scope, bridge);
            let bridge = bridge.map_err(|why| threads::no_thread_message(&why))?;
            // `handshake` shuts down the WebSocket's own connection if it must make room. The bridge then ends the other side.
            let served = self.serve(Arc::new(other), handshake, address, watch);
            let why = bridge.join().unwrap_or_default();
            match (served, why) {
                (Ok(()), Some(why)) => Err(why),
                (served, _) => served,
            }
        })
    }

    /// Serves one connection, from its hello to its end.
    pub(super) fn serve(
        &self,
        stream: Arc<TcpStream>,
        handshake: Handshake,
        address: SocketAddr,
        watch: &ProxyWatch,
    ) -> Result<(), String> {
        let gone = |why: io::Error| why.to_string();
        stream.set_nodelay(true).map_err(gone)?;
        if let Some(to) = self.options.to {
            // Clients of servers and of trackers write first. A peer that writes nothing uses no session of the server.
            handshake.await_byte(&stream)?;
            let _counted = CountedConnection::new(&self.connections);
            handshake.end(&stream)?;
            let number = self.next_session();
            let server = TcpStream::connect_timeout(&to, PATIENCE).map_err(gone)?;
            server.set_nodelay(true).map_err(gone)?;
            // RPC-73: nothing is paired, so the hello is forwarded and recorded like all later bytes.
            return self.session(number, &stream, address, &server, to, &[], &[], watch);
        }
        let hello = handshake.read_hello(&stream)?;
        // Counted before the handshake ends, so that the connection is never missing from both counts.
        let _counted = CountedConnection::new(&self.connections);
        handshake.end(&stream)?;
        let pair_key = hello.pair_key().map_err(|broken| broken.to_string())?;
        let (side, mut pair_key) = (hello.role(), pair_key.to_owned());
        let peer = ProxyPeer {
            stream,
            address,
            key: hello.key.into_owned(),
            is_taken: Arc::default(),
        };
        let is_tracked = self.options.tracker.is_some();
        if is_tracked && side == Speaker::Server {
            // RPC-67: a key that the tracker gives to a client opens one session.
            pair_key = single_use_key(&pair_key);
        }
        let other = match side {
            Speaker::Client => Speaker::Server,
            Speaker::Server => Speaker::Client,
        };
        let found = {
            let mut waiting = lock(&self.waiting);
            let found = waiting.remove(&(other, pair_key.clone()));
            let place = (side, pair_key.clone());
            match found {
                Some(found) => {
                    found.is_taken.store(true, Ordering::SeqCst);
                    Some((found, peer))
                }
                None if waiting.contains_key(&place) => {
                    drop(waiting);
                    // RPC-72.
                    let _ = (&*peer.stream).write_all(&written(&HelloAnswer::Duplicate)?);
                    return Err(format!("another peer waits as {:?}", peer.key));
                }
                None if is_tracked && side == Speaker::Client => {
                    drop(waiting);
                    let _ = (&*peer.stream).write_all(&written(&HelloAnswer::Mismatch)?);
                    return Err(format!("no server waits for {:?}", peer.key));
                }
                None => {
                    watch(&ProxyEvent::Waits(address, peer.key.clone()));
                    let (own, is_taken) = (peer.stream.clone(), peer.is_taken.clone());
                    own.set_read_timeout(Some(TURN)).map_err(gone)?;
                    waiting.insert(place, peer);
                    drop(waiting);
                    self.changed.notify_all();
                    return self.wait(&own, &is_taken, address);
                }
            }
        };
        let Some((found, peer)) = found else {
            return Ok(());
        };
        let (client, server) = match side {
            Speaker::Client => (peer, found),
            Speaker::Server => (found, peer),
        };
        // Taken before a peer learns of its session, so that later sessions have higher numbers.
        let number = self.next_session();
        // RPC-71: each side receives the whole key of the other.
        let to_client = written(&HelloAnswer::Success(server.key.as_str().into()))?;
        let to_server = written(&HelloAnswer::Success(client.key.as_str().into()))?;
        for (stream, answer) in [(&client.stream, &to_client), (&server.stream, &to_server)] {
            stream.set_read_timeout(None).map_err(gone)?;
            let mut stream = &**stream;
            stream.write_all(answer).map_err(gone)?;
        }
        let mut hello = Writer::new();
        let key = client.key.as_str().into();
        Hello { key }
            .write(&mut hello)
            .map_err(|broken| broken.to_string())?;
        let hello = hello.into_bytes();
        self.session(
            number,
            &client.stream,
            client.address,
            &server.stream,
            server.address,
            &hello,
            &to_client,
            watch,
        )
    }

    /// Forwards the bytes of both sides, and records them after the bytes that the proxy itself has read and written. `first` is the
    /// session's number, unless another proxy has already recorded a session with this number.
    #[expect(clippy::too_many_arguments, reason = "two sides of three things each")]
    fn session(
        &self,
        first: u64,
        client: &TcpStream,
        client_address: SocketAddr,
        server: &TcpStream,
        server_address: SocketAddr,
        from_client: &[u8],
        from_server: &[u8],
        watch: &ProxyWatch,
    ) -> Result<(), String> {
        let number = AtomicU64::new(first);
        let ended = |why: String| {
            let number = number.load(Ordering::SeqCst);
            watch(&ProxyEvent::Unrecorded(number, why));
        };
        let record = loop {
            let name = format!("session-{}", number.load(Ordering::SeqCst));
            match self.options.capture.as_ref() {
                None => break None,
                Some(folder) => match SessionCapture::new(folder, &name, &ended) {
                    Ok(record) => break Some(record),
                    // Another proxy records in the same folder.
                    Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                        number.store(self.next_session(), Ordering::SeqCst);
                    }
                    Err(why) => {
                        ended(why.to_string());
                        break None;
                    }
                },
            }
        };
        let number = number.load(Ordering::SeqCst);
        watch(&ProxyEvent::Begins(number, client_address, server_address));
        if let Some(record) = &record {
            record.write(Speaker::Client, from_client);
            record.write(Speaker::Server, from_server);
        }
        let passed = relay(client, server, record.as_ref());
        let (requests, answers) = *passed.as_ref().unwrap_or(&(0, 0));
        watch(&ProxyEvent::Ends(number, requests, answers));
        passed
            .map(drop)
            .map_err(|why| threads::no_thread_message(&why))
    }

    /// Returns a new session number.
    fn next_session(&self) -> u64 {
        let mut sessions = lock(&self.sessions);
        *sessions = sessions.saturating_add(1);
        *sessions
    }

    /// Keeps a waiting peer until the other side is paired with it, it leaves, or its time is over.
    fn wait(
        &self,
        own: &TcpStream,
        is_taken: &AtomicBool,
        address: SocketAddr,
    ) -> Result<(), String> {
        let end = Instant::now().checked_add(self.options.wait);
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        loop {
            let why = match own.peek(&mut [0]) {
                Ok(0) => Some("it is gone"),
                Ok(_) => Some("it has written before it was answered"),
                Err(_) if self.is_stopping() => Some("the proxy ends"),
                Err(_) if is_over() => Some("no other side came"),
                Err(why) if is_timeout(&why) => None,
                Err(_) => Some("it is gone"),
            };
            if is_taken.load(Ordering::SeqCst) {
                return Ok(());
            }
            let Some(why) = why else { continue };
            let mut waiting = lock(&self.waiting);
            // Found by its address, because `rename` changes its key.
            let place = waiting.iter().find(|(_, peer)| peer.address == address);
            let Some(place) = place.map(|(place, _)| place.clone()) else {
                // The peer has been paired: its bytes now belong to the session.
                return Ok(());
            };
            waiting.remove(&place);
            drop(waiting);
            // RPC-72.
            let mut own = own;
            let _ = own.write_all(&written(&HelloAnswer::Mismatch)?);
            let _ = own.shutdown(Shutdown::Both);
            return Err(why.to_owned());
        }
    }
}

fn written(answer: &HelloAnswer<'_>) -> Result<Vec<u8>, String> {
    let mut out = Writer::new();
    let step = answer.write(Release::LAST, &mut out);
    step.map_err(|broken| broken.to_string())?;
    Ok(out.into_bytes())
}

/// Returns whether a read with a limit failed because nothing has come in.
fn is_timeout(why: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(why.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Returns a match key for one session: the key of a server and a random number.
fn single_use_key(key: &str) -> String {
    // RPC-67: written as a fraction, like that of released proxies. An f64 keeps 53 of the 64 random bits.
    let number = RandomState::new().build_hasher().finish();
    format!("{key}:{}", number as f64 / u64::MAX as f64)
}
