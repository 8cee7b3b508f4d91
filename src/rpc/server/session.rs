//! One session: the hello, then request and answer until either side ends it.

use super::super::transport::{CLOSED, RpcStream, TIMEOUT, Transport};
use super::super::{
    CopyTarget, Hello, HelloAnswer, PackedValue, Packet, RPC_23, RPC_28, RPC_80, RPC_81, RpcCode,
    TensorBlock,
};
use super::era::Era;
use super::functions::Functions;
use super::handles::{HandleTable, Held};
use super::hop::{CONNECT, Hop};
use super::memory::{CopyContent, Memory, api_of};
use super::values::{encode, prepare, text};
use super::{ServerOptions, watch};
use crate::device::{Attribute, AttributeValue, Device, Manager, Stream, stream};
use crate::function::{Error, Result};
use crate::release::Release;
use crate::rule::{Findings, Kind};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Why a session ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The client wrote that it ends it.
    Shutdown,
    /// The client closed the connection between two packets.
    Closed,
    /// The hello had another key.
    Mismatch,
    /// The time of the session was over (RPC-83).
    Expired,
    /// The client broke a rule, or the connection.
    Failed(Error),
}

impl std::fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionEnd::Shutdown => f.write_str("ended by the client"),
            SessionEnd::Closed => f.write_str("closed by the client"),
            SessionEnd::Mismatch => f.write_str("another key"),
            SessionEnd::Expired => f.write_str("its time was over"),
            SessionEnd::Failed(error) => f.write_str(&error.reason()),
        }
    }
}

/// What a session came to.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// The key of the client, with its options; empty where no hello came.
    pub key: String,
    /// The release by whose rules the client wrote, once that was known.
    pub release: Option<Release>,
    /// How many requests were answered.
    pub requests: u64,
    /// How many bytes the client wrote.
    pub received: u64,
    /// Why it ended.
    pub end: SessionEnd,
}

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
        Err(error) if error.kind() == CLOSED && report.requests > 0 => SessionEnd::Closed,
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
            Greeted::Mismatch => return Ok(SessionEnd::Mismatch),
            Greeted::Welcome(stated) => stated,
        },
    };
    if let Some(gauge) = &options.gauge {
        gauge.greet(&report.key);
    }
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
        memory: Memory::new(options.memory),
        functions: Functions::new(options),
        limit: deadline.zip(seconds),
    };
    let ended = session.serve(transport, report);
    report.release = session.era.is_known().then(|| session.era.release());
    match (ended, seconds) {
        (Err(error), Some(seconds)) if error.kind() == TIMEOUT => {
            // RPC-83: a client of 0.13 and later knows it by how the text begins.
            transport.set_deadline(Some(Instant::now() + Duration::from_secs(1)));
            let writing = options.watch.as_ref().map(|watch| watch.write());
            // The watching thread may have been faster.
            if options.watch.as_ref().is_none_or(|watch| watch.claim()) {
                transport.write_packet(&watch::expired(seconds), &session.era.write())?;
            }
            drop(writing);
            Ok(SessionEnd::Expired)
        }
        (ended, _) => ended,
    }
}

/// What became of a hello.
enum Greeted {
    /// It has another key.
    Mismatch,
    /// The session begins; with the time that the client states.
    Welcome(Option<f64>),
}

/// Reads the hello and answers it.
///
/// # Errors
///
/// RPC-01 to RPC-05; a deadline, a connection that is gone.
fn greet(
    transport: &mut Transport,
    options: &ServerOptions,
    release: Release,
    report: &mut SessionReport,
) -> Result<Greeted> {
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
        return Ok(Greeted::Mismatch);
    }
    let name = format!("server:{}", options.name);
    transport.write_answer(&HelloAnswer::Success(name.into()), release)?;
    Ok(Greeted::Welcome(stated))
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
    memory: Memory,
    functions: Functions,
    /// When it ends, and after how many seconds.
    limit: Option<(Instant, f64)>,
}

/// What follows a request.
enum Answer {
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
    /// Answers requests.
    ///
    /// # Errors
    ///
    /// What ends the session: a broken rule of the client, a deadline, a connection that is gone.
    fn serve(
        &mut self,
        transport: &mut Transport,
        report: &mut SessionReport,
    ) -> Result<SessionEnd> {
        loop {
            self.show(transport, report);
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
            self.watch();
            let mut findings = Findings::default();
            let answer = match transport.read_packet(&self.era.read(), &mut findings) {
                Ok(None) => return Ok(SessionEnd::Closed),
                Ok(Some(packet)) => self.answer(packet),
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
                Ok(Answer::Silence) => report.requests -= 1,
                Ok(Answer::End) => {
                    report.requests -= 1;
                    return Ok(SessionEnd::Shutdown);
                }
                Ok(Answer::Content(content)) => {
                    // SAFETY: the next request is dealt with after this one is answered.
                    let bytes = unsafe { content.as_slice() };
                    transport.write_packet(&Packet::CopyAck(Cow::Borrowed(bytes)), &spoken)?;
                }
                Ok(Answer::Values(values)) => {
                    transport.write_packet(&Packet::Return(values), &spoken)?;
                }
                Ok(Answer::Void) => {
                    transport.write_packet(&Packet::Return(vec![self.void()]), &spoken)?;
                }
                // RPC-84: no client reads what it returns, and no values are the same in both encodings.
                Ok(Answer::Begun) if !self.era.is_known() => {
                    transport.write_packet(&Packet::Return(Vec::new()), &spoken)?;
                }
                Ok(Answer::Begun) => {
                    transport.write_packet(&Packet::Return(vec![PackedValue::None]), &spoken)?;
                }
                Err(error) => transport.write_packet(&exception(&error, &self.era), &spoken)?,
            }
            drop(writing);
        }
    }

    /// What says that nothing is returned. While the encoding is not known, a device: it is the same in both.
    fn void(&self) -> PackedValue<'static> {
        match self.era.is_known() {
            true => PackedValue::None,
            false => PackedValue::Device(Device::CPU),
        }
    }

    /// Shows how far the session is, where something looks.
    fn show(&self, transport: &Transport, report: &SessionReport) {
        if let Some(gauge) = &self.options.gauge {
            gauge.count(report.requests, transport.offset());
            let release = self.era.is_known().then(|| self.era.release());
            gauge.hold(
                release,
                self.options.memory.saturating_sub(self.memory.left()),
            );
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
    ///
    /// # Errors
    ///
    /// What the client gets as an exception.
    fn answer(&mut self, packet: Packet<'_>) -> Result<Answer> {
        let release = self.era.release();
        match packet {
            Packet::KeepAlive => Ok(Answer::Silence),
            Packet::Shutdown => Ok(Answer::End),
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
                Ok(Answer::Content(content))
            }
            Packet::CopyToRemote(to, bytes) => {
                let (data, device, offset) = origin(&to);
                self.memory.write(data, device, offset, &bytes)?;
                Ok(Answer::Void)
            }
            Packet::SystemCall(code, args) => self.system_call(code, &args, release),
            // RPC-21: the reader rejects what only a server writes.
            Packet::Return(_) | Packet::Exception(_) | Packet::CopyAck(_) => Ok(Answer::End),
        }
    }

    /// InitServer: of a session of this process, or of another server.
    fn begin(&mut self, version: &[u8], args: &[PackedValue<'_>]) -> Result<Answer> {
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
            return Ok(Answer::Begun);
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
        Ok(Answer::Begun)
    }

    /// CallFunc.
    fn call(&mut self, function: u64, args: &[PackedValue<'_>]) -> Result<Answer> {
        let function = self.handles.function(function)?.clone();
        // SAFETY: the bytes of the packet live until the request is answered, and what is prepared ends before.
        let prepared = unsafe { prepare(args, &self.handles, &self.memory, &self.era) }?;
        let result = {
            let views: Vec<_> = prepared.iter().map(|arg| arg.view()).collect();
            function.call(&views)?
        };
        let values = encode(result, &mut self.handles, &mut self.memory, &self.era)?;
        Ok(Answer::Values(values))
    }

    /// The requests that the session itself answers.
    fn system_call(
        &mut self,
        code: RpcCode,
        args: &[PackedValue<'_>],
        release: Release,
    ) -> Result<Answer> {
        use PackedValue as V;
        let handle = |token: u64| Ok(Answer::Values(vec![V::Handle(token)]));
        match (code, args) {
            (RpcCode::GetGlobalFunc, [V::Str(name) | V::StrObject(name, _)]) => {
                // A name that is no UTF-8 is that of no function.
                let name = std::str::from_utf8(name).unwrap_or_default();
                match self.functions.lookup(name)? {
                    Some(function) => handle(self.handles.insert(Held::Function(function))?),
                    None => handle(0),
                }
            }
            (RpcCode::FreeHandle, [token, ..]) => self.free(number(token)),
            (RpcCode::DevSetDevice, [V::Device(device)]) => {
                api_of(*device)?.set_device(*device)?;
                Ok(Answer::Void)
            }
            (RpcCode::DevGetAttr, [V::Device(device), kind]) => attribute(*device, kind, release),
            (RpcCode::DevAllocData, [V::Device(device), nbytes, alignment, V::Dtype(hint, _)]) => {
                let (nbytes, alignment) = (int(nbytes), int(alignment));
                handle(self.memory.alloc(*device, nbytes, alignment, *hint)?)
            }
            (RpcCode::DevAllocDataWithScope, [V::Tensor(block), scope]) => {
                api_of(block.device)?;
                let scope = match scope {
                    V::Str(text) | V::StrObject(text, _) => Some(String::from_utf8_lossy(text)),
                    _ => None,
                };
                handle(self.memory.alloc_scoped(block, scope.as_deref(), release)?)
            }
            (RpcCode::DevFreeData, [V::Device(device), token]) => {
                match number(token) {
                    // Upstream frees null too, and nothing happens.
                    0 => {}
                    token => self.memory.free(*device, token)?,
                }
                Ok(Answer::Void)
            }
            (RpcCode::DevStreamSync, [V::Device(device), token]) => {
                let stream = self.handles.stream(number(token), *device)?;
                api_of(*device)?.sync(*device, stream)?;
                Ok(Answer::Void)
            }
            (RpcCode::DevCreateStream, [V::Device(device)]) => {
                let stream = api_of(*device)?.create_stream(*device)?;
                match stream == Stream::DEFAULT {
                    true => handle(0),
                    false => handle(self.handles.insert(Held::Stream(*device, stream))?),
                }
            }
            (RpcCode::DevFreeStream, [V::Device(device), token]) => {
                let token = number(token);
                let made = self.handles.stream(token, *device)?;
                if made != Stream::DEFAULT {
                    self.handles.remove(token)?;
                    free_stream(*device, made)?;
                }
                Ok(Answer::Void)
            }
            (RpcCode::DevSetStream, [V::Device(device), token]) => {
                api_of(*device)?;
                let made = self.handles.stream(number(token), *device)?;
                stream::set(*device, made)?;
                Ok(Answer::Void)
            }
            (RpcCode::DevGetCurrentStream, [V::Device(device)]) => {
                let current = stream::current(*device);
                handle(self.handles.of_stream(*device, current).unwrap_or(0))
            }
            (RpcCode::CopyAmongRemote, [V::Tensor(from), V::Tensor(to), token]) => {
                let stream = self.stream_of_copy(from, to, number(token))?;
                self.memory.copy(from, to, stream, release)?;
                Ok(Answer::Void)
            }
            (RpcCode::CopyAmongRemote, [_, _, _, _, _, V::Device(_), V::Device(_), ..]) => {
                self.copy_flat(args, release)
            }
            // RPC-28: the reader held the arguments to their types.
            _ => Err(RPC_28
                .rejected(Kind::Type, format!("{} has other arguments", code.name()))
                .into()),
        }
    }

    /// FreeHandle.
    fn free(&mut self, token: u64) -> Result<Answer> {
        // Upstream passes over null.
        if token == 0 {
            return Ok(Answer::Void);
        }
        // RPC-88: clients of 0.21 to 0.23 free a returned tensor by the handle of its data.
        let token = self.handles.of_data(token).unwrap_or(token);
        match self.handles.remove(token)? {
            Held::Tensor(_, data) => self.memory.leave_tensor(data),
            Held::Stream(device, stream) => free_stream(device, stream)?,
            Held::Function(_) | Held::Module(_) | Held::Object(_) | Held::Opaque(_) => {}
        }
        Ok(Answer::Void)
    }

    /// The stream of a copy: of the device that makes it, which is the one that is not the host.
    fn stream_of_copy(&self, from: &TensorBlock, to: &TensorBlock, token: u64) -> Result<Stream> {
        let by = match from.device.kind == Device::CPU.kind {
            true => to.device,
            false => from.device,
        };
        api_of(from.device)?;
        api_of(to.device)?;
        self.handles.stream(token, by)
    }

    /// CopyAmongRemote of 0.7: `[from, offset, to, offset, bytes, device, device, element type, stream]`.
    fn copy_flat(&mut self, args: &[PackedValue<'_>], release: Release) -> Result<Answer> {
        let [
            from,
            from_offset,
            to,
            to_offset,
            nbytes,
            from_device,
            to_device,
            _,
            token,
        ] = args
        else {
            let message = "CopyAmongRemote has nine arguments";
            return Err(RPC_28.rejected(Kind::Type, message).into());
        };
        let (PackedValue::Device(from_device), PackedValue::Device(to_device)) =
            (from_device, to_device)
        else {
            return Ok(Answer::Void);
        };
        let block =
            |data: &PackedValue<'_>, offset: &PackedValue<'_>, device: &Device| TensorBlock {
                data: number(data),
                device: *device,
                dtype: crate::tensor::Dtype::UINT8,
                shape: vec![int(nbytes)],
                byte_offset: u64::try_from(int(offset)).unwrap_or(u64::MAX),
            };
        let from = block(from, from_offset, from_device);
        let to = block(to, to_offset, to_device);
        let stream = self.stream_of_copy(&from, &to, number(token))?;
        self.memory.copy(&from, &to, stream, release)?;
        Ok(Answer::Void)
    }
}

/// DevGetAttr.
fn attribute(device: Device, kind: &PackedValue<'_>, release: Release) -> Result<Answer> {
    let kind = int(kind);
    let known = Attribute::ALL
        .iter()
        .find(|attribute| attribute.number_in(release).map(i64::from) == Some(kind));
    // A device of another machine is rejected with the others, except for the question whether it is there.
    let answer = match known {
        Some(Attribute::Exist) if api_of(device).is_err() => AttributeValue::Int(0),
        Some(attribute) => {
            api_of(device)?;
            Manager::global().attribute(device, *attribute)?
        }
        None => {
            api_of(device)?;
            AttributeValue::None
        }
    };
    Ok(Answer::Values(vec![match answer {
        AttributeValue::None => PackedValue::None,
        AttributeValue::Int(value) => PackedValue::Int(value),
        AttributeValue::Text(value) => text(value),
    }]))
}

/// Frees a stream of the session, which is no thread's current one afterwards.
fn free_stream(device: Device, made: Stream) -> Result<()> {
    if stream::current(device) == made {
        stream::set(device, Stream::DEFAULT)?;
    }
    // SAFETY: made by this device, taken out of the table, and not the current stream of this thread, the only one that sets it.
    unsafe { api_of(device)?.free_stream(device, made) }
}

/// Where a copy begins: the token, its device and the offset.
fn origin(target: &CopyTarget) -> (u64, Device, u64) {
    match target {
        CopyTarget::Block(block) => (block.data, block.device, block.byte_offset),
        CopyTarget::Flat(data, offset, device, _) => (*data, *device, *offset),
    }
}

/// A handle; none is null (RPC-28).
fn number(value: &PackedValue<'_>) -> u64 {
    match value {
        PackedValue::Handle(token) => *token,
        _ => 0,
    }
}

/// An integer (RPC-28).
fn int(value: &PackedValue<'_>) -> i64 {
    match value {
        PackedValue::Int(value) | PackedValue::Bool(value) => *value,
        PackedValue::Uint(value) => i64::try_from(*value).unwrap_or(i64::MAX),
        _ => 0,
    }
}

/// What a client gets of an error: its kind and message, and behind them where it came from. The texts of the releases differ, and
/// clients look for the kind in front alone (RPC-26).
fn exception(error: &Error, era: &Era) -> Packet<'static> {
    let mut all = format!("{}: {}", error.kind().as_str(), message_of(error));
    let trace = error.backtrace();
    if !trace.is_empty() {
        all = match era.release().minor() {
            // The two releases whose errors print themselves as Python's do.
            21 | 22 => format!("Traceback (most recent call last):\n{trace}{all}\n"),
            _ => format!("{all}\nStack trace:\n{trace}"),
        };
    }
    Packet::Exception(vec![text(limited(all))])
}

/// The message, behind the rule that was broken where there is one.
fn message_of(error: &Error) -> String {
    match error.violation() {
        Some(_) => error.reason(),
        None => error.message().to_owned(),
    }
}

/// A text of at most 64 KiB.
fn limited(mut text: String) -> String {
    let mut end = text.len().min(64 << 10);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod unit {
    use super::limited;

    #[test]
    fn a_text_is_cut_between_two_letters() {
        let most = 64 << 10;
        let odd = format!("a{}", "é".repeat(most));
        for (text, length) in [
            (String::new(), 0),
            ("a".repeat(most), most),
            ("a".repeat(most + 1), most),
            ("é".repeat(most), most),
            (odd, most - 1),
        ] {
            assert_eq!(limited(text).len(), length);
        }
    }
}
