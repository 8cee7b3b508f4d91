//! Operations of chapter blob.

use crate::blob::{Blob, ForeignKinds, detect::detect};
use crate::conformance::module::loading;
use crate::conformance::op::{self, Answer, Handler, Op, OpError};
use crate::release::Layout;
use crate::rule::Findings;
use crate::wire::{Span, Trace};
use serde_json::{Value, json};

/// The operations that a case of this chapter can use.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "blob.decode",
        help: "data, layout or symbol (optional): the JSON form of the blob",
        run: Handler::Partly(decode, loading::blob),
    },
    Op {
        name: "blob.partial",
        help: "data, layout (optional), like: the known kind for each unknown one, if stated. Reads like a tool that continues after unknown kinds: {blob, decoded, broken}",
        run: Handler::Here(partial),
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

/// Runs `blob.decode`, which returns the whole blob in JSON. Without layout and symbol, the bytes decide (BLOB-18).
fn decode(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let mut findings = Findings::default();
    let blob = Blob::read_with(&data, layout(args, &data)?, &mut findings)?;
    Ok(Answer::new(blob.to_json(), findings))
}

/// Runs `blob.partial`, which returns what precedes the broken rule, and continues after unknown kinds (BLOB-06).
fn partial(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let layout = layout(args, &data)?;
    let like = args.get("like").and_then(Value::as_object);
    let pairs = like.into_iter().flatten();
    let pairs = pairs.map(|(kind, known)| (&**kind, known.as_str().unwrap_or_default()));
    let foreign = ForeignKinds::new(pairs)
        .map_err(|kind| OpError::Unsupported(format!("no release has kind `{kind}`")))?;
    let partial = Blob::read_foreign(&data, layout, None, &foreign);
    let decoded = partial.blob.modules.iter().map(|module| {
        let payload = module.stored().and_then(|module| foreign.decode(module));
        payload.map(|payload| payload.to_json())
    });
    let value = json!({
        "blob": partial.blob.to_json(),
        "decoded": decoded.collect::<Vec<_>>(),
        "broken": partial.broken.map(|broken| json!([broken.rule().id(), broken.offset()])),
    });
    Ok(Answer::new(value, partial.findings))
}

/// Runs `blob.encode`, which returns the bytes. BLOB-17 rejects content that the layout cannot express.
fn encode(args: &Value) -> Result<Answer, OpError> {
    let blob =
        Blob::from_json(args.get("value").unwrap_or(&Value::Null)).map_err(op::without_offset)?;
    let bytes = blob.write().map_err(op::without_offset)?;
    Ok(Answer::new(op::base64(&bytes), Findings::default()))
}

/// Runs `blob.detect` (BLOB-18), which uses the symbol if it is known, and otherwise the bytes.
fn detect_layout(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let symbol = args.get("symbol").and_then(Value::as_str);
    Ok(Answer::new(
        detect(&data, symbol).name().into(),
        Findings::default(),
    ))
}

/// Runs `blob.convert`, which returns the same modules in another layout, or BLOB-17 if it has no room for them.
fn convert(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let to = named_layout(args, "to")?
        .ok_or_else(|| OpError::Unsupported("the request has no `to`".into()))?;
    let mut findings = Findings::default();
    let blob = Blob::read_with(&data, layout(args, &data)?, &mut findings)?;
    Ok(Answer::new(blob.convert(to)?.to_json(), findings))
}

/// Runs `blob.fields`, which returns the place of each field, also inside payloads.
fn fields(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    // An unknown layout must be an error, not a blob without fields.
    layout(args, &data)?;
    let spans = trace("blob.fields", &data, args);
    Ok(Answer::new(op::fields_to_json(&spans), Findings::default()))
}

/// Returns the fields of a blob, also inside payloads, as far as it can be read.
pub(crate) fn trace(op: &str, data: &[u8], args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    // Every other operation of the chapter takes a value, or a file that contains the blob.
    if matches!(op, "blob.decode" | "blob.fields")
        && let Ok(layout) = layout(args, data)
    {
        let _ = Blob::read_traced(data, layout, &trace);
    }
    trace.into_spans()
}

/// Returns the layout in the request, or else the one that the symbol or the bytes show.
fn layout(args: &Value, data: &[u8]) -> Result<Layout, OpError> {
    let symbol = args.get("symbol").and_then(Value::as_str);
    Ok(named_layout(args, "layout")?.unwrap_or_else(|| detect(data, symbol)))
}

/// Returns the layout with a name; `None` if the request has none.
fn named_layout(args: &Value, field: &str) -> Result<Option<Layout>, OpError> {
    let name = args.get(field).and_then(Value::as_str);
    name.map(str::parse).transpose().map_err(OpError::from)
}
