//! The operation `function.compiled`: calls a function of a compiled library with tensor descriptions that the case states in full (FUN-26
//! to FUN-30).

use crate::conformance::module::linked_library::why_not_to_run;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{bool_arg, text_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, bytes, c_text, unsupported, value_of};
use crate::tensor::{Device, Dtype};
use crate::value::{AnyPayload, DLTensor, RawAny, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::ptr;

/// Memory with the alignment that compiled code expects (FUN-29).
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

const LINE: usize = 64;

/// A tensor of a case.
struct CaseTensor {
    lines: Vec<Line>,
    /// Number of bytes of the lines that belong to its memory.
    length: usize,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    dtype: Dtype,
    byte_offset: u64,
    device_type: i32,
    has_data: bool,
}

/// Performs `function.compiled`: shows the memory of the last tensor after each call, or the kind of the error that the call raised.
pub(super) fn compiled(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    if let Some(why) = why_not_to_run(api) {
        return Err(unsupported(why));
    }
    let skipped = |error: std::io::Error| Reply::Skipped(error.to_string());
    let folder = tempfile::tempdir().map_err(skipped)?;
    let path = folder.path().join("case.so");
    std::fs::write(&path, bytes(args)?).map_err(skipped)?;
    let path = c_text(&path.to_string_lossy());
    let module = api.call_global("ffi.ModuleLoadFromFile", &[text_arg(&path)])?;
    let value = value_of(args);
    let name = value["function"].as_str().unwrap_or_default();
    let name = api.text(name)?;
    let lookup = [module.raw, name.raw, bool_arg(true)];
    let function = api.call_global("ffi.ModuleGetFunction", &lookup)?;
    let calls = value["calls"].as_array().into_iter().flatten();
    let mut results = Vec::new();
    for call in calls {
        let tensors = call.as_array().into_iter().flatten();
        let mut tensors: Vec<CaseTensor> = tensors
            .map(|form| CaseTensor::of(api, form))
            .collect::<Result<_, Reply>>()?;
        let mut descriptions: Vec<DLTensor> =
            tensors.iter_mut().map(CaseTensor::describe).collect();
        let cells: Vec<RawAny> = descriptions
            .iter_mut()
            .map(|description| {
                let ptr = ptr::from_mut(description).cast();
                RawAny::of(index::DLTENSOR_PTR, AnyPayload { ptr })
            })
            .collect();
        results.push(match api.call(&function, &cells) {
            Ok(_) => json!(tensors.last().map(CaseTensor::memory)),
            Err(raised) => json!({"error": raised.kind}),
        });
    }
    accepted(Value::Array(results))
}

impl CaseTensor {
    fn of(api: &'static FfiApi, form: &Value) -> Result<CaseTensor, Reply> {
        let wrong = || Reply::ProtocolError(format!("case states no tensor {form}"));
        let numbers = |name: &str| -> Option<Vec<i64>> {
            let list = form.get(name)?.as_array()?;
            list.iter().map(Value::as_i64).collect()
        };
        let data = form["data"].as_str();
        let data = data.and_then(|data| BASE64_STANDARD.decode(data).ok());
        let data = data.ok_or_else(wrong)?;
        let lines = data.chunks(LINE).map(|chunk| {
            let mut line = [0; LINE];
            line[..chunk.len()].copy_from_slice(chunk);
            Line(line)
        });
        let device_type = form["device"].as_i64().unwrap_or(1);
        Ok(CaseTensor {
            lines: lines.collect(),
            length: data.len(),
            shape: numbers("shape").ok_or_else(wrong)?,
            strides: numbers("strides"),
            dtype: api.dtype(form["dtype"].as_str().unwrap_or_default())?,
            byte_offset: form["byte_offset"].as_u64().unwrap_or_default(),
            device_type: i32::try_from(device_type).map_err(|_| wrong())?,
            has_data: form["data_is_null"] != true,
        })
    }

    fn describe(&mut self) -> DLTensor {
        let strides = self.strides.as_mut();
        let data: *mut Line = self.lines.as_mut_ptr();
        DLTensor {
            data: if self.has_data {
                data.cast()
            } else {
                ptr::null_mut()
            },
            device: Device {
                kind: self.device_type,
                id: 0,
            },
            ndim: self.shape.len() as i32,
            dtype: self.dtype,
            shape: self.shape.as_mut_ptr(),
            strides: strides.map_or(ptr::null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: self.byte_offset,
        }
    }

    /// Shows the current content of the memory.
    fn memory(&self) -> String {
        let first = self.lines.as_ptr().cast::<u8>();
        // SAFETY: the lines hold at least `length` bytes. The function wrote through the address that `describe` took of them.
        let bytes = unsafe { std::slice::from_raw_parts(first, self.length) };
        BASE64_STANDARD.encode(bytes)
    }
}
