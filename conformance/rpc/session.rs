//! `rpc.session`: a client plays a session against a server, request by request, and shows the server's answers.
//!
//! Handles and the numbers of tensor memory depend on the server: they are shown as `"some"`, and a request refers to them by the answer
//! that contained them. The texts of exceptions also depend on the server, so that a case only looks for parts of them.
//!
//! One client plays each case against all servers: ours in a thread, ours in a process, and one of a release. Only the connection differs
//! (`adapter/rpc.rs`).

use super::functions;
use super::hop::{HopStart, NextServers};
use super::pipe::{self, PipeEnd, PipeWriter};
use super::server_start;
use super::session_script::SessionScript;
use crate::conformance::op::{Answer, OpError};
use crate::conformance::reply::Reply;
use crate::rpc::server::{
    ServerOptions, SessionEnd, SessionReport, await_pair, serve, serve_paired,
};
use crate::rpc::transport::Transport;
use crate::rule::Findings;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns the time that a peer of this process has for an answer. Once one took longer, later peers have a twentieth of it: they are most
/// likely wrong in the same way, and there are hundreds.
pub(super) fn patience() -> Duration {
    if IS_LATE.load(Ordering::Relaxed) {
        Duration::from_millis(500)
    } else {
        Duration::from_secs(10)
    }
}

/// Set if a peer of this process took too long.
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// Makes [`patience`] short from now on.
pub(super) fn is_late() {
    IS_LATE.store(true, Ordering::Relaxed);
}

/// Runs our own server in a thread, with the servers after it.
pub(super) fn session(args: &Value) -> Result<Answer, OpError> {
    let mut script = SessionScript::read(args)?;
    functions::register();
    let next = NextServers::start(&script.server, script.release)?;
    script.hops = next.places();
    let folder = tempfile::tempdir().map_err(no_server)?;
    if script.server.simulated {
        server_start::simulated()?;
    }
    let options = (script.server).options(script.release, folder.path(), script.hops.first());
    let (played, ended) = if script.hops.is_empty() {
        over_pipe(&script, options)
    } else {
        over_socket(&script, options).map_err(no_server)?
    };
    // A panic of the server is reported as a panic of the testee.
    let report = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let read = next.finish()?;
    match played {
        Ok(mut value) => {
            if let Some(HopStart::Plays { .. }) = script.server.last_hop() {
                value["hop"] = json!(read);
            }
            if script.server.report {
                value["report"] = report
                    .as_ref()
                    .map_or(Value::Null, |report| report_form(report, &script.texts));
            }
            Ok(Answer::new(value, Findings::default()))
        }
        Err(Reply::Unsupported(why)) => Err(OpError::Unsupported(why)),
        // A server that does not answer its client is wrong, not slow.
        Err(other) => {
            is_late();
            let value = json!({"failed": format!("{other:?}")});
            Ok(Answer::new(value, Findings::default()))
        }
    }
}

fn no_server(error: std::io::Error) -> OpError {
    OpError::Unsupported(error.to_string())
}

/// Returns the texts to look for in exceptions and errors.
pub(super) fn texts(args: &Value) -> Result<Vec<&str>, OpError> {
    let wrong = || OpError::Unsupported("`texts` has another form".to_owned());
    let texts = args.get("texts").and_then(Value::as_array);
    let texts = texts.into_iter().flatten();
    texts.map(|text| text.as_str().ok_or_else(wrong)).collect()
}

/// Returns those of `texts` that occur in a text.
pub(super) fn texts_in(text: &str, texts: &[&str]) -> Value {
    let parts = texts.iter().copied();
    parts.filter(|part| text.contains(part)).collect()
}

/// Shows the server's report on the session.
fn report_form(report: &SessionReport, texts: &[&str]) -> Value {
    let mut end = match &report.end {
        SessionEnd::Shutdown => json!("shutdown"),
        SessionEnd::Closed => json!("closed"),
        SessionEnd::Mismatch => json!("mismatch"),
        SessionEnd::Expired => json!("expired"),
        SessionEnd::Idle(_) => json!("idle"),
        SessionEnd::Failed(error) => match error.violation() {
            Some(broken) => json!({"breaks": broken.rule().id(), "offset": broken.offset()}),
            None => json!({"raises": error.kind().as_str()}),
        },
    };
    if let (SessionEnd::Failed(error), false) = (&report.end, texts.is_empty()) {
        end["has"] = texts_in(&error.reason(), texts);
    }
    let release = report.release.map(|release| release.to_string());
    json!({
        "key": report.key, "release": release, "requests": report.requests, "received": report.received, "end": end
    })
}

/// The results of the client and of the server, which has no session if a proxy had no client.
type Played = (
    Result<Value, Reply>,
    std::thread::Result<Option<SessionReport>>,
);

/// Runs client and server in this process, over a pipe: this takes no port, and does not depend on the machine's network.
fn over_pipe(script: &SessionScript<'_>, options: ServerOptions) -> Played {
    let (near, far) = pipe::open_pipe();
    let is_paired = script.server.paired;
    let served = std::thread::spawn(move || serve_one(far, is_paired, &options));
    let writer = near.writer();
    let played = script.play(Transport::new(near), &writer, script.key(), patience());
    (played, served.join())
}

/// Runs the server, with or without a proxy.
fn serve_one(mut far: PipeEnd, is_paired: bool, options: &ServerOptions) -> Option<SessionReport> {
    if !is_paired {
        return Some(serve(far, options));
    }
    // Without a client from the proxy the server ends.
    let client = await_pair(&mut far, &options.name).ok()?;
    Some(serve_paired(far, &client, options))
}

/// Runs a server that connects to another one. It reads while it writes, for which a pipe has no duplicate.
fn over_socket(script: &SessionScript<'_>, options: ServerOptions) -> std::io::Result<Played> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let writer = SocketWriter(near.try_clone()?);
    let served = std::thread::spawn(move || Some(serve(far, &options)));
    let played = script.play(Transport::new(near), &writer, script.key(), patience());
    // The writer would keep the socket open.
    drop(writer.0.shutdown(Shutdown::Both));
    Ok((played, served.join()))
}

/// A second writer to the connection of a [`Transport`], for bytes that are not a packet.
pub(in crate::conformance) trait RawWriter {
    /// Writes bytes. Returns false if the server is gone.
    fn write(&self, bytes: &[u8]) -> bool;

    /// Closes the direction for writing; bytes of the server are still read.
    fn close(&self);
}

impl RawWriter for PipeWriter {
    fn write(&self, bytes: &[u8]) -> bool {
        PipeWriter::write(self, bytes)
    }

    fn close(&self) {
        PipeWriter::close(self);
    }
}

/// Writer to a server over a socket.
pub(in crate::conformance) struct SocketWriter(pub(in crate::conformance) TcpStream);

impl RawWriter for SocketWriter {
    fn write(&self, bytes: &[u8]) -> bool {
        (&self.0).write_all(bytes).is_ok()
    }

    fn close(&self) {
        // Fails only if the connection is gone already.
        drop(self.0.shutdown(Shutdown::Write));
    }
}
