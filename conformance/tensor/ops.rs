//! Operations of chapter `tensor`.

use crate::conformance::op::{Answer, Handler, Op, OpError, base64, data, fields_to_json};
use crate::conformance::runtime::ffi::tensors;
use crate::release::Release;
use crate::rule::Findings;
use crate::tensor::{
    CacheEncoding, CacheWriter, Device, Dtype, Params, Sizing, TensorCache, TensorRecord, json,
};
use crate::wire::{Cursor, Span, Trace, Writer};
use serde_json::{Value, json as object};

/// Every operation of this chapter.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "tensor.decode",
        help: "`data`: bytes, `form`: params (if absent), tensor, dtype or device, `release`: who wrote them, if known; returns the form",
        run: Handler::Partly(decode, tensors::decode),
    },
    Op {
        name: "tensor.encode",
        help: "`value`: a form, `form` and `release` as in tensor.decode; returns the bytes",
        run: Handler::Partly(encode, tensors::encode),
    },
    Op {
        name: "tensor.dtype_text",
        help: "`value`: [code, bits, lanes], `release`; returns the text",
        run: Handler::Partly(dtype_text, tensors::dtype_text),
    },
    Op {
        name: "tensor.dtype_parse",
        help: "`value`: a text, `release`; returns [code, bits, lanes]",
        run: Handler::Partly(dtype_parse, tensors::dtype_parse),
    },
    Op {
        name: "tensor.fields",
        help: "`data`, `form` and `release` as in tensor.decode; returns where each field lies, its name, its rule and its value",
        run: Handler::Here(fields),
    },
    Op {
        name: "tensor.cache_decode",
        help: "`value`: the index of a tensor cache, `shards`: the content of each file beside it, `release`: the newest that may have written it; returns params",
        run: Handler::Here(cache_decode),
    },
    Op {
        name: "tensor.cache_encode",
        help: "`value`: params, `format`: raw (if absent) or f32-to-bf16, `bound` of a shard in bytes, `release`, `metadata`; returns `index` and `shards`",
        run: Handler::Here(cache_encode),
    },
];

/// Runs `tensor.decode`, which returns a parameter file, a record, a data type or a device in its JSON form.
fn decode(args: &Value) -> Result<Answer, OpError> {
    let bytes = data(args)?;
    let mut findings = Findings::default();
    let value = read(&mut Cursor::new(&bytes), args, &mut findings)?;
    Ok(Answer::new(value, findings))
}

/// Runs `tensor.fields`, which returns the place of each field, as far as the bytes can be read.
fn fields(args: &Value) -> Result<Answer, OpError> {
    let spans = trace("tensor.fields", &data(args)?, args);
    Ok(Answer::new(fields_to_json(&spans), Findings::default()))
}

/// Returns the fields of the input of `tensor.decode`, as far as it can be read.
pub(crate) fn trace(_op: &str, data: &[u8], args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    let mut cursor = Cursor::traced(data, &trace);
    // A violation ends the reading; only the fields before it are needed. Those of a file without a stated release are of the newest family.
    let _ = read(&mut cursor, args, &mut Findings::default());
    trace.into_spans()
}

/// Reads the form in the request. A file of an unknown release uses the newest count that agrees (TEN-45). A single record does not show
/// where it ends, so it uses the newest count.
fn read(cursor: &mut Cursor<'_>, args: &Value, findings: &mut Findings) -> Result<Value, OpError> {
    let sizing = sizing(args)?;
    let value = match form(args)? {
        TensorForm::Params => {
            let params = match sizing {
                Some(sizing) => Params::read(cursor, sizing, findings)?,
                None => Params::detect(cursor, findings)?.0,
            };
            json::from_params(&params)
        }
        TensorForm::Tensor => {
            let sizing = sizing.unwrap_or(Sizing::V0_7);
            json::from_record(&TensorRecord::read(cursor, sizing, findings)?)
        }
        TensorForm::Dtype => json::from_dtype(Dtype::read(cursor)?),
        TensorForm::Device => json::from_device(Device::read(cursor)?),
    };
    cursor.finish("the file", findings)?;
    Ok(value)
}

/// Runs `tensor.encode`, which returns the bytes of the release. The bytes of an element depend on the release (TEN-29 to TEN-31).
fn encode(args: &Value) -> Result<Answer, OpError> {
    let value = value(args);
    let sizing = sizing(args)?;
    let mut out = Writer::new();
    match form(args)? {
        TensorForm::Params => {
            let tensors = json::to_tensors(value)?;
            json::params_of(&tensors, sizing)?.write(&mut out);
        }
        TensorForm::Tensor => {
            let tensor = json::to_tensor(value)?;
            tensor.record(sizing)?.write(&mut out);
        }
        TensorForm::Dtype => json::to_dtype(value)?.write(&mut out),
        TensorForm::Device => json::to_device(value)?.write(&mut out),
    }
    let bytes = base64(&out.into_bytes());
    Ok(Answer::new(bytes, Findings::default()))
}

/// Runs `tensor.dtype_text` (TEN-02 to TEN-07), which uses the names of the release.
fn dtype_text(args: &Value) -> Result<Answer, OpError> {
    let dtype = json::to_dtype(value(args))?;
    let text = dtype.text(release(args)?)?;
    Ok(Answer::new(text.into(), Findings::default()))
}

/// Runs `tensor.dtype_parse` (TEN-03 to TEN-09), which returns code, bits and lanes of a text.
fn dtype_parse(args: &Value) -> Result<Answer, OpError> {
    let dtype = Dtype::parse(text(args)?, release(args)?)?;
    let three = object!([dtype.code, dtype.bits, dtype.lanes]);
    Ok(Answer::new(three, Findings::default()))
}

/// Runs `tensor.cache_decode` (TEN-50 to TEN-61), which returns the tensors of all shards.
fn cache_decode(args: &Value) -> Result<Answer, OpError> {
    let mut findings = Findings::default();
    let index = value(args).to_string();
    let cache = TensorCache::read(index.as_bytes(), release(args)?, &mut findings)?;
    let mut contents = Vec::new();
    for shard in &cache.shards {
        let content = args
            .get("shards")
            .and_then(|shards| shards.get(&shard.path));
        let content = content
            .map(|content| data(&object!({ "data": content })))
            .transpose()?;
        shard.check(content.as_deref(), &mut findings)?;
        contents.push(content.unwrap_or_default());
    }
    let shards = cache.shards.iter().zip(&contents);
    let tensors = shards.map(|(shard, content)| shard.tensors(content));
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let params = Params::new(tensors.into_iter().flatten().collect());
    Ok(Answer::new(json::from_params(&params), findings))
}

/// Runs `tensor.cache_encode` (TEN-56), which returns the index and the shards of tensors.
fn cache_encode(args: &Value) -> Result<Answer, OpError> {
    let tensors = json::to_tensors(value(args))?;
    let params = json::params_of(&tensors, Some(Sizing::V0_7))?;
    let encoding = match args.get("format").and_then(Value::as_str) {
        Some("f32-to-bf16") => CacheEncoding::Bf16,
        _ => CacheEncoding::Raw,
    };
    let mut writer = CacheWriter::new(encoding, release(args)?);
    if let Some(bound) = args.get("bound").and_then(Value::as_u64) {
        writer.bound = bound;
    }
    let mut shards = serde_json::Map::new();
    let mut cache = writer.write(&params, |name, bytes| -> Result<(), OpError> {
        shards.insert(name.to_owned(), base64(bytes));
        Ok(())
    })?;
    cache.metadata = args.get("metadata").cloned();
    let index: Value = serde_json::from_str(&writer.index(&cache)?)
        .map_err(|error| OpError::Unsupported(error.to_string()))?;
    let answer = object!({ "index": index, "shards": shards });
    Ok(Answer::new(answer, Findings::default()))
}

/// The form of the bytes. They do not show it: a data type is four bytes, and a device eight.
enum TensorForm {
    Params,
    Tensor,
    Dtype,
    Device,
}

/// Returns the form in the request, or a parameter file if it has none.
fn form(args: &Value) -> Result<TensorForm, OpError> {
    match args.get("form").and_then(Value::as_str) {
        None | Some("params") => Ok(TensorForm::Params),
        Some("tensor") => Ok(TensorForm::Tensor),
        Some("dtype") => Ok(TensorForm::Dtype),
        Some("device") => Ok(TensorForm::Device),
        Some(other) => Err(OpError::Unsupported(format!(
            "there is no form `{other}`: there are params, tensor, dtype and device"
        ))),
    }
}

/// Returns the subject of the request; null if it is missing, which every form rejects.
fn value(args: &Value) -> &Value {
    args.get("value").unwrap_or(&Value::Null)
}

/// Returns the text under `value`.
fn text(args: &Value) -> Result<&str, OpError> {
    let text = value(args).as_str();
    text.ok_or_else(|| OpError::Unsupported("`value` is not a text".into()))
}

/// Returns how the release counts the bytes of an element (TEN-29 to TEN-31); `None` if the request does not name the writer.
fn sizing(args: &Value) -> Result<Option<Sizing>, OpError> {
    let named = args.get("release").and_then(Value::as_str);
    named
        .map(|release| release.parse().map_err(OpError::from))
        .transpose()
}

/// Returns the release whose names are used for text; the newest release if the request has none.
fn release(args: &Value) -> Result<Release, OpError> {
    match args.get("release").and_then(Value::as_str) {
        Some(release) => release.parse().map_err(OpError::from),
        None => Ok(Release::LAST),
    }
}
