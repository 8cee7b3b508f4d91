//! The servers that a session goes on to (RPC-93): each at a port of this machine, and each behind the one before.

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

/// A port that no server has.
const NOWHERE: u16 = 1;

/// What is behind a server.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(in crate::conformance) enum HopStart {
    /// A peer that a script plays.
    Plays { plays: Vec<Value> },
    /// Nothing, where that is true.
    Absent { absent: bool },
    /// Another server.
    Serves(Box<ServerStart>),
}

/// Where a server is that a session goes on to, and its key.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::conformance) struct HopPlace {
    pub(super) port: u16,
    key: String,
}

impl HopPlace {
    /// The arguments of InitServer that lead a client of `release` through all of `places` (RPC-80).
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
                // RPC-80: the bool is there from 0.9 on.
                0..=8 => {}
                // RPC-43: a bool has no code of its own.
                9..=17 => args.push(PackedValue::Int(0)),
                _ => args.push(PackedValue::Bool(0)),
            }
        }
        args
    }
}

/// The servers behind the first one, which end with it.
pub(super) struct NextServers {
    servers: Vec<NextServer>,
}

/// A server, or a peer in its place.
struct NextServer {
    place: HopPlace,
    /// What runs there; nothing where no server is.
    runs: Option<JoinHandle<Result<PeerInput, OpError>>>,
    /// Whether the session is over: the next connection is none of it.
    is_over: Arc<AtomicBool>,
}

/// What a peer read; `None` where nothing connected to it, or where it is a server.
type PeerInput = Option<Vec<Value>>;

impl NextServers {
    /// Starts what is behind a server that is started as `first`, for clients of `release`.
    pub(super) fn start(first: &ServerStart, release: Release) -> Result<NextServers, OpError> {
        let Some(hop) = &first.hop else {
            return Ok(NextServers {
                servers: Vec::new(),
            });
        };
        // From the end: each server is started with the place of the one behind it.
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

    /// Where they are, the first one first.
    pub(super) fn places(&self) -> Vec<HopPlace> {
        self.servers
            .iter()
            .map(|server| server.place.clone())
            .collect()
    }

    /// Waits until all have ended, which the session that went through them has, and returns what a peer among them read.
    pub(super) fn finish(self) -> Result<PeerInput, OpError> {
        let mut shown = None;
        for server in self.servers {
            server.is_over.store(true, Ordering::Relaxed);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.place.port));
            let Some(runs) = server.runs else { continue };
            // One that still waits for a connection gets this one, which tells it that none follows.
            drop(TcpStream::connect(address));
            // A panic of a server is one of the testee.
            let read = runs
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            shown = shown.or(read?);
        }
        Ok(shown)
    }
}

impl NextServer {
    /// Starts one server, which serves one session and knows where the next one is. An absent one has a port where nothing listens.
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
                    // A client that fails with one form of the arguments tries another one.
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
