//! A tracker that peers connect to: a thread for each connection, and one schedule for all.

use super::super::handshake::{Handshake, Handshakes};
use super::super::{Progress, TrackerHello, TrackerReply, TrackerRequest, TrackerSummary, threads};
use super::schedule::{TrackerLimits, TrackerOutcome, TrackerSchedule};
use crate::release::Release;
use crate::wire::{Cursor, Writer};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time that a peer may take nothing of a reply to its own request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time that a peer may take nothing of a reply that the request of another one led to, which waits meanwhile. A peer that reads its
/// replies has room for it at once.
const OTHERS_PATIENCE: Duration = Duration::from_millis(100);

/// Why a connection is closed out that is one more than there may be.
const TOO_MANY: &str = "there are too many connections";

/// A thread of a connection calls nothing that goes deep: RPC-53 bounds the levels of JSON.
const STACK: usize = 256 << 10;

/// What happens at a tracker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TrackerEvent {
    /// A peer has written the right first bytes.
    Opened(SocketAddr),
    /// A peer has asked for something.
    Asked(SocketAddr, TrackerRequest),
    /// A client has a server: where the client is, and the server's match key.
    Paired(SocketAddr, String),
    /// A connection is over; with the reason where the peer broke a rule or a limit (RPC-66).
    Closed(SocketAddr, Option<String>),
}

type Watch = dyn Fn(&TrackerEvent) + Send + Sync;

/// A tracker that listens.
pub struct TrackerServer {
    listener: TcpListener,
    shared: Arc<TrackerShared>,
}

/// Another hold on a tracker: it ends it, and sees what it has.
#[derive(Clone)]
pub struct TrackerHandle {
    address: SocketAddr,
    shared: Arc<TrackerShared>,
}

struct TrackerShared {
    schedule: Mutex<TrackerSchedule>,
    /// Those whose peers have written a hello.
    connections: Mutex<HashMap<u64, Arc<TrackerConnection>>>,
    /// Those whose peers have not.
    handshakes: Arc<Handshakes>,
    stopping: AtomicBool,
    stop_key: String,
}

struct TrackerConnection {
    number: u64,
    peer: SocketAddr,
    stream: Arc<TcpStream>,
    /// Held while replies are written.
    writing: Mutex<()>,
    /// Replies that requests of others led to. Whoever writes next takes them along, so that no other waits for this peer.
    queued: Mutex<Vec<Vec<u8>>>,
}

impl TrackerServer {
    /// Listens at `address`; port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of binding `address`, such as one that is in use.
    pub fn bind(address: SocketAddr, limits: TrackerLimits) -> io::Result<TrackerServer> {
        let listener = TcpListener::bind(address)?;
        let stop_key = format!("tracker:{:016x}{:016x}", random(), random());
        let schedule = TrackerSchedule::new(limits, stop_key.clone());
        let shared = Arc::new(TrackerShared {
            schedule: Mutex::new(schedule),
            connections: Mutex::default(),
            handshakes: Arc::default(),
            stopping: AtomicBool::new(false),
            stop_key,
        });
        Ok(TrackerServer { listener, shared })
    }

    /// Another hold on it.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of asking the socket for the address that it has.
    pub fn handle(&self) -> io::Result<TrackerHandle> {
        let address = self.listener.local_addr()?;
        let shared = self.shared.clone();
        Ok(TrackerHandle { address, shared })
    }

    /// Serves peers until it is stopped, by [`TrackerHandle::stop`] or by Stop with its key (RPC-65). Then no one else is let in, and all
    /// connections are closed: what has been asked and not answered is dropped.
    ///
    /// `watch` sees what happens, from several threads.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of asking the socket for the address that it has. What one connection breaks ends that connection.
    pub fn run(self, watch: impl Fn(&TrackerEvent) + Send + Sync + 'static) -> io::Result<()> {
        let watch: Arc<Watch> = Arc::new(watch);
        let handle = self.handle()?;
        let mut threads = Vec::new();
        for number in 0.. {
            let accepted = self.shared.handshakes.accept(&self.listener);
            if self.shared.stopping.load(Ordering::SeqCst) {
                break;
            }
            let Ok((stream, peer)) = accepted else {
                continue;
            };
            // Before a thread is made for it: a peer too many costs no more than its socket.
            if locked(&self.shared.schedule).is_full() {
                watch(&TrackerEvent::Closed(peer, Some(TOO_MANY.to_owned())));
                continue;
            }
            let stream = Arc::new(stream);
            let handshake = self.shared.handshakes.begin(&stream, peer);
            let (shared, own_watch, handle) = (self.shared.clone(), watch.clone(), handle.clone());
            let begun = threads::spawn(STACK, move || {
                let connection = Arc::new(TrackerConnection {
                    number,
                    peer,
                    stream,
                    writing: Mutex::default(),
                    queued: Mutex::default(),
                });
                let end = connection.serve(handshake, &shared, &*own_watch, &handle);
                shared.forget(number);
                connection.shut();
                own_watch(&TrackerEvent::Closed(peer, end.err()));
            });
            match begun {
                Ok(thread) => threads.push(thread),
                // The peer sees the end of its connection; those that are there go on.
                Err(why) => watch(&TrackerEvent::Closed(peer, Some(threads::none(&why)))),
            }
            // Now and then: with each connection, the looks together would grow as the square of their number.
            if threads.len().is_power_of_two() {
                threads.retain(|thread| !thread.is_finished());
            }
        }
        drop(self.listener);
        self.shared.handshakes.close();
        let connections = locked(&self.shared.connections).clone();
        connections.values().for_each(|open| open.shut());
        for thread in threads {
            let _ = thread.join();
        }
        Ok(())
    }
}

impl TrackerHandle {
    /// Where the tracker listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What Stop must have (RPC-65).
    pub fn stop_key(&self) -> &str {
        &self.shared.stop_key
    }

    /// What the tracker has now.
    pub fn summary(&self) -> TrackerSummary {
        locked(&self.shared.schedule).summary()
    }

    /// Ends the tracker; [`TrackerServer::run`] returns.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // A connection wakes the listener up. One to every address comes from this host.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&address, PATIENCE);
    }
}

impl TrackerShared {
    /// The peer of a connection has written a hello. Returns false where there are too many, or the tracker ends.
    fn open(&self, connection: &Arc<TrackerConnection>) -> bool {
        // RPC-56: clients get it as the host: of a listener for both, an IPv4 peer has an address of IPv6, which is undone here.
        let host = connection.peer.ip().to_canonical().to_string();
        let number = connection.number;
        if !locked(&self.schedule).open(number, &host) {
            return false;
        }
        locked(&self.connections).insert(number, connection.clone());
        // After the insertion: a tracker that ends has either shut this connection or is seen to end.
        !self.stopping.load(Ordering::SeqCst)
    }

    /// A connection is over.
    fn forget(&self, number: u64) {
        locked(&self.schedule).close(number);
        locked(&self.connections).remove(&number);
    }

    /// Writes a reply to the request of `from`. Fails where that one takes no more; another peer that takes none is closed.
    fn send(
        &self,
        from: &TrackerConnection,
        to: u64,
        reply: &TrackerReply,
        watch: &Watch,
    ) -> Result<(), String> {
        let connection = locked(&self.connections).get(&to).cloned();
        let Some(connection) = connection else {
            return Ok(());
        };
        let mut out = Writer::new();
        reply.write(&mut out).map_err(|broken| broken.to_string())?;
        if let TrackerReply::Server { match_key, .. } = reply {
            watch(&TrackerEvent::Paired(connection.peer, match_key.clone()));
        }
        if to == from.number {
            let written = connection.write(&out.into_bytes());
            return written.map_err(|why| format!("it takes no reply: {why}"));
        }
        locked(&connection.queued).push(out.into_bytes());
        if connection.write_queued(OTHERS_PATIENCE).is_err() {
            connection.shut();
        }
        Ok(())
    }
}

impl TrackerConnection {
    /// Reads and answers until the peer is gone.
    fn serve(
        self: &Arc<TrackerConnection>,
        handshake: Handshake,
        shared: &TrackerShared,
        watch: &Watch,
        handle: &TrackerHandle,
    ) -> Result<(), String> {
        let gone = |why: io::Error| why.to_string();
        self.stream.set_nodelay(true).map_err(gone)?;
        // RPC-66: what is wrong ends this thread and its connection. Before 0.25 an exception goes through the loop of the tracker, which
        // serves all of them.
        let mut input = handshake.read_start(&self.stream, 4)?;
        let hello = TrackerHello::read(&mut Cursor::new(&input));
        if let Progress::Whole(hello) = hello.map_err(|broken| broken.to_string())? {
            if !shared.open(self) {
                return Err(TOO_MANY.to_owned());
            }
            let mut out = Writer::new();
            hello.write(&mut out);
            self.write(&out.into_bytes()).map_err(gone)?;
        }
        input.clear();
        watch(&TrackerEvent::Opened(self.peer));
        // RPC-60: a client may wait as long as it likes.
        handshake.end(&self.stream)?;
        let mut piece = vec![0; 16 << 10];
        loop {
            let count = match (&*self.stream).read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) => return Err(why.to_string()),
            };
            // RPC-52 bounds what is kept: a message that goes beyond it is rejected by its length.
            input.extend_from_slice(&piece[..count]);
            let mut cursor = Cursor::new(&input);
            // RPC-56: a server of 0.7 states no address, which is no reason to close it out.
            while let Progress::Whole(request) =
                TrackerRequest::read(&mut cursor, Release::of(7)).map_err(|why| why.to_string())?
            {
                // A request that is not answered before the end is dropped: it may be a summary, 200,000 times.
                if shared.stopping.load(Ordering::SeqCst) {
                    return Ok(());
                }
                watch(&TrackerEvent::Asked(self.peer, request.clone()));
                // The lock is free again before anything is written.
                let outcome = locked(&shared.schedule).answer(self.number, request);
                match outcome {
                    TrackerOutcome::Replies(replies) => {
                        for (to, reply) in replies {
                            shared.send(self, to, &reply, watch)?;
                        }
                    }
                    TrackerOutcome::Excess => return Err("it asked for too much".to_owned()),
                    TrackerOutcome::Stop => {
                        let _ = shared.send(self, self.number, &TrackerReply::Success, watch);
                        handle.stop();
                        return Ok(());
                    }
                }
            }
            let rest = input.len() - cursor.remaining();
            input.drain(..rest);
        }
    }

    /// Writes all of it. Nothing more of the peer is read meanwhile: what it asks for and does not take waits in its own system.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let writing = locked(&self.writing);
        self.stream.set_write_timeout(Some(PATIENCE))?;
        (&*self.stream).write_all(bytes)?;
        drop(writing);
        self.write_queued(PATIENCE)
    }

    /// Writes what others have queued, unless another thread writes to this peer, which then does so.
    fn write_queued(&self, patience: Duration) -> io::Result<()> {
        // Again after the lock is released: a thread that queued meanwhile has found it taken.
        while !locked(&self.queued).is_empty() {
            let Ok(_writing) = self.writing.try_lock() else {
                return Ok(());
            };
            self.stream.set_write_timeout(Some(patience))?;
            let queued = std::mem::take(&mut *locked(&self.queued));
            for reply in queued {
                (&*self.stream).write_all(&reply)?;
            }
        }
        Ok(())
    }

    /// Ends the connection, also for a thread that reads or writes. Fails only where it is gone.
    fn shut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A thread that panicked has left what it changed whole: no step stops half way.
fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 64 bits that no peer guesses: the seed of a hash map is from the system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
