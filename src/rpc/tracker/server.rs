//! A tracker that peers connect to: a thread for each connection, and one schedule for all.

use super::super::{Progress, TrackerHello, TrackerReply, TrackerRequest, TrackerSummary, threads};
use super::schedule::{TrackerLimits, TrackerOutcome, TrackerSchedule};
use crate::release::Release;
use crate::rule::Violation;
use crate::wire::{Cursor, Writer};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a peer may take for its first four bytes, and a reply to be taken by the system.
const PATIENCE: Duration = Duration::from_secs(10);

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
    connections: Mutex<HashMap<u64, Arc<TrackerConnection>>>,
    stopping: AtomicBool,
    stop_key: String,
}

struct TrackerConnection {
    number: u64,
    peer: SocketAddr,
    stream: TcpStream,
    /// Held while a reply is written: those of one connection come from the threads of others too.
    writing: Mutex<()>,
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

    /// Serves peers until it is stopped, by [`TrackerHandle::stop`] or by Stop with its key (RPC-65). Then no one else is let in, what
    /// has been asked is answered, requests that wait are dropped, and all connections are closed.
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
            let accepted = self.listener.accept();
            if self.shared.stopping.load(Ordering::SeqCst) {
                break;
            }
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                // A peer that is gone already, or no file left for it: those that are there go on.
                Err(_) => {
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            let (shared, own_watch, handle) = (self.shared.clone(), watch.clone(), handle.clone());
            let connection = Arc::new(TrackerConnection {
                number,
                peer,
                stream,
                writing: Mutex::new(()),
            });
            // RPC-56: clients get it as the host: of a listener for both, an IPv4 peer has an address of IPv6, which is undone here.
            let host = peer.ip().to_canonical().to_string();
            if !locked(&shared.schedule).open(number, &host) {
                let reason = "there are too many connections".to_owned();
                watch(&TrackerEvent::Closed(peer, Some(reason)));
                continue;
            }
            locked(&shared.connections).insert(number, connection.clone());
            let begun = threads::spawn(STACK, move || {
                let end = connection.serve(&shared, &*own_watch, &handle);
                shared.forget(number);
                let _ = connection.stream.shutdown(Shutdown::Both);
                own_watch(&TrackerEvent::Closed(peer, end.err()));
            });
            match begun {
                Ok(thread) => threads.push(thread),
                // The peer sees the end of its connection; those that are there go on.
                Err(why) => {
                    self.shared.forget(number);
                    watch(&TrackerEvent::Closed(peer, Some(threads::none(&why))));
                }
            }
            // Now and then: with each connection, the looks together would grow as the square of their number.
            if threads.len().is_power_of_two() {
                threads.retain(|thread| !thread.is_finished());
            }
        }
        drop(self.listener);
        for connection in locked(&self.shared.connections).values() {
            // What is written stays; the thread sees the end and closes the rest.
            let _ = connection.stream.shutdown(Shutdown::Read);
        }
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
    /// A connection is over.
    fn forget(&self, number: u64) {
        locked(&self.schedule).close(number);
        locked(&self.connections).remove(&number);
    }

    /// Writes a reply. A peer that does not take it is closed, so that it holds up no other.
    fn send(&self, to: u64, reply: &TrackerReply, watch: &Watch) -> Result<(), Violation> {
        let connection = locked(&self.connections).get(&to).cloned();
        let Some(connection) = connection else {
            return Ok(());
        };
        let mut out = Writer::new();
        reply.write(&mut out)?;
        if let TrackerReply::Server { match_key, .. } = reply {
            watch(&TrackerEvent::Paired(connection.peer, match_key.clone()));
        }
        if connection.write(&out.into_bytes()).is_err() {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        Ok(())
    }
}

impl TrackerConnection {
    /// Reads and answers until the peer is gone.
    fn serve(
        &self,
        shared: &TrackerShared,
        watch: &Watch,
        handle: &TrackerHandle,
    ) -> Result<(), String> {
        let gone = |why: io::Error| why.to_string();
        self.stream.set_nodelay(true).map_err(gone)?;
        self.stream
            .set_write_timeout(Some(PATIENCE))
            .map_err(gone)?;
        self.stream.set_read_timeout(Some(PATIENCE)).map_err(gone)?;
        // RPC-66: what is wrong ends this thread and its connection. Before 0.25 an exception goes through the loop of the tracker, which
        // serves all of them.
        let (mut input, mut is_open) = (Vec::new(), false);
        let mut piece = vec![0; 16 << 10];
        loop {
            let count = match (&self.stream).read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) if is_open => return Err(why.to_string()),
                Err(_) => return Err("it has not written a hello".to_owned()),
            };
            // RPC-52 bounds what is kept: a message that goes beyond it is rejected by its length.
            input.extend_from_slice(&piece[..count]);
            let mut cursor = Cursor::new(&input);
            if !is_open {
                let hello = TrackerHello::read(&mut cursor).map_err(|broken| broken.to_string())?;
                let Progress::Whole(hello) = hello else {
                    continue;
                };
                let mut out = Writer::new();
                hello.write(&mut out);
                self.write(&out.into_bytes()).map_err(gone)?;
                // RPC-60: a client may wait as long as it likes.
                self.stream.set_read_timeout(None).map_err(gone)?;
                is_open = true;
                watch(&TrackerEvent::Opened(self.peer));
            }
            // RPC-56: a server of 0.7 states no address, which is no reason to close it out.
            while let Progress::Whole(request) =
                TrackerRequest::read(&mut cursor, Release::of(7)).map_err(|why| why.to_string())?
            {
                watch(&TrackerEvent::Asked(self.peer, request.clone()));
                // The lock is free again before anything is written.
                let outcome = locked(&shared.schedule).answer(self.number, request);
                match outcome {
                    TrackerOutcome::Replies(replies) => {
                        for (to, reply) in replies {
                            let sent = shared.send(to, &reply, watch);
                            sent.map_err(|broken| broken.to_string())?;
                        }
                    }
                    TrackerOutcome::Excess => return Err("it asked for too much".to_owned()),
                    TrackerOutcome::Stop => {
                        let _ = shared.send(self.number, &TrackerReply::Success, watch);
                        handle.stop();
                        return Ok(());
                    }
                }
            }
            let rest = input.len() - cursor.remaining();
            input.drain(..rest);
        }
    }

    /// Writes all of it, in one piece among those of other threads.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _one = locked(&self.writing);
        (&self.stream).write_all(bytes)
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
