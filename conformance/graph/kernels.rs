//! What the graphs of the cases call: a module of small kernels that keeps a log.

use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceApi};
use crate::function::{Error, Function};
use crate::graph::executor::Place;
use crate::module::{Kind, Module};
use crate::value::{Any, AnyView, DLTensor, cast};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The kernels: `add1`, `add`, `two` (two outputs), `touch` (writes nothing), `fail`.
#[derive(Clone, Default)]
pub(super) struct Kernels {
    log: Arc<Mutex<Vec<Value>>>,
}

impl Kernels {
    /// The module that a graph is given.
    pub(super) fn module(&self) -> Module {
        Module::new(self.clone())
    }

    /// What was called since the last time: name and shapes of the arguments.
    pub(super) fn take_log(&self) -> Value {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        Value::Array(std::mem::take(&mut *log))
    }
}

impl Kind for Kernels {
    fn kind(&self) -> &str {
        "library"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        let Some((name, kernel)) = kernel(name) else {
            return Ok(None);
        };
        let log = Arc::clone(&self.log);
        Ok(Some(Function::from_packed(move |args| {
            let tensors = args
                .iter()
                .map(|arg| cast::<*mut DLTensor>(*arg))
                .collect::<Result<Vec<_>, _>>()?;
            let shapes: Vec<Vec<i64>> = tensors
                .iter()
                .map(|tensor| {
                    // SAFETY: the executor keeps its arguments for the call.
                    let tensor = unsafe { &**tensor };
                    // SAFETY: an argument has as many extents as it says.
                    unsafe { tensor.shape() }.to_vec()
                })
                .collect();
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(json!([name, shapes]));
            kernel(&tensors).map(|()| Any::none())
        })))
    }
}

pub(in crate::conformance) type Kernel = fn(&[*mut DLTensor]) -> Result<(), Error>;

/// The names of all kernels.
pub(in crate::conformance) const NAMES: [&str; 5] = ["add1", "add", "two", "touch", "fail"];

pub(in crate::conformance) fn kernel(name: &str) -> Option<(&'static str, Kernel)> {
    Some(match name {
        "add1" => ("add1", |args| {
            each(args, 1, |values| vec![values.iter().sum::<f32>() + 1.0])
        }),
        "add" => ("add", |args| {
            each(args, 2, |values| vec![values.iter().sum()])
        }),
        "two" => ("two", |args| {
            each(args, 1, |values| vec![values[0] + 1.0, values[0] * 2.0])
        }),
        "touch" => ("touch", |_| Ok(())),
        "fail" => ("fail", |_| {
            Err(Error::new("ValueError", "the kernel failed"))
        }),
        _ => return None,
    })
}

/// Element by element: the first `inputs` arguments give the values, the others take the results. `float32` only.
fn each(args: &[*mut DLTensor], inputs: usize, body: fn(&[f32]) -> Vec<f32>) -> Result<(), Error> {
    let mut pointers = Vec::new();
    let mut count = usize::MAX;
    for tensor in args {
        // SAFETY: the executor keeps its arguments, and they are on the host.
        let tensor = unsafe { &**tensor };
        if (tensor.dtype.code, tensor.dtype.bits) != (2, 32) || tensor.device.device_type != 1 {
            return Err(Error::new("TypeError", "float32 on the CPU, please"));
        }
        // SAFETY: an argument has as many extents as it says.
        count = count.min(unsafe { tensor.elements() } as usize);
        pointers.push(
            tensor
                .data
                .cast::<u8>()
                .wrapping_add(tensor.byte_offset as usize)
                .cast::<f32>(),
        );
    }
    for at in 0..count {
        let (from, to) = pointers.split_at(inputs);
        // SAFETY: no argument has fewer elements than `count`.
        let read = |from: &*mut f32| unsafe { *from.wrapping_add(at) };
        let values: Vec<f32> = from.iter().map(read).collect();
        for (to, value) in to.iter().zip(body(&values)) {
            // SAFETY: no argument has fewer elements than `count`.
            unsafe { *to.wrapping_add(at) = value };
        }
    }
    Ok(())
}

/// A place of a case: the CPU, or a simulated device for `ext_dev`, which is one for the process.
pub(super) fn place(kind: i32, id: i32) -> Result<Place, Error> {
    static SIMULATED: OnceLock<&'static Simulated> = OnceLock::new();
    if kind == Device::ext_dev(0).kind {
        let api: &'static Simulated =
            SIMULATED.get_or_init(|| Box::leak(Box::new(Simulated::new(1))));
        let api: &'static dyn DeviceApi = api;
        // SAFETY: its memory keeps the rules, and is not the host's, as of no device of this type.
        return Ok(unsafe { Place::with(Device { kind, id }, api) });
    }
    Place::of(Device { kind, id })
}

/// What `view` is, as JSON.
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
        (_, Ok(number)) => json!(number),
        _ => json!({"type_index": view.type_index()}),
    }
}

/// Type, shape and elements; the device instead of the elements when it is not the host.
pub(super) fn tensor_json(tensor: &crate::object::Tensor) -> Value {
    let dl = tensor.dl();
    let dtype = crate::value::dtype_to_text(dl.dtype).unwrap_or_default();
    let mut shown = json!({"dtype": dtype, "shape": tensor.shape()});
    match tensor.to_bytes() {
        Ok(bytes) => shown["data"] = elements(&bytes, dl.dtype.code, dl.dtype.bits),
        Err(_) => shown["device"] = json!([dl.device.device_type, dl.device.device_id]),
    }
    shown
}

/// The elements of a tensor as numbers.
pub(in crate::conformance) fn elements(bytes: &[u8], code: u8, bits: u8) -> Value {
    let four = bytes.as_chunks::<4>().0;
    match (code, bits) {
        (2, 32) => four
            .iter()
            .map(|word| json!(f32::from_le_bytes(*word)))
            .collect(),
        (0, 32) => four
            .iter()
            .map(|word| json!(i32::from_le_bytes(*word)))
            .collect(),
        (0, 8) => bytes.iter().map(|byte| json!(byte.cast_signed())).collect(),
        _ => json!(bytes),
    }
}
