//! A proxy that listens for peers, with one thread for each connection.

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

/// A proxy that is bound to its addresses.
pub struct ProxyServer {
    listener: TcpListener,
    web: Option<TcpListener>,
    shared: Arc<ProxyShared>,
}

debug_fields!(ProxyServer: listener, web);

/// A handle to a proxy, which can stop it.
#[derive(Clone)]
pub struct ProxyHandle {
    address: SocketAddr,
    web: Option<SocketAddr>,
    shared: Arc<ProxyShared>,
}

debug_fields!(ProxyHandle: address, web);

impl ProxyServer {
    /// Binds `address`; port 0 selects any free port.
    ///
    /// # Errors
    ///
    /// Returns [`io::Error`] of binding `address` or [`ProxyOptions::web`]; the error names the latter. Unsupported for the latter
    /// without the feature `web`.
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
        // RPC-73: numbers continue after those of an earlier run, so that its files are not overwritten.
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

    /// Returns a handle to the proxy.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the local address of a socket cannot be read.
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

    /// Serves peers until [`ProxyHandle::stop`]. Then no peer is accepted, waiting peers are rejected, and sessions continue to their
    /// end.
    ///
    /// # Errors
    ///
    /// Returns [`io::Error`] of starting its threads, and of reading the local address of the socket. There are no errors after that:
    /// an error of one connection ends only that connection.
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
                report::offer_servers(&shared, &tracker, port, &*watch);
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

/// The function that serves an accepted connection.
type Serve =
    fn(&ProxyShared, Arc<TcpStream>, Handshake, SocketAddr, &ProxyWatch) -> Result<(), String>;

/// Accepts connections until the proxy stops, each in its own thread, and waits for these threads.
fn accept(listener: TcpListener, shared: &Arc<ProxyShared>, watch: &Arc<ProxyWatch>, serve: Serve) {
    let mut threads = Vec::new();
    while !shared.is_stopping() {
        let Ok((stream, address)) = shared.handshakes.accept(&listener) else {
            continue;
        };
        // Checked before a thread is started: a connection over the limit costs only its socket.
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
            // Only this peer's connection is closed. The others continue.
            Err(why) => watch(&ProxyEvent::Closed(
                address,
                threads::no_thread_message(&why),
            )),
        }
        // Otherwise the list would grow with every connection that the proxy ever had.
        threads.retain(|thread| !thread.is_finished());
    }
    // Before the sessions end: otherwise the system would still accept peers, which would wait for an answer.
    drop(listener);
    for thread in threads {
        let _ = thread.join();
    }
}

impl ProxyHandle {
    /// Returns the address at which the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address for peers that connect by a WebSocket.
    pub fn web_address(&self) -> Option<SocketAddr> {
        self.web
    }

    /// Stops the proxy; [`ProxyServer::run`] returns when its sessions have ended.
    pub fn stop(&self) {
        self.shared.stop();
        for mut address in [Some(self.address), self.web].into_iter().flatten() {
            // A connection wakes the listener. A listener on all addresses is reached through the loopback address.
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
