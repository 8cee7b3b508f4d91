//! Operations: the requests of cases, and their results.

use super::reply::Reply;
use super::runtime::ffi::api::FfiApi;
use super::runtime::legacy;
use crate::release::ParseError;
use crate::rule::{Finding, Findings, Violation};
use crate::wire::Span;
use serde_json::{Value, json};
use std::fmt;

/// An operation of the built-in implementation. Each chapter lists its operations in `conformance/<chapter>/ops.rs` as `pub const
/// OPS: &[Op]`.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// The name: `<chapter>.decode`, `<chapter>.encode`, or another name that the chapter documents.
    pub name: &'static str,
    /// One sentence with arguments and result.
    pub help: &'static str,
    /// The function that executes it.
    pub(in crate::conformance) run: Handler,
}

impl Op {
    /// Returns whether only other implementations execute it. Its cases go only to an implementation that states it, and a complete
    /// run does not need them.
    pub fn is_foreign(&self) -> bool {
        matches!(self.run, Handler::Foreign(_))
    }

    /// Returns whether it calls a C compiler. Its cases run in a complete run, and if the selection names cases.
    pub(in crate::conformance) fn needs_compiler(&self) -> bool {
        matches!(self.run, Handler::Compiled(_))
    }
}

/// The way in which an operation is executed. `args` is the JSON object of the request; binary data is base64 under `data`.
#[derive(Clone, Copy)]
pub(in crate::conformance) enum Handler {
    /// By this crate, through the Rust interface, because no C function offers it.
    Here(fn(args: &Value) -> Result<Answer, OpError>),
    /// By any runtime with the C interface of tvm-ffi, including this crate.
    Driven(Drive),
    /// By any runtime with the C interface of 0.20 and before, including this crate.
    Legacy(fn(api: &'static legacy::LegacyApi, args: &Value) -> Result<Reply, Reply>),
    /// By this crate in full; another runtime shows a part.
    Partly(fn(args: &Value) -> Result<Answer, OpError>, Drive),
    /// As `Here`, with the C compiler of the system.
    Compiled(fn(args: &Value) -> Result<Answer, OpError>),
    /// Only by other implementations. A runtime with the C interface of tvm-ffi shows a part of the answer.
    Foreign(Drive),
}

/// Executes an operation on a runtime. Both variants of the result are answers; an early one is as valid as the last.
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

/// A result: the value in the chapter's JSON form, and the tolerated oddities.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The value in the chapter's JSON form; for `encode`, base64 of the bytes.
    pub value: Value,
    /// The tolerated oddities.
    pub findings: Vec<Finding>,
}

impl Answer {
    /// Creates an answer with its findings.
    pub(crate) fn new(value: Value, findings: Findings) -> Answer {
        Answer {
            value,
            findings: findings.into_iter().collect(),
        }
    }
}

/// The reason why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum OpError {
    /// The input breaks a rule.
    Rejected(Violation),
    /// The implementation does not support this; with the reason.
    Unsupported(String),
}

impl From<Violation> for OpError {
    fn from(broken: Violation) -> OpError {
        OpError::Rejected(broken)
    }
}

impl From<ParseError> for OpError {
    fn from(error: ParseError) -> Self {
        // A malformed request is not an answer about a rule. A rejection would pass the cases that expect one.
        OpError::Unsupported(error.to_string())
    }
}

impl From<crate::function::Error> for OpError {
    /// Converts an error: a broken rule is an answer, and any other error is not.
    fn from(error: crate::function::Error) -> OpError {
        match error.violation() {
            Some(broken) => OpError::Rejected(broken.clone()),
            None => OpError::Unsupported(error.to_string()),
        }
    }
}

/// Returns the bytes under `data` of a request, from base64.
pub(crate) fn data(args: &Value) -> Result<Vec<u8>, OpError> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let text = args.get("data").and_then(Value::as_str);
    text.and_then(|text| BASE64_STANDARD.decode(text).ok())
        .ok_or_else(|| OpError::Unsupported("the request has no base64 under `data`".into()))
}

/// Returns fields as JSON: begin, end, name, rule, and a readable value.
pub(crate) fn fields_to_json(spans: &[Span]) -> Value {
    spans
        .iter()
        .map(|span| json!([span.start, span.end, span.field, span.rule.id(), span.value]))
        .collect()
}

/// Returns the violation of a value without its offset, because the caller never sees the bytes.
pub(crate) fn without_offset(broken: Violation) -> Violation {
    let rejected = broken.rule().rejected(broken.kind(), broken.message());
    rejected.in_field(broken.field())
}

/// Returns base64 of `bytes` as a JSON string.
pub(crate) fn base64(bytes: &[u8]) -> Value {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    Value::String(BASE64_STANDARD.encode(bytes))
}
