//! A session as a case describes it, and the client that plays it.

use super::functions;
use super::hop::HopPlace;
use super::server_start::ServerStart;
use super::session::RawWriter;
use super::session_forms::shown;
use crate::conformance::form::{self, from_hex, from_text};
use crate::conformance::golden::hex_bytes;
use crate::conformance::op::OpError;
use crate::conformance::reply::Reply;
use crate::function::ErrorKind;
use crate::release::Release;
use crate::rpc::json::to_packet;
use crate::rpc::transport::Transport;
use crate::rpc::{Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker};
use crate::rule::Findings;
use crate::wire::Writer;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A function name that no server has.
const UNKNOWN: &[u8] = b"tvmspec.rpc.no such function";

/// The arguments of the operation.
#[derive(Deserialize)]
pub(in crate::conformance) struct SessionScript<'a> {
    /// Release whose rules the client follows.
    #[serde(deserialize_with = "from_text")]
    pub(super) release: Release,
    /// The whole key, or bytes instead of a hello; `None` for the key of the server.
    hello: Option<ClientHello>,
    /// `true` if InitServer is written before the steps.
    #[serde(default = "begins")]
    begins: bool,
    /// Texts to look for in exceptions.
    #[serde(borrow, default)]
    pub(super) texts: Vec<&'a str>,
    /// Start options of the server.
    #[serde(default)]
    pub(in crate::conformance) server: ServerStart,
    /// Places of the servers after it, once they are started.
    #[serde(skip)]
    pub(super) hops: Vec<HopPlace>,
    #[serde(rename = "value")]
    steps: Vec<Value>,
}

/// Returns true: by default a client begins a session.
fn begins() -> bool {
    true
}

/// The first message of the client: the hello of RPC-01 with this key, or other bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum ClientHello {
    Key(String),
    Bytes {
        #[serde(deserialize_with = "from_hex")]
        hex: Vec<u8>,
    },
}

/// The result of a step.
enum Came {
    /// An answer, in its JSON form.
    Answer(Value),
    /// The server has ended the session.
    End,
}

impl<'a> SessionScript<'a> {
    /// Reads the arguments.
    pub(in crate::conformance) fn read(args: &'a Value) -> Result<SessionScript<'a>, OpError> {
        let script: SessionScript<'a> = form::read(args)?;
        // RPC-15, RPC-22: up to 0.6 packets have no length, and no packet begins a session.
        if script.release.minor() < 7 {
            return Err(OpError::Unsupported(format!(
                "sessions of {} are of another protocol",
                script.release
            )));
        }
        Ok(script)
    }

    /// Returns the key with which the server is started, independent of the client's hello.
    pub(super) fn key(&self) -> &str {
        self.server.key()
    }

    /// Plays the session over a new connection to a server of this key. `patience` applies to each answer.
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
        let ended = if is_greeted {
            client.run(&mut shown)?
        } else {
            // A hello that was not accepted must end the connection.
            client.is_over()?
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
    /// Values of each answer as the server wrote them, for requests that refer to them.
    answers: Vec<Vec<PackedValue<'static>>>,
}

impl ScriptClient<'_, '_> {
    /// Writes the hello, and reads its answer.
    ///
    /// Returns null if no answer comes: a server closes a connection that does not begin with the magic number (RPC-01), without an answer.
    fn greet(&mut self, own: &str) -> Result<Value, Reply> {
        if self.script.server.paired {
            return self.greet_as_proxy(own);
        }
        let key = match &self.script.hello {
            Some(ClientHello::Bytes { hex: bytes }) => {
                self.raw.write(bytes);
                None
            }
            // With a tracker, a server has another key for each session.
            Some(ClientHello::Key(key)) => Some(match key.strip_prefix("client:") {
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
            Err(error) if error.kind() == ErrorKind::Timeout => return Err(self.timeout_reply()),
            // No answer, or a part of one.
            Err(_) => Value::Null,
        })
    }

    /// Reads the hello of a server, and writes the answer of a proxy, which contains the client's key (RPC-94).
    fn greet_as_proxy(&mut self, own: &str) -> Result<Value, Reply> {
        self.wait();
        let hello = match self.transport.read_hello() {
            Ok(hello) => hello.key,
            Err(error) if error.kind() == ErrorKind::Timeout => return Err(self.timeout_reply()),
            Err(_) => return Ok(Value::Null),
        };
        let answer = match &self.script.hello {
            Some(ClientHello::Bytes { hex: bytes }) => bytes.clone(),
            key => {
                let key = match key {
                    Some(ClientHello::Key(key)) => key.clone(),
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
            Some(ClientHello::Bytes { .. }) => "mismatch",
            _ => "success",
        };
        Ok(json!({"code": code, "key": hello}))
    }

    /// Plays the steps, and adds their answers to `shown`. Returns whether the server ended the session.
    ///
    /// InitServer comes first, except in cases about a session without it (RPC-81). Its answer is shown only if it is not a Return.
    fn run(&mut self, shown: &mut Vec<Value>) -> Result<bool, Reply> {
        if self.script.begins {
            // RPC-23: the version of the protocol, which is 0.8.0 in every later release.
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
            // Steps count the answers from 0, without that of InitServer.
            self.answers.clear();
        }
        for step in &self.script.steps {
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

    /// Plays a step, and returns its result.
    ///
    /// A step is a packet, bytes in hex, `close`, or `wait` for a further answer. If the server lacks a function that the suite needs, the
    /// case is unsupported, which says nothing about the server.
    fn step(&mut self, step: &Value) -> Result<Came, Reply> {
        let none = || Reply::Unsupported(format!("{step} is not a step"));
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
        let packet = to_packet(&form).map_err(|wrong| Reply::Unsupported(wrong.to_string()))?;
        self.write(&packet)?;
        match &packet {
            // RPC-11: it has no answer.
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

    /// Replaces references to answers in a form by their numbers.
    ///
    /// Handles and tokens differ between servers (RPC-85), so that a case refers to the answer that contained them: `{"handle_of": n}`, or
    /// for memory `{"data_of": n, "plus": bytes}` (RPC-86).
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
                        let found = self.handle_in_answer(at, of_data);
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

    /// Returns the port of the server that is `at` places after the first one.
    fn port(&self, at: &Value) -> Option<Value> {
        let at = usize::try_from(at.as_u64()?).ok()?.checked_sub(1)?;
        self.script.hops.get(at).map(|place| json!(place.port))
    }

    /// Returns the handle in answer `at`, or the number of its tensor's memory.
    fn handle_in_answer(&self, at: &Value, of_data: bool) -> Option<u64> {
        let at = usize::try_from(at.as_u64()?).ok()?;
        let mut values = self.answers.get(at)?.iter();
        values.find_map(|value| match value {
            PackedValue::Handle(handle) if !of_data => Some(*handle),
            PackedValue::Tensor(block) if of_data => Some(block.data),
            _ => None,
        })
    }

    /// Writes a packet by the rules of the client's release. A packet that they cannot encode is unsupported.
    fn write(&mut self, packet: &Packet<'_>) -> Result<(), Reply> {
        let mut out = Writer::new();
        let spoken = Protocol::new(self.script.release, Speaker::Client);
        packet
            .write(&spoken, &mut out)
            .map_err(|broken| Reply::Unsupported(broken.to_string()))?;
        // A server that is gone is noticed when the answer is read.
        self.raw.write(&out.into_bytes());
        Ok(())
    }

    /// Waits for an answer. If the step ends the session, waits for the end, before which the server may state the reason.
    ///
    /// Releases differ in whether they write an exception before they end, so that a case that ends the session accepts both.
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
    ///
    /// An invalid packet is shown as `{"breaks": rule}`: the server breaks a rule of the format, and the case fails.
    fn read(&mut self, step: &Map<String, Value>) -> Result<Came, Reply> {
        self.wait();
        let spoken = Protocol::new(self.script.release, Speaker::Server);
        let mut findings = Findings::default();
        let packet = match self.transport.read_packet(&spoken, &mut findings) {
            Ok(Some(Packet::Shutdown) | None) => return Ok(Came::End),
            Ok(Some(packet)) => packet,
            Err(error) if error.kind() == ErrorKind::Timeout => return Err(self.timeout_reply()),
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
        let (shown, values) = shown(&packet, step, &self.script.texts);
        self.answers.push(values);
        Ok(Came::Answer(shown))
    }

    /// Returns whether the server has ended the session: then it does not answer a request that every session answers.
    ///
    /// The client must ask, because a connection that its server has closed may still accept bytes for a while.
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

    /// Starts the time limit of the next answer now, so that a case of many steps may be slow without counting as a hang.
    fn wait(&mut self) {
        self.transport
            .set_deadline(Some(Instant::now() + self.patience));
    }

    /// Returns the verdict of a timeout. It is not an answer: silence does not satisfy a case that expects an end.
    fn timeout_reply(&self) -> Reply {
        Reply::Hang(format!("no answer in {:?}", self.patience))
    }
}
