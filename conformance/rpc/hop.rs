//! Chains of servers that a session passes through (RPC-93). Each is at a port of this machine, and connects to the next.

use super::peer;
use super::server_start::ServerStart;
use super::session::patience;
use crate::conformance::op::OpError;
use crate::release::Release;
use crate::rpc::PackedValue;
use crate::rpc::server::serve;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A port at which no server listens.
const NOWHERE: u16 = 1;

/// The peer to which a server connects.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(in crate::conformance) enum HopStart {
    /// A peer that plays a script.
    Plays { plays: Vec<Value> },
    /// No peer, if true.
    Absent { absent: bool },
    /// Another server.
    Serves(Box<ServerStart>),
}

/// Port and key of a server to which a session is passed on.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::conformance) struct HopPlace {
    pub(super) port: u16,
    key: String,
}

impl HopPlace {
    /// Returns the arguments of InitServer that lead a client of `release` through all of `places` (RPC-80).
    pub(super) fn constructor(places: &[HopPlace], release: Release) -> Vec<PackedValue<'static>> {
        let text = |text: &str| PackedValue::Str(Cow::Owned(text.as_bytes().to_vec()));
        let mut args = Vec::new();
        for place in places {
            let port = PackedValue::Int(place.port.into());
            args.extend([
                text("rpc.Connect"),
                text("127.0.0.1"),
                port,
                text(&place.key),
            ]);
            match release.minor() {
                // RPC-80: the flag exists from 0.9 on.
                0..=8 => {}
                // RPC-43: in these releases a bool has no separate code.
                9..=17 => args.push(PackedValue::Int(0)),
                _ => args.push(PackedValue::Bool(0)),
            }
        }
        args
    }
}

/// The servers after the first one, which end with it.
pub(super) struct NextServers {
    servers: Vec<NextServer>,
}

/// A server, or a peer that replaces it.
struct NextServer {
    place: HopPlace,
    /// Thread of the server; `None` for an absent server.
    runs: Option<JoinHandle<Result<PeerInput, OpError>>>,
    /// Set when the session has ended: then the next connection only wakes the thread.
    is_over: Arc<AtomicBool>,
}

/// The input of a peer; `None` if nothing connected to it, or if it is a server.
type PeerInput = Option<Vec<Value>>;

impl NextServers {
    /// Starts the chain after a server that is started as `first`, for clients of `release`.
    pub(super) fn start(first: &ServerStart, release: Release) -> Result<NextServers, OpError> {
        let Some(hop) = &first.hop else {
            return Ok(NextServers {
                servers: Vec::new(),
            });
        };
        // Started from the end, because each server is started with the place of the next one.
        let mut all = match hop {
            HopStart::Serves(next) => NextServers::start(next, release)?,
            HopStart::Plays { .. } | HopStart::Absent { .. } => NextServers {
                servers: Vec::new(),
            },
        };
        let server = NextServer::start(hop, all.places().first(), release)?;
        all.servers.insert(0, server);
        Ok(all)
    }

    /// Returns their places in order.
    pub(super) fn places(&self) -> Vec<HopPlace> {
        self.servers
            .iter()
            .map(|server| server.place.clone())
            .collect()
    }

    /// Waits until all servers have ended, which they do with the session. Returns the input of the scripted peer among them.
    pub(super) fn finish(self) -> Result<PeerInput, OpError> {
        let mut shown = None;
        for server in self.servers {
            server.is_over.store(true, Ordering::Relaxed);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.place.port));
            let Some(runs) = server.runs else { continue };
            // A server that still waits for a connection gets this one, which ends its thread.
            drop(TcpStream::connect(address));
            // A panic of a server is reported as a panic of the testee.
            let read = runs
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            shown = shown.or(read?);
        }
        Ok(shown)
    }
}

impl NextServer {
    /// Starts one server, which serves one session and knows the place of the next server. An absent one has a port at which nothing
    /// listens.
    fn start(
        hop: &HopStart,
        next: Option<&HopPlace>,
        release: Release,
    ) -> Result<NextServer, OpError> {
        let failed = |error: std::io::Error| OpError::Unsupported(error.to_string());
        let is_over = Arc::new(AtomicBool::new(false));
        let mut place = HopPlace {
            port: NOWHERE,
            key: String::new(),
        };
        if matches!(hop, HopStart::Absent { .. }) {
            return Ok(NextServer {
                place,
                runs: None,
                is_over,
            });
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        place.port = listener.local_addr().map_err(failed)?.port();
        let over = Arc::clone(&is_over);
        let accept = move || {
            let (stream, _) = listener.accept().ok()?;
            stream.set_nodelay(true).ok()?;
            (!over.load(Ordering::Relaxed)).then_some(stream)
        };
        let runs = match hop {
            HopStart::Serves(start) => {
                place.key = start.key().to_owned();
                let folder = tempfile::tempdir().map_err(failed)?;
                let options = start.options(release, folder.path(), next);
                std::thread::spawn(move || {
                    // A client whose first form of the arguments fails connects again with another form.
                    while let Some(stream) = accept() {
                        serve(stream, &options);
                    }
                    drop(folder);
                    Ok(None)
                })
            }
            HopStart::Plays { plays: steps } => {
                let steps = steps.clone();
                std::thread::spawn(move || {
                    let Some(mut stream) = accept() else {
                        return Ok(None);
                    };
                    stream.set_read_timeout(Some(patience())).map_err(failed)?;
                    peer::play(&steps, &mut stream, release).map(Some)
                })
            }
            HopStart::Absent { .. } => return Err(OpError::Unsupported("no server".to_owned())),
        };
        Ok(NextServer {
            place,
            runs: Some(runs),
            is_over,
        })
    }
}
