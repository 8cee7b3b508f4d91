//! A module of two kernels whose driver launches nothing. The time of loading, the device and stream of a launch, and the bytes of
//! its arguments are all decided before the driver is called.

use super::super::pack::arg;
use super::super::steps::{Step, StepResult, Stop};
use super::ProgramDevice;
use crate::conformance::behaviour::{Failure, demand, expect};
use crate::device::error::missing_driver;
use crate::device::launch::{Packed, WorkSizes};
use crate::device::module::{DeviceModule, Kernel, KernelDescription, LoadedCode, ModuleCode};
use crate::device::stream::set_current_device;
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, Dtype, Result, Space, Stream};
use crate::lock::lock;
use serde_json::{Value, json};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// A device type that no other case uses, so that no other case changes its current device.
const KIND: i32 = 31;

/// The module, its kernels as they were first looked up, and the calls of the driver.
pub(super) struct NotedKernels {
    module: Arc<DeviceModule>,
    kernels: Vec<Kernel>,
    log: KernelLog,
}

/// The calls of the driver, from all threads.
#[derive(Clone, Default)]
struct KernelLog(Arc<Mutex<Vec<Value>>>);

impl KernelLog {
    fn note(&self, call: Value) {
        lock(&self.0).push(call);
    }
}

impl NotedKernels {
    /// Creates a module whose code is not loaded. Its kernels have two parameters and two launch tags, and one of each (DEV-47).
    pub(super) fn new() -> Result<NotedKernels> {
        set_current_device(Device::new(KIND, 0));
        let log = KernelLog::default();
        let handle = Dtype::scalar(Dtype::HANDLE, 64);
        let number = Dtype::scalar(Dtype::INT, 32);
        let add = KernelDescription::new("add", &[handle, number], &["blockIdx.x", "threadIdx.x"]);
        let mul = KernelDescription::new("mul", &[handle], &["threadIdx.x"]);
        let kernels = vec![add?, mul?];
        let module = DeviceModule::new("noted", Box::new(log.clone()), kernels);
        let kernels = ["add", "mul"].map(|name| module.kernel(name));
        Ok(NotedKernels {
            kernels: kernels.into_iter().flatten().collect(),
            module,
            log,
        })
    }

    /// Launches a kernel with the values of the step.
    fn launch(&self, step: &Step) -> StepResult {
        let name = step.text(1)?;
        let malformed = || Stop::Malformed(format!("`launch` has no values in {step}"));
        let args = step.value(2)?.as_array().ok_or_else(malformed)?;
        let args: Option<Vec<_>> = args.iter().map(|value| arg(value).ok()).collect();
        let kernel = self.module.names().position(|known| known == name);
        let kernel = kernel.and_then(|at| self.kernels.get(at));
        let Some(kernel) = kernel else {
            return Ok(Failure::broken(format!("there is no kernel `{name}`"))?);
        };
        // SAFETY: this driver launches nothing.
        unsafe { kernel.call(&args.ok_or_else(malformed)?) }?;
        Ok(Value::Null)
    }

    /// Compares the kind of the module, and its kernels with the number of their values.
    fn compare(&self, step: &Step) -> StepResult {
        let arities = self.kernels.iter().map(Kernel::arity);
        let kernels: Vec<Value> = self
            .module
            .names()
            .zip(arities)
            .map(|of| json!(of))
            .collect();
        expect(self.module.kind(), "noted", "the kind")?;
        expect(&json!(kernels), step.value(1)?, "kernels and their values")?;
        Ok(Value::Null)
    }
}

impl ProgramDevice for NotedKernels {
    fn api(&self) -> &dyn DeviceApi {
        &NoMemory
    }

    fn device(&self) -> Device {
        Device::new(KIND, 0)
    }

    fn take_calls(&self) -> Vec<Value> {
        std::mem::take(&mut lock(&self.log.0))
    }

    fn step(&self, step: &Step, _: Device) -> Option<StepResult> {
        let nothing = |()| Value::Null;
        Some(match step.op() {
            "launch" => self.launch(step),
            "reset-barrier" => self.module.reset_barrier().map(nothing).map_err(Stop::from),
            "kernels" => self.compare(step),
            "no-kernel" => {
                let found = step.text(1).map(|name| self.module.kernel(name).is_some());
                let none = |found: bool| demand(!found, || "it is found".into());
                found.and_then(|found| Ok(nothing(none(found)?)))
            }
            _ => return None,
        })
    }
}

impl ModuleCode for KernelLog {
    fn device_kind(&self) -> i32 {
        KIND
    }

    fn load(&self, id: i32) -> Result<Arc<dyn LoadedCode>> {
        self.note(json!(["load", id]));
        Ok(Arc::new(NotedCode(self.clone(), id)))
    }

    fn has_barrier(&self) -> bool {
        true
    }
}

/// The module, loaded on the device of this number.
struct NotedCode(KernelLog, i32);

impl LoadedCode for NotedCode {
    unsafe fn launch(
        &self,
        kernel: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()> {
        let bytes: usize = args.values().map(|(_, bytes)| bytes.len()).sum();
        let WorkSizes { grid, block, .. } = sizes;
        self.0.note(json!([
            kernel.name,
            self.1,
            queue(stream),
            bytes,
            grid,
            block
        ]));
        Ok(())
    }

    fn reset_barrier(&self, stream: Stream) -> Result<()> {
        self.0.note(json!(["reset-barrier", self.1, queue(stream)]));
        Ok(())
    }
}

/// Returns the word for a stream in the log.
fn queue(stream: Stream) -> &'static str {
    if stream == Stream::DEFAULT {
        "default"
    } else {
        "own"
    }
}

/// The devices of the driver. They can be made current and have streams, which is all that a launch needs.
struct NoMemory;

/// Returns the failure of every call for memory.
fn reject_memory_call<T>() -> Result<T> {
    Err(missing_driver("these devices have no memory"))
}

impl DeviceApi for NoMemory {
    fn set_device(&self, device: Device) -> Result<()> {
        set_current_device(device);
        Ok(())
    }

    fn attribute(&self, _: Device, _: Attribute) -> Result<AttributeValue> {
        Ok(AttributeValue::None)
    }

    fn alloc(&self, _: Device, _: usize, _: usize, _: Dtype) -> Result<Space> {
        reject_memory_call()
    }

    unsafe fn free(&self, _: Device, _: Space) -> Result<()> {
        reject_memory_call()
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        let handle: *mut c_void = std::ptr::without_provenance_mut(64);
        // SAFETY: this driver dereferences no handle.
        Ok(unsafe { Stream::from_handle(device, handle) })
    }

    fn sync(&self, _: Device, _: Stream) -> Result<()> {
        Ok(())
    }
}
