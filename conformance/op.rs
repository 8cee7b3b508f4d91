//! Operations: what a case requests of an implementation, and what comes back.

use super::reply::Reply;
use super::runtime::ffi::api::FfiApi;
use super::runtime::legacy;
use crate::release::ParseError;
use crate::rule::{Finding, Findings, Violation};
use crate::wire::Span;
use serde_json::{Value, json};
use std::fmt;

/// An operation of the built-in implementation. Each chapter lists its own in `conformance/<chapter>/ops.rs` as
/// `pub const OPS: &[Op]`.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// `<chapter>.decode`, `<chapter>.encode`, or another name that the chapter documents.
    pub name: &'static str,
    /// One sentence: arguments and result.
    pub help: &'static str,
    /// Who does it, and how.
    pub(in crate::conformance) run: Handler,
}

impl Op {
    /// Whether only others do it: its cases are put to an implementation that states it, and no run needs them to be complete.
    pub fn is_foreign(&self) -> bool {
        matches!(self.run, Handler::Foreign(_))
    }

    /// Whether a C compiler is called for it: its cases are put in a complete run, and where the selection names cases.
    pub(in crate::conformance) fn needs_compiler(&self) -> bool {
        matches!(self.run, Handler::Compiled(_))
    }
}

/// Who does an operation. `args` is the JSON object of the request; binary is base64 under `data`.
#[derive(Clone, Copy)]
pub(in crate::conformance) enum Handler {
    /// We do, through the Rust interface: no C function offers it.
    Here(fn(args: &Value) -> Result<Answer, OpError>),
    /// Any runtime with the C interface of tvm-ffi, ourselves included.
    Driven(Drive),
    /// Any runtime with the C interface of 0.20 and before, ourselves included.
    Legacy(fn(api: &'static legacy::LegacyApi, args: &Value) -> Result<Reply, Reply>),
    /// We do, in full; of any other runtime a part shows.
    Partly(fn(args: &Value) -> Result<Answer, OpError>, Drive),
    /// As `Here`, with the C compiler of the system.
    Compiled(fn(args: &Value) -> Result<Answer, OpError>),
    /// Others do: we have nothing to do it with. A runtime with the C interface of tvm-ffi shows a part of the answer.
    Foreign(Drive),
}

/// Does an operation on a runtime. Both sides of the result are answers: an early one is as good as the last.
pub(in crate::conformance) type Drive =
    fn(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply>;

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Handler::Here(_) => "Here",
            Handler::Driven(_) => "Driven",
            Handler::Legacy(_) => "Legacy",
            Handler::Partly(..) => "Partly",
            Handler::Compiled(_) => "Compiled",
            Handler::Foreign(_) => "Foreign",
        })
    }
}

/// A result: the value in the chapter's JSON form, and the oddities that were tolerated on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The chapter's JSON form; for `encode`, base64 of the bytes.
    pub value: Value,
    /// Tolerated oddities.
    pub findings: Vec<Finding>,
}

impl Answer {
    /// An answer with what was found on the way.
    pub(crate) fn new(value: Value, findings: Findings) -> Answer {
        Answer {
            value,
            findings: findings.into_iter().collect(),
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum OpError {
    /// The input breaks a rule.
    Rejected(Violation),
    /// The implementation does not do this; says why.
    Unsupported(String),
}

impl From<Violation> for OpError {
    fn from(broken: Violation) -> OpError {
        OpError::Rejected(broken)
    }
}

impl From<ParseError> for OpError {
    fn from(error: ParseError) -> Self {
        // A request that cannot be read is no answer about a rule: a rejection would pass the cases that expect one.
        OpError::Unsupported(error.to_string())
    }
}

impl From<crate::function::Error> for OpError {
    /// A rule that is broken is an answer; what fails otherwise is none.
    fn from(error: crate::function::Error) -> OpError {
        match error.violation() {
            Some(broken) => OpError::Rejected(broken.clone()),
            None => OpError::Unsupported(error.to_string()),
        }
    }
}

/// The bytes under `data` of a request, from base64.
pub(crate) fn data(args: &Value) -> Result<Vec<u8>, OpError> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let text = args.get("data").and_then(Value::as_str);
    text.and_then(|text| BASE64_STANDARD.decode(text).ok())
        .ok_or_else(|| OpError::Unsupported("the request has no base64 under `data`".into()))
}

/// Fields in JSON: where each begins and ends, its name, its rule, its value for people.
pub(crate) fn listed(spans: &[Span]) -> Value {
    spans
        .iter()
        .map(|span| json!([span.start, span.end, span.field, span.rule.id(), span.value]))
        .collect()
}

/// The violation of a value: what is wrong with it may have a place in the bytes that it would be, which the caller never sees.
pub(crate) fn of_value(broken: Violation) -> Violation {
    let rejected = broken.rule().rejected(broken.kind(), broken.message());
    rejected.in_field(broken.field())
}

/// Base64 of `bytes` as a JSON string.
pub(crate) fn base64(bytes: &[u8]) -> Value {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    Value::String(BASE64_STANDARD.encode(bytes))
}
