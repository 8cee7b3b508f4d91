//! Data types and parameter files.

use super::api::FfiApi;
use super::owned::{OwnedValue, bytes_arg, int_arg};
use super::{Reply, accepted, bytes, unsupported, view_reply};
use crate::conformance::adapter::library;
use crate::conformance::runtime::aligned_memory::AlignedLine;
use crate::conformance::runtime::case_numbers::{number_or, numbers_in};
use crate::release::Release;
use crate::tensor::json::{from_dtype, to_dtype};
use crate::tensor::{Device, Dtype, Params};
use crate::value::ByteArray;
use crate::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};

/// Runs `tensor.dtype_parse`: returns code, bits and lanes of a text.
pub(in crate::conformance) fn dtype_parse(
    api: &'static FfiApi,
    args: &Value,
) -> Result<Reply, Reply> {
    require_current_release(args)?;
    let text = args.get("value").and_then(Value::as_str);
    let dtype = api.dtype(text.ok_or_else(|| unsupported("`value` is not a text"))?)?;
    Ok(Reply::Ok {
        value: json!([dtype.code, dtype.bits, dtype.lanes]),
        findings: None,
    })
}

/// Runs `tensor.dtype_text`: returns the text of code, bits and lanes.
pub(in crate::conformance) fn dtype_text(
    api: &'static FfiApi,
    args: &Value,
) -> Result<Reply, Reply> {
    require_current_release(args)?;
    let three: Option<Vec<u64>> = args
        .get("value")
        .and_then(Value::as_array)
        .and_then(|three| three.iter().map(Value::as_u64).collect());
    let dtype = match three.as_deref() {
        Some([code, bits, lanes]) => Dtype {
            code: u8::try_from(*code).map_err(unsupported_number)?,
            bits: u8::try_from(*bits).map_err(unsupported_number)?,
            lanes: u16::try_from(*lanes).map_err(unsupported_number)?,
        },
        _ => return Err(unsupported("`value` is not [code, bits, lanes]")),
    };
    Ok(Reply::Ok {
        value: json!(api.dtype_text(dtype)?),
        findings: None,
    })
}

/// Reads a parameter file and returns its tensors. A tensor record is put into such a file.
pub(in crate::conformance) fn decode(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let alone = is_tensor_record(args)?;
    let mut file = bytes(args)?;
    if alone {
        file.splice(..0, before_record());
    }
    let file = ByteArray::of(&file);
    let map = api.call_global("runtime.LoadParams", &[bytes_arg(&file)])?;
    let next = api.call_global("ffi.MapForwardIterFunctor", &[map.raw])?;
    let mut tensors = Map::new();
    let size = api.call_global("ffi.MapSize", &[map.raw])?.raw.int();
    for place in 0..size {
        // The iterator takes a command: 0 for the key, 1 for the value, 2 to advance.
        let name = api.call(&next, &[int_arg(0)])?;
        let tensor = api.call(&next, &[int_arg(1)])?;
        let shown = tensor_to_json(&tensor)?;
        if alone {
            return view_reply("tensor", shown);
        }
        tensors.insert(name.text().unwrap_or_default(), shown);
        if place + 1 < size {
            api.call(&next, &[int_arg(2)])?;
        }
    }
    if alone {
        return accepted(json!({"tensors": 0}));
    }
    view_reply("tensors", Value::Object(tensors))
}

/// Returns the bytes of a parameter file before its only record, which has the name `x`.
fn before_record() -> Vec<u8> {
    let words = [Params::MAGIC, 0, 1, 1].map(u64::to_le_bytes);
    [&words.concat()[..], b"x", &1u64.to_le_bytes()].concat()
}

/// Returns a tensor as JSON, with its type as numbers, because the text of a type is tested by `tensor.dtype_text`.
pub(in crate::conformance) fn tensor_to_json(tensor: &OwnedValue) -> Result<Value, Reply> {
    let described = tensor
        .dltensor()
        .ok_or_else(|| unsupported("the loaded value is not a tensor"))?;
    let rank = usize::try_from(described.ndim).map_err(unsupported_number)?;
    let shape = match rank {
        0 => &[][..],
        // SAFETY: a tensor has an extent for each dimension.
        _ => unsafe { std::slice::from_raw_parts(described.shape, rank) },
    };
    let Dtype { code, bits, lanes } = described.dtype;
    let item = (usize::from(bits) * usize::from(lanes)).div_ceil(8);
    let mut extents = shape.iter();
    let size = extents.try_fold(item, |size, extent| {
        size.checked_mul(usize::try_from(*extent).ok()?)
    });
    // A tensor whose size overflows was accepted nevertheless, and its data must not be read.
    let size = size.filter(|size| isize::try_from(*size).is_ok());
    let data = size.map(|size| match size {
        0 => &[][..],
        // SAFETY: a tensor that was just loaded, or made by a function for compact ones, is compact and on the CPU.
        _ => unsafe {
            let start = described
                .data
                .wrapping_byte_add(described.byte_offset as usize);
            std::slice::from_raw_parts(start.cast::<u8>(), size)
        },
    });
    Ok(json!({
        "dtype": from_dtype(Dtype { code, bits, lanes }),
        "shape": shape,
        "data": data.map(|data| BASE64_STANDARD.encode(data)),
    }))
}

/// Writes the parameter file of named tensors.
pub(in crate::conformance) fn encode(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    if is_tensor_record(args)? {
        return encode_alone(api, args);
    }
    let mut held = Vec::new();
    for tensor in library::tensors(args).map_err(unsupported)? {
        require_cpu(tensor)?;
        held.push(api.text(library::name(tensor).unwrap_or_default())?);
        held.push(api.tensor(managed(tensor)?)?);
    }
    let args: Vec<_> = held.iter().map(|held| held.raw).collect();
    let map = api.call_global("ffi.Map", &args)?;
    let file = api.call_global("runtime.SaveParams", &[map.raw])?;
    let file = file
        .bytes()
        .ok_or_else(|| unsupported("SaveParams does not give bytes"))?;
    Ok(Reply::Ok {
        value: BASE64_STANDARD.encode(file).into(),
        findings: None,
    })
}

/// Returns the record in a parameter file of one tensor.
fn encode_alone(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let tensor = args.get("value").unwrap_or(&Value::Null);
    require_cpu(tensor)?;
    let parts = ["dtype", "shape", "data", "device"];
    let mut keys = tensor.as_object().into_iter().flat_map(Map::keys);
    if keys.any(|key| !parts.contains(&key.as_str())) {
        return Err(unsupported(
            "the runtime itself chooses the words around the data",
        ));
    }
    let (name, tensor) = (api.text("x")?, api.tensor(managed(tensor)?)?);
    let map = api.call_global("ffi.Map", &[name.raw, tensor.raw])?;
    let file = api.call_global("runtime.SaveParams", &[map.raw])?.bytes();
    let before = before_record();
    let record = file
        .as_ref()
        .and_then(|file| file.strip_prefix(&before[..]));
    let record = record.ok_or_else(|| unsupported("SaveParams returns no file of one tensor"))?;
    accepted(BASE64_STANDARD.encode(record).into())
}

/// Checks that a tensor for a runtime is on the CPU, because it is created in the memory of this process.
fn require_cpu(tensor: &Value) -> Result<(), Reply> {
    match tensor.get("device") {
        Some(device) if *device != json!([1, 0]) => {
            Err(unsupported("tensors are made on the CPU only"))
        }
        _ => Ok(()),
    }
}

/// Creates a tensor of a form `{dtype, shape, data}`.
pub(in crate::conformance) fn make_tensor(
    api: &'static FfiApi,
    form: &Value,
) -> Result<OwnedValue, Reply> {
    Ok(api.tensor(managed(form)?)?)
}

/// Creates a float32 tensor of zeros.
pub(in crate::conformance) fn zeros(
    api: &'static FfiApi,
    shape: &Value,
) -> Result<OwnedValue, Reply> {
    let count: i64 = numbers_in(shape)?.iter().product();
    let data = vec![0; usize::try_from(count).map_err(unsupported_number)? * 4];
    let data = BASE64_STANDARD.encode(data);
    let tensor = json!({"dtype": "float32", "shape": shape, "data": data});
    Ok(api.tensor(managed(&tensor)?)?)
}

/// The memory of a tensor of the suite, which is freed when the runtime no longer needs it.
struct Owned {
    /// The tensor for the runtime. Its context is the address of the whole struct.
    managed: DLManagedTensor,
    /// The extents, which the description points to.
    shape: Vec<i64>,
    /// The strides; empty if the form has none.
    strides: Vec<i64>,
    /// The elements, in words.
    data: Vec<u64>,
}

/// Creates a tensor of a form as DLPack passes it. The runtime that takes it calls its deleter once.
fn managed(tensor: &Value) -> Result<*mut DLManagedTensor, Reply> {
    let wrong = || unsupported("a tensor is not {name, dtype, shape, data}");
    // The runtime's own parsing of the text is tested by `tensor.dtype_parse`.
    let dtype = tensor.get("dtype").map(to_dtype);
    let dtype = dtype.and_then(Result::ok).ok_or_else(wrong)?;
    let shape = tensor
        .get("shape")
        .and_then(Value::as_array)
        .ok_or_else(wrong)?;
    let shape: Option<Vec<i64>> = shape.iter().map(Value::as_i64).collect();
    let bytes = tensor.get("data").and_then(Value::as_str);
    let bytes = bytes
        .and_then(|data| BASE64_STANDARD.decode(data).ok())
        .ok_or_else(wrong)?;
    let shape = shape.ok_or_else(wrong)?;
    let Dtype { code, bits, lanes } = dtype;
    let dtype = Dtype { code, bits, lanes };
    let count = shape.iter().try_fold(1usize, |count, extent| {
        count.checked_mul(usize::try_from(*extent).ok()?)
    });
    let bits = usize::from(dtype.bits) * usize::from(dtype.lanes);
    let strides = tensor.get("strides").map(numbers_in).transpose()?;
    // The number of bytes before the first element.
    let offset = match tensor.get("byte_offset") {
        Some(offset) => offset.as_u64().ok_or_else(wrong)?,
        None => 0,
    };
    let size = count.and_then(|count| count.checked_mul(bits.div_ceil(8)));
    let size = size.and_then(|size| size.checked_add(usize::try_from(offset).ok()?));
    if size != Some(bytes.len()) {
        return Err(unsupported(
            "a tensor in memory has all bytes of its shape and type",
        ));
    }
    // Memory of another device exists only in name, because no step of a case reads it.
    let [device_type, device_id] = match tensor.get("device") {
        None => [1, 0],
        Some(device) => numbers_in(device)?
            .iter()
            .map(|number| i32::try_from(*number).map_err(|_| wrong()))
            .collect::<Result<Vec<_>, _>>()?
            .try_into()
            .map_err(|_| wrong())?,
    };
    // Whole words, so that any element type is aligned.
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    let mut owned = Box::new(Owned {
        shape,
        strides: strides.unwrap_or_default(),
        data: words.collect(),
        managed: DLManagedTensor {
            dl_tensor: DLTensor {
                data: std::ptr::null_mut(),
                device: Device {
                    kind: device_type,
                    id: device_id,
                },
                ndim: 0,
                dtype,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: offset,
            },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(free),
        },
    });
    owned.managed.dl_tensor.ndim = i32::try_from(owned.shape.len()).map_err(|_| wrong())?;
    owned.managed.dl_tensor.shape = owned.shape.as_mut_ptr();
    if owned.strides.len() == owned.shape.len() {
        owned.managed.dl_tensor.strides = owned.strides.as_mut_ptr();
    }
    owned.managed.dl_tensor.data = owned.data.as_mut_ptr().cast();
    let owned = Box::into_raw(owned);
    // SAFETY: it was just made, and nothing else refers to it.
    unsafe { (*owned).managed.manager_ctx = owned.cast() };
    // SAFETY: it was just made, and nothing else refers to it.
    Ok(unsafe { &raw mut (*owned).managed })
}

/// Deletes a tensor of [`managed`].
unsafe extern "C-unwind" fn free(tensor: *mut DLManagedTensor) {
    // SAFETY: called with a live tensor that `managed` created.
    let owned = unsafe { (*tensor).manager_ctx };
    // SAFETY: the box that `managed` made; called once.
    drop(unsafe { Box::from_raw(owned.cast::<Owned>()) });
}

/// A tensor that a runtime borrows as DLPack 1.x: data aligned to 64 bytes, on the CPU.
struct ExportedTensor {
    /// The tensor for the runtime. Its context is the address of the whole struct.
    managed: DLManagedTensorVersioned,
    /// The extents, which the description points to.
    shape: Vec<i64>,
    /// The strides: those of the case, or compact ones.
    strides: Vec<i64>,
    /// Zeros, enough for any case.
    data: Vec<AlignedLine>,
}

/// Deletes a tensor of [`dlpack`]; this file calls it if the runtime rejects the tensor.
unsafe extern "C-unwind" fn delete_exported(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: called with a live tensor that `dlpack` created.
    let exported = unsafe { (*tensor).manager_ctx };
    // SAFETY: the box that `dlpack` made; called once.
    drop(unsafe { Box::from_raw(exported.cast::<ExportedTensor>()) });
}

/// Runs `object.dlpack`: checks whether the runtime takes over a float32 tensor.
pub(in crate::conformance) fn dlpack(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let list = |name: &str| value.get(name).map_or(Ok(Vec::new()), numbers_in);
    let flag = |name: &str| value.get(name).and_then(Value::as_bool) == Some(true);
    let (shape, strides) = (list("shape")?, list("strides")?);
    let mut exported = Box::new(ExportedTensor {
        managed: DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete_exported),
            // `DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED` of DLPack 1.x.
            flags: if flag("padded") { 4 } else { 0 },
            dl_tensor: DLTensor {
                data: std::ptr::null_mut(),
                device: Device::CPU,
                ndim: i32::try_from(shape.len()).map_err(unsupported_number)?,
                dtype: api.dtype("float32")?,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: number_or(value, "offset", 0)?,
            },
        },
        shape,
        strides,
        data: AlignedLine::zeros(16),
    });
    let described = &mut exported.managed.dl_tensor;
    described.shape = exported.shape.as_mut_ptr();
    described.data = exported.data.as_mut_ptr().cast();
    if !exported.strides.is_empty() {
        described.strides = exported.strides.as_mut_ptr();
    } else {
        // DLPack 1.2 requires strides.
        exported.strides = crate::object::compact_strides(&exported.shape);
        described.strides = exported.strides.as_mut_ptr();
    }
    let align: i32 = number_or(value, "align", 0)?;
    let exported = Box::into_raw(exported);
    // SAFETY: it was just made, and nothing else refers to it.
    unsafe { (*exported).managed.manager_ctx = exported.cast() };
    // SAFETY: it was just made; its last owner calls `delete`.
    let managed = unsafe { &raw mut (*exported).managed };
    match api.tensor_1(managed, align, flag("contiguous")) {
        Ok(tensor) => {
            let described = tensor.dltensor();
            let described =
                described.ok_or_else(|| unsupported("the imported value is not a tensor"))?;
            // SAFETY: a tensor has an extent for each dimension.
            accepted(json!({"shape": unsafe { described.shape() }}))
        }
        Err(raised) => {
            // SAFETY: rejected, so still ours.
            unsafe { delete_exported(managed) };
            Err(raised.into())
        }
    }
}

/// Returns whether a case uses a tensor record and not a parameter file.
fn is_tensor_record(args: &Value) -> Result<bool, Reply> {
    require_current_release(args)?;
    match args.get("form").and_then(Value::as_str) {
        None | Some("params") => Ok(false),
        Some("tensor") => Ok(true),
        Some(form) => Err(unsupported(format!(
            "the runtime reads `{form}` only inside other files"
        ))),
    }
}

/// Rejects a case for the behaviour of an older release.
fn require_current_release(args: &Value) -> Result<(), Reply> {
    let named = args.get("release").and_then(Value::as_str);
    match named.and_then(|name| name.parse::<Release>().ok()) {
        Some(release) if release < Release::of(22) => Err(unsupported(format!(
            "the case tests the behaviour of {release}"
        ))),
        _ => Ok(()),
    }
}

/// Returns the reply for a number of the case that this interface cannot pass.
fn unsupported_number(error: impl std::fmt::Display) -> Reply {
    unsupported(error.to_string())
}
