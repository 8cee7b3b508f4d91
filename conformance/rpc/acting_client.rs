//! The client of `rpc.client`: it performs actions and shows their results.
//!
//! A result is kept until a later action forgets it, like in a user's program. The requests that the server reads show when values are
//! freed.

use super::client_forms::{
    from_base64, host_bytes, host_tensor, memory, pieces, reference, shown, wrong_result,
};
use super::session::{is_late, patience, texts_in};
use crate::conformance::op::{OpError, base64};
use crate::device::timer::Evaluator;
use crate::device::{Attribute, Device, Manager, Stream};
use crate::function::{Error, ErrorKind, Function};
use crate::module::Module;
use crate::object::Tensor;
use crate::rpc::client::{RemoteTiming, Session};
use crate::tensor::json::{to_device, to_dtype};
use crate::value::{Any, AnyView, Bytes, Str};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The client that performs the actions of a case.
pub(super) struct ActingClient<'a> {
    /// `true` if the answer to the current action was an exception.
    is_far: Arc<AtomicBool>,
    /// Texts to look for in errors of the client itself.
    texts: Vec<&'a str>,
    /// Start of the present action, or of connecting.
    began: Instant,
    connect: &'a dyn Fn() -> Result<Session, Error>,
    sessions: Vec<Session>,
    /// Index of the session that performs the actions.
    current: usize,
    /// Results by the number of their action, from 1 on: the first result is that of connecting.
    results: Vec<Option<Any>>,
}

/// The result of an action: a value, or its JSON form.
enum ActionResult {
    Value(Any),
    Shown(Value),
}

impl<'a> ActingClient<'a> {
    /// Creates a client without a session; `connect` opens further ones.
    pub(super) fn new(
        is_far: Arc<AtomicBool>,
        texts: Vec<&'a str>,
        connect: &'a dyn Fn() -> Result<Session, Error>,
    ) -> ActingClient<'a> {
        ActingClient {
            is_far,
            texts,
            began: Instant::now(),
            connect,
            sessions: Vec::new(),
            current: 0,
            results: Vec::new(),
        }
    }

    /// Performs all actions. Returns the result of connecting and that of each action, in order.
    pub(super) fn run(
        &mut self,
        connected: Result<Session, Error>,
        actions: &[Value],
    ) -> Result<Vec<Value>, OpError> {
        let entered = connected.map(|session| self.enter(session));
        let is_connected = entered.is_ok();
        let mut shown = vec![self.show(entered)];
        for action in actions.iter().filter(|_| is_connected) {
            let result = self.act(action)?;
            shown.push(self.show(result));
        }
        // Values are dropped in the reverse order of their creation, before the sessions.
        while self.results.pop().is_some() {}
        while self.sessions.pop().is_some() {}
        Ok(shown)
    }

    /// Makes the session the current one. Returns the key of the server, and the release whose rules both sides follow (RPC-100).
    fn enter(&mut self, session: Session) -> ActionResult {
        let release = session.release().to_string();
        let shown = json!({"session": session.server(), "release": release});
        self.current = self.sessions.len();
        self.sessions.push(session);
        ActionResult::Shown(shown)
    }

    /// Performs `action`. The outer error is that of the script.
    ///
    /// An action with a closed session, or with the result of a failed action, is performed like any other: many cases are about the
    /// behaviour of a client there.
    fn act(&mut self, action: &Value) -> Result<Result<ActionResult, Error>, OpError> {
        let wrong = || OpError::Unsupported(format!("{action} is not an action"));
        let parts = action.as_array().and_then(|parts| parts.split_first());
        let (name, args) = parts.ok_or_else(wrong)?;
        let text = |at: usize| args.get(at).and_then(Value::as_str).ok_or_else(wrong);
        let session = self.sessions.get(self.current).ok_or_else(wrong)?.clone();
        self.began = Instant::now();
        // An exception that answered an earlier action must not be attributed to this one.
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
            let device = to_device(args.get(at).unwrap_or(&Value::Null))?;
            Ok(session.device(device)?)
        };
        let api = |device: Device| Manager::global().api(device.kind);
        let done = |result: Result<(), Error>| result.map(|()| ActionResult::Shown(Value::Null));
        Ok(match name.as_str().ok_or_else(wrong)? {
            "function" => session.function(text(0)?).map(|found| {
                found.map_or(ActionResult::Shown(Value::Null), |found| {
                    ActionResult::Value(found.into_object().into())
                })
            }),
            "call" => {
                let Ok(function) = Function::try_from(earlier(0)?) else {
                    return Ok(Err(wrong_result("function")));
                };
                let rest = args.get(1..).unwrap_or_default().iter();
                let passed = rest
                    .map(|form| self.argument(&session, form))
                    .collect::<Result<Vec<_>, _>>()?;
                let views: Vec<_> = passed.iter().map(Any::view).collect();
                let result = function.call_packed(&views);
                // RPC-102: host tensors are copied back after the call, even if the function returned something else. Data that the
                // function wrote to them is shown.
                let written: Vec<Value> = passed.iter().filter_map(host_bytes).collect();
                match (result, written.is_empty()) {
                    (Ok(result), true) => Ok(ActionResult::Value(result)),
                    (Ok(result), false) => Ok(ActionResult::Shown(
                        json!({"result": shown(&result), "written": written}),
                    )),
                    (Err(error), _) => Err(error),
                }
            }
            "load" => session
                .load_module(text(0)?)
                .map(|module| ActionResult::Value(module.into())),
            "find" => {
                let Ok(module) = Module::try_from(earlier(0)?) else {
                    return Ok(Err(wrong_result("module")));
                };
                module.function(text(1)?, true).map(|found| {
                    found.map_or(ActionResult::Shown(Value::Null), |found| {
                        ActionResult::Value(found.into_object().into())
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
                .map(|bytes| ActionResult::Shown(base64(&bytes))),
            "remove" => done(session.remove(text(0)?)),
            "send" => {
                let tensor = host_tensor(args.first().unwrap_or(&Value::Null))?;
                session
                    .send(&tensor, device(1)?)
                    .map(|sent| ActionResult::Value(sent.into()))
            }
            "fetch" => {
                let Ok(tensor) = Tensor::try_from(earlier(0)?) else {
                    return Ok(Err(wrong_result("tensor")));
                };
                session
                    .fetch(&tensor)
                    .and_then(|here| Ok(ActionResult::Shown(base64(&here.to_bytes()?))))
            }
            "copy" => {
                let tensor = |at| Tensor::try_from(earlier(at)?).map_err(|_| wrong());
                let (from, to) = (tensor(0)?, tensor(1)?);
                let (source, target) = (reference(&from), reference(&to));
                // SAFETY: both tensors own their memory, and are kept for the call.
                done(unsafe { Manager::global().copy_tensor(&source, &target, Stream::DEFAULT) })
            }
            "devices" => session
                .devices(i32::try_from(at(0).ok_or_else(wrong)?).map_err(|_| wrong())?)
                .map(|found| ActionResult::Shown(json!(found.len()))),
            "attribute" => {
                let name = text(1)?;
                let kind = Attribute::ALL
                    .iter()
                    .find(|kind| format!("{kind:?}") == name);
                let device = device(0)?;
                let answer = Manager::global().attribute(device, *kind.ok_or_else(wrong)?);
                answer.map(|answer| ActionResult::Shown(answer.into()))
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
                    // SAFETY: this device created the stream above, and it is no thread's current stream.
                    unsafe { api.free_stream(device, stream) }
                }))
            }
            "time" => self.time(&session, args)?,
            "model" => {
                let content = pieces(args.get(1)).ok_or_else(wrong)?;
                session
                    .load_model(text(0)?, content)
                    .map(|module| ActionResult::Value(module.into()))
            }
            "kind" => {
                let module = Module::try_from(earlier(0)?).map_err(|_| wrong())?;
                let kind = |module: &Module| module.kind().to_string();
                let imports: Vec<String> = module.imports().iter().map(kind).collect();
                Ok(ActionResult::Shown(
                    json!({"kind": kind(&module), "imports": imports}),
                ))
            }
            "memory" => done(memory(device(0)?, args.get(1), args.get(2))?),
            "session" => match at(0) {
                None => (self.connect)().map(|session| self.enter(session)),
                Some(number) => {
                    self.current = number;
                    Ok(ActionResult::Shown(Value::Null))
                }
            },
            "forget" => {
                let at = at(0).ok_or_else(wrong)?;
                *self.results.get_mut(at).ok_or_else(wrong)? = None;
                Ok(ActionResult::Shown(Value::Null))
            }
            "close" => {
                session.close();
                Ok(ActionResult::Shown(Value::Null))
            }
            _ => return Err(wrong()),
        })
    }

    /// Measures a function of the server. The arguments are its name, the numbers of calls and of repetitions, and options.
    ///
    /// RPC-91: the script answers with the seconds; the client's requests are in the list that the server read.
    fn time(
        &self,
        session: &Session,
        args: &[Value],
    ) -> Result<Result<ActionResult, Error>, OpError> {
        let wrong = || OpError::Unsupported("`time` has another form".into());
        let [Value::String(name), number, repeat, rest @ ..] = args else {
            return Err(wrong());
        };
        let more = rest.first().unwrap_or(&Value::Null);
        let count = |form: &Value| form.as_u64().ok_or_else(wrong);
        let plain = Evaluator::default();
        let of = |name: &str, plain: u64| more.get(name).map_or(Ok(plain), count);
        let millis = |name: &str, plain: Duration| match more.get(name) {
            None => Ok(plain),
            Some(form) => count(form).map(Duration::from_millis),
        };
        let size = |count: u64| usize::try_from(count).map_err(|_| wrong());
        let timing = RemoteTiming {
            evaluator: Evaluator {
                number: count(number)?,
                repeat: size(count(repeat)?)?,
                min_repeat: millis("min_repeat", plain.min_repeat)?,
                limit_zero_time_iterations: of(
                    "limit_zero_time",
                    plain.limit_zero_time_iterations,
                )?,
                cooldown: millis("cooldown", plain.cooldown)?,
                repeats_to_cooldown: size(of(
                    "repeats_to_cooldown",
                    plain.repeats_to_cooldown as u64,
                )?)?,
            },
            cache_flush_bytes: of("flush", 0)?,
            before: more["before"].as_str().unwrap_or_default().to_owned(),
        };
        let module = match more.get("module").and_then(Value::as_u64) {
            None => None,
            Some(at) => {
                let kept = usize::try_from(at)
                    .ok()
                    .and_then(|at| self.results.get(at)?.clone());
                Some(Module::try_from(kept.ok_or_else(wrong)?).map_err(|_| wrong())?)
            }
        };
        let device = match more.get("device") {
            None => Device::CPU,
            Some(form) => session.device(to_device(form)?)?,
        };
        let passed = more.get("args").and_then(Value::as_array);
        let passed = passed
            .into_iter()
            .flatten()
            .map(|form| self.argument(session, form))
            .collect::<Result<Vec<_>, _>>()?;
        let views: Vec<AnyView<'_>> = passed.iter().map(Any::view).collect();
        let measured = session.time(module.as_ref(), name, device, &timing, &views);
        Ok(measured.map(|seconds| ActionResult::Shown(json!(seconds))))
    }

    /// Shows a result, and keeps it for later actions.
    fn show(&mut self, result: Result<ActionResult, Error>) -> Value {
        let (kept, shown) = match result {
            Ok(ActionResult::Value(value)) => {
                let shown = shown(&value);
                (Some(value), shown)
            }
            Ok(ActionResult::Shown(shown)) => (None, shown),
            Err(error) => (None, self.raised(&error)),
        };
        self.results.push(kept);
        shown
    }

    /// Shows an error: an exception of the server in full, an error of the client by its rule or kind.
    fn raised(&self, error: &Error) -> Value {
        // Rules of other chapters are the client's own choice, so that the suite does not compare them.
        let broken = error
            .violation()
            .filter(|broken| broken.rule().id().starts_with("RPC-"));
        let with_texts = |mut form: Value| {
            if !self.texts.is_empty() {
                form["has"] = texts_in(&error.reason(), &self.texts);
            }
            form
        };
        if let Some(broken) = broken {
            return with_texts(json!({"breaks": broken.rule().id(), "kind": broken.kind().name()}));
        }
        let kind = error.kind().as_str().to_owned();
        // A case may state its own short timeout, which is no sign of a slow peer.
        if error.kind() == ErrorKind::Timeout && self.began.elapsed() >= patience() {
            is_late();
            return json!({"raises": kind, "late": true});
        }
        if self.is_far.load(Ordering::Relaxed) {
            json!({"raises": kind, "message": error.message(), "backtrace": error.backtrace()})
        } else {
            with_texts(json!({ "raises": kind }))
        }
    }

    /// Returns the value of an argument: null, or an object with one member that states its type, because JSON has fewer types than RPC-43.
    fn argument(&self, session: &Session, form: &Value) -> Result<Any, OpError> {
        let wrong = || OpError::Unsupported(format!("{form} is not an argument"));
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
            "dtype" => to_dtype(value)?.into(),
            "device" => to_device(value)?.into(),
            "remote_device" => {
                let device = to_device(value)?;
                session.device(device)?.into()
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
