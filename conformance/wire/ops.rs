//! Operations on wire values. `type` is the type of the bytes; see [`crate::wire::json`] for the JSON form.

use crate::conformance::op::{Answer, Handler, Op, OpError, base64, data, fields_to_json};
use crate::rule::{Findings, Strictness, Violation};
use crate::wire::json::WireType;
use crate::wire::{Cursor, Span, Trace, Writer};
use serde_json::{Value, json};

/// Operations that read and write a value of a named type.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "wire.decode",
        help: "data, type (u8 u16 u32 u64 i32 i64 f64 bool string bytes vector<T> map<K,V> tuple<A,..>), strict (bool): the value.",
        run: Handler::Here(decode),
    },
    Op {
        name: "wire.encode",
        help: "value, type: the bytes.",
        run: Handler::Here(encode),
    },
    Op {
        name: "wire.fields",
        help: "data, type, from (an offset), most (a number): the fields after `from` up to the first unreadable byte, at most `most` of them.",
        run: Handler::Here(fields),
    },
];

/// Runs `wire.decode`, which returns the value of a named type. With `strict`, a finding is an error, so that WIRE-08 rejects.
fn decode(args: &Value) -> Result<Answer, OpError> {
    let strict = args.get("strict").and_then(Value::as_bool) == Some(true);
    let mut findings = Findings::new(if strict {
        Strictness::Strict
    } else {
        Strictness::Lenient
    });
    let data = data(args)?;
    let value = read(&mut Cursor::new(&data), &type_of(args)?, &mut findings)?;
    Ok(Answer::new(value, findings))
}

/// Runs `wire.encode`, which returns the bytes of a value, in the widths and the order of its type (WIRE-02 to WIRE-07).
fn encode(args: &Value) -> Result<Answer, OpError> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let mut out = Writer::new();
    type_of(args)?.write(value, &mut out)?;
    Ok(Answer::new(base64(&out.into_bytes()), Findings::default()))
}

/// Runs `wire.fields`, which returns the place of each field. Offset and number are limited, because a file may have millions of fields.
fn fields(args: &Value) -> Result<Answer, OpError> {
    let number = |name: &str, otherwise: u64| match args.get(name) {
        Some(number) => number
            .as_u64()
            .ok_or_else(|| OpError::Unsupported(format!("`{name}` is not a number"))),
        None => Ok(otherwise),
    };
    let most = number("most", u64::MAX)?;
    let trace = Trace::bounded(
        number("from", 0)?,
        usize::try_from(most).unwrap_or(usize::MAX),
    );
    record(&data(args)?, &type_of(args)?, &trace);
    let left_out = trace.left_out();
    let spans = trace.into_spans();
    let answer = json!({ "fields": fields_to_json(&spans), "left_out": left_out });
    Ok(Answer::new(answer, Findings::default()))
}

/// Returns the fields of the input of `wire.decode`, as far as it can be read.
pub(crate) fn trace(_op: &str, data: &[u8], args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    if let Ok(named) = type_of(args) {
        record(data, &named, &trace);
    }
    trace.into_spans()
}

/// Reads the value only for the trace.
fn record(data: &[u8], named: &WireType, trace: &Trace) {
    let mut cursor = Cursor::traced(data, trace);
    // A violation ends the reading; only the fields before it are needed.
    let _ = read(&mut cursor, named, &mut Findings::default());
}

/// Reads the whole input as one value; bytes after it are a finding.
fn read(
    cursor: &mut Cursor<'_>,
    named: &WireType,
    findings: &mut Findings,
) -> Result<Value, Violation> {
    let value = named.read(cursor, "value")?;
    cursor.finish("the value", findings)?;
    Ok(value)
}

/// Returns the type in the request, such as `vector<tuple<string,u64>>`.
fn type_of(args: &Value) -> Result<WireType, OpError> {
    let name = args.get("type").and_then(Value::as_str);
    let name = name.ok_or_else(|| OpError::Unsupported("the request has no `type`".into()))?;
    name.parse().map_err(OpError::from)
}
