//! `rpc.tunnel`: a client and a server put a connection into TLS, and bytes go through it.
//!
//! Either end is our own, or a peer that a script plays: in plain, or through TLS that knows nothing of RPC-110. Certificates and keys are
//! files of `golden/rpc/tls`. Why an end has no tunnel is a text of its own; a case looks for the parts that its user needs.

use super::functions;
use super::peer::{PeerStream, shown, up_to, word};
use super::session::{found, texts};
use super::tunnel_side::{CertificateFolder, TunnelEnd, TunnelSide};
use crate::conformance::golden::hex_bytes;
use crate::conformance::op::{Answer, OpError};
use crate::function::Error;
use crate::rpc::server::{ServerOptions, SessionReport, serve};
use crate::rpc::transport::RpcStream;
use crate::rule::Findings;
use rustls::ClientConnection;
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many bytes of a pattern go through a tunnel at most.
const LARGEST: usize = 8 << 20;

/// Both of our ends, or one of them and a peer.
pub(super) fn run(args: &Value) -> Result<Answer, OpError> {
    let place = CertificateFolder::make(args)?;
    let texts = texts(args)?;
    let seconds = args.get("seconds").map_or(Some(10.0), Value::as_f64);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = limit.ok_or_else(|| wrong("seconds"))?;
    let steps = args.get("value").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| wrong("value"))?;
    let server = TunnelSide::server(args.get("server").unwrap_or(&json!({})), &place)?;
    let client = TunnelSide::client(args.get("client").unwrap_or(&json!({})), &place)?;
    // What keeps an end from beginning is known before there is a connection.
    let failed = match (&server, &client) {
        (TunnelSide::Broken(error), _) => Some((Value::Null, raised(error, &texts))),
        (_, TunnelSide::Broken(error)) => Some((raised(error, &texts), Value::Null)),
        _ => None,
    };
    if let Some((client, server)) = failed {
        let value = json!({"client": client, "server": server, "value": []});
        return Ok(Answer::new(value, Findings::default()));
    }
    let (near, far) = sockets().map_err(no_socket)?;
    let deadline = Instant::now() + limit;
    // Both at once: each end of a handshake waits for the other.
    let begins = thread::spawn(move || server.begin(far, deadline));
    let client = client.begin(near, deadline)?;
    let server = begins
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let mut through = Through {
        client,
        server,
        writers: Vec::new(),
        served: None,
        place,
    };
    let mut shown = Vec::new();
    for step in steps {
        shown.push(through.step(step)?);
    }
    let (client, server) = through.finish(&texts)?;
    let value = json!({"client": client, "server": server, "value": shown});
    Ok(Answer::new(value, Findings::default()))
}

pub(super) fn wrong(what: &str) -> OpError {
    OpError::Unsupported(format!("`{what}` has another form"))
}

pub(super) fn no_socket(error: io::Error) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// An error as it shows: the rule, or the kind, and which of `texts` are in its own.
fn raised(error: &Error, texts: &[&str]) -> Value {
    let has = found(&error.to_string(), texts);
    match error.violation() {
        Some(broken) => {
            json!({"breaks": broken.rule().id(), "kind": broken.kind().name(), "has": has})
        }
        None => json!({"raises": error.kind().as_str(), "has": has}),
    }
}

/// Both ends of a connection.
fn sockets() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

macro_rules! peer_stream {
    ($connection:ty) => {
        impl PeerStream for StreamOwned<$connection, TcpStream> {
            fn signal(&mut self, name: &str) -> bool {
                match name {
                    "keys" => self.conn.refresh_traffic_keys().is_ok() && self.flush().is_ok(),
                    "end" => {
                        self.conn.send_close_notify();
                        // A peer that is gone shows when it is read from.
                        let _ = self.flush();
                        true
                    }
                    _ => false,
                }
            }
        }
    };
}

peer_stream!(ClientConnection);
peer_stream!(ServerConnection);

/// Bytes through a tunnel, step by step.
///
/// Ends are in one process and the socket between them is real: a deadline, a half-closed connection and a peer that writes too much happen
/// as they do between machines.
struct Through {
    client: TunnelEnd,
    server: TunnelEnd,
    /// What writes while both ends do other things.
    writers: Vec<JoinHandle<()>>,
    /// The session of a server that serves.
    served: Option<JoinHandle<SessionReport>>,
    place: CertificateFolder,
}

impl Through {
    /// What a step reads.
    fn step(&mut self, step: &Value) -> Result<Value, OpError> {
        let none = || OpError::Unsupported(format!("{step} is not a step"));
        let members = step.as_object().ok_or_else(none)?;
        let end = match members.get("end").and_then(Value::as_str) {
            Some("client") => &mut self.client,
            Some("server") => &mut self.server,
            _ => return Err(none()),
        };
        let TunnelEnd::Open(stream, below, _) = end else {
            return Ok(json!("none"));
        };
        if members.contains_key("close") {
            *stream = None;
            return Ok(Value::Null);
        }
        if members.contains_key("serves") {
            functions::register();
            let options = ServerOptions::new(self.place.path());
            let stream = stream.take().ok_or_else(none)?;
            self.served = Some(thread::spawn(move || serve(stream, &options)));
            return Ok(Value::Null);
        }
        let Some(stream) = stream else {
            return Ok(json!("none"));
        };
        match acted(members, stream, below, &mut self.writers) {
            Some(done) => done.or_else(|error| Ok(word(&error))),
            None => Err(none()),
        }
    }

    /// Ends everything, and shows what became of both ends.
    fn finish(mut self, texts: &[&str]) -> Result<(Value, Value), OpError> {
        // Streams in front of the threads: a writer and a session end with the stream of their end, or of the other.
        for end in [&mut self.client, &mut self.server] {
            if let TunnelEnd::Open(stream, _, _) = end {
                *stream = None;
            }
        }
        let mut shown = Vec::new();
        for end in [self.client, self.server] {
            shown.push(match end {
                TunnelEnd::Open(_, _, true) => json!("limited"),
                TunnelEnd::Open(..) => json!("tunnel"),
                TunnelEnd::Failed(error) => raised(&error, texts),
                TunnelEnd::Peer(plays) => {
                    let read = plays.join();
                    json!(read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
                }
            });
        }
        for writer in self.writers {
            // A writer ends with its stream.
            drop(writer.join());
        }
        if let Some(served) = self.served {
            served
                .join()
                .map_err(|_| OpError::Unsupported("the session panics".to_owned()))?;
        }
        let server = shown.pop().unwrap_or_default();
        Ok((shown.pop().unwrap_or_default(), server))
    }
}

/// What an end does; `None` for a step of another form.
fn acted(
    step: &Map<String, Value>,
    stream: &mut Box<dyn RpcStream>,
    below: &TcpStream,
    writers: &mut Vec<JoinHandle<()>>,
) -> Option<io::Result<Value>> {
    let (what, of) = step.iter().find(|(name, _)| *name != "end")?;
    let count = || {
        let count = of.as_u64().and_then(|count| usize::try_from(count).ok());
        count.filter(|count| *count <= LARGEST)
    };
    let bytes = || of.as_str().and_then(|hex| hex_bytes(hex).ok());
    let null = |done: io::Result<()>| done.map(|()| Value::Null);
    Some(match &**what {
        "write" => null(stream.write_all(&bytes()?)),
        "read" => {
            let count = count()?;
            Ok(shown(up_to(stream, count)))
        }
        "pattern" => {
            let content = pattern(count()?);
            match stream.twin() {
                Ok(Some(mut twin)) => {
                    // What does not get through is missing at the other end.
                    writers.push(thread::spawn(move || drop(twin.write_all(&content))));
                    Ok(Value::Null)
                }
                Ok(None) => Ok(json!("no twin")),
                Err(error) => Err(error),
            }
        }
        "read_pattern" => {
            let count = count()?;
            up_to(stream, count).map(|read| json!(read == pattern(count)))
        }
        "twin_ends" => match stream.twin() {
            Ok(Some(twin)) => {
                twin.end(of == &json!("both"));
                Ok(Value::Null)
            }
            Ok(None) => Ok(json!("no twin")),
            Err(error) => Err(error),
        },
        "limit" => {
            let limit = Duration::try_from_secs_f64(of.as_f64()?).ok()?;
            null(stream.set_limit(Some(limit)))
        }
        "below" => {
            let mut below = below;
            null(below.write_all(&bytes()?))
        }
        "cut" => null(below.shutdown(Shutdown::Write)),
        _ => return None,
    })
}

/// Bytes that show where one is missing.
fn pattern(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}
