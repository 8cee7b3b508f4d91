//! A device in the hands of a behaviour: memory that is freed, host buffers that outlive every defect.

use crate::conformance::behaviour::Failure;
use crate::device::{CopyRequest, Device, DeviceApi, Dtype, Error, Space, Stream};
use std::sync::Mutex;

/// The device under test.
#[derive(Clone, Copy)]
pub struct Probe<'a> {
    /// Its API.
    pub api: &'a dyn DeviceApi,
    /// Which one.
    pub device: Device,
}

impl<'a> Probe<'a> {
    /// `device` through `api`.
    pub fn new(api: &'a dyn DeviceApi, device: Device) -> Probe<'a> {
        Probe { api, device }
    }

    /// Memory that is freed when dropped.
    pub(crate) fn space(&self, nbytes: usize) -> Result<ProbedMemory<'a>, Error> {
        let space = self.api.alloc(self.device, nbytes, 64, Dtype::UINT8)?;
        Ok(ProbedMemory {
            probe: *self,
            space,
            nbytes,
            workspace: false,
        })
    }

    /// Workspace that is freed when dropped.
    pub(crate) fn workspace(&self, nbytes: usize) -> Result<ProbedMemory<'a>, Error> {
        let space = self
            .api
            .alloc_workspace(self.device, nbytes, Dtype::UINT8)?;
        Ok(ProbedMemory {
            probe: *self,
            space,
            nbytes,
            workspace: true,
        })
    }

    /// Waits for `stream`.
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::sync`].
    pub fn sync(&self, stream: Stream) -> Result<(), Error> {
        self.api.sync(self.device, stream)
    }

    /// Runs `body` with a stream of its own, which is freed.
    pub(crate) fn with_stream(
        &self,
        body: impl FnOnce(Stream) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let stream = self.api.create_stream(self.device)?;
        let outcome = body(stream);
        self.sync(stream)?;
        // SAFETY: made above, and `body` is done with it.
        unsafe { self.api.free_stream(self.device, stream)? };
        outcome
    }
}

/// Memory of the device under test.
pub(crate) struct ProbedMemory<'a> {
    probe: Probe<'a>,
    /// Its handle.
    pub space: Space,
    /// How many bytes were asked for.
    pub nbytes: usize,
    workspace: bool,
}

impl ProbedMemory<'_> {
    /// Queues bytes from the host to `offset`.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8], stream: Stream) -> Result<(), Error> {
        let staging = Staging::of(bytes);
        let copy = CopyRequest {
            from: staging.space(),
            from_offset: 0,
            to: self.space,
            to_offset: offset,
            nbytes: bytes.len(),
            from_device: Device::CPU,
            to_device: self.probe.device,
            hint: Dtype::UINT8,
        };
        // SAFETY: staging lives for ever and is not written again; behaviours stay inside their spaces.
        unsafe { self.probe.api.copy(&copy, stream) }
    }

    /// Queues bytes from `offset` to the host; look after a sync.
    pub(crate) fn read_later(
        &self,
        offset: usize,
        nbytes: usize,
        stream: Stream,
    ) -> Result<Staging, Error> {
        let staging = Staging::of(&vec![0x5A; nbytes]);
        let copy = CopyRequest {
            from: self.space,
            from_offset: offset,
            to: staging.space(),
            to_offset: 0,
            nbytes,
            from_device: self.probe.device,
            to_device: Device::CPU,
            hint: Dtype::UINT8,
        };
        // SAFETY: staging lives for ever; behaviours stay inside their spaces.
        unsafe { self.probe.api.copy(&copy, stream)? };
        Ok(staging)
    }

    /// The bytes from `offset`, after a sync of `stream`.
    pub(crate) fn read(
        &self,
        offset: usize,
        nbytes: usize,
        stream: Stream,
    ) -> Result<Vec<u8>, Error> {
        let staging = self.read_later(offset, nbytes, stream)?;
        self.probe.sync(stream)?;
        Ok(staging.bytes())
    }

    /// Queues a copy from here into `to`.
    pub(crate) fn copy_to(
        &self,
        from_offset: usize,
        to: &ProbedMemory<'_>,
        to_offset: usize,
        nbytes: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        let copy = CopyRequest {
            from: self.space,
            from_offset,
            to: to.space,
            to_offset,
            nbytes,
            from_device: self.probe.device,
            to_device: to.probe.device,
            hint: Dtype::UINT8,
        };
        // SAFETY: behaviours stay inside their spaces.
        unsafe { self.probe.api.copy(&copy, stream) }
    }

    /// Gives the memory back now and says how that went.
    pub(crate) fn free(self) -> Result<(), Error> {
        let held = std::mem::ManuallyDrop::new(self);
        held.delete_exported()
    }

    /// Returns the memory to where it is from: workspace to the pool (DEV-32), anything else to the device.
    fn delete_exported(&self) -> Result<(), Error> {
        let Probe { api, device } = self.probe;
        if self.workspace {
            // SAFETY: `space` is workspace of this API, and this object is its only owner.
            unsafe { api.free_workspace(device, self.space) }
        } else {
            // SAFETY: `space` came from this API, and this object is its only owner.
            unsafe { api.free(device, self.space) }
        }
    }
}

impl Drop for ProbedMemory<'_> {
    fn drop(&mut self) {
        // A failure to free shows where a behaviour frees for itself.
        let _ = self.delete_exported();
    }
}

/// Host memory for copies. It is never freed: a device with a defect may touch it at any later time.
#[derive(Clone, Copy)]
pub(crate) struct Staging {
    data: Space,
    nbytes: usize,
}

/// Keeps staging reachable, for leak checkers.
static STAGING: Mutex<Vec<Space>> = Mutex::new(Vec::new());

impl Staging {
    /// A copy of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Staging {
        let memory = Box::leak(Box::<[u8]>::from(bytes));
        let staging = Staging {
            data: Space(memory.as_mut_ptr().cast()),
            nbytes: bytes.len(),
        };
        let mut all = STAGING
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        all.push(staging.data);
        staging
    }

    /// Writes `bytes` over the first of its own, as a host does that does not wait.
    pub(crate) fn overwrite(self, bytes: &[u8]) {
        let data = self.data.0.cast::<u8>();
        for (at, byte) in bytes.iter().enumerate().take(self.nbytes) {
            // SAFETY: the memory lives for ever and has this byte; a device may read it behind our back, so each is written by
            // itself.
            unsafe { data.wrapping_add(at).write_volatile(*byte) };
        }
    }

    /// The handle that a copy takes.
    pub(crate) fn space(self) -> Space {
        self.data
    }

    /// What it holds now.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let data = self.data.0.cast::<u8>();
        // SAFETY: the memory lives for ever; a device may write to it behind our back, so every byte is read by itself.
        (0..self.nbytes)
            .map(|at| unsafe { data.wrapping_add(at).read_volatile() })
            .collect()
    }
}

/// Bytes that differ from place to place and from seed to seed.
pub fn pattern(seed: usize, nbytes: usize) -> Vec<u8> {
    (0..nbytes)
        .map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(89)) as u8)
        .collect()
}
