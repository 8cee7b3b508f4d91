//! The devices of an executor.

use crate::device::manager::Manager;
use crate::device::{Device, DeviceApi};
use crate::function::Error;

/// A device that an executor may use: which one, and how to talk to it.
#[derive(Clone, Copy)]
pub struct ExecutorDevice {
    pub(super) device: Device,
    pub(super) api: &'static dyn DeviceApi,
}

impl ExecutorDevice {
    /// `device`, if its backend is here.
    ///
    /// # Errors
    ///
    /// DEV-04 and DEV-06.
    pub fn of(device: Device) -> Result<ExecutorDevice, Error> {
        let api = Manager::global().api(device.kind)?;
        Ok(ExecutorDevice { device, api })
    }

    /// `device`, with the memory and copies of `api`, which need not be known to the manager.
    ///
    /// # Safety
    ///
    /// As for [`manager::register`](crate::device::manager::register), for the type of `device`.
    pub const unsafe fn with(device: Device, api: &'static dyn DeviceApi) -> ExecutorDevice {
        ExecutorDevice { device, api }
    }

    /// Type and index.
    pub const fn device(&self) -> Device {
        self.device
    }
}
