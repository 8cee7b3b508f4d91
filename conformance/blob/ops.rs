//! Operations of the chapter blob.

use crate::blob::{Blob, detect::detect};
use crate::conformance::module::loading;
use crate::conformance::op::{self, Answer, Handler, Op, OpError};
use crate::release::Layout;
use crate::rule::Findings;
use crate::wire::{Span, Trace};
use serde_json::Value;

/// What a case of this chapter can ask.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "blob.decode",
        help: "data, layout or symbol (optional): the JSON form of the blob",
        run: Handler::Partly(decode, loading::blob),
    },
    Op {
        name: "blob.encode",
        help: "value: the bytes in the layout that the JSON form names",
        run: Handler::Here(encode),
    },
    Op {
        name: "blob.detect",
        help: "data, symbol (optional): the name of the layout",
        run: Handler::Here(detect_layout),
    },
    Op {
        name: "blob.convert",
        help: "data, layout (optional), to: the JSON form in the other layout",
        run: Handler::Here(convert),
    },
    Op {
        name: "blob.fields",
        help: "data, layout (optional): where each field lies, its name, its rule and its value",
        run: Handler::Here(fields),
    },
];

/// `blob.decode`: the whole blob in its JSON form. Layout and symbol may be missing: then the bytes tell (BLOB-18).
fn decode(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let mut findings = Findings::default();
    let blob = Blob::read(&data, layout(args, &data)?, &mut findings)?;
    Ok(Answer::new(blob.to_json(), findings))
}

/// `blob.encode`: the bytes. What the layout cannot express is rejected by the rule that says so (BLOB-17).
fn encode(args: &Value) -> Result<Answer, OpError> {
    let blob = Blob::from_json(args.get("value").unwrap_or(&Value::Null)).map_err(op::of_value)?;
    let bytes = blob.write().map_err(op::of_value)?;
    Ok(Answer::new(op::base64(&bytes), Findings::default()))
}

/// `blob.detect` (BLOB-18): by the symbol, where it is known, else by the bytes.
fn detect_layout(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let symbol = args.get("symbol").and_then(Value::as_str);
    Ok(Answer::new(
        detect(&data, symbol).name().into(),
        Findings::default(),
    ))
}

/// `blob.convert`: the same modules in another layout, or the rule by which that one has no place for them (BLOB-17).
fn convert(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let to = named_layout(args, "to")?
        .ok_or_else(|| OpError::Unsupported("the request has no `to`".into()))?;
    let mut findings = Findings::default();
    let blob = Blob::read(&data, layout(args, &data)?, &mut findings)?;
    Ok(Answer::new(blob.convert(to)?.to_json(), findings))
}

/// `blob.fields`: where each field lies, those inside payloads included.
fn fields(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    // A layout that there is not must not be answered as a blob without fields.
    layout(args, &data)?;
    let spans = trace("blob.fields", &data, args);
    Ok(Answer::new(op::listed(&spans), Findings::default()))
}

/// The fields of a blob, those inside payloads included, as far as it can be read.
pub(crate) fn trace(op: &str, data: &[u8], args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    // Every other operation of the chapter takes a value, or a file around the blob.
    if matches!(op, "blob.decode" | "blob.fields")
        && let Ok(layout) = layout(args, data)
    {
        let _ = Blob::read_traced(data, layout, Findings::default(), &trace);
    }
    trace.into_spans()
}

/// The layout that the request names, or else what the symbol or the bytes tell.
fn layout(args: &Value, data: &[u8]) -> Result<Layout, OpError> {
    let symbol = args.get("symbol").and_then(Value::as_str);
    Ok(named_layout(args, "layout")?.unwrap_or_else(|| detect(data, symbol)))
}

/// A layout by its name, `None` where the request has none.
fn named_layout(args: &Value, field: &str) -> Result<Option<Layout>, OpError> {
    let name = args.get(field).and_then(Value::as_str);
    name.map(str::parse).transpose().map_err(OpError::from)
}
