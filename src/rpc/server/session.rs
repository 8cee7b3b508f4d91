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

/// Serves one client until either side ends the session. No action of the client ends more than its session.
pub fn serve(stream: impl RpcStream + 'static, options: &ServerOptions) -> SessionReport {
    serve_from(stream, None, options)
}

/// Serves a connection that a proxy has paired, like [`serve`]. `key` is the client's key with its options, from the answer of the proxy
/// (RPC-71). The proxy decides which client it pairs with this server.
pub fn serve_paired(
    stream: impl RpcStream + 'static,
    key: &str,
    options: &ServerOptions,
) -> SessionReport {
    serve_from(stream, Some(key), options)
}

/// Serves a session from the hello on, or after it if `key` is given.
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
        // A client that closes the connection without Shutdown between two packets is reported as closed, not as failed.
        Err(error) if error.kind() == ErrorKind::Connection && report.requests > 0 => {
            SessionEnd::Closed
        }
        Err(error) => SessionEnd::Failed(error),
    };
    report
}

/// Processes the hello and the requests.
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
    // A time beyond the range of the clock means no limit.
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
    let (packet, end) = match (seconds, session.idle_timeout()) {
        // RPC-83: clients of 0.13 and later recognize it by the start of the text.
        (Some(seconds), idle) if is_over || idle.is_none() => {
            (watch::expired(seconds), SessionEnd::Expired)
        }
        (_, Some(idle)) => (watch::idle_timeout_packet(idle), SessionEnd::Idle(idle)),
        _ => return Err(error),
    };
    transport.set_deadline(Some(Instant::now() + Duration::from_secs(1)));
    let writing = options.watch.as_ref().map(|watch| watch.write());
    // The watching thread may already have written the packet.
    let is_first = options
        .watch
        .as_ref()
        .is_none_or(|watch| watch.claim_timeout_report());
    match end {
        SessionEnd::Expired if !is_first => {}
        // A client that reads no answer will not read this one either.
        SessionEnd::Idle(_) => drop(transport.write_packet(&packet, &session.era.write())),
        _ => transport.write_packet(&packet, &session.era.write())?,
    }
    drop(writing);
    Ok(end)
}

/// The result of a hello.
enum HelloOutcome {
    /// The hello has another key.
    Mismatch,
    /// The session begins, with the time limit that the client states.
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
    // RPC-80: the whole first word is compared, so that `server:` is rejected as well.
    let first = hello.key.split_whitespace().next().unwrap_or_default();
    let key = first.strip_prefix("client:");
    let matches = key.is_some_and(|key| options.keys.iter().any(|own| own == key));
    // RPC-05: checked before the answer: Python's servers answer first, and then fail.
    let stated = hello.timeout()?;
    if !matches {
        transport.write_answer(&HelloAnswer::Mismatch, release)?;
        return Ok(HelloOutcome::Mismatch);
    }
    let name = format!("server:{}", options.name);
    transport.write_answer(&HelloAnswer::Success(name.into()), release)?;
    Ok(HelloOutcome::Welcome(stated))
}

/// The state of a session.
struct ServedSession<'a> {
    options: &'a ServerOptions,
    era: Era,
    /// True if InitServer was answered (RPC-81).
    is_begun: bool,
    /// Connection to the server that executes the session, if it is another one.
    hop: Option<Hop>,
    /// Declared before the memory, so that tensors are freed while the device still knows their memory.
    handles: HandleTable,
    memory: SessionMemory,
    functions: Functions,
    /// Time at which the session ends, and its limit in seconds.
    limit: Option<(Instant, f64)>,
}

/// The reply to a request.
enum ServerAnswer {
    /// No reply: a keep-alive (RPC-11).
    Silence,
    /// The end of the session.
    End,
    /// A Return without a result.
    Void,
    /// The answer to InitServer.
    Begun,
    /// A Return with values.
    Values(Vec<PackedValue<'static>>),
    /// The bytes of a copy.
    Content(CopyContent),
}

impl ServedSession<'_> {
    /// Returns the time for which the client may be idle.
    fn idle_timeout(&self) -> Option<Duration> {
        let Self { options, .. } = self;
        match options.idle {
            // RPC-83: clients write InitServer as soon as the hello was answered.
            idle if !self.is_begun => {
                Some(idle.map_or(options.handshake, |idle| idle.min(options.handshake)))
            }
            idle => idle,
        }
    }

    /// Reads and answers requests.
    fn serve(
        &mut self,
        transport: &mut Transport,
        report: &mut SessionReport,
    ) -> Result<SessionEnd> {
        loop {
            transport.set_patience(self.idle_timeout());
            if let Some(hop) = self.hop.take() {
                self.watch();
                let ended = hop.pass_on(transport, &self.era.read(), self.options, report);
                if let Err(error) = &ended {
                    self.bid_farewell(transport, error);
                }
                return ended;
            }
            if !self.era.is_known() {
                // The version, the codes and the lengths are the same in all eras that are detected.
                match transport.peek_packet(&self.era.read()) {
                    Ok(Some(bytes)) => self.era.look_at(bytes),
                    Ok(None) => return Ok(SessionEnd::Closed),
                    Err(error) => {
                        self.bid_farewell(transport, &error);
                        return Err(error);
                    }
                }
            }
            // RPC-83: set again for each packet, because this one may have shown the encoding in which the client reads the final
            // exception.
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
                // RPC-84: no client reads the values of this answer, and an empty list is the same in both encodings.
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

    /// Returns the value of an empty result. While the encoding is unknown this is a device, which is the same in both.
    fn void(&self) -> PackedValue<'static> {
        if self.era.is_known() {
            PackedValue::None
        } else {
            PackedValue::Device(Device::CPU)
        }
    }

    /// Tells the watching thread when the session ends, and the protocol for the final packet.
    fn watch(&self) {
        if let (Some(watch), Some((deadline, seconds))) = (&self.options.watch, self.limit) {
            watch.set(deadline, seconds, self.era.write());
        }
    }

    /// Returns whether the session continues after a request that breaks a rule (RPC-82). The request is then answered with an
    /// exception. The packet must be complete, so that only its contents are wrong.
    fn survives(&self, error: &Error) -> bool {
        let rule = error.violation().map(|broken| broken.rule());
        matches!(rule, Some(RPC_23 | RPC_28))
    }

    /// Writes the reason as the last packet, after the client broke a rule. Upstream writes Shutdown, or nothing.
    fn bid_farewell(&self, transport: &mut Transport, error: &Error) {
        if error.violation().is_none() {
            return;
        }
        // A client that does not read is not waited for.
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(1)));
        let _writing = self.options.watch.as_ref().map(|watch| watch.write());
        // The session ends with the first error; an error of this packet is ignored.
        drop(transport.write_packet(&exception(error, &self.era), &self.era.write()));
    }

    /// Executes the request in the packet.
    fn answer(&mut self, packet: Packet<'_>) -> Result<ServerAnswer> {
        let release = self.era.release();
        match packet {
            Packet::KeepAlive => Ok(ServerAnswer::Silence),
            Packet::Shutdown => Ok(ServerAnswer::End),
            Packet::InitServer(version, args) => self.begin(&version, &args),
            // RPC-81: upstream throws an exception out of its handler, and ends.
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
            // RPC-21: the reader rejects packets that only a server writes, so that this is not reached.
            Packet::Return(_) | Packet::Exception(_) | Packet::CopyAck(_) => Ok(ServerAnswer::End),
        }
    }

    /// Executes InitServer: begins a session of this process, or of another server.
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
        // RPC-80: this function creates a session of this process, which is the default.
        let local = name.is_none_or(|name| **name == *b"rpc.LocalSession");
        RPC_80.demand(Kind::Unsupported, local, || {
            let name = name.map(|name| String::from_utf8_lossy(name));
            format!(
                "this server makes no session by `{}`",
                name.unwrap_or_default().escape_debug()
            )
        })?;
        RPC_80.demand(Kind::Type, args.len() <= 1, || {
            "rpc.LocalSession takes no arguments".to_owned()
        })?;
        self.is_begun = true;
        Ok(ServerAnswer::Begun)
    }

    /// Executes CallFunc.
    fn call(&mut self, function: u64, args: &[PackedValue<'_>]) -> Result<ServerAnswer> {
        let function = self.handles.function(function)?.clone();
        // SAFETY: the bytes of the packet live until the request is answered, and `prepared` is dropped before.
        let prepared = unsafe { prepare(args, &self.handles, &self.memory, &self.era) }?;
        let result = {
            let views: Vec<_> = prepared.iter().map(|arg| arg.view()).collect();
            function.call_packed(&views)?
        };
        let values = encode(result, &mut self.handles, &mut self.memory, &self.era)?;
        Ok(ServerAnswer::Values(values))
    }
}

/// Returns the place where a copy begins: the token, its device and the offset.
fn origin(target: &CopyTarget) -> (u64, Device, u64) {
    match target {
        CopyTarget::Block(block) => (block.data, block.device, block.byte_offset),
        CopyTarget::Flat(data, offset, device, _) => (*data, *device, *offset),
    }
}
