//! A tracker that listens for peers: one thread for each connection, and one schedule for all.

use super::super::handshake::{Handshake, Handshakes};
use super::super::{Progress, TrackerHello, TrackerReply, TrackerRequest, TrackerSummary, threads};
use super::schedule::{TrackerLimits, TrackerOutcome, TrackerSchedule};
use crate::lock::lock;
use crate::release::Release;
use crate::wire::{Cursor, Writer};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time after which a peer is given up if it does not read the reply to its own request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time after which a peer is given up if it does not read a reply that another peer's request caused. The other peer waits meanwhile,
/// and a peer that reads its replies has room for one at once.
const OTHERS_PATIENCE: Duration = Duration::from_millis(100);

/// Message for a connection that exceeds the limit.
const TOO_MANY: &str = "there are too many connections";

/// Stack size of a connection's thread, in bytes. Its calls are shallow: RPC-59 bounds the nesting of JSON (RPC-53).
const STACK: usize = 256 << 10;

/// An event of a tracker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TrackerEvent {
    /// A peer has sent the magic number of a tracker.
    Opened(SocketAddr),
    /// A peer has sent a request.
    Asked(SocketAddr, TrackerRequest),
    /// A client was assigned a server: the client's address and the server's match key.
    Paired(SocketAddr, String),
    /// A connection has ended, with the reason if the peer broke a rule or a limit (RPC-66).
    Closed(SocketAddr, Option<String>),
}

type Watch = dyn Fn(&TrackerEvent) + Send + Sync;

/// A tracker that is bound to an address.
pub struct TrackerServer {
    listener: TcpListener,
    shared: Arc<TrackerShared>,
}

debug_fields!(TrackerServer: listener);

/// A handle to a tracker, which can stop it and read its summary.
#[derive(Clone)]
pub struct TrackerHandle {
    address: SocketAddr,
    shared: Arc<TrackerShared>,
}

debug_fields!(TrackerHandle: address);

struct TrackerShared {
    schedule: Mutex<TrackerSchedule>,
    /// Connections whose peers have sent a hello.
    connections: Mutex<HashMap<u64, Arc<TrackerConnection>>>,
    /// Connections whose peers have not sent a hello.
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
    /// Replies that requests of other peers caused. The next writer to this peer sends them, so that no other thread waits for this peer.
    queued: Mutex<Vec<Vec<u8>>>,
}

impl TrackerServer {
    /// Binds `address`; port 0 selects any free port.
    ///
    /// # Errors
    ///
    /// Returns [`io::Error`] of binding `address`, such as one that is in use.
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

    /// Returns a handle to the tracker.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the local address of the socket cannot be read.
    pub fn handle(&self) -> io::Result<TrackerHandle> {
        let address = self.listener.local_addr()?;
        let shared = self.shared.clone();
        Ok(TrackerHandle { address, shared })
    }

    /// Serves peers until [`TrackerHandle::stop`] or a Stop request with the right key ends it (RPC-65). Then all connections are closed,
    /// and requests without an answer are dropped.
    ///
    /// `watch` is called for each event, from several threads.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the local address of the socket cannot be read. An error of one connection ends only that connection.
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
            // Checked before a thread is started: a connection over the limit costs only its socket.
            if lock(&self.shared.schedule).is_full() {
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
                shared.remove_connection(number);
                connection.shut();
                own_watch(&TrackerEvent::Closed(peer, end.err()));
            });
            match begun {
                Ok(thread) => threads.push(thread),
                // Only this peer's connection is closed. The others continue.
                Err(why) => watch(&TrackerEvent::Closed(
                    peer,
                    Some(threads::no_thread_message(&why)),
                )),
            }
            // Done only at powers of two: a scan for each connection would be quadratic in their number.
            if threads.len().is_power_of_two() {
                threads.retain(|thread| !thread.is_finished());
            }
        }
        drop(self.listener);
        self.shared.handshakes.close();
        let connections = lock(&self.shared.connections).clone();
        connections.values().for_each(|open| open.shut());
        for thread in threads {
            let _ = thread.join();
        }
        Ok(())
    }
}

impl TrackerHandle {
    /// Returns the address at which the tracker listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the key that a Stop request must contain (RPC-65).
    pub fn stop_key(&self) -> &str {
        &self.shared.stop_key
    }

    /// Returns the present summary.
    pub fn summary(&self) -> TrackerSummary {
        lock(&self.shared.schedule).summary()
    }

    /// Stops the tracker; [`TrackerServer::run`] returns.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // A connection wakes the listener. A listener on all addresses is reached through the loopback address.
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
    /// Registers a connection whose peer has sent a hello. Returns false if there are too many, or if the tracker is stopping.
    fn open(&self, connection: &Arc<TrackerConnection>) -> bool {
        // RPC-56: clients get this text as the host. A dual-stack listener shows an IPv4 peer with an IPv6 address, which is converted back
        // here.
        let host = connection.peer.ip().to_canonical().to_string();
        let number = connection.number;
        if !lock(&self.schedule).open(number, &host) {
            return false;
        }
        lock(&self.connections).insert(number, connection.clone());
        // Read after the insertion: either `run` shuts this connection, or this load sees that the tracker stops.
        !self.stopping.load(Ordering::SeqCst)
    }

    /// Removes a connection that has ended.
    fn remove_connection(&self, number: u64) {
        lock(&self.schedule).close(number);
        lock(&self.connections).remove(&number);
    }

    /// Writes a reply that the request of `from` caused. Returns an error if `from` itself does not read it. Closes another peer that
    /// does not read it.
    fn send(
        &self,
        from: &TrackerConnection,
        to: u64,
        reply: &TrackerReply,
        watch: &Watch,
    ) -> Result<(), String> {
        let connection = lock(&self.connections).get(&to).cloned();
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
        lock(&connection.queued).push(out.into_bytes());
        if connection.write_queued(OTHERS_PATIENCE).is_err() {
            connection.shut();
        }
        Ok(())
    }
}

impl TrackerConnection {
    /// Reads and answers requests until the peer is gone.
    fn serve(
        self: &Arc<TrackerConnection>,
        handshake: Handshake,
        shared: &TrackerShared,
        watch: &Watch,
        handle: &TrackerHandle,
    ) -> Result<(), String> {
        let gone = |why: io::Error| why.to_string();
        self.stream.set_nodelay(true).map_err(gone)?;
        // RPC-66: an error ends this thread and its connection. Before 0.25 an exception ends the tracker's loop, which serves all
        // connections.
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
        // RPC-60: a client may wait without a limit.
        handshake.end(&self.stream)?;
        let mut piece = vec![0; 16 << 10];
        loop {
            let count = match (&*self.stream).read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) => return Err(why.to_string()),
            };
            // RPC-52 bounds the buffer: a longer message is rejected by its length.
            input.extend_from_slice(&piece[..count]);
            let mut cursor = Cursor::new(&input);
            // RPC-56: a server of 0.7 states no address. Reading by the rules of 0.7 accepts it.
            while let Progress::Whole(request) =
                TrackerRequest::read(&mut cursor, Release::of(7)).map_err(|why| why.to_string())?
            {
                // Requests without an answer are dropped when the tracker stops: there may be 200,000 requests for a summary.
                if shared.stopping.load(Ordering::SeqCst) {
                    return Ok(());
                }
                watch(&TrackerEvent::Asked(self.peer, request.clone()));
                // The lock is released before anything is written.
                let outcome = lock(&shared.schedule).answer(self.number, request);
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

    /// Writes all of `bytes`. Meanwhile nothing more of the peer is read, so that its requests wait in its own system.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let writing = lock(&self.writing);
        self.stream.set_write_timeout(Some(PATIENCE))?;
        (&*self.stream).write_all(bytes)?;
        drop(writing);
        self.write_queued(PATIENCE)
    }

    /// Writes the queued replies, unless another thread is writing to this peer: that thread then writes them.
    fn write_queued(&self, patience: Duration) -> io::Result<()> {
        // Checked again after the lock is released, because another thread may have queued a reply while it was held.
        while !lock(&self.queued).is_empty() {
            let Ok(_writing) = self.writing.try_lock() else {
                return Ok(());
            };
            self.stream.set_write_timeout(Some(patience))?;
            let queued = std::mem::take(&mut *lock(&self.queued));
            for reply in queued {
                (&*self.stream).write_all(&reply)?;
            }
        }
        Ok(())
    }

    /// Ends the connection, also for a thread that reads or writes. Fails only if it is gone.
    fn shut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Returns 64 bits that no peer can guess: the system seeds a hash map.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
