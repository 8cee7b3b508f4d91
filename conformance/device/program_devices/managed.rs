//! A manager whose registry has only the stated names, so that it finds no device of this machine.

use super::super::recorder::Recorder;
use super::super::steps::{Step, StepResult};
use super::ProgramDevice;
use crate::conformance::behaviour::expect;
use crate::device::manager::{ApiFactory, Manager};
use crate::device::{
    Attribute, AttributeValue, Device, DeviceApi, Dtype, Result, Space, Stream, TensorRef,
};
use crate::lock::lock;
use crate::module::workspace::WorkspaceRequest;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// All devices of a manager. Each name of its registry has a recorder that copies host memory.
pub(super) struct ManagedDevices {
    manager: Manager,
    registry: Arc<Mutex<NotedRegistry>>,
}

/// The registered names, and the names that were looked up.
#[derive(Default)]
struct NotedRegistry {
    recorders: Vec<(String, &'static Recorder)>,
    lookups: Vec<Value>,
}

impl NotedRegistry {
    fn add(&mut self, name: &str) {
        self.recorders.push((name.to_owned(), recorder()));
    }
}

/// Returns a recorder that is never freed, as managers hold their devices.
pub(in super::super) fn recorder() -> &'static Recorder {
    // The recorders stay reachable, for leak checkers.
    static ALL: Mutex<Vec<&Recorder>> = Mutex::new(Vec::new());
    let recorder: &'static Recorder = Box::leak(Box::new(Recorder::that_copies()));
    lock(&ALL).push(recorder);
    recorder
}

impl ManagedDevices {
    /// Creates a manager with these names.
    pub(super) fn with(names: &[String]) -> ManagedDevices {
        let registry = Arc::new(Mutex::new(NotedRegistry::default()));
        names.iter().for_each(|name| lock(&registry).add(name));
        let shared = registry.clone();
        let lookup = move |name: &str| -> Option<ApiFactory> {
            let mut registry = lock(&shared);
            let mut known = registry.recorders.iter();
            let found = known.find(|(known, _)| known == name).map(|found| found.1);
            let shown = if found.is_some() {
                name.to_owned()
            } else {
                format!("no {name}")
            };
            registry.lookups.push(json!(shown));
            let recorder = found?;
            Some(Box::new(move || Ok(recorder as &dyn DeviceApi)))
        };
        let manager = Manager::with_lookup(Box::new(lookup));
        ManagedDevices { manager, registry }
    }
}

impl ProgramDevice for ManagedDevices {
    fn api(&self) -> &dyn DeviceApi {
        self
    }

    /// Returns the calls, each preceded by the name of the device that received it.
    fn take_calls(&self) -> Vec<Value> {
        let registry = lock(&self.registry);
        let named = |(name, recorder): &(String, &'static Recorder)| {
            let calls = recorder.take_log().into_iter();
            let name = json!(name.trim_start_matches("device_api."));
            let named = |call: Value| {
                let call = call.as_array().cloned().unwrap_or_default();
                Value::Array(std::iter::once(name.clone()).chain(call).collect())
            };
            let calls: Vec<Value> = calls.map(named).collect();
            calls
        };
        registry.recorders.iter().flat_map(named).collect()
    }

    fn step(&self, step: &Step, device: Device) -> Option<StepResult> {
        let compared = |found: Value, what: &str| -> StepResult {
            expect(&found, step.value(1)?, what)?;
            Ok(Value::Null)
        };
        Some(match step.op() {
            "register" => {
                lock(&self.registry).add(step.name(1)?);
                Ok(Value::Null)
            }
            "lookups" => {
                let lookups = std::mem::take(&mut lock(&self.registry).lookups);
                compared(json!(lookups), "names looked up")
            }
            "find" => match self.manager.find(device.kind) {
                Ok(found) => compared(json!(found.is_some()), "whether there is one"),
                Err(error) => Err(error.into()),
            },
            _ => return None,
        })
    }
}

impl DeviceApi for ManagedDevices {
    fn set_device(&self, device: Device) -> Result<()> {
        self.manager.set_device(device)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        self.manager.attribute(device, attribute)
    }

    fn alloc(&self, device: Device, nbytes: usize, at: usize, hint: Dtype) -> Result<Space> {
        self.manager
            .api(device.kind)?
            .alloc(device, nbytes, at, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the caller guarantees it.
        unsafe { self.manager.api(device.kind)?.free(device, space) }
    }

    unsafe fn copy_tensor(
        &self,
        from: &TensorRef<'_>,
        to: &TensorRef<'_>,
        on: Stream,
    ) -> Result<()> {
        // SAFETY: the caller guarantees it.
        unsafe { self.manager.copy_tensor(from, to, on) }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        self.manager.api(device.kind)?.sync(device, stream)
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, hint: Dtype) -> Result<Space> {
        self.manager.workspace(&WorkspaceRequest {
            device_type: device.kind,
            device_id: device.id,
            bytes: nbytes as u64,
            hint: (hint.code.into(), hint.bits.into()),
        })
    }

    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the caller guarantees it.
        unsafe { self.manager.api(device.kind)?.free_workspace(device, space) }
    }
}
