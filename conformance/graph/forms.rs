//! Tensors and results of a script as JSON.

use crate::conformance::runtime::ffi::forms::plain_float;
use crate::function::Error;
use crate::module::Module;
use crate::tensor::{Dtype, Params, Sizing, TensorRecord};
use crate::value::{AnyView, Bytes, cast, dtype_from_text};
use crate::wire::Writer;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Returns the parameter file of named tensors.
pub(super) fn param_file(params: &Map<String, Value>) -> Result<Bytes, Error> {
    let mut records = Vec::new();
    for (name, form) in params {
        let dtype = dtype_from_text(form["dtype"].as_str().unwrap_or_default())?;
        let shape = extents(form)?;
        let data = Cow::Owned(bytes_of(&form["data"], dtype)?);
        let record = TensorRecord::new(dtype, &shape, data, Sizing::V0_7)?;
        records.push((Cow::Borrowed(name.as_str()), record));
    }
    let mut out = Writer::new();
    Params::new(records).write(&mut out);
    Ok(Bytes::new(out.into_bytes()))
}

/// Reads the extents of a tensor of the form `{dtype, shape, data}`.
pub(super) fn extents(form: &Value) -> Result<Vec<i64>, Error> {
    let shape = &form["shape"];
    let wrong = || Error::new("TypeError", format!("case states no shape \"{shape}\""));
    let extents = shape.as_array().ok_or_else(wrong)?.iter();
    extents
        .map(|extent| extent.as_i64().ok_or_else(wrong))
        .collect()
}

/// Converts numbers to the bytes of a type.
pub(super) fn bytes_of(data: &Value, dtype: Dtype) -> Result<Vec<u8>, Error> {
    let numbers = data.as_array().into_iter().flatten();
    let mut bytes = Vec::new();
    for number in numbers {
        let wrong = || Error::new("TypeError", format!("case states no element \"{number}\""));
        let real = || number.as_f64().ok_or_else(wrong);
        match (dtype.code, dtype.bits) {
            (2, 32) => bytes.extend((real()? as f32).to_le_bytes()),
            (2, 64) => bytes.extend(real()?.to_le_bytes()),
            (_, bits) => {
                let width = usize::from(bits).div_ceil(8).min(8);
                let whole = number.as_i64().ok_or_else(wrong)?;
                bytes.extend(&whole.to_le_bytes()[..width]);
            }
        }
    }
    Ok(bytes)
}

/// Converts `view` to JSON.
pub(super) fn shown(view: AnyView<'_>) -> Value {
    use crate::object::{Tensor, extents_of, pairs_of, sequence_of};
    if view.is_none() {
        return Value::Null;
    }
    if let Ok(tensor) = cast::<Tensor>(view) {
        return tensor_json(&tensor);
    }
    if let Some(items) = sequence_of(view) {
        return items.iter().map(|item| shown(item.view())).collect();
    }
    if let Some(extents) = extents_of(view) {
        return json!(extents);
    }
    if let Some(pairs) = pairs_of(view) {
        let pairs = pairs.iter().map(|(key, value)| {
            let key = String::try_from(key.view()).unwrap_or_default();
            (key, shown(value.view()))
        });
        return Value::Object(pairs.collect());
    }
    if let Ok(text) = String::try_from(view) {
        return json!(text);
    }
    if let Ok(bytes) = cast::<Vec<u8>>(view) {
        return json!({"bytes": bytes.len()});
    }
    if let Some(module) = view
        .as_object()
        .and_then(|object| Module::from_object(object.clone()).ok())
    {
        return json!({"module": module.kind()});
    }
    match (i64::try_from(view), f64::try_from(view)) {
        (Ok(number), _) => json!(number),
        (_, Ok(number)) => plain_float(number),
        _ => json!({"type_index": view.type_index()}),
    }
}

/// Returns the type, the shape and the elements; the device instead of the elements if it is not the host.
pub(super) fn tensor_json(tensor: &crate::object::Tensor) -> Value {
    let dl = tensor.dl();
    let dtype = crate::value::dtype_to_text(dl.dtype).unwrap_or_default();
    let mut shown = json!({"dtype": dtype, "shape": tensor.shape()});
    match tensor.to_bytes() {
        Ok(bytes) => shown["data"] = elements(&bytes, dl.dtype.code, dl.dtype.bits),
        Err(_) => shown["device"] = json!([dl.device.kind, dl.device.id]),
    }
    shown
}

/// Returns the elements of a tensor as numbers.
pub(super) fn elements(bytes: &[u8], code: u8, bits: u8) -> Value {
    let four = bytes.as_chunks::<4>().0;
    match (code, bits) {
        (2, 32) => four
            .iter()
            .map(|word| plain_float(f32::from_le_bytes(*word).into()))
            .collect(),
        (0, 32) => four
            .iter()
            .map(|word| json!(i32::from_le_bytes(*word)))
            .collect(),
        (0, 8) => bytes.iter().map(|byte| json!(byte.cast_signed())).collect(),
        _ => json!(bytes),
    }
}
