//! Operations of chapters other than rpc, which this crate's client sends to a server, each in a new session.
//!
//! The memory representation of a value does not cross a connection. Only these operations are supported, and only for values that
//! a packet can contain.

use super::{LiveServer, Seat, ServerSource};
use crate::conformance::adapter::{Rejection, Reply, device};
use crate::conformance::device::{BEHAVIOUR, PROGRAM};
use crate::conformance::module::linked_library::unsupported_reason;
use crate::conformance::op::{OpError, data};
use crate::conformance::rpc::functions::CALLED;
use crate::device::{Device, Manager};
use crate::function::{Error, ErrorKind, Function};
use crate::object::form::{from_json, to_json};
use crate::rpc::client::{ServerPlace, Session, SessionOptions};
use crate::value::{Any, AnyView, index};
use serde_json::{Value, json};

/// The operations in addition to sessions.
pub(super) const OPS: &[&str] = &[
    BEHAVIOUR,
    PROGRAM,
    "function.call",
    "module.open",
    "value.convert",
];

/// The number of replacements for a tracker's server that ended after its offer.
const TRIES: usize = 5;

impl LiveServer {
    /// Answers one of [`OPS`].
    pub(super) fn remote(&mut self, op: &str, args: &Value) -> Reply {
        let ask: fn(&Session, &Value) -> Result<Reply, Reply> = match op {
            BEHAVIOUR => |session, args| drive(session, BEHAVIOUR, args),
            PROGRAM => |session, args| drive(session, PROGRAM, args),
            "function.call" => call,
            "module.open" => open,
            "value.convert" => convert,
            _ => {
                let why = format!(
                    "of a live server `rpc.session` is asked, and {}",
                    OPS.join(", ")
                );
                return Reply::Unsupported(why);
            }
        };
        if self.release.minor() < 8 {
            return Reply::Unsupported("servers of 0.7 are asked by rpc.session only".into());
        }
        let (seat, session) = match self.begin_session() {
            Ok(begun) => begun,
            Err(why) => return self.crash(why.clone(), why),
        };
        let reply = ask(&session, args).unwrap_or_else(|reply| reply);
        // Closed before the server is checked, because a server with one session at a time would wait for the end of this one.
        session.close();
        match &reply {
            Reply::Crash(_) | Reply::Hang(_) => match self.survives(&seat, true) {
                Err(why) => self.crash(format!("{reply:?}; after this case {why}"), why),
                Ok(()) => reply,
            },
            _ => reply,
        }
    }

    /// Begins a session of this crate's client with the next server.
    fn begin_session(&mut self) -> Result<(Seat, Session), String> {
        let options = SessionOptions {
            release: Some(self.release),
            connect_timeout: self.patience,
            timeout: Some(self.patience),
            ..SessionOptions::default()
        };
        let mut last = String::new();
        for _ in 0..TRIES {
            let seat = match &mut self.source {
                ServerSource::Server(seat) => seat.clone(),
                ServerSource::Pool(pool) => pool.take()?,
            };
            let place = ServerPlace::parse(&seat.place)
                .map_err(|why| format!("{} is not a HOST:PORT: {why}", seat.place))?;
            match Session::connect(place.host, place.port, &seat.key, &options) {
                Ok(session) => return Ok((seat, session)),
                Err(error) => last = format!("rpc: {}: {error}", seat.place),
            }
            if matches!(self.source, ServerSource::Server(_)) {
                break;
            }
        }
        Err(last)
    }
}

/// Converts an error of the client that ends the case: the server is lost, or too slow.
///
/// Only these two are losses. An exception is an answer, and the server continues.
fn loss_reply(error: &Error) -> Option<Reply> {
    let kind = error.kind();
    match kind {
        _ if kind == ErrorKind::Connection => Some(Reply::Crash(error.to_string())),
        _ if kind == ErrorKind::Timeout => Some(Reply::Hang(error.to_string())),
        _ => None,
    }
}

/// Converts a failure outside of the case itself: a server that lacks a function of servers.
fn failed(error: Error) -> Reply {
    loss_reply(&error).unwrap_or_else(|| Reply::Unsupported(format!("the server: {error}")))
}

/// Creates an unsupported reply with its reason.
fn unsupported(why: impl Into<String>) -> Reply {
    Reply::Unsupported(why.into())
}

/// The end of the message of releases from 0.8 on if a loader is missing.
const NO_LOADER: &str = "but a loader of that name is not registered";

/// Converts a rejection of the server. An exception does not state the broken rule.
fn rejected(error: &Error) -> Reply {
    if error.message().is_empty() {
        // RPC-82: this happens in 0.14 to 0.20, if a Python function raises.
        return unsupported("the exception of the server has no text, so its cause is unknown");
    }
    if error.message().contains(NO_LOADER) {
        return unsupported(format!("the server: {error}"));
    }
    loss_reply(error).unwrap_or_else(|| {
        Reply::Reject(Rejection {
            message: error.to_string(),
            ..Rejection::default()
        })
    })
}

/// Returns the kind and message of an exception.
fn raised(error: &Error) -> Result<[String; 2], Reply> {
    match loss_reply(error) {
        Some(reply) => Err(reply),
        // RPC-26: servers may omit the kind from the text; `rpc.session` has a case for that.
        None if error.kind().as_str() == "RPCError" => {
            Err(unsupported("the exception of the server has no kind"))
        }
        None => Ok([error.kind().as_str().to_owned(), error.message().to_owned()]),
    }
}

/// Creates an answer without findings, because a session shows none.
fn accepted(value: Value) -> Reply {
    Reply::Ok {
        value,
        findings: None,
    }
}

/// Finds a function of the server. Without it the case is not judged, because the operator chooses the registered functions
/// (RPC-89).
fn function(session: &Session, name: &str) -> Result<Function, Reply> {
    let found = session.function(name).map_err(failed)?;
    found.ok_or_else(|| unsupported(format!("the server has no function `{name}`")))
}

/// Converts a form to an argument. Containers are created on the server and stay there.
fn argument(session: &Session, form: &Value) -> Result<Any, Reply> {
    // RPC-48: a handle belongs to the side that created it, and is only sent to the other side.
    if form.get("function").is_some() {
        return Err(unsupported("a packet to a server holds no function"));
    }
    let made = form.as_object().and_then(|form| form.iter().next());
    let made = made.and_then(|(kind, content)| match &**kind {
        "array" => Some(("ffi.Array", content)),
        "list" => Some(("ffi.List", content)),
        "map" => Some(("ffi.Map", content)),
        "dict" => Some(("ffi.Dict", content)),
        "shape" => Some(("ffi.Shape", content)),
        _ => None,
    });
    let value = match made {
        Some((maker, content)) => {
            let flat: Vec<&Value> = match content.as_array() {
                // Alternating keys and values.
                Some(list) if matches!(maker, "ffi.Map" | "ffi.Dict") => list
                    .iter()
                    .flat_map(|pair| pair.as_array())
                    .flatten()
                    .collect(),
                Some(list) => list.iter().collect(),
                None => return Err(unsupported(format!("no value has the form {form}"))),
            };
            let parts = flat.into_iter().map(|part| argument(session, part));
            let parts: Vec<Any> = parts.collect::<Result<_, Reply>>()?;
            let views: Vec<AnyView<'_>> = parts.iter().map(Any::view).collect();
            return function(session, maker)?
                .call_packed(&views)
                .map_err(failed);
        }
        None => from_json(form).map_err(unsupported)?,
    };
    match value.view().type_index() {
        index::NONE
        | index::BOOL
        | index::INT
        | index::FLOAT
        | index::DATA_TYPE
        | index::DEVICE
        | index::SMALL_STR
        | index::STR
        | index::SMALL_BYTES
        | index::BYTES => Ok(value),
        _ => Err(unsupported(format!(
            "a packet holds no value of the form {form}"
        ))),
    }
}

/// Converts a result, which the client has as a local value, to its form.
fn result(value: &Any) -> Result<Value, Reply> {
    let view = value.view();
    Ok(match view.type_index() {
        index::DEVICE => {
            let device = view.as_raw().device().without_session();
            to_json(Any::from(device).view())
        }
        at if at < index::OBJECT_BEGIN => to_json(view),
        index::STR | index::BYTES => to_json(view),
        _ => return Err(unsupported("an object of a server does not show")),
    })
}

/// Runs a program on the first CPU of the server.
fn drive(session: &Session, op: &str, args: &Value) -> Result<Reply, Reply> {
    let device = session.device(Device::CPU).map_err(failed)?;
    let api = Manager::global().api(device.kind).map_err(failed)?;
    Ok(device::answer(op, args, api, device))
}

/// Runs `function.call` with a function of the suite, or with the equivalent function of TVM servers.
fn call(session: &Session, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let name = value.get("function").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let forms = value.get("args").and_then(Value::as_array);
    let forms: Vec<&Value> = forms.into_iter().flatten().collect();
    let own = format!("{CALLED}{name}");
    let found = match (name, session.function(&own).map_err(failed)?) {
        (_, Some(found)) => found,
        ("first", None) if forms.len() == 1 => function(session, "testing.echo")?,
        (_, None) => return Err(unsupported(format!("the server has no function `{own}`"))),
    };
    let list = forms.into_iter().map(|form| argument(session, form));
    let list: Vec<Any> = list.collect::<Result<_, Reply>>()?;
    let views: Vec<AnyView<'_>> = list.iter().map(Any::view).collect();
    match found.call_packed(&views) {
        Ok(value) => Ok(accepted(json!({"result": result(&value)?}))),
        // FUN-08, FUN-09: functions of the suite raise a TypeError only for their arguments.
        Err(error) if error.kind().as_str() == "TypeError" => Ok(rejected(&error)),
        Err(error) => {
            let [kind, message] = raised(&error)?;
            Ok(accepted(json!({"error": kind, "message": message})))
        }
    }
}

/// Runs `value.convert` with a function that has one parameter of the type and returns it.
fn convert(session: &Session, args: &Value) -> Result<Reply, Reply> {
    let wanted = args.get("to").and_then(Value::as_str).unwrap_or_default();
    let form = args.get("value").unwrap_or(&Value::Null);
    let name = match wanted {
        "int" | "bool" | "float" | "bytes" | "dtype" | "device" | "object" => wanted,
        "str" => "string",
        "optional-int" => "opt_int",
        "array" => "arr",
        "map" => "map",
        "function" => "func",
        _ => {
            let why = format!("no function of `testing.` has one parameter of type {wanted}");
            return Err(unsupported(why));
        }
    };
    // A packet contains texts and bytes directly, and no objects for them.
    let is_text = form.is_string() || form.get("bytes").is_some();
    if wanted == "object" && is_text {
        return Err(unsupported("a packet does not hold the object of a text"));
    }
    // These functions take the object itself. Nothing converts to it, and it is not replaced by another object.
    let is_sequence = ["list", "dict"].iter().any(|kind| form.get(kind).is_some());
    if matches!(wanted, "array" | "map") && is_sequence
        || matches!(wanted, "function" | "object") && form.is_null()
    {
        let why = format!("`testing.schema_id_{name}` is not a conversion to {wanted} for {form}");
        return Err(unsupported(why));
    }
    let value = argument(session, form)?;
    let name = format!("testing.schema_id_{name}");
    match function(session, &name)?.call_packed(&[value.view()]) {
        Ok(value) => Ok(accepted(result(&value)?)),
        Err(error) => Ok(rejected(&error)),
    }
}

/// Runs `module.open` with an uploaded library.
fn open(session: &Session, args: &Value) -> Result<Reply, Reply> {
    if let Some(why) = unsupported_reason() {
        return Err(unsupported(why));
    }
    let content = data(args).map_err(|error| match error {
        OpError::Unsupported(why) => unsupported(why),
        OpError::Rejected(broken) => Reply::ProtocolError(broken.to_string()),
    })?;
    let value = args.get("value").unwrap_or(&Value::Null);
    if value
        .get("import")
        .is_some_and(|import| import.as_object().is_some_and(|all| !all.is_empty()))
    {
        return Err(unsupported(
            "the functions that the library imports are of this process",
        ));
    }
    session.upload("case.so", &content).map_err(failed)?;
    let module = match session.load_module("case.so") {
        Ok(module) => module,
        // RPC-90: the server rejects this, not the library.
        Err(error) if error.message().contains("--allow-load") => return Err(failed(error)),
        Err(error) => return Ok(rejected(&error)),
    };
    let list = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let mut found = Vec::new();
    for name in list("lookups").filter_map(Value::as_str) {
        found.push(module.function(name, true).map_err(failed)?.is_some());
    }
    let mut results = Vec::new();
    for call in list("calls") {
        let name = call.get("function").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        let forms = call
            .get("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let args = forms.map(|form| argument(session, form));
        let args: Vec<Any> = args.collect::<Result<_, Reply>>()?;
        let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        let function = module.require(name).map_err(failed)?;
        results.push(match function.call_packed(&views) {
            Ok(value) => result(&value)?,
            Err(error) => json!({"error": raised(&error)?}),
        });
    }
    Ok(Reply::Shown {
        view: "called".to_owned(),
        value: json!({"found": found, "results": results}),
    })
}
