//! The devices that programs drive: one under test, or one that a testee creates itself (`["on", WHICH]`).

mod kernels;
mod managed;

pub(super) use managed::recorder;

use super::failing_table::as_a_table;
use super::recorder::Recorder;
use super::steps::{Step, StepResult, Stop};
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::simulated::Simulated;
use crate::device::{
    Attribute, AttributeValue, Device, DeviceApi, Dtype, Result as DeviceResult, Space, Stream, cpu,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// A device that a program drives.
pub(super) trait ProgramDevice: Sync {
    /// Returns its interface.
    fn api(&self) -> &dyn DeviceApi;

    /// Returns the device that steps use until one names another.
    fn device(&self) -> Device {
        Device::ext_dev(0)
    }

    /// Returns whether it is the testee's own device, so that each rejection names its rule.
    fn is_own(&self) -> bool {
        true
    }

    /// Returns the calls that reached it since the last time.
    fn take_calls(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Runs a step that only this kind of device has.
    fn step(&self, _: &Step, _: Device) -> Option<StepResult> {
        None
    }
}

/// The device under test.
pub(super) struct UnderTest<'a> {
    pub(super) api: &'a dyn DeviceApi,
    pub(super) device: Device,
}

impl ProgramDevice for UnderTest<'_> {
    fn api(&self) -> &dyn DeviceApi {
        self.api
    }

    fn device(&self) -> Device {
        self.device
    }

    fn is_own(&self) -> bool {
        false
    }
}

/// The device that a step `on` states.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum DeviceChoice {
    Cpu,
    Simulated,
    Recorder,
    #[serde(rename = "recorder that copies")]
    RecorderThatCopies,
    Table,
    Pool,
    Kernels,
    Manager(Vec<String>),
}

/// Returns the device that a step states, empty of memory and calls.
pub(super) fn create_device(which: &Value) -> Result<Box<dyn ProgramDevice>, Stop> {
    let malformed = |error| Stop::Malformed(format!("`on`: {error}"));
    Ok(match DeviceChoice::deserialize(which).map_err(malformed)? {
        DeviceChoice::Cpu => Box::new(UnlistedDevice(cpu::cpu(), Device::CPU)),
        DeviceChoice::Simulated => Box::new(Simulated::new(1)),
        DeviceChoice::Recorder => Box::new(Recorder::new()),
        DeviceChoice::RecorderThatCopies => Box::new(Recorder::that_copies()),
        DeviceChoice::Table => Box::new(RecorderTable::new()),
        DeviceChoice::Pool => Box::new(PooledRecorder::new()),
        DeviceChoice::Kernels => Box::new(kernels::NotedKernels::new()?),
        DeviceChoice::Manager(names) => Box::new(managed::ManagedDevices::with(&names)),
    })
}

/// A device of the testee whose calls are not logged.
struct UnlistedDevice(&'static dyn DeviceApi, Device);

impl ProgramDevice for UnlistedDevice {
    fn api(&self) -> &dyn DeviceApi {
        self.0
    }

    fn device(&self) -> Device {
        self.1
    }
}

impl ProgramDevice for Simulated {
    fn api(&self) -> &dyn DeviceApi {
        self
    }
}

impl ProgramDevice for Recorder {
    fn api(&self) -> &dyn DeviceApi {
        self
    }

    fn take_calls(&self) -> Vec<Value> {
        self.take_log()
    }
}

/// A recorder that is called through a C table.
struct RecorderTable {
    recorder: &'static Recorder,
    api: &'static dyn DeviceApi,
}

impl RecorderTable {
    fn new() -> RecorderTable {
        // Leaked, because a table contains the address of its device and lives as long as the process (DEV-02).
        let recorder: &'static Recorder = Box::leak(Box::default());
        let api = as_a_table(recorder);
        RecorderTable { recorder, api }
    }
}

impl ProgramDevice for RecorderTable {
    fn api(&self) -> &dyn DeviceApi {
        self.api
    }

    // An error of a table is only a text.
    fn is_own(&self) -> bool {
        false
    }

    fn take_calls(&self) -> Vec<Value> {
        self.recorder.take_log()
    }
}

/// A pool of workspace that takes its blocks from a recorder.
pub(super) struct PooledRecorder {
    pub(super) recorder: Arc<Recorder>,
    pub(super) pools: WorkspacePools,
}

impl PooledRecorder {
    /// Creates an empty pool.
    pub(super) fn new() -> PooledRecorder {
        let recorder = Arc::new(Recorder::new());
        let pools = WorkspacePools::new(recorder.clone());
        PooledRecorder { recorder, pools }
    }
}

impl ProgramDevice for PooledRecorder {
    fn api(&self) -> &dyn DeviceApi {
        self
    }

    fn take_calls(&self) -> Vec<Value> {
        self.recorder.take_log()
    }
}

impl DeviceApi for PooledRecorder {
    fn set_device(&self, device: Device) -> DeviceResult<()> {
        self.recorder.set_device(device)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> DeviceResult<AttributeValue> {
        self.recorder.attribute(device, attribute)
    }

    fn alloc(&self, device: Device, nbytes: usize, at: usize, hint: Dtype) -> DeviceResult<Space> {
        SpaceSource::alloc(&*self.recorder, device, nbytes, at, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> DeviceResult<()> {
        // SAFETY: the caller guarantees it.
        unsafe { SpaceSource::free(&*self.recorder, device, space) }
    }

    fn sync(&self, device: Device, stream: Stream) -> DeviceResult<()> {
        self.recorder.sync(device, stream)
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, _: Dtype) -> DeviceResult<Space> {
        self.pools.alloc(device, nbytes)
    }

    unsafe fn free_workspace(&self, device: Device, space: Space) -> DeviceResult<()> {
        self.pools.free(device, space)
    }

    fn pools_workspace(&self) -> bool {
        true
    }
}
