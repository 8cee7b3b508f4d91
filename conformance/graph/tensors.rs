//! The tensors of a script: arrays of the runtime, and views of them that are passed.

use super::forms::{bytes_of, elements, extents};
use crate::conformance::reply::Reply;
use crate::conformance::runtime::case_numbers::{NoNumber, numbers_in};
use crate::conformance::runtime::ffi::unsupported;
use crate::conformance::runtime::legacy::{LegacyApi, LegacyArg, LegacyValue};
use crate::tensor::{Device, Dtype};
use crate::value::legacy::{TVMValue, code};
use crate::value::{DLTensor, dtype_from_text, dtype_to_text};
use serde_json::{Value, json};
use std::ffi::c_int;
use std::ptr;

/// A tensor in memory of the runtime, and a view of it that is passed. With a `skew` the view begins that many bytes later.
///
/// Executors reject tensors that are not aligned (GRF-34) and copy tensors that they do not own (GRF-33). A view that begins
/// elsewhere than its array shows both, so an argument is never the array itself.
pub(super) struct ViewedTensor {
    pub(super) array: LegacyValue,
    view: Box<DLTensor>,
    _shape: Box<[i64]>,
    _strides: Option<Box<[i64]>>,
}

impl ViewedTensor {
    /// Creates the tensor of a form `{dtype, shape, data}`, with optional `strides` in elements and an optional `skew` in bytes.
    pub(super) fn new(api: &'static LegacyApi, form: &Value) -> Result<ViewedTensor, Reply> {
        let dtype = dtype_of(form)?;
        let mut shape: Box<[i64]> = extents(form).map_err(wrong_case)?.into();
        let mut strides: Option<Box<[i64]>> = match form.get("strides") {
            Some(strides) => Some(numbers_in(strides)?.into()),
            None => None,
        };
        let skew = form["skew"].as_u64();
        let array = match skew {
            None => api.array(&shape, dtype)?,
            Some(skew) => {
                let item = i64::from(dtype.bits) * i64::from(dtype.lanes) / 8;
                let size = shape.iter().product::<i64>() * item + skew.cast_signed();
                let (code, bits, lanes) = (1, 8, 1);
                api.array(&[size], Dtype { code, bits, lanes })?
            }
        };
        let whole = array
            .tensor()
            .ok_or_else(|| unsupported("no tensor was made"))?;
        let view = Box::new(DLTensor {
            ndim: c_int::try_from(shape.len()).map_err(|_| NoNumber::for_form(&form["shape"]))?,
            dtype,
            shape: shape.as_mut_ptr(),
            strides: strides
                .as_mut()
                .map_or(ptr::null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: skew.unwrap_or(0),
            ..*whole
        });
        let viewed = ViewedTensor {
            array,
            view,
            _shape: shape,
            _strides: strides,
        };
        viewed.fill(&form["data"])?;
        Ok(viewed)
    }

    /// Returns the view as an argument, valid as long as this value.
    pub(super) fn arg(&self) -> LegacyArg {
        let v_handle = ptr::from_ref(&*self.view).cast_mut().cast();
        (TVMValue { v_handle }, code::DLTENSOR)
    }

    /// Writes elements into the view; too many elements are ignored.
    pub(super) fn fill(&self, data: &Value) -> Result<(), Reply> {
        let bytes = bytes_of(data, self.view.dtype);
        let bytes = bytes.map_err(wrong_case)?;
        if let Some(memory) = memory(&self.view)
            && bytes.len() <= memory.1
        {
            // SAFETY: the memory of the view has that many bytes, and is the runtime's.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.0, bytes.len()) };
        }
        Ok(())
    }

    /// Returns the view as an answer shows it.
    pub(super) fn shown(&self) -> Value {
        tensor_shown(&self.view)
    }
}

/// Returns the first byte and the size of a compact tensor on the CPU.
fn memory(tensor: &DLTensor) -> Option<(*mut u8, usize)> {
    // SAFETY: a tensor that is alive.
    let shape = unsafe { tensor.shape() };
    let item = usize::from(tensor.dtype.bits) * usize::from(tensor.dtype.lanes);
    let size = shape.iter().try_fold(item.div_ceil(8), |size, extent| {
        size.checked_mul(usize::try_from(*extent).ok()?)
    });
    let offset = usize::try_from(tensor.byte_offset).ok()?;
    Some((tensor.data.cast::<u8>().wrapping_add(offset), size?))
}

/// Returns a tensor as an answer shows it: its elements on the CPU, its device elsewhere.
pub(super) fn tensor_shown(tensor: &DLTensor) -> Value {
    let Dtype { code, bits, .. } = tensor.dtype;
    let dtype = dtype_to_text(tensor.dtype).unwrap_or_default();
    // SAFETY: a tensor that is alive.
    let shape = unsafe { tensor.shape() };
    if tensor.device.kind != Device::CPU.kind {
        let device = [tensor.device.kind, tensor.device.id];
        return json!({"dtype": dtype, "shape": shape, "device": device});
    }
    let bytes = match memory(tensor) {
        Some((_, 0)) | None => &[][..],
        // SAFETY: the tensor is alive and has that many bytes; it is on the CPU.
        Some((first, size)) => unsafe { std::slice::from_raw_parts(first, size) },
    };
    json!({
        "dtype": dtype,
        "shape": shape,
        "data": elements(bytes, code, bits),
    })
}

/// Returns the data type that a form names.
pub(super) fn dtype_of(form: &Value) -> Result<Dtype, Reply> {
    let text = form["dtype"].as_str().unwrap_or_default();
    dtype_from_text(text).map_err(|error| unsupported(error.to_string()))
}

/// Returns the reply for a case that this driver cannot read, which is a fault of the suite.
pub(super) fn wrong_case(error: impl std::fmt::Display) -> Reply {
    Reply::ProtocolError(error.to_string())
}
