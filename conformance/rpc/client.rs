//! `rpc.client`: what a client does with a server that answers by a script, and what it writes to it.
//!
//! The server answers FreeHandle, DevFreeData and DevStreamSync with nothing, and every other request with the next answer of the script.
//! Behind the last one it ends the connection.

use super::session::{is_late, patience};
use crate::conformance::case::entry::hex_bytes;
use crate::conformance::op::{Answer, OpError, base64};
use crate::device::timer::Evaluator;
use crate::device::{Attribute, Device, Manager, Stream};
use crate::function::{Error, Function};
use crate::module::Module;
use crate::object::Tensor;
use crate::release::Release;
use crate::rpc::client::{RemoteTiming, Session, SessionOptions};
use crate::rpc::json::{from_packet, to_packet};
use crate::rpc::transport::{TIMEOUT, Transport};
use crate::rpc::{HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker};
use crate::rule::Findings;
use crate::tensor::json::{from_device, from_dtype, to_device, to_dtype};
use crate::value::{
    Any, Bytes, DLDataType, DLDevice, Str, bytes_bytes, dtype_to_text, index, str_bytes,
};
use crate::wire::Writer;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Our own client, against a server of this process.
pub(super) fn client(args: &Value) -> Result<Answer, OpError> {
    let script = ClientScript::read(args)?;
    let failed = |error: std::io::Error| OpError::Unsupported(error.to_string());
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let is_far = Arc::new(AtomicBool::new(false));
    let mut server = ScriptServer {
        answers: script.answers.clone(),
        greeting: script.greeting,
        release: script.release,
        is_far: Arc::clone(&is_far),
        key: String::new(),
        requests: Vec::new(),
    };
    let served = std::thread::spawn(move || {
        // An error is that of a client which is gone.
        drop(listener.accept().map(|(stream, _)| server.serve(stream)));
        server
    });
    let options = SessionOptions {
        release: script.stated,
        connect_timeout: patience(),
        timeout: Some(patience()),
        session_timeout: script.seconds,
        ..SessionOptions::default()
    };
    let mut client = ActingClient {
        is_far,
        session: None,
        results: Vec::new(),
    };
    let connected = Session::connect("127.0.0.1", port, script.key, &options);
    let mut shown = Vec::new();
    match connected {
        Ok(session) => {
            let release = session.release().to_string();
            shown.push(json!({"session": session.server(), "release": release}));
            client.session = Some(session);
            // Actions are counted from 1: the session is the first result.
            client.results.push(None);
            for action in script.actions {
                let result = client.act(action)?;
                shown.push(client.show(result));
            }
        }
        Err(error) => shown.push(client.show(Err(error))),
    }
    // The last that was made goes first, and the session last.
    while client.results.pop().is_some() {}
    drop(client);
    let server = served
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let value = json!({"hello": server.key, "results": shown, "requests": server.requests});
    Ok(Answer::new(value, Findings::default()))
}

/// A request of this operation.
struct ClientScript<'a> {
    /// By whose rules the server writes.
    release: Release,
    /// The release that the client is started for.
    stated: Option<Release>,
    key: &'a str,
    seconds: Option<f64>,
    greeting: Greeting,
    /// Of InitServer, and of what follows.
    answers: VecDeque<ScriptedAnswer>,
    actions: &'a [Value],
}

/// How the server answers the hello.
#[derive(Clone, Copy)]
enum Greeting {
    Success,
    Mismatch,
    Duplicate,
}

#[derive(Clone)]
enum ScriptedAnswer {
    Packet(Packet<'static>),
    Bytes(Vec<u8>),
}

impl<'a> ClientScript<'a> {
    fn read(args: &'a Value) -> Result<ClientScript<'a>, OpError> {
        let wrong = |what: &str| OpError::Unsupported(format!("`{what}` has another form"));
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let release =
            |name: &str| text(name).map(|text| text.parse().map_err(OpError::Unsupported));
        let answers = args.get("answers").and_then(Value::as_array);
        let answers = answers.ok_or_else(|| wrong("answers"))?.iter();
        let answers = answers.map(|answer| match answer.get("hex").and_then(Value::as_str) {
            Some(hex) => hex_bytes(hex).map(ScriptedAnswer::Bytes),
            None => to_packet(answer).map(ScriptedAnswer::Packet),
        });
        let actions = args.get("value").and_then(Value::as_array);
        Ok(ClientScript {
            release: release("release").ok_or_else(|| wrong("release"))??,
            stated: release("stated").transpose()?,
            key: text("key").unwrap_or_default(),
            seconds: args.get("seconds").and_then(Value::as_f64),
            greeting: match text("greeting") {
                None | Some("success") => Greeting::Success,
                Some("mismatch") => Greeting::Mismatch,
                Some("duplicate") => Greeting::Duplicate,
                Some(_) => return Err(wrong("greeting")),
            },
            answers: answers
                .collect::<Result<_, _>>()
                .map_err(OpError::Unsupported)?,
            actions: actions.ok_or_else(|| wrong("value"))?,
        })
    }
}

/// The server that answers by a script.
struct ScriptServer {
    answers: VecDeque<ScriptedAnswer>,
    greeting: Greeting,
    release: Release,
    /// Whether an answer to this action was an exception.
    is_far: Arc<AtomicBool>,
    /// The key that the client wrote.
    key: String,
    /// What it wrote then.
    requests: Vec<Value>,
}

impl ScriptServer {
    fn serve(&mut self, stream: TcpStream) -> Result<(), Error> {
        let gone = |error: std::io::Error| Error::new("ConnectionError", error.to_string());
        let mut raw = stream.try_clone().map_err(gone)?;
        let mut transport = Transport::tcp(stream)?;
        transport.set_deadline(Some(Instant::now() + patience()));
        self.key = transport.read_hello()?.key.into_owned();
        let answer = match self.greeting {
            Greeting::Success => HelloAnswer::Success("server:scripted".into()),
            Greeting::Mismatch => HelloAnswer::Mismatch,
            Greeting::Duplicate => HelloAnswer::Duplicate,
        };
        transport.write_answer(&answer, self.release)?;
        loop {
            transport.set_deadline(Some(Instant::now() + patience()));
            let spoken = Protocol::new(self.release, Speaker::Client);
            let read = transport.read_packet(&spoken, &mut Findings::default());
            let packet = match read {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let rule = error.violation().map(|broken| broken.rule().id());
                    self.requests.push(json!({ "breaks": rule }));
                    return Err(error);
                }
            };
            self.requests.push(from_packet(&packet));
            let void = ScriptedAnswer::Packet(Packet::Return(vec![PackedValue::None]));
            let answer = match packet {
                Packet::Shutdown => return Ok(()),
                Packet::SystemCall(
                    RpcCode::FreeHandle | RpcCode::DevFreeData | RpcCode::DevStreamSync,
                    _,
                ) => Some(void),
                _ => self.answers.pop_front(),
            };
            let Some(answer) = answer else {
                return Ok(());
            };
            let mut out = Writer::new();
            let bytes = match &answer {
                ScriptedAnswer::Bytes(bytes) => bytes.clone(),
                ScriptedAnswer::Packet(packet) => {
                    packet.write(&Protocol::new(self.release, Speaker::Server), &mut out)?;
                    out.into_bytes()
                }
            };
            // Of bytes the code is looked at, behind the length.
            if bytes.get(8) == Some(&5) {
                self.is_far.store(true, Ordering::Relaxed);
            }
            raw.write_all(&bytes).map_err(gone)?;
        }
    }
}

/// The client that acts.
struct ActingClient {
    is_far: Arc<AtomicBool>,
    session: Option<Session>,
    results: Vec<Option<Any>>,
}

/// What came of an action: a value, or its JSON form.
enum Done {
    Value(Any),
    Shown(Value),
}

impl ActingClient {
    /// Does what `action` says. The outer error is that of the script.
    fn act(&mut self, action: &Value) -> Result<Result<Done, Error>, OpError> {
        let wrong = || OpError::Unsupported(format!("{action} is no action"));
        let parts = action.as_array().and_then(|parts| parts.split_first());
        let (name, args) = parts.ok_or_else(wrong)?;
        let text = |at: usize| args.get(at).and_then(Value::as_str).ok_or_else(wrong);
        let session = self.session.clone().ok_or_else(wrong)?;
        self.is_far.store(false, Ordering::Relaxed);
        let at = |at: usize| {
            args.get(at)
                .and_then(Value::as_u64)
                .and_then(|at| usize::try_from(at).ok())
        };
        let earlier = |place: usize| {
            let at = at(place).ok_or_else(wrong)?;
            self.results
                .get(at)
                .and_then(Option::clone)
                .ok_or_else(wrong)
        };
        let device = |at: usize| -> Result<Device, OpError> {
            let device =
                to_device(args.get(at).unwrap_or(&Value::Null)).map_err(OpError::Unsupported)?;
            Ok(session.device(device)?)
        };
        let api = |device: Device| Manager::global().api(device.kind);
        let done = |result: Result<(), Error>| result.map(|()| Done::Shown(Value::Null));
        Ok(match name.as_str().ok_or_else(wrong)? {
            "function" => session.function(text(0)?).map(|found| {
                found.map_or(Done::Shown(Value::Null), |found| {
                    Done::Value(found.into_object().into())
                })
            }),
            "call" => {
                let Ok(function) = Function::try_from(earlier(0)?) else {
                    return Ok(Err(no("function")));
                };
                let rest = args.get(1..).unwrap_or_default().iter();
                let passed = rest
                    .map(|form| self.argument(&session, form))
                    .collect::<Result<Vec<_>, _>>()?;
                let views: Vec<_> = passed.iter().map(Any::view).collect();
                let result = function.call(&views);
                // A function writes to tensors of this process, which show.
                let written: Vec<Value> = passed.iter().filter_map(host_bytes).collect();
                match (result, written.is_empty()) {
                    (Ok(result), true) => Ok(Done::Value(result)),
                    (Ok(result), false) => Ok(Done::Shown(
                        json!({"result": shown(&result), "written": written}),
                    )),
                    (Err(error), _) => Err(error),
                }
            }
            "load" => session
                .load_module(text(0)?)
                .map(|module| Done::Value(module.into())),
            "find" => {
                let Ok(module) = Module::try_from(earlier(0)?) else {
                    return Ok(Err(no("module")));
                };
                module.function(text(1)?, true).map(|found| {
                    found.map_or(Done::Shown(Value::Null), |found| {
                        Done::Value(found.into_object().into())
                    })
                })
            }
            "import" => {
                let module = |at| Module::try_from(earlier(at)?).map_err(|_| wrong());
                done(session.import(&module(0)?, &module(1)?))
            }
            "upload" => done(session.upload(text(0)?, text(1)?.as_bytes())),
            "download" => session
                .download(text(0)?)
                .map(|bytes| Done::Shown(base64(&bytes))),
            "remove" => done(session.remove(text(0)?)),
            "send" => {
                let tensor = host_tensor(args.first().unwrap_or(&Value::Null))?;
                session
                    .send(&tensor, device(1)?)
                    .map(|sent| Done::Value(sent.into()))
            }
            "fetch" => {
                let Ok(tensor) = Tensor::try_from(earlier(0)?) else {
                    return Ok(Err(no("tensor")));
                };
                session
                    .fetch(&tensor)
                    .and_then(|here| Ok(Done::Shown(base64(&here.to_bytes()?))))
            }
            "copy" => {
                let tensor = |at| Tensor::try_from(earlier(at)?).map_err(|_| wrong());
                let (from, to) = (tensor(0)?, tensor(1)?);
                let reference = |tensor: &Tensor| crate::device::TensorRef {
                    data: crate::device::Space(tensor.dl().data),
                    device: tensor.dl().device.into(),
                    dtype: tensor.dl().dtype.into(),
                    shape: &[],
                    strides: None,
                    byte_offset: tensor.dl().byte_offset,
                };
                let source = crate::device::TensorRef {
                    shape: from.shape(),
                    ..reference(&from)
                };
                let target = crate::device::TensorRef {
                    shape: to.shape(),
                    ..reference(&to)
                };
                // SAFETY: both tensors hold their memory, and are held for the call.
                done(unsafe { Manager::global().copy_tensor(&source, &target, Stream::DEFAULT) })
            }
            "devices" => session
                .devices(i32::try_from(at(0).ok_or_else(wrong)?).map_err(|_| wrong())?)
                .map(|found| Done::Shown(json!(found.len()))),
            "attribute" => {
                let name = text(1)?;
                let kind = Attribute::ALL
                    .iter()
                    .find(|kind| format!("{kind:?}") == name);
                let device = device(0)?;
                let answer = Manager::global().attribute(device, *kind.ok_or_else(wrong)?);
                answer.map(|answer| Done::Shown(answer.into()))
            }
            "set_device" => {
                let device = device(0)?;
                done(api(device).and_then(|api| api.set_device(device)))
            }
            "stream" => {
                let device = device(0)?;
                done(api(device).and_then(|api| {
                    let stream = api.create_stream(device)?;
                    api.set_stream(device, stream)?;
                    api.sync(device, stream)?;
                    api.set_stream(device, Stream::DEFAULT)?;
                    // SAFETY: made by this device just now, and no thread's current one.
                    unsafe { api.free_stream(device, stream) }
                }))
            }
            "time" => {
                let count = |place: usize| at(place).ok_or_else(wrong);
                let timing = RemoteTiming {
                    evaluator: Evaluator {
                        number: count(1)? as u64,
                        repeat: count(2)?,
                        ..Evaluator::default()
                    },
                    ..RemoteTiming::default()
                };
                let measured = session.time(None, text(0)?, Device::CPU, &timing, &[]);
                measured.map(|seconds| Done::Shown(json!(seconds)))
            }
            "forget" => {
                let at = at(0).ok_or_else(wrong)?;
                *self.results.get_mut(at).ok_or_else(wrong)? = None;
                Ok(Done::Shown(Value::Null))
            }
            "close" => {
                session.close();
                Ok(Done::Shown(Value::Null))
            }
            _ => return Err(wrong()),
        })
    }

    /// A result, kept for later actions.
    fn show(&mut self, result: Result<Done, Error>) -> Value {
        let (kept, shown) = match result {
            Ok(Done::Value(value)) => {
                let shown = shown(&value);
                (Some(value), shown)
            }
            Ok(Done::Shown(shown)) => (None, shown),
            Err(error) => (None, self.raised(&error)),
        };
        self.results.push(kept);
        shown
    }

    /// An error: of the server in full, of the client by the rule or the kind.
    fn raised(&self, error: &Error) -> Value {
        // What else the client checks is its own affair, down to the rule.
        let broken = error
            .violation()
            .filter(|broken| broken.rule().id().starts_with("RPC-"));
        if let Some(broken) = broken {
            return json!({"breaks": broken.rule().id(), "kind": broken.kind().name()});
        }
        if error.kind() == TIMEOUT {
            is_late();
        }
        let kind = error.kind().as_str().to_owned();
        match self.is_far.load(Ordering::Relaxed) {
            true => {
                json!({"raises": kind, "message": error.message(), "backtrace": error.backtrace()})
            }
            false => json!({ "raises": kind }),
        }
    }

    fn argument(&self, session: &Session, form: &Value) -> Result<Any, OpError> {
        let wrong = || OpError::Unsupported(format!("{form} is no argument"));
        let Some((name, value)) = form.as_object().and_then(|members| members.iter().next()) else {
            return if form.is_null() {
                Ok(Any::none())
            } else {
                Err(wrong())
            };
        };
        let text = || value.as_str().ok_or_else(wrong);
        Ok(match name.as_str() {
            "int" => value.as_i64().ok_or_else(wrong)?.into(),
            "bool" => value.as_bool().ok_or_else(wrong)?.into(),
            "float" => value.as_f64().ok_or_else(wrong)?.into(),
            "str" => Str::new(text()?).into(),
            "bytes" => Bytes::new(&from_base64(text()?).ok_or_else(wrong)?).into(),
            "dtype" => DLDataType::from(to_dtype(value).map_err(OpError::Unsupported)?).into(),
            "device" => DLDevice::from(to_device(value).map_err(OpError::Unsupported)?).into(),
            "remote_device" => {
                let device = to_device(value).map_err(OpError::Unsupported)?;
                DLDevice::from(session.device(device)?).into()
            }
            "tensor" => host_tensor(value)?.into(),
            "array" => crate::object::Array::from_iter([Any::from(1_i64)]).into(),
            "of" => {
                let at = value.as_u64().and_then(|at| usize::try_from(at).ok());
                let kept = at.and_then(|at| self.results.get(at)?.clone());
                kept.ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        })
    }
}

/// A result that is none of what an action needs: that of a client which is wrong, and not an action that is impossible.
fn no(what: &str) -> Error {
    Error::new("TypeError", format!("the result is no {what}"))
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    BASE64_STANDARD.decode(text).ok()
}

/// A tensor of this process, of a form `{"dtype", "shape", "data"}`.
fn host_tensor(form: &Value) -> Result<Tensor, OpError> {
    let wrong = || OpError::Unsupported(format!("{form} is no tensor"));
    let dtype =
        to_dtype(form.get("dtype").unwrap_or(&Value::Null)).map_err(OpError::Unsupported)?;
    let shape = form
        .get("shape")
        .and_then(Value::as_array)
        .ok_or_else(wrong)?
        .iter();
    let shape: Vec<i64> = shape
        .map(Value::as_i64)
        .collect::<Option<_>>()
        .ok_or_else(wrong)?;
    let data = form
        .get("data")
        .and_then(Value::as_str)
        .and_then(from_base64);
    let tensor = Tensor::empty(&shape, dtype.into())?;
    tensor.fill(&data.ok_or_else(wrong)?)?;
    Ok(tensor)
}

/// The bytes of a tensor of this process.
fn host_bytes(value: &Any) -> Option<Value> {
    let tensor = Tensor::try_from(value).ok()?;
    let is_here = tensor.dl().device == DLDevice::CPU;
    is_here
        .then(|| tensor.to_bytes().ok().map(|bytes| base64(&bytes)))
        .flatten()
}

/// A value as it shows.
fn shown(value: &Any) -> Value {
    let view = value.view();
    let raw = view.as_raw();
    match value.type_index() {
        index::NONE => Value::Null,
        index::INT => json!({"int": raw.int()}),
        index::BOOL => json!({"bool": raw.int()}),
        index::FLOAT => json!({"float": raw.float()}),
        index::DATA_TYPE => json!({"dtype": dtype_to_text(raw.dtype()).unwrap_or_default()}),
        index::DEVICE => json!({"device": from_device(raw.device().into())}),
        index::STR | index::SMALL_STR => {
            json!({"str": String::from_utf8_lossy(str_bytes(&view).unwrap_or_default())})
        }
        index::BYTES | index::SMALL_BYTES => {
            json!({"bytes": base64(bytes_bytes(&view).unwrap_or_default())})
        }
        index::FUNCTION => json!("function"),
        index::MODULE => json!("module"),
        index::TENSOR => match Tensor::try_from(value) {
            Ok(tensor) => {
                let device = Device::from(tensor.dl().device).without_session();
                let dtype = from_dtype(tensor.dl().dtype.into());
                json!({"tensor": {"device": from_device(device), "dtype": dtype, "shape": tensor.shape()}})
            }
            Err(_) => json!("tensor"),
        },
        _ => json!("object"),
    }
}
