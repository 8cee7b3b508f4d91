//! The JSON forms of this chapter; `spec/tensor.md` and `spec/schema/values.json` define them.

use super::{Device, Dtype, Params, Sizing, TensorRecord};
use crate::release::{ParseError, Release, Releases};
use crate::rule::Violation;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Returns `{"tensors": [{"name", "dtype", "shape", "device", "data"}, ...]}`.
pub(crate) fn from_params(params: &Params<'_>) -> Value {
    let tensors = params.iter().map(|(name, record)| {
        let mut tensor = Map::new();
        tensor.insert("name".into(), name.into());
        tensor.extend(fields(record));
        Value::Object(tensor)
    });
    let mut form = Map::new();
    form.insert("tensors".into(), tensors.collect());
    // TEN-42: a nonzero word, which no release writes, is shown, so that the file can be written back to the same bytes.
    if params.reserved() != 0 {
        form.insert("reserved".into(), params.reserved().into());
    }
    Value::Object(form)
}

/// Returns `{"dtype", "shape", "device", "data"}`, and `reserved` if it is not 0.
pub fn from_record(record: &TensorRecord<'_>) -> Value {
    Value::Object(fields(record))
}

/// Returns the text of the newest release if it reads back as the same dtype, otherwise `[code, bits, lanes]`.
pub(crate) fn from_dtype(dtype: Dtype) -> Value {
    match dtype.exact_text() {
        Some(text) => text.into(),
        None => json!([dtype.code, dtype.bits, dtype.lanes]),
    }
}

/// Returns a dtype for people: the name in the releases of `era`, or both names if its code was assigned twice.
pub fn from_dtype_in(dtype: Dtype, era: Releases) -> Value {
    match dtype.name_in(era) {
        Some(name) => name.into(),
        None => from_dtype(dtype),
    }
}

/// Returns `[type, id]`.
pub fn from_device(device: Device) -> Value {
    json!([device.kind, device.id])
}

/// A tensor that owns its data, as read from JSON.
#[derive(Clone, Debug)]
pub(crate) struct OwnedTensor {
    /// The name; empty for a tensor that is not in a parameter file.
    name: String,
    /// Element type (TEN-01).
    dtype: Dtype,
    /// Dimensions, outermost first.
    shape: Vec<i64>,
    /// The stored device; the CPU if the form has no device.
    device: Device,
    /// The reserved word (TEN-22).
    reserved: u64,
    /// The elements, decoded from base64.
    data: Vec<u8>,
}

impl OwnedTensor {
    /// Creates the record of this tensor. `sizing` counts its bytes; without it, the newest family whose count agrees.
    pub(crate) fn record(&self, sizing: Option<Sizing>) -> Result<TensorRecord<'_>, Violation> {
        let make = |sizing| TensorRecord::new(self.dtype, &self.shape, &self.data, sizing);
        let record = match sizing {
            Some(sizing) => make(sizing),
            // TEN-45: the newest family is tried first. If all fail, its error is returned.
            None => make(Sizing::V0_7).or_else(|newest| {
                make(Sizing::V0_4)
                    .or_else(|_| make(Sizing::V0_2))
                    .map_err(|_| newest)
            }),
        };
        Ok(record?
            .with_device(self.device)
            .with_reserved(self.reserved))
    }
}

/// Reads the tensors of `{"tensors": [...]}`, and the reserved word of the file.
pub(crate) fn to_tensors(value: &Value) -> Result<(Vec<OwnedTensor>, u64), ParseError> {
    let tensors = value
        .get("tensors")
        .and_then(Value::as_array)
        .ok_or("parameters have an array `tensors`")?;
    let tensors = tensors.iter().map(to_tensor).collect::<Result<_, _>>()?;
    Ok((tensors, reserved(value)?))
}

/// Creates the parameter file of `tensors`.
pub(crate) fn params_of(
    (tensors, reserved): &(Vec<OwnedTensor>, u64),
    sizing: Option<Sizing>,
) -> Result<Params<'_>, Violation> {
    let named = tensors
        .iter()
        .map(|tensor| Ok((Cow::from(&tensor.name), tensor.record(sizing)?)));
    let params = Params::new(named.collect::<Result<_, Violation>>()?);
    Ok(params.with_reserved(*reserved))
}

/// Reads a tensor from `{"name"?, "dtype", "shape", "device"?, "data"}`.
pub(crate) fn to_tensor(value: &Value) -> Result<OwnedTensor, ParseError> {
    let dims = value
        .get("shape")
        .and_then(Value::as_array)
        .ok_or("a tensor has an array `shape`")?;
    let dim = |dim: &Value| {
        dim.as_i64()
            .ok_or_else(|| ParseError::new(format!("`shape` holds {dim}, which is not an i64")))
    };
    let data = value.get("data").and_then(Value::as_str);
    Ok(OwnedTensor {
        name: match value.get("name") {
            None => String::new(),
            Some(name) => name
                .as_str()
                .ok_or_else(|| ParseError::new(format!("`name` is {name}, which is not a text")))?
                .to_owned(),
        },
        dtype: to_dtype(value.get("dtype").unwrap_or(&Value::Null))?,
        shape: dims.iter().map(dim).collect::<Result<_, _>>()?,
        device: value.get("device").map_or(Ok(Device::CPU), to_device)?,
        reserved: reserved(value)?,
        data: data
            .and_then(|data| BASE64_STANDARD.decode(data).ok())
            .ok_or("a tensor has base64 under `data`")?,
    })
}

/// Reads a dtype from text of the newest release, or from `[code, bits, lanes]`.
pub(crate) fn to_dtype(value: &Value) -> Result<Dtype, ParseError> {
    if let Some(text) = value.as_str() {
        return Dtype::parse(text, Release::LAST).map_err(|broken| broken.message().into());
    }
    let number = |index| value.get(index).and_then(Value::as_u64);
    let wrong = || {
        ParseError::new(format!(
            "{value} is not a dtype: a text, or [code, bits, lanes]"
        ))
    };
    let three = [number(0), number(1), number(2)];
    let [Some(code), Some(bits), Some(lanes)] = three else {
        return Err(wrong());
    };
    Ok(Dtype {
        code: u8::try_from(code).map_err(|_| wrong())?,
        bits: u8::try_from(bits).map_err(|_| wrong())?,
        lanes: u16::try_from(lanes).map_err(|_| wrong())?,
    })
}

/// Reads a device from `[type, id]`.
///
/// # Errors
///
/// A [`ParseError`] for any value other than two numbers that fit into an i32.
pub fn to_device(value: &Value) -> Result<Device, ParseError> {
    let number = |index| {
        let number = value.get(index).and_then(Value::as_i64)?;
        i32::try_from(number).ok()
    };
    match (number(0), number(1)) {
        (Some(kind), Some(id)) => Ok(Device { kind, id }),
        _ => Err(ParseError::new(format!(
            "{value} is not a device: [type, id]"
        ))),
    }
}

/// Returns the members that a record has alone and in a parameter file.
fn fields(record: &TensorRecord<'_>) -> Map<String, Value> {
    let mut tensor = Map::new();
    tensor.insert("dtype".into(), from_dtype(record.dtype()));
    tensor.insert("shape".into(), record.shape().into());
    tensor.insert("device".into(), from_device(record.device()));
    tensor.insert("data".into(), BASE64_STANDARD.encode(record.data()).into());
    if record.reserved() != 0 {
        tensor.insert("reserved".into(), record.reserved().into());
    }
    tensor
}

/// Reads the word under `reserved`; 0 if the member is missing.
fn reserved(value: &Value) -> Result<u64, ParseError> {
    let Some(word) = value.get("reserved") else {
        return Ok(0);
    };
    word.as_u64()
        .ok_or_else(|| ParseError::new(format!("`reserved` is {word}, which is not a u64")))
}
