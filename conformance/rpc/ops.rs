//! The operations of the chapter `rpc`.

use crate::conformance::op::{Answer, Handler, Op, OpError, base64, data, fields_to_json};
use crate::release::Release;
use crate::rpc::json::{from_packet, to_packet};
use crate::rpc::relay_json as relay;
use crate::rpc::{
    Hello, HelloAnswer, Packet, Protocol, Speaker, TrackerHello, TrackerReply, TrackerRequest,
};
use crate::rule::{Findings, Strictness, Violation};
use crate::wire::{Cursor, Span, Trace, Writer};
use serde_json::{Value, json};
use std::borrow::Cow;

/// All operations of this chapter.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "rpc.decode",
        help: "`data`: a message; `form`: hello, answer, packet, or a message of a tracker or proxy; `release`, `speaker`: client or server; `awaited`, `largest`: numbers; `strict`; returns the message",
        run: Handler::Here(decode),
    },
    Op {
        name: "rpc.encode",
        help: "`value`: a message, and the arguments of rpc.decode; returns the bytes",
        run: Handler::Here(encode),
    },
    Op {
        name: "rpc.fields",
        help: "the arguments of rpc.decode; returns where each field lies, its name, its rule and its value",
        run: Handler::Here(fields),
    },
    Op {
        name: "rpc.connection",
        help: "`value`: the bytes that `client` and `server` wrote, pieces of hex; `release`: whose rules apply, detected if absent; `fields`: whether to return fields; returns the messages of both, and the releases that fit",
        run: Handler::Here(super::connection::read),
    },
    Op {
        name: "rpc.session",
        help: "`value`: requests of a client, in order; `release`: of the client; `hello`, `begins`, `texts`, `server`: how the server is started; returns the answer to the hello, an answer to each request, and who ended the session",
        run: Handler::Here(super::session::session),
    },
    Op {
        name: "rpc.client",
        help: "`value`: the actions of a client, in order; `answers` and `release` of the server; `stated`: the release of the client; `key`, `seconds`, `greeting`, or an `address`; `more`: further connections; `tracker`: its replies; returns the result of each action, and the bytes that the client wrote",
        run: Handler::Here(super::client::client),
    },
    Op {
        name: "rpc.relay",
        help: "`of`: tracker or proxy; `value`: the steps of its peers, in order; `wait`: seconds that a peer of a proxy waits; `tracker`, `to`, `capture`: options of a proxy; `limits`; returns the data that each step reads",
        run: Handler::Here(super::relay::run),
    },
];

/// Returns the fields of a message, as far as it can be read.
pub(crate) fn trace(_op: &str, data: &[u8], args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    if let Ok(request) = Request::of(args) {
        let mut cursor = Cursor::traced(data, &trace);
        // The violation is ignored: only the fields before it are returned.
        let _ = request.read(&mut cursor, &mut Findings::default());
    }
    trace.into_spans()
}

/// Implements `rpc.decode`: reads a message. Oddities are findings, or errors in strict mode.
fn decode(args: &Value) -> Result<Answer, OpError> {
    let strict = args.get("strict").and_then(Value::as_bool) == Some(true);
    let mut findings = Findings::new(if strict {
        Strictness::Strict
    } else {
        Strictness::Lenient
    });
    let data = data(args)?;
    let value = Request::of(args)?.read(&mut Cursor::new(&data), &mut findings)?;
    Ok(Answer::new(value, findings))
}

/// Implements `rpc.fields`: returns the fields up to the fault, which shows where a reader stopped.
fn fields(args: &Value) -> Result<Answer, OpError> {
    // Invalid arguments are an error, not a message without fields.
    Request::of(args)?;
    let spans = trace("rpc.fields", &data(args)?, args);
    Ok(Answer::new(fields_to_json(&spans), Findings::default()))
}

/// Implements `rpc.encode`: writes a form by the rules of this release and side. A form that they cannot encode is rejected.
fn encode(args: &Value) -> Result<Answer, OpError> {
    let request = Request::of(args)?;
    let value = args.get("value").unwrap_or(&Value::Null);
    let mut out = Writer::new();
    match request.form {
        "hello" => {
            let key = Cow::Borrowed(text(value, "key")?);
            Hello { key }.write(&mut out)?;
        }
        "answer" => {
            let answer = match text(value, "code")? {
                "success" => {
                    let key = value.get("key").and_then(Value::as_str);
                    HelloAnswer::Success(Cow::Borrowed(key.unwrap_or_default()))
                }
                "duplicate" => HelloAnswer::Duplicate,
                "mismatch" => HelloAnswer::Mismatch,
                other => return Err(OpError::Unsupported(format!("no answer is `{other}`"))),
            };
            answer.write(request.spoken.release, &mut out)?;
        }
        "proxy-hello" => {
            let key = Cow::Borrowed(text(value, "key")?);
            let hello = Hello { key };
            // RPC-70: a proxy rejects an empty key, which RPC-02 allows.
            hello.pair_key()?;
            hello.write(&mut out)?;
        }
        "tracker-hello" => TrackerHello.write(&mut out),
        "tracker-request" => {
            relay::to_tracker_request(value)?.write(request.spoken.release, &mut out)?
        }
        "tracker-reply" => relay::to_tracker_reply(value)?.write(&mut out)?,
        _ => {
            let packet = to_packet(value)?;
            packet.write(&request.spoken, &mut out)?;
        }
    }
    Ok(Answer::new(base64(&out.into_bytes()), Findings::default()))
}

/// The forms of messages.
const FORMS: [&str; 7] = [
    "hello",
    "answer",
    "packet",
    "proxy-hello",
    "tracker-hello",
    "tracker-request",
    "tracker-reply",
];

/// The form of a message, and the protocol whose rules apply.
struct Request {
    form: &'static str,
    spoken: Protocol,
}

impl Request {
    /// Reads the arguments. Release and side must always be stated: the bytes do not show them, and every rule depends on both.
    fn of(args: &Value) -> Result<Request, OpError> {
        let name = text(args, "form")?;
        let form = FORMS.into_iter().find(|form| *form == name);
        let form = form.ok_or_else(|| OpError::Unsupported(format!("no form is `{name}`")))?;
        let release: Release = text(args, "release")?.parse()?;
        let speaker = match text(args, "speaker")? {
            "client" => Speaker::Client,
            "server" => Speaker::Server,
            other => return Err(OpError::Unsupported(format!("`{other}` speaks no RPC"))),
        };
        let number = |name: &str| args.get(name).and_then(Value::as_u64);
        let spoken = Protocol {
            awaited: number("awaited"),
            largest: number("largest").unwrap_or(Protocol::LARGEST),
            ..Protocol::new(release, speaker)
        };
        Ok(Request { form, spoken })
    }

    /// Reads a complete message. A truncated one breaks RPC-16 here, while a connection would wait for more. A field beyond the length of
    /// its packet breaks WIRE-01.
    fn read(&self, cursor: &mut Cursor<'_>, findings: &mut Findings) -> Result<Value, Violation> {
        let value = match self.form {
            "hello" => {
                let hello = Hello::read(cursor)?.require_complete(cursor)?;
                let timeout = hello.timeout()?;
                json!({ "key": hello.key, "match": hello.match_key(), "timeout": timeout })
            }
            "answer" => {
                match HelloAnswer::read(cursor, self.spoken.release)?.require_complete(cursor)? {
                    HelloAnswer::Success(key) => json!({ "code": "success", "key": key }),
                    HelloAnswer::Duplicate => json!({ "code": "duplicate" }),
                    HelloAnswer::Mismatch => json!({ "code": "mismatch" }),
                }
            }
            "proxy-hello" => {
                let hello = Hello::read(cursor)?.require_complete(cursor)?;
                json!({ "key": hello.key, "match": hello.pair_key()?, "role": hello.role().name() })
            }
            "tracker-hello" => {
                TrackerHello::read(cursor)?.require_complete(cursor)?;
                json!({ "code": "tracker" })
            }
            "tracker-request" => {
                let request = TrackerRequest::read(cursor, self.spoken.release)?;
                relay::from_tracker_request(&request.require_complete(cursor)?)
            }
            "tracker-reply" => {
                relay::from_tracker_reply(&TrackerReply::read(cursor)?.require_complete(cursor)?)
            }
            _ => from_packet(
                &Packet::read(cursor, &self.spoken, findings)?.require_complete(cursor)?,
            ),
        };
        cursor.finish("the message", findings)?;
        Ok(value)
    }
}

/// Returns a member that must be text.
fn text<'v>(form: &'v Value, name: &str) -> Result<&'v str, OpError> {
    let text = form.get(name).and_then(Value::as_str);
    text.ok_or_else(|| OpError::Unsupported(format!("there is no text under `{name}`")))
}
