//! Parameter files, tensor records in them, and data types.

use super::super::library;
use super::{Reply, RuntimeReleases, bytes, unsupported};
use crate::conformance::runtime::legacy::{
    LegacyApi, LegacyArg, LegacyValue, bytes_arg, c_text, int_arg, null_arg, text_arg,
};
use crate::release::Release;
use crate::tensor::json::{from_dtype, to_dtype};
use crate::tensor::{Device, Dtype, Params};
use crate::value::legacy::{TVMValue, code};
use crate::value::{ByteArray, DLTensor};
use crate::wire::Writer;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Runs `tensor.decode` on a parameter file, or on a tensor that is put into such a file.
pub(super) fn decode(
    api: &'static LegacyApi,
    stands: RuntimeReleases,
    args: &Value,
) -> Result<Reply, Reply> {
    stands.for_release_of(args)?;
    let form = args.get("form").and_then(Value::as_str);
    let file = match form {
        None | Some("params") => bytes(args)?,
        Some("tensor") => wrap_record(&bytes(args)?),
        Some(form) => {
            return Err(unsupported(format!(
                "the runtime reads `{form}` only inside other files"
            )));
        }
    };
    let file = ByteArray::of(&file);
    let map = api.call_global("runtime.LoadParams", &[bytes_arg(&file)])?;
    let list = api.call_global("runtime.MapItems", &[map.arg()])?;
    let size = api.call_global("runtime.ArraySize", &[list.arg()])?.int();
    let item = |at: i64| api.call_global("runtime.ArrayGetItem", &[list.arg(), int_arg(at)]);
    let mut tensors = Map::new();
    for pair in 0..size / 2 {
        let name = item(2 * pair)?;
        let name = match name.code {
            code::STR => name.text()?,
            _ => api
                .call_global("runtime.GetFFIString", &[name.arg()])?
                .text()?,
        };
        tensors.insert(name, shown(&item(2 * pair + 1)?)?);
    }
    let (view, value) = match form {
        Some("tensor") => ("tensor", tensors.remove("x").unwrap_or_default()),
        _ => ("tensors", Value::Object(tensors)),
    };
    Ok(Reply::Shown {
        view: view.to_owned(),
        value,
    })
}

/// Creates a parameter file of one tensor with the name `x`.
fn wrap_record(record: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    // TEN-41: the magic, a reserved word, the number of names, and the length of the name.
    for word in [Params::MAGIC, 0, 1, 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.push(b'x');
    file.extend_from_slice(&1u64.to_le_bytes());
    file.extend_from_slice(record);
    file
}

/// Returns a tensor as JSON, with its type as numbers, because the text of a type is tested by `tensor.dtype_text`.
pub(in crate::conformance) fn shown(tensor: &LegacyValue) -> Result<Value, Reply> {
    let described = tensor
        .tensor()
        .ok_or_else(|| unsupported("the loaded value is not a tensor"))?;
    // SAFETY: the tensor is alive.
    let shape = unsafe { described.shape() };
    let Dtype { code, bits, lanes } = described.dtype;
    // A tensor whose size overflows was accepted nevertheless, and its data must not be read.
    let data = bytes_in(described, shape).map(|size| match size {
        0 => &[][..],
        // SAFETY: a tensor that was just loaded is compact and on the CPU.
        _ => unsafe { std::slice::from_raw_parts(described.data.cast::<u8>(), size) },
    });
    Ok(json!({
        "dtype": from_dtype(Dtype { code, bits, lanes }),
        "shape": shape,
        "data": data.map(|data| BASE64_STANDARD.encode(data)),
    }))
}

/// Returns the bytes of a tensor, or `None` if the size exceeds the address space.
fn bytes_in(tensor: &DLTensor, shape: &[i64]) -> Option<usize> {
    let item = usize::from(tensor.dtype.bits) * usize::from(tensor.dtype.lanes);
    let mut extents = shape.iter();
    let bytes = extents.try_fold(item.div_ceil(8), |bytes, extent| {
        bytes.checked_mul(usize::try_from(*extent).ok()?)
    });
    bytes.filter(|bytes| isize::try_from(*bytes).is_ok())
}

/// Runs `tensor.encode`: returns the parameter file of named tensors.
pub(super) fn encode(
    api: &'static LegacyApi,
    stands: RuntimeReleases,
    args: &Value,
) -> Result<Reply, Reply> {
    stands.for_release_of(args)?;
    if let Some(form) = args.get("form").and_then(Value::as_str)
        && form != "params"
    {
        return Err(unsupported(format!(
            "the runtime writes `{form}` only inside other files"
        )));
    }
    let list = library::tensors(args).map_err(unsupported)?;
    let mut held = Vec::new();
    for tensor in list {
        let name = c_text(library::name(tensor).unwrap_or_default());
        held.push((name, made(api, tensor)?));
    }
    // Every release converts a text that is a key to a string.
    let pairs = held
        .iter()
        .map(|(name, tensor)| [text_arg(name), tensor.arg()]);
    let args: Vec<LegacyArg> = pairs.flatten().collect();
    let map = api.call_global("runtime.Map", &args)?;
    let file = api.call_global("runtime.SaveParams", &[map.arg()])?;
    let file = file
        .bytes()
        .ok_or_else(|| unsupported("SaveParams does not give bytes"))?;
    let names: Vec<&str> = list.iter().filter_map(library::name).collect();
    let file = in_order(file, &names).unwrap_or_else(|| file.to_vec());
    Ok(Reply::Ok {
        value: BASE64_STANDARD.encode(file).into(),
        findings: None,
    })
}

/// Returns the file with its tensors in the order of `names`, because the map that the runtime takes is unordered. Records are
/// written back unchanged. Returns `None` if the file does not have exactly these names.
fn in_order(file: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let params = Params::open(file).ok()?.value;
    let record = |name: &&str| Some((Cow::Owned((*name).to_owned()), params.get(name)?.clone()));
    let records: Option<Vec<_>> = names.iter().map(record).collect();
    let ordered = Params::new(records.filter(|records| records.len() == params.len())?);
    let mut out = Writer::new();
    ordered.with_reserved(params.reserved()).write(&mut out);
    Some(out.into_bytes())
}

/// Creates a tensor of the runtime with these contents.
fn made(api: &'static LegacyApi, tensor: &Value) -> Result<LegacyValue, Reply> {
    let wrong = || unsupported("a tensor is not {name, dtype, shape, data}");
    if tensor
        .get("device")
        .is_some_and(|device| *device != json!([1, 0]))
    {
        return Err(unsupported("tensors are made on the CPU only"));
    }
    let data = tensor.get("data").and_then(Value::as_str);
    let data = data.and_then(|data| BASE64_STANDARD.decode(data).ok());
    let data = data.ok_or_else(wrong)?;
    let shape = tensor
        .get("shape")
        .and_then(Value::as_array)
        .ok_or_else(wrong)?;
    let shape: Option<Vec<i64>> = shape.iter().map(Value::as_i64).collect();
    let dtype = to_dtype(tensor.get("dtype").unwrap_or(&Value::Null)).map_err(unsupported)?;
    let Dtype { code, bits, lanes } = dtype;
    let shape = shape.ok_or_else(wrong)?;
    let made = api.array(&shape, Dtype { code, bits, lanes })?;
    let described = made.tensor().ok_or_else(wrong)?;
    // SAFETY: the tensor is alive.
    if bytes_in(described, unsafe { described.shape() }) != Some(data.len()) {
        return Err(unsupported(
            "a tensor in memory has all bytes of its shape and type",
        ));
    }
    if !data.is_empty() {
        // SAFETY: a new tensor on the CPU, compact, of that many bytes.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), described.data.cast(), data.len()) };
    }
    Ok(made)
}

/// Runs `tensor.dtype_parse`: returns the type of a tensor that is created with it.
pub(super) fn dtype_parse(
    api: &'static LegacyApi,
    stands: RuntimeReleases,
    args: &Value,
) -> Result<Reply, Reply> {
    stands.for_one_release(args)?;
    let text = args.get("value").and_then(Value::as_str);
    let text = text.ok_or_else(|| unsupported("`value` is not a text"))?;
    let text = c_text(text);
    let v_device = Device { kind: 1, id: 0 };
    let device = (TVMValue { v_device }, code::DEVICE);
    let extent = [1i64];
    let tuple;
    // Up to 0.8 a shape is passed as its address and its rank.
    let mut args: Vec<LegacyArg> = if stands.last < Release::of(9) {
        let v_handle = extent.as_ptr().cast_mut().cast();
        vec![(TVMValue { v_handle }, code::HANDLE), int_arg(1)]
    } else {
        tuple = api.call_global("runtime.ShapeTuple", &extent.map(int_arg))?;
        vec![tuple.arg()]
    };
    args.extend([text_arg(&text), device, null_arg()]);
    let tensor = api.call_global("runtime.TVMArrayAllocWithScope", &args);
    let tensor = tensor.map_err(|reply| match reply {
        // The text was accepted, and only the tensor of this type is rejected.
        Reply::Reject(rejection) if rejection.message.contains("dtype.lanes >= 1") => {
            unsupported("a type is read from a tensor with that type, and no tensor has 0 lanes")
        }
        other => other,
    })?;
    let DLTensor { dtype, .. } = tensor
        .tensor()
        .ok_or_else(|| unsupported("the created value is not a tensor"))?;
    Ok(Reply::Ok {
        value: json!([dtype.code, dtype.bits, dtype.lanes]),
        findings: None,
    })
}

/// Runs `tensor.dtype_text`: a call returns a data type as its text.
pub(super) fn dtype_text(
    api: &'static LegacyApi,
    stands: RuntimeReleases,
    args: &Value,
) -> Result<Reply, Reply> {
    stands.for_one_release(args)?;
    let three = args.get("value").and_then(Value::as_array);
    let part = |at: usize| three.and_then(|three| three.get(at)?.as_u64());
    let wrong = || unsupported("`value` is not [code, bits, lanes]");
    let dtype = Dtype {
        code: part(0)
            .and_then(|code| code.try_into().ok())
            .ok_or_else(wrong)?,
        bits: part(1)
            .and_then(|bits| bits.try_into().ok())
            .ok_or_else(wrong)?,
        lanes: part(2)
            .and_then(|lanes| lanes.try_into().ok())
            .ok_or_else(wrong)?,
    };
    Ok(Reply::Ok {
        value: json!(super::calls::echo(api, dtype_arg(dtype))?.text()?),
        findings: None,
    })
}

/// Returns a data type as an argument.
fn dtype_arg(v_type: Dtype) -> LegacyArg {
    // All eight bytes are written, because a data type has only four.
    let mut value = TVMValue { v_int64: 0 };
    value.v_type = v_type;
    (value, code::DATA_TYPE)
}
