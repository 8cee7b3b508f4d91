//! A proxy that peers connect to: a thread for each connection.

use super::super::handshake::{Handshake, PATIENCE};
use super::super::threads;
use super::options::{ProxyEvent, ProxyOptions, ProxyWatch};
use super::peers::ProxyShared;
use super::relay::last_recorded;
use super::report;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// A proxy that listens.
pub struct ProxyServer {
    listener: TcpListener,
    web: Option<TcpListener>,
    shared: Arc<ProxyShared>,
}

/// Another hold on a proxy, which ends it.
#[derive(Clone)]
pub struct ProxyHandle {
    address: SocketAddr,
    web: Option<SocketAddr>,
    shared: Arc<ProxyShared>,
}

impl ProxyServer {
    /// Listens at `address`; port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of binding `address`, or that of [`ProxyOptions::web`], which it then names; Unsupported for the latter without the
    /// feature `web`.
    pub fn bind(address: SocketAddr, options: ProxyOptions) -> io::Result<ProxyServer> {
        if options.web.is_some() && cfg!(not(feature = "web")) {
            let why = "this build of tvmspec has no port for WebSockets: its feature `web` is off";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let listener = TcpListener::bind(address)?;
        let web = options.web.map(|web| {
            let listener = TcpListener::bind(web);
            listener
                .map_err(|why| io::Error::new(why.kind(), format!("WebSockets at {web}: {why}")))
        });
        let web = web.transpose()?;
        // RPC-73: numbers go on behind those of an earlier run, whose files are not written over.
        let sessions = options.capture.as_deref().map_or(0, last_recorded);
        let shared = Arc::new(ProxyShared {
            options,
            waiting: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            handshakes: Arc::default(),
            sessions: Mutex::new(sessions),
        });
        Ok(ProxyServer {
            listener,
            web,
            shared,
        })
    }

    /// Another hold on it.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of asking a socket for the address that it has.
    pub fn handle(&self) -> io::Result<ProxyHandle> {
        let address = self.listener.local_addr()?;
        let web = self.web.as_ref().map(TcpListener::local_addr).transpose()?;
        let shared = self.shared.clone();
        Ok(ProxyHandle {
            address,
            web,
            shared,
        })
    }

    /// Serves peers until [`ProxyHandle::stop`]. Then no one else is let in, who waits is sent away, and sessions go on to their end.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of starting its threads, and of asking the socket for the address that it has. None once it has begun: what one connection
    /// breaks ends that connection.
    pub fn run(self, watch: impl Fn(&ProxyEvent) + Send + Sync + 'static) -> io::Result<()> {
        let watch: Arc<ProxyWatch> = Arc::new(watch);
        let mut others = Vec::new();
        let mut begin = |work: Box<dyn FnOnce() + Send>| {
            let begun = thread::Builder::new().spawn(work);
            others.push(begun.inspect_err(|_| self.shared.stop())?);
            Ok::<_, io::Error>(())
        };
        if let Some(tracker) = self.shared.options.tracker.clone() {
            let (shared, watch) = (self.shared.clone(), watch.clone());
            let port = self.listener.local_addr()?.port();
            begin(Box::new(move || {
                report::keep(&shared, &tracker, port, &*watch);
            }))?;
        }
        #[cfg(feature = "web")]
        if let Some(web) = self.web {
            let (shared, watch) = (self.shared.clone(), watch.clone());
            begin(Box::new(move || {
                accept(web, &shared, &watch, ProxyShared::serve_web);
            }))?;
        }
        accept(self.listener, &self.shared, &watch, ProxyShared::serve);
        for thread in others {
            let _ = thread.join();
        }
        Ok(())
    }
}

/// What is done with a connection.
type Serve =
    fn(&ProxyShared, Arc<TcpStream>, Handshake, SocketAddr, &ProxyWatch) -> Result<(), String>;

/// Accepts connections until the proxy ends, each for a thread of its own, and waits for those.
fn accept(listener: TcpListener, shared: &Arc<ProxyShared>, watch: &Arc<ProxyWatch>, serve: Serve) {
    let mut threads = Vec::new();
    while !shared.is_stopping() {
        let Ok((stream, address)) = shared.handshakes.accept(&listener) else {
            continue;
        };
        // Before a thread is made for it: a peer too many costs no more than its socket.
        if shared.is_full() {
            let reason = "there are too many connections".to_owned();
            watch(&ProxyEvent::Closed(address, reason));
            continue;
        }
        let stream = Arc::new(stream);
        let handshake = shared.handshakes.begin(&stream, address);
        let (own, own_watch) = (shared.clone(), watch.clone());
        let begun = threads::spawn(threads::STACK, move || {
            let served = serve(&own, stream, handshake, address, &*own_watch);
            if let Err(why) = served {
                own_watch(&ProxyEvent::Closed(address, why));
            }
        });
        match begun {
            Ok(thread) => threads.push(thread),
            // The peer sees the end of its connection; those that are there go on.
            Err(why) => watch(&ProxyEvent::Closed(address, threads::none(&why))),
        }
        // Otherwise a proxy would keep something of each connection that it ever had.
        threads.retain(|thread| !thread.is_finished());
    }
    // Before the sessions end: the system would go on to let peers in, who would wait for a hello.
    drop(listener);
    for thread in threads {
        let _ = thread.join();
    }
}

impl ProxyHandle {
    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where peers come in by a WebSocket.
    pub fn web_address(&self) -> Option<SocketAddr> {
        self.web
    }

    /// Ends the proxy; [`ProxyServer::run`] returns once its sessions are over.
    pub fn stop(&self) {
        self.shared.stop();
        for mut address in [Some(self.address), self.web].into_iter().flatten() {
            // A connection wakes the listener up. One to every address comes from this host.
            if address.ip().is_unspecified() {
                address.set_ip(match address {
                    SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                    SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                });
            }
            let _ = TcpStream::connect_timeout(&address, PATIENCE);
        }
    }
}
