//! The devices of an executor.

use crate::device::manager::Manager;
use crate::device::{Device, DeviceApi};
use crate::function::Error;

/// A device that an executor may use, with its API.
#[derive(Clone, Copy)]
pub struct ExecutorDevice {
    pub(super) device: Device,
    pub(super) api: &'static dyn DeviceApi,
}

debug_fields!(ExecutorDevice: device);

impl ExecutorDevice {
    /// Returns `device` with its API, if the backend exists.
    ///
    /// # Errors
    ///
    /// Returns DEV-04 and DEV-06.
    pub fn new(device: Device) -> Result<ExecutorDevice, Error> {
        let api = Manager::global().api(device.kind)?;
        Ok(ExecutorDevice { device, api })
    }

    /// Combines `device` with the memory and copies of `api`, which the manager need not know.
    ///
    /// # Safety
    ///
    /// As for [`manager::register`](crate::device::manager::register), for the type of `device`.
    pub const unsafe fn with_api(device: Device, api: &'static dyn DeviceApi) -> ExecutorDevice {
        ExecutorDevice { device, api }
    }

    /// Returns the type and index.
    pub const fn device(&self) -> Device {
        self.device
    }
}
