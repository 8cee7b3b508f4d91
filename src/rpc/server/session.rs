//! One session: the hello, then request and answer until either side ends it.

mod calls;
mod exception;

use self::exception::exception;
use super::super::transport::{RpcStream, Transport};
use super::super::{
    CopyTarget, Hello, HelloAnswer, PackedValue, Packet, RPC_23, RPC_28, RPC_80, RPC_81,
};
use super::era::Era;
use super::functions::Functions;
use super::handles::HandleTable;
use super::hop::{CONNECT, Hop};
use super::memory::{CopyContent, SessionMemory};
use super::report::{SessionEnd, SessionReport};
use super::values::{encode, prepare};
use super::{ServerOptions, watch};
use crate::device::Device;
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::{Findings, Kind};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Serves one client until either side ends the session. Nothing of the client ends more than its session.
pub fn serve(stream: impl RpcStream + 'static, options: &ServerOptions) -> SessionReport {
    serve_from(stream, None, options)
}

/// [`serve`] over a connection that a proxy has paired: `key` is that of its answer, the client's with its options (RPC-71). Which client
/// the proxy pairs with this server is for the proxy to know.
pub fn serve_paired(
    stream: impl RpcStream + 'static,
    key: &str,
    options: &ServerOptions,
) -> SessionReport {
    serve_from(stream, Some(key), options)
}

/// From the hello on, or behind it.
fn serve_from(
    stream: impl RpcStream + 'static,
    key: Option<&str>,
    options: &ServerOptions,
) -> SessionReport {
    let mut transport = Transport::new(stream);
    let mut report = SessionReport {
        key: String::new(),
        release: options.release,
        requests: 0,
        received: 0,
        end: SessionEnd::Closed,
    };
    let ended = Era::new(options.release, options.largest).map_err(Error::from);
    let ended = ended.and_then(|era| run(&mut transport, key, options, era, &mut report));
    report.received = transport.offset();
    report.end = match ended {
        Ok(end) => end,
        // A client that is gone without a word in front of the next packet has closed the connection.
        Err(error) if error.kind() == ErrorKind::Connection && report.requests > 0 => {
            SessionEnd::Closed
        }
        Err(error) => SessionEnd::Failed(error),
    };
    report
}

/// The hello, and what follows.
fn run(
    transport: &mut Transport,
    paired: Option<&str>,
    options: &ServerOptions,
    era: Era,
    report: &mut SessionReport,
) -> Result<SessionEnd> {
    let stated = match paired {
        Some(key) => {
            report.key = key.to_owned();
            let key = Cow::Borrowed(key);
            Hello { key }.timeout()?
        }
        None => match greet(transport, options, era.release(), report)? {
            HelloOutcome::Mismatch => return Ok(SessionEnd::Mismatch),
            HelloOutcome::Welcome(stated) => stated,
        },
    };
    let own = options.timeout.map(|limit| limit.as_secs_f64());
    let seconds = match (stated, own) {
        (Some(stated), Some(own)) => Some(stated.min(own)),
        (stated, own) => stated.or(own),
    };
    // A time beyond what the clock counts is no limit.
    let deadline = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .and_then(|limit| Instant::now().checked_add(limit));
    transport.set_deadline(deadline);
    let mut session = ServedSession {
        options,
        era,
        is_begun: false,
        hop: None,
        handles: HandleTable::new(),
        memory: SessionMemory::new(options.memory),
        functions: Functions::new(options),
        limit: deadline.zip(seconds),
    };
    let ended = session.serve(transport, report);
    report.release = session.era.is_known().then(|| session.era.release());
    let Err(error) = ended else { return ended };
    if error.kind() != ErrorKind::Timeout {
        return Err(error);
    }
    let is_over = transport.is_late();
    let (packet, end) = match (seconds, session.patience()) {
        // RPC-83: a client of 0.13 and later knows it by how the text begins.
        (Some(seconds), idle) if is_over || idle.is_none() => {
            (watch::expired(seconds), SessionEnd::Expired)
        }
        (_, Some(idle)) => (watch::forgotten(idle), SessionEnd::Idle(idle)),
        _ => return Err(error),
    };
    transport.set_deadline(Some(Instant::now() + Duration::from_secs(1)));
    let writing = options.watch.as_ref().map(|watch| watch.write());
    // The watching thread may have been faster.
    let is_first = options.watch.as_ref().is_none_or(|watch| watch.claim());
    match end {
        SessionEnd::Expired if !is_first => {}
        // A client that takes no answer takes this one no more.
        SessionEnd::Idle(_) => drop(transport.write_packet(&packet, &session.era.write())),
        _ => transport.write_packet(&packet, &session.era.write())?,
    }
    drop(writing);
    Ok(end)
}

/// What became of a hello.
enum HelloOutcome {
    /// It has another key.
    Mismatch,
    /// The session begins; with the time that the client states.
    Welcome(Option<f64>),
}

/// Reads the hello and answers it.
fn greet(
    transport: &mut Transport,
    options: &ServerOptions,
    release: Release,
    report: &mut SessionReport,
) -> Result<HelloOutcome> {
    transport.set_deadline(Some(Instant::now() + options.handshake));
    let hello = transport.read_hello()?;
    report.key = hello.key.clone().into_owned();
    // RPC-80: the first word is compared whole, so that `server:` is no client either.
    let first = hello.key.split_whitespace().next().unwrap_or_default();
    let key = first.strip_prefix("client:");
    let matches = key.is_some_and(|key| options.keys.iter().any(|own| own == key));
    // RPC-05: before the answer: Python's servers answer first, and then fail.
    let stated = hello.timeout()?;
    if !matches {
        transport.write_answer(&HelloAnswer::Mismatch, release)?;
        return Ok(HelloOutcome::Mismatch);
    }
    let name = format!("server:{}", options.name);
    transport.write_answer(&HelloAnswer::Success(name.into()), release)?;
    Ok(HelloOutcome::Welcome(stated))
}

/// What a session has.
struct ServedSession<'a> {
    options: &'a ServerOptions,
    era: Era,
    /// Whether InitServer was answered (RPC-81).
    is_begun: bool,
    /// The server that executes the session, where it is not this one.
    hop: Option<Hop>,
    /// In front of the memory: a tensor that ends frees what the device still knows.
    handles: HandleTable,
    memory: SessionMemory,
    functions: Functions,
    /// When it ends, and after how many seconds.
    limit: Option<(Instant, f64)>,
}

/// What follows a request.
enum ServerAnswer {
    /// Nothing: a keep-alive (RPC-11).
    Silence,
    /// The session is over.
    End,
    /// Nothing was to be returned.
    Void,
    /// The session begins.
    Begun,
    /// Values.
    Values(Vec<PackedValue<'static>>),
    /// Bytes.
    Content(CopyContent),
}

impl ServedSession<'_> {
    /// The time that the client may do nothing.
    fn patience(&self) -> Option<Duration> {
        let Self { options, .. } = self;
        match options.idle {
            // RPC-83: clients begin as soon as they are let in.
            idle if !self.is_begun => {
                Some(idle.map_or(options.handshake, |idle| idle.min(options.handshake)))
            }
            idle => idle,
        }
    }

    /// Answers requests.
    fn serve(
        &mut self,
        transport: &mut Transport,
        report: &mut SessionReport,
    ) -> Result<SessionEnd> {
        loop {
            transport.set_patience(self.patience());
            if let Some(hop) = self.hop.take() {
                self.watch();
                let ended = hop.pass_on(transport, &self.era.read(), self.options, report);
                if let Err(error) = &ended {
                    self.bid_farewell(transport, error);
                }
                return ended;
            }
            if !self.era.is_known() {
                // The version and the codes are the same in all of them, and so are the lengths.
                match transport.peek_packet(&self.era.read()) {
                    Ok(Some(bytes)) => self.era.look_at(bytes),
                    Ok(None) => return Ok(SessionEnd::Closed),
                    Err(error) => {
                        self.bid_farewell(transport, &error);
                        return Err(error);
                    }
                }
            }
            // RPC-83: anew for each packet, as this one may have shown the encoding in which the client reads of its end.
            self.watch();
            let mut findings = Findings::default();
            let answer = match transport.read_packet(&self.era.read(), &mut findings) {
                Ok(None) => return Ok(SessionEnd::Closed),
                Ok(Some(packet)) => {
                    let watch = self.options.watch.as_deref();
                    watch.inspect(|watch| watch.compute(true));
                    let answer = self.answer(packet);
                    watch.inspect(|watch| watch.compute(false));
                    answer
                }
                Err(error) => {
                    if !self.survives(&error) {
                        self.bid_farewell(transport, &error);
                        return Err(error);
                    }
                    Err(error)
                }
            };
            report.requests += 1;
            let writing = self.options.watch.as_ref().map(|watch| watch.write());
            let spoken = self.era.write();
            match answer {
                Ok(ServerAnswer::Silence) => report.requests -= 1,
                Ok(ServerAnswer::End) => {
                    report.requests -= 1;
                    return Ok(SessionEnd::Shutdown);
                }
                Ok(ServerAnswer::Content(content)) => {
                    // SAFETY: the next request is dealt with after this one is answered.
                    let bytes = unsafe { content.as_slice() };
                    transport.write_packet(&Packet::CopyAck(Cow::Borrowed(bytes)), &spoken)?;
                }
                Ok(ServerAnswer::Values(values)) => {
                    transport.write_packet(&Packet::Return(values), &spoken)?;
                }
                Ok(ServerAnswer::Void) => {
                    transport.write_packet(&Packet::Return(vec![self.void()]), &spoken)?;
                }
                // RPC-84: no client reads what it returns, and no values are the same in both encodings.
                Ok(ServerAnswer::Begun) if !self.era.is_known() => {
                    transport.write_packet(&Packet::Return(Vec::new()), &spoken)?;
                }
                Ok(ServerAnswer::Begun) => {
                    transport.write_packet(&Packet::Return(vec![PackedValue::None]), &spoken)?;
                }
                Err(error) => transport.write_packet(&exception(&error, &self.era), &spoken)?,
            }
            drop(writing);
        }
    }

    /// What says that nothing is returned. While the encoding is not known, a device: it is the same in both.
    fn void(&self) -> PackedValue<'static> {
        if self.era.is_known() {
            PackedValue::None
        } else {
            PackedValue::Device(Device::CPU)
        }
    }

    /// Lets the watching thread know when the session ends, and how the client wants to hear of it.
    fn watch(&self) {
        if let (Some(watch), Some((deadline, seconds))) = (&self.options.watch, self.limit) {
            watch.set(deadline, seconds, self.era.write());
        }
    }

    /// RPC-82: whether a request that breaks a rule is answered with an exception, and the session goes on: its packet was whole, and
    /// what is wrong is what was requested.
    fn survives(&self, error: &Error) -> bool {
        let rule = error.violation().map(|broken| broken.rule());
        matches!(rule, Some(RPC_23 | RPC_28))
    }

    /// The last packet of a session that the client broke: why. Upstream writes that it ends, or nothing.
    fn bid_farewell(&self, transport: &mut Transport, error: &Error) {
        if error.violation().is_none() {
            return;
        }
        // A client that does not read is not waited for.
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(1)));
        let _writing = self.options.watch.as_ref().map(|watch| watch.write());
        // The session ends with the first error, whatever becomes of this one.
        drop(transport.write_packet(&exception(error, &self.era), &self.era.write()));
    }

    /// Does what the packet requests.
    fn answer(&mut self, packet: Packet<'_>) -> Result<ServerAnswer> {
        let release = self.era.release();
        match packet {
            Packet::KeepAlive => Ok(ServerAnswer::Silence),
            Packet::Shutdown => Ok(ServerAnswer::End),
            Packet::InitServer(version, args) => self.begin(&version, &args),
            // RPC-81: upstream throws out of its handler, and ends.
            _ if !self.is_begun => {
                let message = "the first request of a session is InitServer";
                Err(RPC_81.rejected(Kind::Missing, message).into())
            }
            Packet::CallFunc(function, args) => self.call(function, &args),
            Packet::CopyFromRemote(from, nbytes) => {
                let (data, device, offset) = origin(&from);
                let content = self.memory.read(data, device, offset, nbytes)?;
                Ok(ServerAnswer::Content(content))
            }
            Packet::CopyToRemote(to, bytes) => {
                let (data, device, offset) = origin(&to);
                self.memory.write(data, device, offset, &bytes)?;
                Ok(ServerAnswer::Void)
            }
            Packet::SystemCall(code, args) => self.system_call(code, &args, release),
            // RPC-21: the reader rejects what only a server writes.
            Packet::Return(_) | Packet::Exception(_) | Packet::CopyAck(_) => Ok(ServerAnswer::End),
        }
    }

    /// InitServer: of a session of this process, or of another server.
    fn begin(&mut self, version: &[u8], args: &[PackedValue<'_>]) -> Result<ServerAnswer> {
        RPC_81.demand(Kind::Duplicate, !self.is_begun, || {
            "the session has begun already".to_owned()
        })?;
        let name = match args {
            [] => None,
            [PackedValue::Str(name) | PackedValue::StrObject(name, _), ..] => Some(name),
            _ => {
                let message = "the first argument of InitServer is the name of a function";
                return Err(RPC_80.rejected(Kind::Type, message).into());
            }
        };
        if name.is_some_and(|name| **name == *CONNECT) {
            let behind = args.get(1..).unwrap_or_default();
            let (release, limit) = (self.era.release(), self.limit.map(|(limit, _)| limit));
            let hop = Hop::connect(version, behind, self.options, release, limit)?;
            self.hop = Some(hop);
            self.is_begun = true;
            return Ok(ServerAnswer::Begun);
        }
        // RPC-80: the function of this name makes the session that is here anyway.
        let local = name.is_none_or(|name| **name == *b"rpc.LocalSession");
        RPC_80.demand(Kind::Unsupported, local, || {
            let name = name.map(|name| String::from_utf8_lossy(name));
            format!(
                "this server makes no session by `{}`",
                name.unwrap_or_default().escape_debug()
            )
        })?;
        self.is_begun = true;
        Ok(ServerAnswer::Begun)
    }

    /// CallFunc.
    fn call(&mut self, function: u64, args: &[PackedValue<'_>]) -> Result<ServerAnswer> {
        let function = self.handles.function(function)?.clone();
        // SAFETY: the bytes of the packet live until the request is answered, and what is prepared ends before.
        let prepared = unsafe { prepare(args, &self.handles, &self.memory, &self.era) }?;
        let result = {
            let views: Vec<_> = prepared.iter().map(|arg| arg.view()).collect();
            function.call(&views)?
        };
        let values = encode(result, &mut self.handles, &mut self.memory, &self.era)?;
        Ok(ServerAnswer::Values(values))
    }
}

/// Where a copy begins: the token, its device and the offset.
fn origin(target: &CopyTarget) -> (u64, Device, u64) {
    match target {
        CopyTarget::Block(block) => (block.data, block.device, block.byte_offset),
        CopyTarget::Flat(data, offset, device, _) => (*data, *device, *offset),
    }
}
