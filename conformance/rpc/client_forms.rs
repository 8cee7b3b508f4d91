//! Values, tensors and memory in the actions of `rpc.client`.

use crate::conformance::op::{OpError, base64};
use crate::device::{Device, Manager, Space, TensorRef};
use crate::function::Error;
use crate::object::Tensor;
use crate::tensor::json::{from_device, from_dtype, to_dtype};
use crate::value::{Any, bytes_bytes, dtype_to_text, index, str_bytes};
use serde_json::{Value, json};

/// Describes a tensor of a server for the device API.
pub(super) fn reference(tensor: &Tensor) -> TensorRef<'_> {
    let dl = tensor.dl();
    TensorRef {
        data: Space(dl.data),
        device: dl.device,
        dtype: dl.dtype,
        shape: tensor.shape(),
        // RPC-30: tensors of a server have no strides.
        strides: None,
        byte_offset: dl.byte_offset,
    }
}

/// Allocates memory of a server, with or without a scope, and frees it.
pub(super) fn memory(
    device: Device,
    tensor: Option<&Value>,
    scope: Option<&Value>,
) -> Result<Result<(), Error>, OpError> {
    let tensor = tensor.unwrap_or(&Value::Null);
    let dtype = to_dtype(tensor.get("dtype").unwrap_or(&Value::Null))?;
    let shape: Vec<i64> = tensor
        .get("shape")
        .and_then(Value::as_array)
        .and_then(|shape| shape.iter().map(Value::as_i64).collect())
        .ok_or_else(|| OpError::Unsupported("there is no shape".into()))?;
    let scope = scope.and_then(Value::as_str);
    Ok(Manager::global().api(device.kind).and_then(|api| {
        let space = api.alloc_scoped(device, &shape, dtype, scope)?;
        // SAFETY: the device allocated the memory above, and nothing else knows it.
        unsafe { api.free(device, space) }
    }))
}

/// Creates the error for a result of a wrong kind: the client returned a wrong value, but the action itself is valid.
pub(super) fn wrong_result(what: &str) -> Error {
    Error::new("TypeError", format!("the result is not a {what}"))
}

/// Joins pieces of base64 to bytes.
pub(super) fn pieces(form: Option<&Value>) -> Option<Vec<u8>> {
    let pieces = form?.as_array()?.iter();
    let pieces = pieces.map(|piece| piece.as_str().and_then(from_base64));
    Some(pieces.collect::<Option<Vec<_>>>()?.concat())
}

pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    BASE64_STANDARD.decode(text).ok()
}

/// Creates a tensor of this process from the form `{"dtype", "shape", "data"}`.
pub(super) fn host_tensor(form: &Value) -> Result<Tensor, OpError> {
    let wrong = || OpError::Unsupported(format!("{form} is not a tensor"));
    let dtype = to_dtype(form.get("dtype").unwrap_or(&Value::Null))?;
    let shape = form
        .get("shape")
        .and_then(Value::as_array)
        .ok_or_else(wrong)?
        .iter();
    let shape: Vec<i64> = shape
        .map(Value::as_i64)
        .collect::<Option<_>>()
        .ok_or_else(wrong)?;
    let data = form
        .get("data")
        .and_then(Value::as_str)
        .and_then(from_base64);
    let tensor = Tensor::empty(&shape, dtype)?;
    tensor.fill(&data.ok_or_else(wrong)?)?;
    Ok(tensor)
}

/// Returns the bytes of a tensor of this process.
pub(super) fn host_bytes(value: &Any) -> Option<Value> {
    let tensor = Tensor::try_from(value).ok()?;
    let is_here = tensor.dl().device == Device::CPU;
    is_here
        .then(|| tensor.to_bytes().ok().map(|bytes| base64(&bytes)))
        .flatten()
}

/// Shows a value.
pub(super) fn shown(value: &Any) -> Value {
    let view = value.view();
    let raw = view.as_raw();
    match value.type_index() {
        index::NONE => Value::Null,
        index::INT => json!({"int": raw.int()}),
        index::BOOL => json!({"bool": raw.int()}),
        index::FLOAT => json!({"float": raw.float()}),
        index::DATA_TYPE => json!({"dtype": dtype_to_text(raw.dtype()).unwrap_or_default()}),
        index::DEVICE => json!({"device": from_device(raw.device())}),
        index::STR | index::SMALL_STR => {
            json!({"str": String::from_utf8_lossy(str_bytes(&view).unwrap_or_default())})
        }
        index::BYTES | index::SMALL_BYTES => {
            json!({"bytes": base64(bytes_bytes(&view).unwrap_or_default())})
        }
        index::FUNCTION => json!("function"),
        index::MODULE => json!("module"),
        index::TENSOR => match Tensor::try_from(value) {
            Ok(tensor) => {
                // DEV-57: the session's number depends on earlier sessions of this process, so that it is not shown.
                let device = tensor.dl().device.without_session();
                let dtype = from_dtype(tensor.dl().dtype);
                json!({"tensor": {"device": from_device(device), "dtype": dtype, "shape": tensor.shape()}})
            }
            Err(_) => json!("tensor"),
        },
        _ => json!("object"),
    }
}
