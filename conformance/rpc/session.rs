//! `rpc.session`: a session that a client plays against a server, request by request, and what the server answers.
//!
//! What a server hands out is its own: handles, and what it knows the memory of tensors by, show as `"some"`, and a request names
//! them by the answer that they were in. The texts of exceptions are the server's own too; a case looks for parts of them.

use super::functions;
use super::hop::{HopPlace, HopStart, NextServers};
use super::pipe::{self, PipeEnd, PipeWriter};
use super::server_start::{self, ServerStart};
use crate::conformance::adapter::Reply;
use crate::conformance::case::entry::hex_bytes;
use crate::conformance::op::{Answer, OpError};
use crate::release::Release;
use crate::rpc::json::{from_packet, to_packet};
use crate::rpc::server::{
    ServerOptions, SessionEnd, SessionReport, await_pair, serve, serve_paired,
};
use crate::rpc::transport::{TIMEOUT, Transport};
use crate::rpc::{Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker};
use crate::rule::Findings;
use crate::wire::Writer;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a peer of this process may take for an answer. Once one took longer, the next ones have a twentieth: they are most likely
/// wrong in the same way, and there are hundreds.
pub(super) fn patience() -> Duration {
    match IS_LATE.load(Ordering::Relaxed) {
        true => Duration::from_millis(500),
        false => Duration::from_secs(10),
    }
}

/// Whether a peer of this process took too long.
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// From here on [`patience`] is short.
pub(super) fn is_late() {
    IS_LATE.store(true, Ordering::Relaxed);
}

/// What a name begins with that no server has a function of.
const UNKNOWN: &[u8] = b"tvmspec.rpc.no such function";

/// Our own server, in a thread, and those behind it.
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
    let gauge = options.gauge.clone();
    let (played, ended) = match script.hops.is_empty() {
        true => over_pipe(&script, options),
        false => over_socket(&script, options).map_err(no_server)?,
    };
    // A panic of the server is one of the testee.
    let report = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let read = next.finish()?;
    match played {
        Ok(mut value) => {
            if let Some(HopStart::Plays(_)) = script.server.last_hop() {
                value["hop"] = json!(read);
            }
            if let Some(gauge) = gauge {
                let state = gauge.state();
                let release = state.release.map(|release| release.to_string());
                value["gauge"] = json!({
                    "key": state.key, "release": release, "requests": state.requests, "received": state.received, "memory": state.memory
                });
            }
            if script.server.report {
                value["report"] = report
                    .as_ref()
                    .map_or(Value::Null, |report| report_form(report, &script.texts));
            }
            Ok(Answer::new(value, Findings::default()))
        }
        Err(Reply::Unsupported(why)) => Err(OpError::Unsupported(why)),
        // A server that does not answer its client is wrong, and not slow.
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

/// What is looked for in the texts of exceptions and errors.
///
/// # Errors
///
/// Another form.
pub(super) fn texts(args: &Value) -> Result<Vec<&str>, OpError> {
    let wrong = || OpError::Unsupported("`texts` has another form".to_owned());
    let texts = args.get("texts").and_then(Value::as_array);
    let texts = texts.into_iter().flatten();
    texts.map(|text| text.as_str().ok_or_else(wrong)).collect()
}

/// Those of `texts` that are in a text.
pub(super) fn found(text: &str, texts: &[&str]) -> Value {
    let parts = texts.iter().copied();
    parts.filter(|part| text.contains(part)).collect()
}

/// What the server has of the session when it is over.
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
        end["has"] = found(&error.reason(), texts);
    }
    let release = report.release.map(|release| release.to_string());
    json!({
        "key": report.key, "release": release, "requests": report.requests, "received": report.received, "end": end
    })
}

/// What came of the client, and of the server, which has no session where a proxy had no client.
type Played = (
    Result<Value, Reply>,
    std::thread::Result<Option<SessionReport>>,
);

fn over_pipe(script: &SessionScript<'_>, options: ServerOptions) -> Played {
    let (near, far) = pipe::ends();
    let is_paired = script.server.paired;
    let served = std::thread::spawn(move || serve_one(far, is_paired, &options));
    let writer = near.writer();
    let played = script.play(Transport::new(near), &writer, script.key(), patience());
    (played, served.join())
}

/// The server, in front of which there may be a proxy.
fn serve_one(mut far: PipeEnd, is_paired: bool, options: &ServerOptions) -> Option<SessionReport> {
    if !is_paired {
        return Some(serve(far, options));
    }
    // A proxy that has no client for it ends the server.
    let client = await_pair(&mut far, &options.name).ok()?;
    Some(serve_paired(far, &client, options))
}

/// For a server that goes on to another one: it reads while it writes, which a pipe has no halves for.
///
/// # Errors
///
/// No socket.
fn over_socket(script: &SessionScript<'_>, options: ServerOptions) -> std::io::Result<Played> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let writer = SocketWriter(near.try_clone()?);
    let served = std::thread::spawn(move || Some(serve(far, &options)));
    let played = script.play(Transport::new(near), &writer, script.key(), patience());
    // The writer keeps the socket open.
    drop(writer.0.shutdown(Shutdown::Both));
    Ok((played, served.join()))
}

/// What writes beside a [`Transport`], to the same connection: bytes that no packet is written as.
pub(in crate::conformance) trait RawWriter {
    /// Writes; false where the server is gone.
    fn write(&self, bytes: &[u8]) -> bool;

    /// Nothing more is written; what the server writes is still read.
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

/// The direction to a server that a socket is connected to.
pub(in crate::conformance) struct SocketWriter(pub(in crate::conformance) TcpStream);

impl RawWriter for SocketWriter {
    fn write(&self, bytes: &[u8]) -> bool {
        (&self.0).write_all(bytes).is_ok()
    }

    fn close(&self) {
        // A connection that is gone is closed.
        drop(self.0.shutdown(Shutdown::Write));
    }
}

/// A request of this operation.
pub(in crate::conformance) struct SessionScript<'a> {
    /// By whose rules the client writes.
    release: Release,
    /// The whole key, or bytes in its place; `None` for the key of the server.
    hello: Option<Greeting>,
    /// Whether InitServer is written in front of the steps.
    begins: bool,
    /// Parts that are looked for in exceptions.
    texts: Vec<&'a str>,
    /// How the server is started.
    pub(in crate::conformance) server: ServerStart,
    /// Where the servers behind it are, once they are started.
    hops: Vec<HopPlace>,
    steps: &'a [Value],
}

enum Greeting {
    Key(String),
    Bytes(Vec<u8>),
}

/// What came of a step.
enum Came {
    /// An answer, in its JSON form.
    Answer(Value),
    /// The server has ended the session.
    End,
}

impl<'a> SessionScript<'a> {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// What of it has another form.
    pub(in crate::conformance) fn read(args: &'a Value) -> Result<SessionScript<'a>, OpError> {
        let wrong = |what: &str| OpError::Unsupported(format!("`{what}` has another form"));
        let release = args
            .get("release")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let release: Release = release.parse().map_err(OpError::from)?;
        if release.minor() < 7 {
            return Err(OpError::Unsupported(format!(
                "sessions of {release} are of another protocol"
            )));
        }
        let hello = match args.get("hello") {
            None => None,
            Some(Value::String(key)) => Some(Greeting::Key(key.clone())),
            Some(other) => {
                let hex = other.get("hex").and_then(Value::as_str);
                let bytes = hex_bytes(hex.ok_or_else(|| wrong("hello"))?);
                Some(Greeting::Bytes(bytes.map_err(OpError::Unsupported)?))
            }
        };
        let steps = args.get("value").and_then(Value::as_array);
        Ok(SessionScript {
            release,
            hello,
            begins: args.get("begins").and_then(Value::as_bool).unwrap_or(true),
            texts: texts(args)?,
            server: ServerStart::read(args.get("server"))?,
            hops: Vec::new(),
            steps: steps.ok_or_else(|| wrong("value"))?,
        })
    }

    fn key(&self) -> &str {
        self.server.key()
    }

    /// Plays the session over a connection that nothing was written to yet, with a server of this key. `patience` is for each answer.
    ///
    /// # Errors
    ///
    /// A hang; a function that the server does not have.
    pub(in crate::conformance) fn play(
        &self,
        transport: Transport,
        raw: &dyn RawWriter,
        key: &str,
        patience: Duration,
    ) -> Result<Value, Reply> {
        let mut client = ScriptClient {
            script: self,
            transport,
            raw,
            patience,
            answers: Vec::new(),
        };
        let hello = client.greet(key)?;
        let is_greeted = hello.get("code").is_some_and(|code| code == "success");
        let mut shown = Vec::new();
        let ended = match is_greeted {
            true => client.run(&mut shown)?,
            // What did not become a session is over.
            false => client.is_over()?,
        };
        Ok(
            json!({"hello": hello, "answers": shown, "end": if ended { "server" } else { "client" }}),
        )
    }
}

/// The client that plays a script.
struct ScriptClient<'s, 'a> {
    script: &'s SessionScript<'a>,
    transport: Transport,
    raw: &'s dyn RawWriter,
    patience: Duration,
    /// The values of each answer as the server wrote them, for the requests that name them.
    answers: Vec<Vec<PackedValue<'static>>>,
}

impl ScriptClient<'_, '_> {
    /// The hello and its answer.
    fn greet(&mut self, own: &str) -> Result<Value, Reply> {
        if self.script.server.paired {
            return self.greet_as_proxy(own);
        }
        let key = match &self.script.hello {
            Some(Greeting::Bytes(bytes)) => {
                self.raw.write(bytes);
                None
            }
            // Behind a tracker a server has another key for each session.
            Some(Greeting::Key(key)) => Some(match key.strip_prefix("client:") {
                Some(options) if options.starts_with(' ') => format!("client:{own}{options}"),
                _ => key.clone(),
            }),
            None => Some(format!("client:{own}")),
        };
        if let Some(key) = key {
            let mut out = Writer::new();
            let hello = Hello {
                key: Cow::Owned(key),
            };
            hello
                .write(&mut out)
                .map_err(|broken| Reply::Unsupported(broken.to_string()))?;
            self.raw.write(&out.into_bytes());
        }
        self.wait();
        Ok(match self.transport.read_answer(self.script.release) {
            Ok(HelloAnswer::Success(key)) => json!({"code": "success", "key": key}),
            Ok(HelloAnswer::Duplicate) => json!({"code": "duplicate"}),
            Ok(HelloAnswer::Mismatch) => json!({"code": "mismatch"}),
            Err(error) if error.kind() == TIMEOUT => return Err(self.hang()),
            // Nothing, or a part of an answer.
            Err(_) => Value::Null,
        })
    }

    /// The hello of a server, and the answer of a proxy, which is of the client (RPC-94).
    fn greet_as_proxy(&mut self, own: &str) -> Result<Value, Reply> {
        self.wait();
        let hello = match self.transport.read_hello() {
            Ok(hello) => hello.key,
            Err(error) if error.kind() == TIMEOUT => return Err(self.hang()),
            Err(_) => return Ok(Value::Null),
        };
        let answer = match &self.script.hello {
            Some(Greeting::Bytes(bytes)) => bytes.clone(),
            key => {
                let key = match key {
                    Some(Greeting::Key(key)) => key.clone(),
                    _ => format!("client:{own}"),
                };
                let mut out = Writer::new();
                HelloAnswer::Success(key.into())
                    .write(self.script.release, &mut out)
                    .map_err(|broken| Reply::Unsupported(broken.to_string()))?;
                out.into_bytes()
            }
        };
        self.raw.write(&answer);
        let code = match self.script.hello {
            Some(Greeting::Bytes(_)) => "mismatch",
            _ => "success",
        };
        Ok(json!({"code": code, "key": hello}))
    }

    /// The steps, whose answers are `shown`; whether the server ended the session.
    fn run(&mut self, shown: &mut Vec<Value>) -> Result<bool, Reply> {
        if self.script.begins {
            let version: &[u8] = if self.script.release.minor() == 7 {
                b"0.7.0"
            } else {
                b"0.8.0"
            };
            let args = HopPlace::constructor(&self.script.hops, self.script.release);
            let init = Packet::InitServer(Cow::Borrowed(version), args);
            self.write(&init)?;
            match self.read(&Map::new())? {
                Came::Answer(answer) if answer.get("code").is_some_and(|code| code == "Return") => {
                }
                Came::Answer(answer) => {
                    shown.push(answer);
                    return Ok(false);
                }
                Came::End => return Ok(true),
            }
            self.answers.clear();
        }
        for step in self.script.steps {
            match self.step(step)? {
                Came::Answer(answer) => shown.push(answer),
                Came::End => {
                    shown.push(json!("end"));
                    return Ok(true);
                }
            }
        }
        self.is_over()
    }

    /// A step, and what came of it.
    fn step(&mut self, step: &Value) -> Result<Came, Reply> {
        let none = || Reply::Unsupported(format!("{step} is no step"));
        let members = step.as_object().ok_or_else(none)?;
        let silent = |client: &mut Self| {
            client.answers.push(Vec::new());
            Ok(Came::Answer(Value::Null))
        };
        if let Some(hex) = members.get("hex") {
            let bytes = hex.as_str().and_then(|hex| hex_bytes(hex).ok());
            self.raw.write(&bytes.ok_or_else(none)?);
            if members.get("silent") == Some(&Value::Bool(true)) {
                return silent(self);
            }
            return self.read_on(members);
        }
        if members.contains_key("close") {
            self.raw.close();
            return self.read_on(members);
        }
        if members.contains_key("wait") {
            return self.read(members);
        }
        let form = self.filled(step)?;
        let packet = to_packet(&form).map_err(Reply::Unsupported)?;
        self.write(&packet)?;
        match &packet {
            // RPC-11: nothing answers it.
            Packet::KeepAlive => silent(self),
            Packet::SystemCall(RpcCode::GetGlobalFunc, args) => {
                let found = self.read(members)?;
                let name = match args.as_slice() {
                    [PackedValue::Str(name)] if name.starts_with(functions::PREFIX.as_bytes()) => {
                        name
                    }
                    _ => return Ok(found),
                };
                let is_missing = matches!(
                    self.answers.last().map(Vec::as_slice),
                    Some([PackedValue::Handle(0)])
                );
                if is_missing && !name.contains(&b' ') {
                    let name = String::from_utf8_lossy(name);
                    return Err(Reply::Unsupported(format!(
                        "the server has no function `{name}`"
                    )));
                }
                Ok(found)
            }
            _ => self.read(members),
        }
    }

    /// A form with numbers in the place of what names answers.
    fn filled(&self, form: &Value) -> Result<Value, Reply> {
        Ok(match form {
            Value::Array(list) => Value::Array(
                list.iter()
                    .map(|each| self.filled(each))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(members) => {
                if let Some(at) = members.get("port_of") {
                    return self.port(at).ok_or_else(|| {
                        Reply::Unsupported(format!("there is no server for {form}"))
                    });
                }
                for (name, of_data) in [("handle_of", false), ("data_of", true)] {
                    if let Some(at) = members.get(name) {
                        let found = self.handed(at, of_data);
                        let plus = members
                            .get("plus")
                            .and_then(Value::as_u64)
                            .unwrap_or_default();
                        let found = found.map(|found| json!(found.wrapping_add(plus)));
                        return found.ok_or_else(|| {
                            Reply::Unsupported(format!("no answer has the {form}"))
                        });
                    }
                }
                let members = members
                    .iter()
                    .map(|(name, each)| Ok((name.clone(), self.filled(each)?)));
                Value::Object(members.collect::<Result<_, Reply>>()?)
            }
            other => other.clone(),
        })
    }

    /// The port of the server that is so many behind the first one.
    fn port(&self, at: &Value) -> Option<Value> {
        let at = usize::try_from(at.as_u64()?).ok()?.checked_sub(1)?;
        self.script.hops.get(at).map(|place| json!(place.port))
    }

    /// The handle in answer `at`, or what the memory of its tensor is known by.
    fn handed(&self, at: &Value, of_data: bool) -> Option<u64> {
        let at = usize::try_from(at.as_u64()?).ok()?;
        let mut values = self.answers.get(at)?.iter();
        values.find_map(|value| match value {
            PackedValue::Handle(handle) if !of_data => Some(*handle),
            PackedValue::Tensor(block) if of_data => Some(block.data),
            _ => None,
        })
    }

    fn write(&mut self, packet: &Packet<'_>) -> Result<(), Reply> {
        let mut out = Writer::new();
        let spoken = Protocol::new(self.script.release, Speaker::Client);
        packet
            .write(&spoken, &mut out)
            .map_err(|broken| Reply::Unsupported(broken.to_string()))?;
        // A server that is gone shows at the answer.
        self.raw.write(&out.into_bytes());
        Ok(())
    }

    /// Waits for an answer; where the step ends the session, for its end, in front of which a server may say why.
    fn read_on(&mut self, step: &Map<String, Value>) -> Result<Came, Reply> {
        let came = self.read(step)?;
        let is_exception =
            |answer: &Value| answer.get("code").is_some_and(|code| code == "Exception");
        match came {
            Came::Answer(answer) if step.contains_key("ends") && is_exception(&answer) => {
                self.read(step)
            }
            other => Ok(other),
        }
    }

    /// Waits for an answer.
    fn read(&mut self, step: &Map<String, Value>) -> Result<Came, Reply> {
        self.wait();
        let spoken = Protocol::new(self.script.release, Speaker::Server);
        let mut findings = Findings::default();
        let packet = match self.transport.read_packet(&spoken, &mut findings) {
            Ok(Some(Packet::Shutdown) | None) => return Ok(Came::End),
            Ok(Some(packet)) => packet,
            Err(error) if error.kind() == TIMEOUT => return Err(self.hang()),
            Err(error) => {
                return Ok(match error.violation() {
                    Some(broken) => {
                        self.answers.push(Vec::new());
                        Came::Answer(json!({"breaks": broken.rule().id()}))
                    }
                    // The connection is gone.
                    None => Came::End,
                });
            }
        };
        let (shown, values) = self.script.shown(&packet, step);
        self.answers.push(values);
        Ok(Came::Answer(shown))
    }

    /// Whether the server has ended the session: no answer comes to a question that every session answers.
    fn is_over(&mut self) -> Result<bool, Reply> {
        self.write(&Packet::KeepAlive)?;
        let name = PackedValue::Str(Cow::Borrowed(UNKNOWN));
        self.write(&Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name]))?;
        let ended = matches!(self.read(&Map::new())?, Came::End);
        self.write(&Packet::Shutdown)?;
        if !ended && !matches!(self.read(&Map::new())?, Came::End) {
            return Err(Reply::Hang("the server answers Shutdown".to_owned()));
        }
        Ok(ended)
    }

    fn wait(&mut self) {
        self.transport
            .set_deadline(Some(Instant::now() + self.patience));
    }

    fn hang(&self) -> Reply {
        Reply::Hang(format!("no answer in {:?}", self.patience))
    }
}

impl SessionScript<'_> {
    /// An answer as it shows, and its values.
    fn shown(
        &self,
        packet: &Packet<'_>,
        step: &Map<String, Value>,
    ) -> (Value, Vec<PackedValue<'static>>) {
        let mut form = from_packet(packet);
        if let Packet::Exception(values) = packet {
            let text = match values.as_slice() {
                [PackedValue::Str(text)] => String::from_utf8_lossy(text),
                _ => Cow::Borrowed(""),
            };
            let has: Vec<&&str> = self
                .texts
                .iter()
                .filter(|part| text.contains(**part))
                .collect();
            return (json!({"code": "Exception", "has": has}), Vec::new());
        }
        let values = match packet {
            Packet::Return(values) => values.iter().filter_map(handed_out).collect(),
            _ => Vec::new(),
        };
        let with_lengths = step.get("lengths") == Some(&Value::Bool(true));
        for value in form
            .get_mut("args")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            hide(value, with_lengths);
        }
        (form, values)
    }
}

/// What a later request may name of a value.
fn handed_out(value: &PackedValue<'_>) -> Option<PackedValue<'static>> {
    match value {
        PackedValue::Handle(handle) => Some(PackedValue::Handle(*handle)),
        PackedValue::Tensor(block) => Some(PackedValue::Tensor(block.clone())),
        _ => None,
    }
}

/// Puts `"some"` in the place of the server's own numbers, and lengths in that of texts and bytes.
fn hide(value: &mut Value, with_lengths: bool) {
    let some = |number: Option<&mut Value>| {
        if let Some(number) = number.filter(|number| number.as_u64() != Some(0)) {
            *number = json!("some");
        }
    };
    some(value.get_mut("handle"));
    some(value.pointer_mut("/tensor/data"));
    if with_lengths {
        if let Some(bytes) = value.get_mut("bytes") {
            use base64::prelude::{BASE64_STANDARD, Engine as _};
            let length = bytes
                .as_str()
                .and_then(|text| BASE64_STANDARD.decode(text).ok());
            *bytes = json!(length.unwrap_or_default().len());
        }
        if let Some(text) = value.get_mut("str") {
            *text = json!(text.as_str().unwrap_or_default().len());
        }
    }
}
