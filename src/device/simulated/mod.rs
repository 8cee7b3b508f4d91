//! An asynchronous device without hardware, for tests of code that calls a [`DeviceApi`].
//!
//! It delays work longer than any real device. A copy or kernel never runs when it is queued. It runs when it must, or when a seeded
//! clock decides. Its memory is not host memory. A fresh space contains `0xCD`, and a freed one `0xDD`. The destination of a copy to
//! the host contains `0xA5` until the copy has run. Every call is logged. A mistake of the caller is recorded as a [`Hazard`]. A test
//! can plant a defect of the device as a [`Bug`], or inject a failure.
//!
//! ```
//! use tvmspec::device::simulated::Simulated;
//! use tvmspec::device::{CopyRequest, Dtype, Device, DeviceApi, Space, Stream};
//!
//! # fn main() -> tvmspec::Result<()> {
//! let device = Device::ext_dev(0);
//! let simulated = Simulated::new(7);
//! let space = simulated.alloc(device, 4, 64, Dtype::UINT8)?;
//! let (input, mut output) = ([1u8, 2, 3, 4], [0u8; 4]);
//! let to = CopyRequest { from: Space::host(&input), from_offset: 0, to: space, to_offset: 0, nbytes: 4,
//!     from_device: Device::CPU, to_device: device, hint: Dtype::UINT8 };
//! let back = CopyRequest { from: space, to: Space::host(&mut output), from_device: device, to_device: Device::CPU, ..to };
//! // SAFETY: both buffers outlive the sync.
//! unsafe {
//!     simulated.copy(&to, Stream::DEFAULT)?;
//!     simulated.copy(&back, Stream::DEFAULT)?;
//! }
//! assert_ne!(output, input); // not there before a sync
//! simulated.sync(device, Stream::DEFAULT)?;
//! assert_eq!(output, input);
//! # Ok(())
//! # }
//! ```

mod machine;
mod memory;

pub use machine::{Hazard, SimulatedCall};
pub use memory::SimulatedMemory;

use crate::device::error::{out_of_memory, reject};
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::stream::{current_device, set_current_device};
use crate::device::{
    Attribute, AttributeValue, CopyRequest, DEV_42, Device, DeviceApi, Dtype, Error, Result, Space,
    Stream,
};
use crate::rule::Kind;
use machine::{SimulatedMachine, Work};
use std::sync::{Arc, Mutex, MutexGuard};

/// A defect that can be planted, to see whether a test notices it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bug {
    /// A `sync` that returns immediately (breaks DEV-36).
    SyncReturnsEarly,
    /// A `free` that reuses memory while queued work still needs it (breaks DEV-46).
    FreeForgetsTheQueue,
    /// A copy between overlapping ranges, byte by byte from the front (breaks DEV-40).
    OverlapSmears,
    /// A stream that runs its newest work first (breaks DEV-37).
    StreamRunsBackwards,
    /// A second workspace that is the first one again (breaks DEV-41).
    WorkspaceTwice,
}

impl Bug {
    /// Every planted defect.
    pub const ALL: [Bug; 5] = [
        Bug::SyncReturnsEarly,
        Bug::FreeForgetsTheQueue,
        Bug::OverlapSmears,
        Bug::StreamRunsBackwards,
        Bug::WorkspaceTwice,
    ];
}

/// The type of device that kernels are launched on.
const KIND: i32 = Device::ext_dev(0).kind;

/// The simulated device. It has the ids 0 and 1 by default, for any device type that the caller names.
pub struct Simulated {
    /// The state that the pools share, because they allocate their blocks from it.
    shared: Arc<SimulatedState>,
    /// The pools of workspace, per thread and device (DEV-25 to DEV-35).
    pools: WorkspacePools,
    /// The number of devices; their ids start at 0.
    devices: i32,
}

debug_fields!(Simulated: devices);

/// The state that a simulated device and its pools share.
struct SimulatedState {
    machine: Mutex<SimulatedMachine>,
    bug: Option<Bug>,
}

impl Simulated {
    /// Creates a device whose clock is seeded with `seed`. Equal seeds and calls run work at equal times.
    pub fn new(seed: u64) -> Simulated {
        Simulated::build(seed, None)
    }

    /// Creates a device with a planted defect.
    pub fn with_bug(seed: u64, bug: Bug) -> Simulated {
        Simulated::build(seed, Some(bug))
    }

    /// Creates two devices of one machine, so that work on the wrong one is noticed.
    fn build(seed: u64, bug: Option<Bug>) -> Simulated {
        let shared = Arc::new(SimulatedState {
            machine: Mutex::new(SimulatedMachine::new(seed, bug)),
            bug,
        });
        Simulated {
            pools: WorkspacePools::new(shared.clone()),
            shared,
            devices: 2,
        }
    }

    /// Makes an allocation fail, after `after` successful ones.
    pub fn fail_alloc(&self, after: usize) {
        self.machine().fail_alloc = Some(after);
    }

    /// Makes a copy fail, after `after` successful ones.
    pub fn fail_copy(&self, after: usize) {
        self.machine().fail_copy = Some(after);
    }

    /// Queues `kernel` on this thread's current device (DEV-55). It runs late, with the device's memory.
    ///
    /// # Errors
    ///
    /// Returns DEV-42 for a stream that the current device does not have.
    pub fn launch(
        &self,
        stream: Stream,
        kernel: impl FnOnce(&mut SimulatedMemory, i32) + Send + 'static,
    ) -> Result<()> {
        let id = current_device(KIND);
        let mut machine = self.machine();
        machine.log(SimulatedCall::Launch(id, stream));
        machine.push(
            id,
            stream,
            Work::Kernel(Box::new(move |memory| kernel(memory, id))),
        )
    }

    /// Returns every call so far, in order.
    pub fn calls(&self) -> Vec<SimulatedCall> {
        self.machine().calls.clone()
    }

    /// Returns the mistakes of callers so far.
    pub fn hazards(&self) -> Vec<Hazard> {
        self.machine().hazards.clone()
    }

    /// Returns [`Simulated::hazards`], plus work that was never waited for and memory that was never freed.
    pub fn finish(&self) -> Vec<Hazard> {
        let machine = self.machine();
        let mut hazards = machine.hazards.clone();
        hazards.extend(machine.final_hazards());
        hazards
    }

    /// Returns the bytes of memory in use.
    pub fn bytes_in_use(&self) -> usize {
        self.machine().memory.bytes_in_use()
    }

    fn machine(&self) -> MutexGuard<'_, SimulatedMachine> {
        self.shared.machine()
    }

    /// Returns the index of `device`; fails with DEV-42 if there is no device of that index.
    fn device_index(&self, device: Device) -> Result<i32> {
        let id = device.id;
        if (0..self.devices).contains(&id) {
            return Ok(id);
        }
        reject(
            DEV_42,
            Kind::Missing,
            format!("Invalid device id {id}: {} are here", self.devices),
        )
    }
}

impl SimulatedState {
    fn machine(&self) -> MutexGuard<'_, SimulatedMachine> {
        // A kernel that panicked leaves the machine as consistent as a device reset does.
        self.machine
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl SpaceSource for SimulatedState {
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        self.machine().alloc(device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        self.machine().free(device, space)
    }
}

impl DeviceApi for Simulated {
    fn set_device(&self, device: Device) -> Result<()> {
        let id = self.device_index(device)?;
        // DEV-55: the current device is stored under the type that `launch` uses, even if the caller names another type.
        set_current_device(Device::ext_dev(id));
        self.machine().log(SimulatedCall::SetDevice(id));
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        // DEV-07: a missing device answers only this attribute.
        if attribute == Attribute::Exist {
            return AttributeValue::int(self.device_index(device).is_ok());
        }
        self.device_index(device)?;
        match attribute {
            Attribute::MaxThreadsPerBlock => AttributeValue::int(256),
            Attribute::WarpSize => AttributeValue::int(1),
            Attribute::ComputeVersion => AttributeValue::text("1.0"),
            Attribute::DeviceName => AttributeValue::text("simulated"),
            Attribute::MaxThreadDimensions => AttributeValue::text("[256, 256, 64]"),
            Attribute::MultiProcessorCount => AttributeValue::int(1),
            _ => Ok(AttributeValue::None),
        }
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        self.device_index(device)?;
        self.shared.alloc(device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: the machine checks the space itself.
        unsafe { self.shared.free(device, space) }
    }

    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        stream.handle_for(copy.device())?;
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { self.machine().copy(*copy, stream) }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        let id = self.device_index(device)?;
        stream.handle_for(device)?;
        let mut machine = self.machine();
        machine.log(SimulatedCall::Sync(id, stream));
        if self.shared.bug != Some(Bug::SyncReturnsEarly) {
            machine.drain(id, stream);
        }
        Ok(())
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        self.device_index(device)?;
        Ok(self.machine().create_stream(device))
    }

    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        let id = self.device_index(device)?;
        stream.handle_for(device)?;
        self.machine().free_stream(id, stream);
        Ok(())
    }

    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        let id = self.device_index(device)?;
        before.handle_for(device)?;
        after.handle_for(device)?;
        self.machine().order(id, before, after)
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, _: Dtype) -> Result<Space> {
        self.device_index(device)?;
        // Only `Bug::WorkspaceTwice` fills this list.
        let twice = self.machine().handed_out.pop();
        if let Some(space) = twice {
            return Ok(space);
        }
        let space = self.pools.alloc(device, nbytes)?;
        if self.shared.bug == Some(Bug::WorkspaceTwice) {
            self.machine().handed_out.push(space);
        }
        Ok(space)
    }

    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        let freed = self.pools.free(device, space);
        if freed.is_err() {
            if self.shared.bug == Some(Bug::WorkspaceTwice) {
                // The second owner of the block frees it again, which the pool rejects (DEV-31). The defect must not show in that
                // way.
                return Ok(());
            }
            let hazard = Hazard::WorkspaceNotTaken(space);
            self.machine().hazards.push(hazard);
        }
        freed
    }

    fn pools_workspace(&self) -> bool {
        true
    }
}

/// Creates the failure that was requested with [`Simulated::fail_alloc`].
fn injected(nbytes: usize) -> Error {
    out_of_memory(nbytes, "injected failure")
}
